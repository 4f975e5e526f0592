//! What a hub watches while its session stands: that pings, publishes and re-authentications are answered in time.

use super::{Hub, NEVER, State};
use crate::agents::attempt::Attempts;
use crate::agents::{Action, Context, Timer};
use crate::event::{Cause, HubChange, Offset, Outcome};
use crate::plan::fault::How;
use std::time::Duration;

impl Hub {
    /// Time between two PINGREQ; zero for none at all.
    pub(super) fn keep_alive(&self) -> Duration {
        self.server_keep_alive_s
            .map_or(self.config.keep_alive, |seconds| {
                Duration::from_secs(u64::from(seconds))
            })
    }

    /// How long PINGRESP may take: a silent broker is noticed before the second keep-alive is over.
    pub(super) fn pong_limit(&self) -> Duration {
        self.config.timeout.min(self.keep_alive() * 3 / 4)
    }

    /// One deadline serves PINGRESP, AUTH and every PUBACK. It is left running when its reason is gone, and looks for the next reason
    /// when it runs out; that is cheaper than moving it with every packet.
    pub(super) fn arm_deadline(&mut self, at: Offset, out: &mut Vec<Action>) {
        // Until then the deadline is that of the attempt to connect.
        let stands = self.state == State::Connected;
        if stands && at < self.deadline_at {
            self.deadline_at = at;
            out.push(Action::WakeAt(Timer::Deadline, at));
        }
    }

    pub(super) fn arm_for_errands(&mut self, out: &mut Vec<Action>) {
        if let Some(oldest) = self.errands.oldest_publish() {
            self.arm_deadline(oldest.after(self.config.timeout), out);
        }
    }

    pub(super) fn overdue(
        &mut self,
        now: Offset,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        self.deadline_at = NEVER;
        if self.pong_at <= now {
            out.push(Action::Close(How::Close));
            let change = HubChange::Lost(Cause::KeepAlive);
            self.session_ended(
                now,
                (change, Outcome::TimedOut),
                Duration::ZERO,
                context,
                out,
            );
            return;
        }
        let expired = self.errands.expire(&self.config, now, out);
        if expired.is_some_and(|sent| sent > self.acknowledged_at) && !self.is_stuck {
            self.is_stuck = true;
            self.tell(HubChange::Stuck, now, out);
        }
        let answer_at = self
            .reauthentication
            .as_ref()
            .map(|attempt| attempt.sent().after(self.config.timeout));
        if answer_at.is_some_and(|at| at <= now) {
            self.reauthenticated(now, Outcome::TimedOut, out);
        }
        self.arm_for_errands(out);
        self.arm_deadline(self.pong_at, out);
        if let Some(at) = answer_at.filter(|at| *at > now) {
            self.arm_deadline(at, out);
        }
    }

    /// The session ends, or moves on.
    pub(super) fn freed(&mut self, now: Offset, out: &mut Vec<Action>) {
        if std::mem::take(&mut self.is_stuck) {
            self.tell(HubChange::Freed, now, out);
        }
    }

    pub(super) fn published(
        &mut self,
        now: Offset,
        token: u64,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) {
        if self.errands.published(token, outcome, now, out) {
            self.acknowledged_at = now;
            self.freed(now, out);
        }
        self.arm_for_errands(out);
    }

    /// Starts a re-authentication; one that can't be started has not been sent.
    pub(super) fn reauthenticate(
        &mut self,
        now: Offset,
        context: &Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let Some(operation) = self.config.reauthenticate else {
            return;
        };
        let mut attempt = Attempts::start(operation, now, now, out);
        if self.state != State::Connected || self.reauthentication.is_some() {
            attempt.finish(now, Outcome::NotSent, out);
            return;
        }
        attempt.attempt(now, context, out);
        self.reauthentication = Some(Box::new(attempt));
        out.push(Action::Reauthenticate);
        self.arm_deadline(now.after(self.config.timeout), out);
    }

    pub(super) fn reauthenticated(&mut self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        if let Some(attempt) = self.reauthentication.take() {
            attempt.answered(now, outcome, out);
            attempt.finish(now, outcome, out);
        }
    }
}

//! A hub's way to its shard: asking for it, following references, coming back with a new certificate.

use super::{Hub, State};
use crate::agents::whereabouts::{Next, Reference, ShardRow};
use crate::agents::{Action, Context, Timer};
use crate::event::{Event, HubChange, Offset, Outcome, ReferenceVerdict};
use crate::plan::fault::How;
use crate::plan::fleet::Reconnect;
use std::time::Duration;

impl Hub {
    /// Tells that a session begins or ends on the hub's shard.
    pub(super) fn stands(&self, stands: bool, at: Offset, out: &mut Vec<Action>) {
        if !self.config.homes.is_empty() {
            out.push(Action::Tell(Event::Standing {
                group: self.config.group,
                hub: self.index,
                shard: self.place.shard(),
                stands,
                at,
            }));
        }
    }

    /// Makes the next attempt: asks for the shard first, where the hub has to.
    pub(super) fn set_out(
        &mut self,
        due: Offset,
        now: Offset,
        context: &Context<'_>,
        out: &mut Vec<Action>,
    ) {
        if !self.outage_began {
            self.outage = self.outage.start_next(due, now, out);
            self.outage_began = true;
        }
        match (self.place.next(self.config.finding), self.config.find) {
            (Next::Ask, Some(operation)) => {
                self.state = State::Finding;
                self.asked_at = now;
                out.push(Action::Tell(Event::Started {
                    operation,
                    due: now,
                    at: now,
                }));
                out.push(Action::Tell(Event::Attempted { operation, at: now }));
                out.push(Action::Find);
                out.push(Action::WakeAt(
                    Timer::Deadline,
                    now.after(self.config.timeout),
                ));
            }
            _ => self.connect(now, context, out),
        }
    }

    /// The question for the shard has come to an end.
    pub(super) fn answered_where(&self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        let Some(operation) = self.config.find else {
            return;
        };
        let sent = self.asked_at;
        out.push(Action::Tell(Event::Answered {
            operation,
            sent,
            at: now,
            outcome,
        }));
        out.push(Action::Tell(Event::Finished {
            operation,
            due: sent,
            started: sent,
            at: now,
            outcome,
            attempts: 1,
        }));
    }

    /// The run ended before the answer to the question for the shard.
    pub(super) fn unanswered_where(&self, now: Offset, out: &mut Vec<Action>) {
        if let Some(operation) = self.config.find {
            out.push(Action::Tell(Event::Unfinished {
                operation,
                due: self.asked_at,
                at: now,
            }));
        }
    }

    pub(super) fn found(
        &mut self,
        now: Offset,
        found: Result<ShardRow, Outcome>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let outcome = found.err().unwrap_or(Outcome::Ok);
        match found {
            Ok(shard) => {
                self.answered_where(now, outcome, out);
                self.place.found(shard);
                self.connect(now, context, out);
            }
            Err(_) => self.attempt_failed(now, outcome, Duration::ZERO, context, out),
        }
    }

    pub(super) fn pointed(
        &mut self,
        now: Offset,
        text: String,
        reference: Reference,
        out: &mut Vec<Action>,
    ) {
        let follows = self.place.pointed(self.config.finding, reference);
        out.push(Action::Tell(Event::Reference {
            group: self.config.group,
            text,
            verdict: match follows {
                true => ReferenceVerdict::Followed,
                false => ReferenceVerdict::Ignored,
            },
            at: now,
        }));
    }

    /// Takes the next certificate into use, and connects again at once where the old session is to `end`.
    pub(super) fn renew(&mut self, now: Offset, end: Option<How>, out: &mut Vec<Action>) {
        out.push(Action::Renew);
        out.push(Action::Tell(Event::Renewed {
            group: self.config.group,
            hub: self.index,
            at: now,
        }));
        let (State::Connected, Some(how)) = (self.state, end) else {
            return;
        };
        out.push(Action::Close(how));
        self.leave(now, (HubChange::Left, Outcome::Reset), out);
        self.failures = 0;
        self.wait_until(now, out);
    }

    pub(super) fn may_try_again(&self) -> bool {
        let tried = self.outage.made().saturating_add(self.asked_in_vain);
        self.config.reconnect.retry.allows(tried)
    }

    pub(super) fn wait(&mut self, from: Offset, context: &mut Context<'_>, out: &mut Vec<Action>) {
        let Reconnect { retry, first, .. } = self.config.reconnect;
        let wait = if self.failures == 0 {
            self.outage.forget_waits();
            context.dice.between(Duration::ZERO, first)
        } else {
            self.outage
                .backoff(&retry.backoff, self.failures, context.dice)
        };
        self.wait_until(from.after(wait), out);
    }

    pub(super) fn wait_until(&mut self, at: Offset, out: &mut Vec<Action>) {
        self.connect_at = at;
        self.state = State::Waiting;
        out.push(Action::WakeAt(Timer::Connect, self.connect_at));
    }
}

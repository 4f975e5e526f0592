//! What a hub decides: its session, its keep-alive, its telemetry, its answers and above all when it comes back.
//!
//! The first reconnect after a healthy session waits uniformly in [0, `first`); every later one waits by the retry policy. The backoff
//! starts anew only after a session has lived for `healthy_after`: a hub that is accepted and thrown out at once goes on backing off,
//! also across outages. (A reset on CONNACK is the classic mistake.) A hub tries again after every outcome, a refused login too: it
//! has nobody to tell.
//!
//! A hub counts as connected from SUBACK on, and no longer while it is *stuck*: its session stands, but no publish is acknowledged.
//! Whose session another client has taken over stays away for at least the policy's longest wait: otherwise the two would throw each
//! other out for ever.
//!
//! What the hub has under way besides its session is in `errand.rs`. There are tens of thousands of hubs in a process, so a hub
//! is small and owns no heap memory while it is idle; its serial number is rendered when a driver needs it.

mod admission;
mod commands;
mod config;
mod watch;
mod way;

pub use config::HubConfig;

use super::attempt::Attempts;
use super::errand::Errands;
use super::handshake::Handshake;
use super::whereabouts::Whereabouts;
use super::{Accepted, Action, Agent, Context, Input, Message, Order, Timer};
use crate::event::{Cause, Event, HubChange, Offset, Outcome};
use crate::plan::fault::How;
use crate::plan::fleet::Reconnect;
use std::sync::Arc;
use std::time::Duration;

/// For what is not waited for.
const NEVER: Offset = Offset(u64::MAX);
/// A hub whose session was taken over stays away at least this long, whatever its policy.
const SHORTEST_ALOOF: Duration = Duration::from_secs(1);

/// One hub.
#[derive(Debug)]
pub struct Hub {
    config: Arc<HubConfig>,
    /// The current outage: its due time and its attempts to connect.
    outage: Attempts,
    handshake: Handshake,
    /// When the session became `Connected`.
    connected_at: Offset,
    /// Waiting: when the next attempt is due.
    connect_at: Offset,
    telemetry_at: Offset,
    /// When the PINGRESP that is waited for is overdue.
    pong_at: Offset,
    /// When the deadline runs out.
    deadline_at: Offset,
    /// When the broker last acknowledged a publish.
    acknowledged_at: Offset,
    errands: Errands,
    place: Whereabouts,
    /// When the question for its shard was sent.
    asked_at: Offset,
    /// Questions of this outage that no answer came of.
    asked_in_vain: u32,
    /// The re-authentication that is under way.
    reauthentication: Option<Box<Attempts>>,
    index: u32,
    /// Attempts that failed and sessions that died young, since the last healthy session.
    failures: u32,
    /// What the broker said in place of the group's keep-alive.
    server_keep_alive_s: Option<u16>,
    state: State,
    /// The outage has been told as started.
    outage_began: bool,
    is_stuck: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// For the next attempt to connect.
    Waiting,
    /// Asks for its shard.
    Finding,
    Opening,
    Subscribing,
    Connected,
    Done,
}

impl Hub {
    /// Hub `index` (from 0) of its group.
    ///
    /// # Panics
    /// If `index` is not below the group's count.
    #[must_use]
    pub fn new(config: &Arc<HubConfig>, index: u64) -> Hub {
        assert!(
            index < u64::from(config.count),
            "hub {index} of a group of {}",
            config.count
        );
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Hub {
            config: Arc::clone(config),
            outage: Attempts::none(config.connect),
            handshake: Handshake::default(),
            connected_at: Offset::ZERO,
            connect_at: Offset::ZERO,
            telemetry_at: Offset::ZERO,
            pong_at: NEVER,
            deadline_at: NEVER,
            acknowledged_at: Offset::ZERO,
            errands: Errands::default(),
            place: Whereabouts::new(config.home(index)),
            asked_at: Offset::ZERO,
            asked_in_vain: 0,
            index,
            reauthentication: None,
            failures: 0,
            server_keep_alive_s: None,
            state: State::New,
            outage_began: false,
            is_stuck: false,
        }
    }

    fn tell(&self, change: HubChange, at: Offset, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Hub {
            group: self.config.group,
            hub: self.index,
            change,
            at,
        }));
    }

    fn connect(&mut self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        self.state = State::Opening;
        self.outage.attempt(now, context, out);
        out.push(Action::Connect {
            shard: self.place.shard(),
        });
        out.push(Action::WakeAt(
            Timer::Deadline,
            now.after(self.config.timeout),
        ));
    }

    fn connected(&mut self, now: Offset, context: &mut Context<'_>, out: &mut Vec<Action>) {
        self.state = State::Connected;
        self.connected_at = now;
        self.outage.answered(now, Outcome::Ok, out);
        self.outage.finish(now, Outcome::Ok, out);
        self.outage_began = false;
        self.tell(HubChange::Connected, now, out);
        self.stands(true, now, out);
        out.push(Action::Cancel(Timer::Deadline));
        self.deadline_at = NEVER;
        self.pong_at = NEVER;
        // Hubs that connect together must not ping and report together for the rest of the run.
        if !self.keep_alive().is_zero() {
            let phase = context.dice.between(Duration::ZERO, self.keep_alive());
            out.push(Action::WakeAt(Timer::KeepAlive, now.after(phase)));
        }
        if self.config.telemetry.is_some() {
            self.telemetry_at = now.after(
                context
                    .dice
                    .between(Duration::ZERO, self.config.telemetry_every),
            );
            out.push(Action::WakeAt(Timer::Telemetry, self.telemetry_at));
        }
        self.actuated(now, out);
        self.arm_for_errands(out);
    }

    fn accepted(
        &mut self,
        now: Offset,
        accepted: Accepted,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        self.tell(HubChange::Accepted, now, out);
        self.server_keep_alive_s = accepted.keep_alive_s;
        self.errands.accepted(accepted, now, out);
        if self.config.subscribes {
            self.state = State::Subscribing;
            out.push(Action::Subscribe);
        } else {
            self.connected(now, context, out);
        }
    }

    /// The attempt to connect failed; the next one is due `away` plus the policy's wait from now.
    fn attempt_failed(
        &mut self,
        now: Offset,
        outcome: Outcome,
        away: Duration,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        self.handshake
            .finish(self.config.handshake, outcome, now, out);
        self.errands
            .session_ended(!self.config.clean_start, now, out);
        match self.state {
            State::Finding => {
                self.answered_where(now, outcome, out);
                self.asked_in_vain = self.asked_in_vain.saturating_add(1);
            }
            _ => self.outage.answered(now, outcome, out),
        }
        let first = self.failures == 0;
        self.failures = self.failures.saturating_add(1);
        out.push(Action::Cancel(Timer::Deadline));
        let pointed = self.place.attempt_failed(self.config.finding);
        if pointed && first && away.is_zero() {
            self.wait_until(now, out);
        } else if self.may_try_again() {
            self.wait(now.after(away), context, out);
        } else {
            self.errands.give_up(now, out);
            self.outage.finish(now, outcome, out);
            self.state = State::Done;
            out.push(Action::Done);
        }
    }

    /// The session ended after it had counted as connected. `outcome` is what that means for a re-authentication.
    fn session_ended(
        &mut self,
        now: Offset,
        ended: (HubChange, Outcome),
        away: Duration,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        self.leave(now, ended, out);
        let pointed = self.place.session_ended();
        self.failures = if now.since(self.connected_at) >= self.config.reconnect.healthy_after {
            0
        } else {
            self.failures.saturating_add(1)
        };
        if pointed && self.failures == 0 && away.is_zero() {
            self.wait_until(now, out);
        } else {
            self.wait(now.after(away), context, out);
        }
    }

    /// Everything of the session is over.
    fn leave(
        &mut self,
        now: Offset,
        (change, outcome): (HubChange, Outcome),
        out: &mut Vec<Action>,
    ) {
        self.freed(now, out);
        self.tell(change, now, out);
        self.stands(false, now, out);
        self.errands
            .session_ended(!self.config.clean_start, now, out);
        self.reauthenticated(now, outcome, out);
        self.deadline_at = NEVER;
        for timer in [Timer::Deadline, Timer::KeepAlive, Timer::Telemetry] {
            out.push(Action::Cancel(timer));
        }
        self.outage = self.outage.over();
        self.asked_in_vain = 0;
    }

    fn lost(
        &mut self,
        now: Offset,
        (outcome, cause): (Outcome, Cause),
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let away = if cause == Cause::TAKEN_OVER {
            self.aloof(context)
        } else {
            Duration::ZERO
        };
        match self.state {
            State::Finding | State::Opening | State::Subscribing => {
                self.attempt_failed(now, outcome, away, context, out);
            }
            State::Connected => {
                self.session_ended(now, (HubChange::Lost(cause), outcome), away, context, out)
            }
            State::New | State::Waiting | State::Done => {}
        }
    }

    /// How long a hub whose session was taken over stays away before it waits by its policy.
    fn aloof(&self, context: &mut Context<'_>) -> Duration {
        let Reconnect { retry, first, .. } = self.config.reconnect;
        let longest = retry.backoff.longest().max(first).max(SHORTEST_ALOOF);
        longest + context.dice.between(Duration::ZERO, longest)
    }

    fn stop(&mut self, now: Offset, out: &mut Vec<Action>) {
        match self.state {
            State::Connected => {
                out.push(Action::Leave);
                self.freed(now, out);
                self.tell(HubChange::Left, now, out);
                self.stands(false, now, out);
            }
            State::Finding => {
                out.push(Action::Close(How::Disconnect));
                self.unanswered_where(now, out);
                self.outage.unfinished(now, out);
            }
            State::Opening | State::Subscribing => {
                out.push(Action::Leave);
                self.handshake.unfinished(self.config.handshake, now, out);
                self.outage.unfinished(now, out);
            }
            State::Waiting if self.outage_began => self.outage.unfinished(now, out),
            State::New | State::Waiting | State::Done => {}
        }
        self.errands.unfinished(now, out);
        if let Some(reauthentication) = self.reauthentication.take() {
            reauthentication.unfinished(now, out);
        }
        self.state = State::Done;
        out.push(Action::Done);
    }

    fn timer(
        &mut self,
        now: Offset,
        timer: Timer,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match (timer, self.state) {
            (Timer::Connect, State::Waiting) => {
                if self.outage_began && !self.outage.pay(now, context, out) {
                    // It has nobody to tell, so it waits for better times.
                    self.failures = self.failures.saturating_add(1);
                    self.wait(now, context, out);
                    return;
                }
                self.set_out(self.connect_at, now, context, out);
            }
            (Timer::Deadline, State::Finding | State::Opening | State::Subscribing) => {
                out.push(Action::Close(How::Close));
                self.attempt_failed(now, Outcome::TimedOut, Duration::ZERO, context, out);
            }
            (Timer::Deadline, State::Connected) => self.overdue(now, context, out),
            (Timer::KeepAlive, State::Connected) => {
                if self.pong_at == NEVER {
                    self.pong_at = now.after(self.pong_limit());
                    out.push(Action::Ping);
                    self.arm_deadline(self.pong_at, out);
                }
                out.push(Action::WakeAt(
                    Timer::KeepAlive,
                    now.after(self.keep_alive()),
                ));
            }
            (Timer::Telemetry, State::Connected) => {
                self.errands.publish(
                    &self.config,
                    Message::Telemetry,
                    self.telemetry_at,
                    now,
                    out,
                );
                self.arm_for_errands(out);
                self.telemetry_at = self.telemetry_at.after(self.config.telemetry_every);
                out.push(Action::WakeAt(Timer::Telemetry, self.telemetry_at));
            }
            (Timer::Actuated, State::Connected) => self.actuated(now, out),
            _ => {}
        }
    }
}

impl Agent for Hub {
    fn on(
        &mut self,
        now: Offset,
        input: Input<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match (self.state, input) {
            (State::Done, _) => {}
            (State::New, Input::Due { due }) => self.set_out(due, now, context, out),
            (State::Finding, Input::Found(found)) => self.found(now, found, context, out),
            (State::Opening, Input::Opened) => self.tell(HubChange::Opened, now, out),
            (State::Opening, Input::Securing) => {
                self.handshake.begin(self.config.handshake, now, out);
            }
            (State::Opening, Input::Secured) => {
                self.handshake
                    .finish(self.config.handshake, Outcome::Ok, now, out);
            }
            (State::Opening, Input::Accepted(accepted)) => {
                self.accepted(now, accepted, context, out)
            }
            (State::Subscribing, Input::Subscribed) => self.connected(now, context, out),
            (_, Input::Pointed { text, reference }) => self.pointed(now, text, reference, out),
            (_, Input::Lost { outcome, cause }) => self.lost(now, (outcome, cause), context, out),
            (State::Connected, Input::Pong) => self.pong_at = NEVER,
            // In a resumed session they come before SUBACK, as commands may.
            (State::Subscribing | State::Connected, Input::Published { token, outcome }) => {
                self.published(now, token, outcome, out);
            }
            (State::Subscribing | State::Connected, Input::Command { id, retained }) => {
                self.command(now, id, retained, out)
            }
            (State::Connected, Input::Reauthenticated) => {
                self.reauthenticated(now, Outcome::Ok, out)
            }
            (_, Input::Told(Order::Reauthenticate)) => self.reauthenticate(now, context, out),
            (_, Input::Timer(timer)) => self.timer(now, timer, context, out),
            (_, Input::Told(Order::Drop { how, away })) => {
                self.dropped(now, how, away, context, out)
            }
            (State::Waiting, Input::Told(Order::Admit)) => self.admitted(now, out),
            (_, Input::Told(Order::Renew { end })) => self.renew(now, end, out),
            (_, Input::Told(Order::Stop)) => self.stop(now, out),
            _ => {}
        }
    }
}

//! What a hub decides: its session, its keep-alive, its telemetry, its answers and above all when it comes back.
//!
//! The first reconnect after a healthy session waits uniformly in [0, `first`); every later one waits by the retry policy. The backoff
//! starts anew only after a session has lived for `healthy_after`: a hub that is accepted and thrown out at once goes on backing off,
//! also across outages. (A reset on CONNACK is the classic mistake.) A hub tries again after every outcome, a refused login too: it
//! has nobody to tell.
//!
//! What the hub has under way besides its session is in `errand.rs`. There are tens of thousands of hubs in a process, so a hub
//! is small and owns no heap memory while it is idle; its serial number is rendered when a driver needs it.

mod commands;
mod way;

use super::attempt::Attempts;
use super::errand::Errands;
use super::handshake::Handshake;
use super::whereabouts::{Finding, ShardRow, Whereabouts};
use super::{Action, Agent, Context, Input, Message, Order, Timer};
use crate::event::{Event, HubChange, Offset, OperationId, Outcome};
use crate::plan::fault::How;
use crate::plan::fleet::Reconnect;
use crate::plan::routing::shard_of;
use crate::plan::{OperationKind, Plan};
use std::sync::Arc;
use std::time::Duration;

/// What all hubs of a group share.
#[derive(Debug)]
pub struct HubConfig {
    group: u16,
    seed: u64,
    count: u32,
    connect: OperationId,
    handshake: Option<OperationId>,
    pub(super) telemetry: Option<OperationId>,
    pub(super) answer: Option<OperationId>,
    telemetry_every: Duration,
    subscribes: bool,
    connect_over: Duration,
    keep_alive: Duration,
    pub(super) timeout: Duration,
    actuation: Duration,
    reconnect: Reconnect,
    /// By row of `Plan::issuers`: whether that group sends to this one.
    issuers: Vec<bool>,
    find: Option<OperationId>,
    finding: Finding,
    /// By hub.
    homes: Vec<ShardRow>,
}

impl HubConfig {
    /// The hubs of row `group` of `plan.hubs`.
    #[must_use]
    pub fn of(plan: &Plan, group: usize) -> HubConfig {
        let hubs = &plan.hubs[group];
        let device = &plan.target.devices[hubs.device];
        let shards = device.shards.len();
        let home = |index| {
            let row = shard_of(device, hubs, index);
            ShardRow::try_from(row).unwrap_or_default()
        };
        HubConfig {
            group: u16::try_from(group).expect("a plan has fewer than 65,536 groups"),
            seed: plan.seed,
            count: hubs.count,
            connect: plan
                .operation(OperationKind::Connect { hubs: group })
                .expect("the table of operations has `connect` for every group of hubs"),
            handshake: plan.operation(OperationKind::Handshake { hubs: group }),
            telemetry: plan.operation(OperationKind::Telemetry { hubs: group }),
            answer: plan.operation(OperationKind::Answer { hubs: group }),
            telemetry_every: hubs
                .telemetry
                .map_or(Duration::ZERO, |telemetry| telemetry.every),
            subscribes: device.command.is_some(),
            connect_over: hubs.connect_over,
            keep_alive: hubs.keep_alive,
            timeout: hubs.timeout,
            actuation: hubs.actuation,
            reconnect: hubs.reconnect,
            issuers: plan
                .issuers
                .iter()
                .map(|issuers| issuers.to == group)
                .collect(),
            find: plan.operation(OperationKind::Find { hubs: group }),
            finding: Finding::of(&device.find, shards),
            homes: match shards {
                0 | 1 => Vec::new(),
                _ => (0..u64::from(hubs.count)).map(home).collect(),
            },
        }
    }

    /// The shard where hub `index` connects first, unless it asks for it.
    #[must_use]
    pub fn home(&self, index: u32) -> ShardRow {
        self.homes.get(index as usize).copied().unwrap_or_default()
    }

    /// The operation of (re)connecting.
    #[must_use]
    pub fn connect(&self) -> OperationId {
        self.connect
    }

    /// When hub `index` first connects, from the moment at which the fleet begins to: evenly over `connect_over`.
    #[must_use]
    pub fn first_connect(&self, index: u64) -> Duration {
        let total_us = self.connect_over.as_micros();
        let at_us = total_us * u128::from(index) / u128::from(self.count.max(1));
        Duration::from_micros(u64::try_from(at_us).unwrap_or(u64::MAX))
    }
}

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
    /// When the PINGREQ that waits for its PINGRESP was sent.
    pinged_at: Option<Offset>,
    errands: Errands,
    place: Whereabouts,
    /// When the question for its shard was sent.
    asked_at: Offset,
    /// Questions of this outage that no answer came of.
    asked_in_vain: u32,
    index: u32,
    /// Attempts that failed and sessions that died young, since the last healthy session.
    failures: u32,
    state: State,
    deadline_runs: bool,
    /// The outage has been told as started.
    outage_began: bool,
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
            pinged_at: None,
            errands: Errands::default(),
            place: Whereabouts::new(config.home(index)),
            asked_at: Offset::ZERO,
            asked_in_vain: 0,
            index,
            failures: 0,
            state: State::New,
            deadline_runs: false,
            outage_began: false,
        }
    }

    fn tell(&self, change: HubChange, at: Offset, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Hub {
            group: self.config.group,
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
        self.deadline_runs = false;
        self.pinged_at = None;
        // Hubs that connect together must not ping and report together for the rest of the run.
        if !self.config.keep_alive.is_zero() {
            let phase = context.dice.between(Duration::ZERO, self.config.keep_alive);
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
            self.outage.finish(now, outcome, out);
            self.state = State::Done;
            out.push(Action::Done);
        }
    }

    /// The session ended after it had counted as connected.
    fn session_ended(
        &mut self,
        now: Offset,
        change: HubChange,
        away: Duration,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        self.leave(now, change, out);
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
    fn leave(&mut self, now: Offset, change: HubChange, out: &mut Vec<Action>) {
        self.tell(change, now, out);
        self.stands(false, now, out);
        self.errands.session_ended(&self.config, now, out);
        for timer in [Timer::Deadline, Timer::KeepAlive, Timer::Telemetry] {
            out.push(Action::Cancel(timer));
        }
        self.outage = self.outage.over();
        self.asked_in_vain = 0;
    }

    fn lost(
        &mut self,
        now: Offset,
        outcome: Outcome,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match self.state {
            State::Finding | State::Opening | State::Subscribing => {
                self.attempt_failed(now, outcome, Duration::ZERO, context, out);
            }
            State::Connected => {
                self.session_ended(now, HubChange::Lost, Duration::ZERO, context, out)
            }
            State::New | State::Waiting | State::Done => {}
        }
    }

    fn dropped(
        &mut self,
        now: Offset,
        how: How,
        away: Duration,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match self.state {
            State::Finding | State::Opening | State::Subscribing => {
                out.push(Action::Close(how));
                self.attempt_failed(now, Outcome::Reset, away, context, out);
            }
            State::Connected => {
                out.push(Action::Close(how));
                self.session_ended(now, HubChange::Left, away, context, out);
            }
            // Already away: only longer.
            State::Waiting if self.connect_at < now.after(away) => {
                self.wait(now.after(away), context, out)
            }
            State::New | State::Waiting | State::Done => {}
        }
    }

    fn stop(&mut self, now: Offset, out: &mut Vec<Action>) {
        match self.state {
            State::Connected => {
                out.push(Action::Close(How::Disconnect));
                self.errands.unfinished(&self.config, now, out);
                self.tell(HubChange::Left, now, out);
                self.stands(false, now, out);
            }
            State::Finding => {
                out.push(Action::Close(How::Disconnect));
                self.unanswered_where(now, out);
                self.outage.unfinished(now, out);
            }
            State::Opening | State::Subscribing => {
                out.push(Action::Close(How::Disconnect));
                self.handshake.unfinished(self.config.handshake, now, out);
                self.outage.unfinished(now, out);
            }
            State::Waiting if self.outage_began => self.outage.unfinished(now, out),
            State::New | State::Waiting | State::Done => {}
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
                if self.pinged_at.is_none() {
                    self.pinged_at = Some(now);
                    out.push(Action::Ping);
                    self.arm_deadline(now, out);
                }
                out.push(Action::WakeAt(
                    Timer::KeepAlive,
                    now.after(self.config.keep_alive),
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
                self.arm_deadline(now, out);
                self.telemetry_at = self.telemetry_at.after(self.config.telemetry_every);
                out.push(Action::WakeAt(Timer::Telemetry, self.telemetry_at));
            }
            (Timer::Actuated, State::Connected) => self.actuated(now, out),
            _ => {}
        }
    }

    /// One deadline serves PINGRESP and every PUBACK: all wait equally long, so the oldest comes first. It is left running when
    /// its reason is gone, and looks for the next reason when it runs out; that is cheaper than moving it with every packet.
    fn arm_deadline(&mut self, oldest: Offset, out: &mut Vec<Action>) {
        if !self.deadline_runs {
            self.deadline_runs = true;
            out.push(Action::WakeAt(
                Timer::Deadline,
                oldest.after(self.config.timeout),
            ));
        }
    }

    fn overdue(&mut self, now: Offset, context: &mut Context<'_>, out: &mut Vec<Action>) {
        self.deadline_runs = false;
        if self
            .pinged_at
            .is_some_and(|sent| sent.after(self.config.timeout) <= now)
        {
            out.push(Action::Close(How::Close));
            self.session_ended(now, HubChange::Lost, Duration::ZERO, context, out);
            return;
        }
        self.errands.expire(&self.config, now, out);
        if let Some(oldest) = self
            .pinged_at
            .into_iter()
            .chain(self.errands.oldest_publish())
            .min()
        {
            self.arm_deadline(oldest, out);
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
            (State::Opening, Input::Accepted { .. }) => {
                self.tell(HubChange::Accepted, now, out);
                if self.config.subscribes {
                    self.state = State::Subscribing;
                    out.push(Action::Subscribe);
                } else {
                    self.connected(now, context, out);
                }
            }
            (State::Subscribing, Input::Subscribed) => self.connected(now, context, out),
            (_, Input::Pointed { text, reference }) => self.pointed(now, text, reference, out),
            (_, Input::Lost { outcome }) => self.lost(now, outcome, context, out),
            (State::Connected, Input::Pong) => self.pinged_at = None,
            (State::Connected, Input::Published { token }) => {
                self.errands.published(&self.config, token, now, out);
            }
            // A broker may deliver before it has sent SUBACK.
            (State::Subscribing | State::Connected, Input::Command { id }) => {
                self.command(now, id, out)
            }
            (_, Input::Timer(timer)) => self.timer(now, timer, context, out),
            (_, Input::Told(Order::Drop { how, away })) => {
                self.dropped(now, how, away, context, out)
            }
            (_, Input::Told(Order::Renew { end })) => self.renew(now, end, out),
            (_, Input::Told(Order::Stop)) => self.stop(now, out),
            _ => {}
        }
    }
}

//! What a dock decides: when to refresh its status, and how to get rid of what riders hand it.
//!
//! Refreshes follow an open schedule and wait for nobody. A return is acknowledged at once and stored; returns leave in the order in
//! which they came, one after the other, each with the same id on every attempt. A dock without a network keeps them. An attempt whose
//! answer the dock never saw leaves open whether the target has the return, so it is sent again, and the target tells by the id.

use super::attempt::Attempts;
use super::{Action, Agent, Context, Input, Order, Reply, ReplyResult, Timer};
use crate::event::{
    Event, LeftOut, Offset, OperationId, Outcome, ReturnId, ReturnState, ReturnStep,
};
use crate::plan::dock::{DockDevice, DockGroup};
use crate::plan::target::{Answer, Request};
use crate::plan::{OperationKind, Plan};
use crate::retry::Retry;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What all docks of a group share.
#[derive(Debug)]
pub struct DockConfig {
    row: u16,
    run_tag: String,
    group: DockGroup,
    device: DockDevice,
    status: Option<(OperationId, Duration)>,
    returns: OperationId,
}

impl DockConfig {
    /// The docks of row `group` of `plan.docks`; the tag makes the ids of two runs distinct.
    #[must_use]
    pub fn of(plan: &Plan, group: usize, run_tag: &str) -> DockConfig {
        let docks = &plan.docks[group];
        let device = plan.target.docks[docks.device].clone();
        let status = plan.operation(OperationKind::Status { docks: group });
        DockConfig {
            row: u16::try_from(group).expect("a plan has fewer than 65,536 groups"),
            run_tag: run_tag.to_owned(),
            status: status
                .filter(|_| device.status.is_some())
                .zip(docks.status_every),
            returns: plan
                .operation(OperationKind::Return { docks: group })
                .expect(
                    "the table of operations has a row for the returns of every group of docks",
                ),
            group: docks.clone(),
            device,
        }
    }
}

/// What a rider hands to a dock: which kind of return, and the values that its request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    pub id: ReturnId,
    /// Row in `DockDevice::sends`.
    pub sends: u16,
    pub values: Box<[(String, String)]>,
}

/// A return that the dock is rid of, or still holds when the run ends: what the target may be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub handed: Handed,
    pub created: Offset,
    pub state: ReturnState,
}

/// What a request of a dock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Post {
    Status,
    /// The oldest return that is stored.
    Return,
}

/// One dock.
#[derive(Debug)]
pub struct Dock {
    config: Arc<DockConfig>,
    station: String,
    /// The first refresh.
    first: Option<Offset>,
    /// Number of the next refresh, from 0.
    next: u64,
    is_online: bool,
    is_shed: bool,
    stored: VecDeque<Stored>,
    /// The token of the oldest return's attempt under way.
    sending: Option<u64>,
    /// A wait for the next attempt or return is running.
    waits: bool,
    refreshes: Vec<(u64, Attempts)>,
    tokens: u64,
    done: bool,
}

#[derive(Debug)]
struct Stored {
    handed: Handed,
    created: Offset,
    attempts: Attempts,
    /// An attempt ended without an answer.
    in_doubt: bool,
}

impl Dock {
    /// Dock `index` of its group (from 0).
    #[must_use]
    pub fn new(config: &Arc<DockConfig>, index: u32) -> Dock {
        Dock {
            station: config.group.station(&config.device, index),
            config: Arc::clone(config),
            first: None,
            next: 0,
            is_online: true,
            is_shed: false,
            stored: VecDeque::new(),
            sending: None,
            waits: false,
            refreshes: Vec::new(),
            tokens: 0,
            done: false,
        }
    }

    /// The request of this post; `None` if the device sends none.
    #[must_use]
    pub fn request(&self, post: Post) -> Option<&Request> {
        let device = &self.config.device;
        match post {
            Post::Status => device.status.as_ref(),
            Post::Return => {
                let stored = self.stored.front()?;
                let sent = device.sends.get(usize::from(stored.handed.sends))?;
                Some(&sent.request)
            }
        }
    }

    /// Appends what `<name>` stands for: `station`, and in a return `return` (its id) and what the rider handed over with it. False if
    /// the name is unknown.
    pub fn value(&self, post: Post, name: &str, out: &mut String) -> bool {
        let stored = self.stored.front().filter(|_| post == Post::Return);
        if name == "station" {
            out.push_str(&self.station);
            return true;
        }
        stored.is_some_and(|stored| stored.handed.value(&self.config.run_tag, name, out))
    }

    /// Returns that the dock holds.
    #[must_use]
    pub fn stored(&self) -> usize {
        self.stored.len()
    }

    fn tell_return(&self, stored: &Stored, step: ReturnStep, now: Offset, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Return {
            docks: self.config.row,
            id: stored.handed.id,
            created: stored.created,
            step,
            at: now,
        }));
    }

    fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    /// Sends every refresh that is due, or leaves it out.
    fn refresh(&mut self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        let (Some((operation, every)), Some(first)) = (self.config.status, self.first) else {
            return;
        };
        let due_of = |number: u64| {
            let every_us = u64::try_from(every.as_micros()).unwrap_or(u64::MAX);
            Offset(first.0.saturating_add(number.saturating_mul(every_us)))
        };
        while due_of(self.next) <= now {
            let due = due_of(self.next);
            self.next += 1;
            let why = match (self.is_online, self.is_shed) {
                (false, _) => Some(LeftOut::Offline),
                (true, true) => Some(LeftOut::Shed),
                (true, false) => None,
            };
            if let Some(why) = why {
                let docks = self.config.row;
                out.push(Action::Tell(Event::LeftOut {
                    docks,
                    why,
                    at: now,
                }));
                continue;
            }
            let mut attempts = Attempts::start(operation, due, now, out);
            attempts.attempt(now, context, out);
            let token = self.token();
            self.refreshes.push((token, attempts));
            out.push(Action::Post {
                token,
                post: Post::Status,
                timeout: self.config.group.timeout,
            });
        }
        out.push(Action::WakeAt(Timer::Status, due_of(self.next)));
    }

    fn take(&mut self, handed: Handed, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        let stored = Stored {
            handed,
            created: now,
            attempts: Attempts::start(self.config.returns, now, now, out),
            in_doubt: false,
        };
        self.tell_return(&stored, ReturnStep::Created, now, out);
        self.stored.push_back(stored);
        self.flush(now, context, out);
    }

    /// Sends the oldest return, unless something is under way or waited for.
    fn flush(&mut self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        if !self.is_online || self.sending.is_some() || self.waits {
            return;
        }
        let Some(oldest) = self.stored.front_mut() else {
            return;
        };
        oldest.attempts.attempt(now, context, out);
        let token = self.token();
        self.sending = Some(token);
        out.push(Action::Post {
            token,
            post: Post::Return,
            timeout: self.config.group.timeout,
        });
    }

    fn wait(&mut self, now: Offset, wait: Duration, out: &mut Vec<Action>) {
        self.waits = true;
        out.push(Action::WakeAt(Timer::Wait, now.after(wait)));
    }

    fn answered(
        &mut self,
        now: Offset,
        (token, reply): (u64, Reply<'_>),
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        if let Some(row) = self
            .refreshes
            .iter()
            .position(|(waiting, _)| *waiting == token)
        {
            let (_, attempts) = self.refreshes.swap_remove(row);
            let outcome = self
                .request(Post::Status)
                .map_or(Outcome::Protocol, |request| read(&request.answer, reply));
            attempts.answered(now, outcome, out);
            attempts.finish(now, outcome, out);
        } else if self.sending == Some(token) {
            self.sending = None;
            let outcome = self
                .request(Post::Return)
                .map_or(Outcome::Protocol, |request| read(&request.answer, reply));
            self.return_answered(now, (outcome, reply.retry_after), context, out);
        }
    }

    fn return_answered(
        &mut self,
        now: Offset,
        (outcome, asked): (Outcome, Option<Duration>),
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let Some(mut oldest) = self.stored.pop_front() else {
            return;
        };
        oldest.attempts.answered(now, outcome, out);
        oldest.in_doubt |= leaves_doubt(outcome);
        let retry = &self.config.group.retry;
        if let Some(wait) = next_wait(&mut oldest.attempts, retry, (outcome, asked), context) {
            self.stored.push_front(oldest);
            self.wait(now, wait, out);
            return;
        }
        oldest.attempts.finish(now, outcome, out);
        let state = match (outcome, oldest.in_doubt) {
            (Outcome::Ok, _) => ReturnState::Delivered,
            (_, true) => ReturnState::InDoubt,
            (_, false) => ReturnState::Lost,
        };
        self.tell_return(&oldest, ReturnStep::Settled(state), now, out);
        out.push(Action::Left(oldest.left(state)));
        let every = self.config.group.flush.every;
        if !every.is_zero() && !self.stored.is_empty() {
            self.wait(now, every, out);
        } else {
            self.flush(now, context, out);
        }
    }

    /// Without a network no answer arrives any more: what was under way is in doubt.
    fn go_offline(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.is_online = false;
        if std::mem::take(&mut self.waits) {
            out.push(Action::Cancel(Timer::Wait));
        }
        for (token, attempts) in self.refreshes.drain(..) {
            out.push(Action::Abandon { token });
            attempts.answered(now, Outcome::Reset, out);
            attempts.finish(now, Outcome::Reset, out);
        }
        if let (Some(token), Some(oldest)) = (self.sending.take(), self.stored.front_mut()) {
            out.push(Action::Abandon { token });
            oldest.attempts.answered(now, Outcome::Reset, out);
            oldest.in_doubt = true;
        }
    }

    fn come_back(&mut self, now: Offset, context: &mut Context<'_>, out: &mut Vec<Action>) {
        self.is_online = true;
        if let Some(oldest) = self.stored.front_mut() {
            oldest.attempts.forget_waits();
            let first = self.config.group.flush.first;
            let wait = context.dice.between(Duration::ZERO, first);
            self.wait(now, wait, out);
        }
    }

    fn stop(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.done = true;
        for (token, attempts) in self.refreshes.drain(..) {
            out.push(Action::Abandon { token });
            attempts.unfinished(now, out);
        }
        if let Some(token) = self.sending.take() {
            out.push(Action::Abandon { token });
        }
        for stored in self.stored.drain(..) {
            stored.attempts.unfinished(now, out);
            out.push(Action::Left(stored.left(ReturnState::Stored)));
        }
        out.push(Action::Done);
    }
}

impl Stored {
    fn left(self, state: ReturnState) -> Left {
        Left {
            handed: self.handed,
            created: self.created,
            state,
        }
    }
}

impl Handed {
    /// Appends what `<name>` stands for in the request of this return: `return`, and what was handed over. False if it is unknown.
    pub fn value(&self, run_tag: &str, name: &str, out: &mut String) -> bool {
        if name == "return" {
            out.push_str(&self.id.wire(run_tag));
            return true;
        }
        let found = self.values.iter().find(|(known, _)| known == name);
        found.is_some_and(|(_, value)| {
            out.push_str(value);
            true
        })
    }
}

/// What a reply to a dock means.
fn read(answer: &Answer, reply: Reply<'_>) -> Outcome {
    match reply.result {
        ReplyResult::Failed(outcome) => outcome,
        ReplyResult::Accepted => Outcome::Ok,
        ReplyResult::Status(status) if answer.is_ok(status) => Outcome::Ok,
        ReplyResult::Status(status) => Outcome::Refused(status),
    }
}

/// Whether the target may have a return whose attempt ended so: no answer, one that can't be read, or one by which something in
/// between says that something behind it went wrong (all 5xx but 503, which says that it was not taken).
fn leaves_doubt(outcome: Outcome) -> bool {
    match outcome {
        Outcome::TimedOut | Outcome::Reset | Outcome::Protocol => true,
        Outcome::Refused(code) => code != 503 && (500..600).contains(&code),
        _ => false,
    }
}

/// The wait before a return is tried again; `None` if it is delivered, refused for good, or the policy gives up. What had no room to leave
/// this machine was no attempt of the dock's, so the policy's end does not count there.
fn next_wait(
    attempts: &mut Attempts,
    retry: &Retry,
    (outcome, asked): (Outcome, Option<Duration>),
    context: &mut Context<'_>,
) -> Option<Duration> {
    let made = attempts.made();
    let again = match outcome {
        Outcome::Ok | Outcome::Declined => false,
        Outcome::NotSent => true,
        Outcome::Refused(code) if !matches!(code, 408 | 429 | 500..=599) => false,
        _ => retry.allows(made),
    };
    again.then(|| {
        let own = attempts.backoff(&retry.backoff, made, context.dice);
        let asked = asked.filter(|_| matches!(outcome, Outcome::Refused(429 | 503)));
        retry.with_retry_after(own, asked)
    })
}

impl Agent for Dock {
    fn on(
        &mut self,
        now: Offset,
        input: Input<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        if self.done {
            return;
        }
        match input {
            Input::Due { due } if self.first.is_none() => {
                let Some((_, every)) = self.config.status else {
                    return;
                };
                let first = due.after(context.dice.between(Duration::ZERO, every));
                self.first = Some(first);
                out.push(Action::WakeAt(Timer::Status, first));
            }
            Input::Timer(Timer::Status) => self.refresh(now, context, out),
            Input::Timer(Timer::Wait) => {
                self.waits = false;
                self.flush(now, context, out);
            }
            Input::Handed(handed) => self.take(handed, now, context, out),
            Input::Answered { token, reply } => self.answered(now, (token, reply), context, out),
            Input::Told(Order::Offline) if self.is_online => self.go_offline(now, out),
            Input::Told(Order::Online) if !self.is_online => self.come_back(now, context, out),
            Input::Told(Order::Shed(shed)) => self.is_shed = shed,
            Input::Told(Order::Stop) => self.stop(now, out),
            _ => {}
        }
    }
}

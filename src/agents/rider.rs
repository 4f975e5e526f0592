//! What a rider decides: one journey, step by step, and what is always asked at its end.
//!
//! A step is one request with its retries, thinking, or handing something to a dock. After a timeout, an unreachable or reset connection, 429 and 5xx the step is
//! tried again by the group's policy, always with the same `<intent>`; any other refusal ends the journey as failed. A "no" that
//! the target file calls normal, or an answer that lacks what an `or_end` step keeps, ends it as declined, unless there is another
//! candidate to try. Polls and further candidates are attempts that are meant and no retries. When the journey is over, also
//! because it was told to leave, the requests of `always` follow.

mod accounts;
mod answers;
mod config;
mod doubt;
mod handing;
mod kept;
mod spans;
mod values;

pub use accounts::AccountRow;
pub use config::RiderConfig;

use super::attempt::Attempts;
use super::{Action, Agent, Context, Input, Order, Reply, Timer};
use crate::event::{Event, Offset, Outcome};
use crate::plan::target::{Poll, Repeat, Request, StepAction};
use accounts::Account;
use answers::Read;
use config::{Asked, current};
use doubt::{Doubt, Twice};
use kept::Kept;
use spans::{Began, Spans};
use std::sync::Arc;
use std::time::Duration;

/// A request gets at least so long, however near the moment at which the rider gives up.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

/// One rider on one journey.
#[derive(Debug)]
pub struct Rider {
    config: Arc<RiderConfig>,
    number: u64,
    /// Row of its place.
    place: usize,
    /// From its due time to its end.
    account: Option<Account>,
    due: Offset,
    started: Offset,
    state: State,
    stage: Stage,
    /// Of the current request.
    attempts: Attempts,
    /// Row of the candidate that the current step tries.
    candidate: usize,
    /// When the current step gives up polling.
    give_up: Offset,
    doubt: Doubt,
    /// Of all steps, without those that were meant to be repeated.
    requests: u32,
    /// Steps that went well.
    passed: usize,
    kept: Kept,
    spans: Spans,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Thinking { until: Offset },
    AwaitingReply,
    Waiting(Next),
    Done,
}

/// What follows a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Retry,
    Poll,
    GiveUp,
}

/// Where the rider is: rows of the journey's `steps` and `always`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Step(usize),
    Closing(usize),
}

impl Rider {
    /// The rider of arrival `number` (from 1).
    #[must_use]
    pub fn new(config: &Arc<RiderConfig>, number: u64) -> Rider {
        let places = config.places.as_ref();
        Rider {
            number,
            place: places.map_or(0, |places| places.chooser.place(number)),
            account: None,
            due: Offset::ZERO,
            started: Offset::ZERO,
            state: State::New,
            stage: Stage::Step(0),
            attempts: Attempts::none(config.journey_operation),
            candidate: 0,
            give_up: Offset::ZERO,
            doubt: Doubt::default(),
            requests: 0,
            passed: 0,
            kept: Kept::default(),
            spans: Spans::default(),
            config: Arc::clone(config),
        }
    }

    /// The request of the current step; `None` where it is no request. Always there after [`Action::Request`].
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        let journey = &self.config.journey;
        match self.stage {
            Stage::Step(row) => match &journey.steps.get(row)?.action {
                StepAction::Request(request) => Some(request),
                StepAction::Think { .. } | StepAction::HandOver { .. } => None,
            },
            Stage::Closing(row) => Some(&journey.always.get(row)?.request),
        }
    }

    fn asked(&self) -> Option<&Asked> {
        match self.stage {
            Stage::Step(row) => self.config.steps.get(row)?.as_ref(),
            Stage::Closing(row) => self.config.closings.get(row),
        }
    }

    fn repeat(&self) -> &Repeat {
        match self.stage {
            Stage::Step(row) => match self.config.journey.steps.get(row) {
                Some(step) => &step.repeat,
                None => &Repeat::Once,
            },
            Stage::Closing(_) => &Repeat::Once,
        }
    }

    fn poll(&self) -> Option<&Poll> {
        match self.repeat() {
            Repeat::Until(poll) => Some(poll),
            Repeat::Once | Repeat::ForEach(_) => None,
        }
    }

    /// Begins the step in row `row`, which is due at `due`; the journey ends where there is none.
    fn enter(
        &mut self,
        row: usize,
        due: Offset,
        now: Offset,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let config = Arc::clone(&self.config);
        self.stage = Stage::Step(row);
        self.passed = row;
        self.spans.begin(
            &config,
            row,
            Began {
                due,
                at: now,
                requests: self.requests,
            },
            out,
        );
        match config.journey.steps.get(row).map(|step| &step.action) {
            None => self.end(now, Outcome::Ok, context, out),
            Some(StepAction::Think { low, high }) => {
                let until = due.after(context.dice.between(*low, *high));
                self.state = State::Thinking { until };
                out.push(Action::WakeAt(Timer::Wait, until));
            }
            Some(StepAction::HandOver { .. }) => {
                self.hand_over(row, context, out);
                self.end_spans(row, now, out);
                self.enter(row + 1, due, now, context, out);
            }
            Some(StepAction::Request(_)) => self.ask(due, now, context, out),
        }
    }

    /// Begins the current request.
    fn ask(&mut self, due: Offset, now: Offset, context: &mut Context<'_>, out: &mut Vec<Action>) {
        let operation = self
            .asked()
            .map_or(self.config.journey_operation, |asked| asked.operation);
        self.attempts = Attempts::start(operation, due, now, out);
        self.candidate = 0;
        self.doubt = Doubt::default();
        if let Some(poll) = self.poll() {
            self.give_up = now.after(poll.give_up);
        }
        if !self.take_candidate() {
            // A list is kept with one entry at least, or the journey is over.
            self.over(now, Outcome::Declined, context, out);
            return;
        }
        self.send(now, context, out);
    }

    /// Makes the current candidate known; false if there is none.
    fn take_candidate(&mut self) -> bool {
        let config = Arc::clone(&self.config);
        let Stage::Step(row) = self.stage else {
            return true;
        };
        match config.journey.steps.get(row).map(|step| &step.repeat) {
            Some(Repeat::ForEach(candidates)) => {
                let (list, candidate) = (&candidates.list, self.candidate);
                candidate < candidates.up_to as usize
                    && self
                        .kept
                        .try_candidate(&config.journey, row, list, candidate)
            }
            Some(Repeat::Once | Repeat::Until(_)) | None => true,
        }
    }

    fn send(&mut self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        self.attempts.attempt(now, context, out);
        self.requests = self.requests.saturating_add(1);
        self.request_now(now, out);
    }

    /// One more attempt that is meant: the next poll, the next candidate.
    fn send_on(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.attempts.go_on(now, out);
        self.request_now(now, out);
    }

    fn request_now(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.state = State::AwaitingReply;
        let mut timeout = self.config.timeout;
        if self.poll().is_some() {
            let left = self.give_up.since(now).max(SHORTEST_TIMEOUT);
            timeout = timeout.min(left);
        }
        out.push(Action::Request { timeout });
    }

    fn reply(
        &mut self,
        now: Offset,
        reply: Reply<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let outcome = match self.read(&reply) {
            Read::Over(outcome) => outcome,
            Read::NotYet => {
                self.attempts.answered(now, Outcome::Ok, out);
                let every = self.poll().map_or(Duration::ZERO, |poll| poll.every);
                let next = self.attempts.sent().after(every).max(now);
                self.wait(next, Next::Poll, out);
                return;
            }
        };
        self.attempts.answered(now, outcome, out);
        let config = Arc::clone(&self.config);
        let ended = (outcome, reply.retry_after);
        let last = self.poll().is_some().then_some(self.give_up);
        let again = self
            .attempts
            .next(now, &config.retry, ended, last, context, out);
        if let Some(at) = again {
            if let Some(request) = current(&config, self.stage) {
                self.doubt.failed(&request.answer, &reply, outcome);
            }
            self.wait(at, Next::Retry, out);
            return;
        }
        self.settle_doubt(now, &reply, outcome, out);
        if outcome == Outcome::Declined && matches!(self.repeat(), Repeat::ForEach(_)) {
            self.candidate += 1;
            if self.take_candidate() {
                self.send_on(now, out);
                return;
            }
        }
        match self.stage {
            Stage::Step(row) if outcome == Outcome::Ok => {
                self.attempts.finish(now, outcome, out);
                self.end_spans(row, now, out);
                self.enter(row + 1, now, now, context, out);
            }
            _ => self.over(now, outcome, context, out),
        }
    }

    /// Waits for the next attempt, or for the moment at which a poll is given up.
    fn wait(&mut self, until: Offset, next: Next, out: &mut Vec<Action>) {
        let (until, next) = if self.poll().is_some() && until >= self.give_up {
            (self.give_up, Next::GiveUp)
        } else {
            (until, next)
        };
        self.state = State::Waiting(next);
        out.push(Action::WakeAt(Timer::Wait, until));
    }

    fn waited(
        &mut self,
        next: Next,
        now: Offset,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match next {
            Next::Retry => self.send(now, context, out),
            Next::Poll => self.send_on(now, out),
            Next::GiveUp => self.over(now, Outcome::TimedOut, context, out),
        }
    }

    fn settle_doubt(
        &mut self,
        now: Offset,
        reply: &Reply<'_>,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) {
        let config = Arc::clone(&self.config);
        let (Some(request), Some(asked)) = (current(&config, self.stage), self.asked()) else {
            return;
        };
        let (operation, is_repeatable) = (asked.operation, asked.is_repeatable);
        let twice = self
            .doubt
            .settle(&request.answer, reply, outcome, is_repeatable);
        if twice != Twice::No {
            out.push(Action::Tell(Event::Duplicated {
                operation,
                known: twice == Twice::Certainly,
                at: now,
            }));
        }
    }

    /// The step in row `row` went well.
    fn end_spans(&mut self, row: usize, now: Offset, out: &mut Vec<Action>) {
        self.spans
            .end_at(&self.config, row, now, self.requests, out);
    }

    /// The current request has ended, and nothing but what is always asked can follow.
    fn over(
        &mut self,
        now: Offset,
        outcome: Outcome,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        self.attempts.finish(now, outcome, out);
        match self.stage {
            Stage::Step(_) => self.end(now, outcome, context, out),
            Stage::Closing(row) => self.close(row + 1, now, context, out),
        }
    }

    /// The journey has ended.
    fn end(
        &mut self,
        now: Offset,
        outcome: Outcome,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        self.spans
            .end_all(&self.config, now, outcome, self.requests, out);
        out.push(Action::Tell(Event::Finished {
            operation: self.config.journey_operation,
            due: self.due,
            started: self.started,
            at: now,
            outcome,
            attempts: self.requests,
        }));
        self.close(0, now, context, out);
    }

    /// Asks what is always asked, from row `from` on.
    fn close(
        &mut self,
        from: usize,
        now: Offset,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let config = Arc::clone(&self.config);
        let journey = &config.journey;
        let is_needed = |row: &usize| {
            let is_known = |name: &String| self.kept.text(journey, name).is_some();
            let went_well = journey.always[*row]
                .unless
                .is_some_and(|step| step < self.passed);
            !went_well && config.closings[*row].needs.iter().all(is_known)
        };
        match (from..journey.always.len()).find(is_needed) {
            Some(row) => {
                self.stage = Stage::Closing(row);
                self.ask(now, now, context, out);
            }
            None => self.done(out),
        }
    }

    fn done(&mut self, out: &mut Vec<Action>) {
        self.state = State::Done;
        self.give_account_back();
        out.push(Action::Done);
    }

    /// Leaves off what is under way, and tells it.
    fn leave_off(&mut self, now: Offset, out: &mut Vec<Action>) {
        if matches!(self.state, State::AwaitingReply | State::Waiting(_)) {
            self.attempts.unfinished(now, out);
        }
        if self.state == State::New || matches!(self.stage, Stage::Closing(_)) {
            return;
        }
        self.spans.leave_off(&self.config, now, out);
        out.push(Action::Tell(Event::Unfinished {
            operation: self.config.journey_operation,
            due: self.due,
            at: now,
        }));
    }
}

impl Agent for Rider {
    fn is_closing(&self) -> bool {
        matches!(self.stage, Stage::Closing(_))
    }

    fn on(
        &mut self,
        now: Offset,
        input: Input<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match (self.state, input) {
            (State::New, Input::Due { due }) => {
                self.due = due;
                self.started = now;
                let operation = self.config.journey_operation;
                out.push(Action::Tell(Event::Started {
                    operation,
                    due,
                    at: now,
                }));
                self.take_account(now, out);
                self.enter(0, due, now, context, out);
            }
            (State::Thinking { until }, Input::Timer(Timer::Wait)) => {
                if let Stage::Step(row) = self.stage {
                    self.end_spans(row, until, out);
                    self.enter(row + 1, until, now, context, out);
                }
            }
            (State::Waiting(next), Input::Timer(Timer::Wait)) => {
                self.waited(next, now, context, out)
            }
            (State::AwaitingReply, Input::Reply(reply)) => self.reply(now, reply, context, out),
            (State::Done, _) => {}
            (state, Input::Told(Order::Leave)) => {
                let is_closing = matches!(self.stage, Stage::Closing(_));
                if !is_closing {
                    self.leave_off(now, out);
                    out.push(Action::Cancel(Timer::Wait));
                    let first = if state == State::New { usize::MAX } else { 0 };
                    self.close(first, now, context, out);
                }
            }
            (_, Input::Told(Order::Stop)) => {
                self.leave_off(now, out);
                self.done(out);
            }
            _ => {}
        }
    }
}

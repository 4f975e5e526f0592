//! What a rider decides: one journey, step by step.
//!
//! A step is one request with its retries, or thinking. After a timeout, an unreachable or reset connection, 429 and 5xx the step is
//! tried again by the group's policy, always with the same `<intent>`; any other refusal ends the journey as failed. A "no" that
//! the target file calls normal, or an answer that lacks what an `or_end` step keeps, ends it as declined.

use super::attempt::Attempts;
use super::{Action, Agent, Context, Input, Order, Reply, ReplyResult, Timer};
use crate::event::{Event, Offset, OperationId, Outcome};
use crate::plan::target::{Answer, Journey, Request, StepAction};
use crate::plan::{OperationKind, Plan};
use crate::retry::Retry;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// What all riders of a group share.
#[derive(Debug)]
pub struct RiderConfig {
    group: usize,
    run_tag: String,
    journey: Journey,
    journey_operation: OperationId,
    /// By step; `None` for thinking.
    step_operations: Vec<Option<OperationId>>,
    timeout: Duration,
    retry: Retry,
}

impl RiderConfig {
    /// The riders of row `group` of `plan.riders`; the tag makes the ids of two runs distinct.
    #[must_use]
    pub fn of(plan: &Plan, group: usize, run_tag: &str) -> RiderConfig {
        let riders = &plan.riders[group];
        let journey = plan.target.journeys[riders.journey].clone();
        let operation = |kind| plan.operation(kind);
        RiderConfig {
            group,
            run_tag: run_tag.to_owned(),
            journey_operation: operation(OperationKind::Journey { riders: group })
                .expect("the table of operations has a journey for every group of riders"),
            step_operations: (0..journey.steps.len())
                .map(|step| {
                    operation(OperationKind::Step {
                        riders: group,
                        step,
                    })
                })
                .collect(),
            journey,
            timeout: riders.timeout,
            retry: riders.retry,
        }
    }
}

/// One rider on one journey.
#[derive(Debug)]
pub struct Rider {
    config: Arc<RiderConfig>,
    number: u64,
    due: Offset,
    started: Offset,
    state: State,
    step: usize,
    /// Of the current request step.
    attempts: Attempts,
    /// Of all steps.
    requests: u32,
    kept: Vec<Kept>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Thinking { until: Offset },
    AwaitingReply,
    AwaitingRetry,
    Done,
}

/// A value kept from an answer: row `entry` of the `keep` of step `step`.
#[derive(Debug)]
struct Kept {
    step: usize,
    entry: usize,
    text: String,
}

impl Rider {
    /// The rider of arrival `number` (from 1).
    #[must_use]
    pub fn new(config: &Arc<RiderConfig>, number: u64) -> Rider {
        Rider {
            config: Arc::clone(config),
            number,
            due: Offset::ZERO,
            started: Offset::ZERO,
            state: State::New,
            step: 0,
            attempts: Attempts::none(config.journey_operation),
            requests: 0,
            kept: Vec::new(),
        }
    }

    /// The request of the current step; `None` where it is no request. Always there after [`Action::Request`].
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        match &self.config.journey.steps.get(self.step)?.action {
            StepAction::Request(request) => Some(request),
            StepAction::Think { .. } => None,
        }
    }

    /// Appends what `<name>` stands for in the current step: `rider` (the arrival number, six digits), `intent` (the same for every
    /// attempt of a step, in no other step and no other run), and everything kept so far, the latest of a name. False if the
    /// name is unknown.
    pub fn value(&self, name: &str, out: &mut String) -> bool {
        let config = &*self.config;
        let written = match name {
            "rider" => write!(out, "{:06}", self.number),
            "intent" => write!(
                out,
                "{}-{}-{}-{}",
                config.run_tag, config.group, self.number, self.step
            ),
            _ => match self
                .kept
                .iter()
                .rev()
                .find(|kept| self.name_of(kept) == Some(name))
            {
                Some(kept) => out.write_str(&kept.text),
                None => return false,
            },
        };
        written.is_ok()
    }

    fn name_of(&self, kept: &Kept) -> Option<&str> {
        match &self.config.journey.steps.get(kept.step)?.action {
            StepAction::Request(request) => request
                .answer
                .keep
                .get(kept.entry)
                .map(|(name, _)| name.as_str()),
            StepAction::Think { .. } => None,
        }
    }

    /// Begins the current step, which is due at `due`; the journey ends where there is none.
    fn enter(
        &mut self,
        due: Offset,
        now: Offset,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match self
            .config
            .journey
            .steps
            .get(self.step)
            .map(|step| &step.action)
        {
            None => self.end(now, Outcome::Ok, out),
            Some(StepAction::Think { low, high }) => {
                let until = due.after(context.dice.between(*low, *high));
                self.state = State::Thinking { until };
                out.push(Action::WakeAt(Timer::Wait, until));
            }
            Some(StepAction::Request(_)) => {
                let operation = self.config.step_operations[self.step].expect(
                    "the table of operations has every request step of every group of riders",
                );
                self.attempts = Attempts::start(operation, due, now, out);
                self.send(now, context, out);
            }
        }
    }

    fn send(&mut self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        self.attempts.attempt(now, context, out);
        self.requests = self.requests.saturating_add(1);
        self.state = State::AwaitingReply;
        out.push(Action::Request {
            timeout: self.config.timeout,
        });
    }

    fn reply(
        &mut self,
        now: Offset,
        reply: Reply<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        let outcome = self.read(reply);
        self.attempts.answered(now, outcome, out);
        let ended = (outcome, reply.retry_after);
        let retry = &self.config.retry;
        if let Some(at) = self.attempts.next(now, retry, ended, None, context, out) {
            self.state = State::AwaitingRetry;
            out.push(Action::WakeAt(Timer::Wait, at));
            return;
        }
        self.attempts.finish(now, outcome, out);
        if outcome == Outcome::Ok {
            self.step += 1;
            self.enter(now, now, context, out);
        } else {
            self.end(now, outcome, out);
        }
    }

    /// What the reply means; keeps what is to be kept of a success.
    fn read(&mut self, reply: Reply<'_>) -> Outcome {
        let config = Arc::clone(&self.config);
        let Some(StepAction::Request(request)) =
            config.journey.steps.get(self.step).map(|step| &step.action)
        else {
            return Outcome::Protocol;
        };
        match reply.result {
            ReplyResult::Failed(outcome) => outcome,
            ReplyResult::Accepted => Outcome::Ok,
            ReplyResult::Status(status) if request.answer.is_ok(status) => {
                self.keep(&request.answer, reply.body)
            }
            ReplyResult::Status(status) if request.answer.declined.contains_key(&status) => {
                Outcome::Declined
            }
            ReplyResult::Status(status) => Outcome::Refused(status),
        }
    }

    fn keep(&mut self, answer: &Answer, body: &[u8]) -> Outcome {
        if answer.keep.is_empty() {
            return Outcome::Ok;
        }
        let Ok(document) = serde_json::from_slice::<serde_json::Value>(body) else {
            return Outcome::Protocol;
        };
        for (entry, (_, path)) in answer.keep.iter().enumerate() {
            match path.text(&document) {
                Some(text) => self.kept.push(Kept {
                    step: self.step,
                    entry,
                    text,
                }),
                None if answer.or_end.is_some() => return Outcome::Declined,
                None => return Outcome::Protocol,
            }
        }
        Outcome::Ok
    }

    fn end(&mut self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        self.state = State::Done;
        out.push(Action::Tell(Event::Finished {
            operation: self.config.journey_operation,
            due: self.due,
            started: self.started,
            at: now,
            outcome,
            attempts: self.requests,
        }));
        out.push(Action::Done);
    }

    fn stop(&mut self, now: Offset, out: &mut Vec<Action>) {
        if matches!(self.state, State::AwaitingReply | State::AwaitingRetry) {
            self.attempts.unfinished(now, out);
        }
        if self.state != State::New {
            let operation = self.config.journey_operation;
            out.push(Action::Tell(Event::Unfinished {
                operation,
                due: self.due,
                at: now,
            }));
        }
        self.state = State::Done;
        out.push(Action::Done);
    }
}

impl Agent for Rider {
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
                self.enter(due, now, context, out);
            }
            (State::Thinking { until }, Input::Timer(Timer::Wait)) => {
                self.step += 1;
                self.enter(until, now, context, out);
            }
            (State::AwaitingRetry, Input::Timer(Timer::Wait)) => self.send(now, context, out),
            (State::AwaitingReply, Input::Reply(reply)) => self.reply(now, reply, context, out),
            (State::Done, _) => {}
            (_, Input::Told(Order::Stop)) => self.stop(now, out),
            _ => {}
        }
    }
}

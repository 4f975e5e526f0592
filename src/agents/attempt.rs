//! One intended action and its attempts: what hub, rider and issuer have in common.
//!
//! Keeps the promise of [`Event`]: `Started`, then for each attempt `Attempted` and `Answered`, then `Finished` or `Unfinished`.

use super::Action;
use crate::dice::Dice;
use crate::event::{Event, Offset, OperationId, Outcome};
use crate::retry::{Backoff, Retry};
use std::time::Duration;

/// An intended action of an agent, from its start to its end. The same value serves one action after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempts {
    due: Offset,
    started: Offset,
    sent: Offset,
    previous_wait_us: u64,
    made: u32,
    operation: OperationId,
}

impl Attempts {
    /// None made yet.
    pub fn none(operation: OperationId) -> Attempts {
        Attempts {
            due: Offset::ZERO,
            started: Offset::ZERO,
            sent: Offset::ZERO,
            previous_wait_us: 0,
            made: 0,
            operation,
        }
    }

    /// The action starts.
    pub fn start(
        operation: OperationId,
        due: Offset,
        now: Offset,
        out: &mut Vec<Action>,
    ) -> Attempts {
        out.push(Action::Tell(Event::Started {
            operation,
            due,
            at: now,
        }));
        Attempts {
            due,
            started: now,
            ..Attempts::none(operation)
        }
    }

    /// None made yet, for the next action of the same operation; the previous wait is remembered.
    pub fn over(self) -> Attempts {
        Attempts { made: 0, ..self }
    }

    /// The next action of the same operation starts.
    pub fn start_next(self, due: Offset, now: Offset, out: &mut Vec<Action>) -> Attempts {
        Attempts {
            previous_wait_us: self.previous_wait_us,
            ..Attempts::start(self.operation, due, now, out)
        }
    }

    /// How many were made.
    pub fn made(&self) -> u32 {
        self.made
    }

    /// The due time of the action.
    pub fn due(&self) -> Offset {
        self.due
    }

    /// One attempt leaves.
    pub fn attempt(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.made = self.made.saturating_add(1);
        self.sent = now;
        out.push(Action::Tell(Event::Attempted {
            operation: self.operation,
            at: now,
        }));
    }

    /// The attempt ended.
    pub fn answered(&self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        let Attempts {
            operation, sent, ..
        } = *self;
        out.push(Action::Tell(Event::Answered {
            operation,
            sent,
            at: now,
            outcome,
        }));
    }

    /// The action ended.
    pub fn finish(&self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        let Attempts {
            operation,
            due,
            started,
            made,
            ..
        } = *self;
        out.push(Action::Tell(Event::Finished {
            operation,
            due,
            started,
            at: now,
            outcome,
            attempts: made,
        }));
    }

    /// The run ended before the action did.
    pub fn unfinished(&self, now: Offset, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Unfinished {
            operation: self.operation,
            due: self.due,
            at: now,
        }));
    }

    /// The wait before the next attempt, if `outcome` is worth one and the policy allows it.
    pub fn wait(&mut self, retry: &Retry, outcome: Outcome, dice: &mut Dice) -> Option<Duration> {
        if !worth_retrying(outcome) {
            return None;
        }
        retry
            .allows(self.made)
            .then(|| self.backoff(&retry.backoff, self.made, dice))
    }

    /// The policy's wait after `failures` attempts.
    pub fn backoff(&mut self, backoff: &Backoff, failures: u32, dice: &mut Dice) -> Duration {
        let wait = backoff.wait(failures, Duration::from_micros(self.previous_wait_us), dice);
        self.previous_wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        wait
    }

    /// The backoff starts anew.
    pub fn forget_waits(&mut self) {
        self.previous_wait_us = 0;
    }
}

/// Whether an app would try again after this: the target was not reached, did not answer in time, said that it is too busy (429), or
/// failed itself (500 to 599). Every other refusal would be refused again, and what had no room to leave is no affair of the
/// target's.
fn worth_retrying(outcome: Outcome) -> bool {
    match outcome {
        Outcome::TimedOut | Outcome::Unreachable | Outcome::Reset | Outcome::Tls(_) => true,
        Outcome::Refused(code) => code == 429 || (500..600).contains(&code),
        Outcome::Ok | Outcome::Declined | Outcome::Protocol | Outcome::NotSent => false,
    }
}

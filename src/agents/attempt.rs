//! One intended action and its attempts: what hub, rider and issuer have in common.
//!
//! Keeps the promise of [`Event`]: `Started`, then for each attempt `Attempted` and `Answered`, then `Finished` or `Unfinished`.

use super::{Action, Context};
use crate::dice::Dice;
use crate::event::{Event, Offset, OperationId, Outcome, RetryChange};
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
    /// Since the last one that was meant: the first, a poll, another candidate.
    tries: u32,
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
            tries: 0,
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
        Attempts {
            made: 0,
            tries: 0,
            ..self
        }
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

    /// One attempt leaves; the first one earns its group a share of a retry.
    pub fn attempt(&mut self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) {
        if self.made == 0 {
            context.budget.deposit();
        }
        self.made = self.made.saturating_add(1);
        self.tries = self.tries.saturating_add(1);
        self.sent = now;
        out.push(Action::Tell(Event::Attempted {
            operation: self.operation,
            at: now,
        }));
    }

    /// One more attempt leaves that is meant and no retry; the policy's count begins anew.
    pub fn go_on(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.made = self.made.saturating_add(1);
        self.tries = 1;
        self.previous_wait_us = 0;
        self.sent = now;
        out.push(Action::Tell(Event::Continued {
            operation: self.operation,
            at: now,
        }));
    }

    /// When the last one left.
    pub fn sent(&self) -> Offset {
        self.sent
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

    /// When the next attempt is due, if `outcome` is worth one, policy and budget allow it, and it comes before `last`. `asked` is
    /// the answer's `Retry-After`.
    pub fn next(
        &mut self,
        now: Offset,
        retry: &Retry,
        (outcome, asked): (Outcome, Option<Duration>),
        last: Option<Offset>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) -> Option<Offset> {
        let asked = asked.filter(|_| matches!(outcome, Outcome::Refused(429 | 503)));
        if asked.is_some() {
            self.tell(RetryChange::Asked, now, out);
        }
        if !worth_retrying(outcome) || !retry.allows(self.tries) {
            return None;
        }
        let own = self.backoff(&retry.backoff, self.tries, context.dice);
        let wait = retry.with_retry_after(own, asked);
        let at = now.after(wait);
        if last.is_some_and(|last| at >= last) || !self.pay(now, context, out) {
            return None;
        }
        if wait > own {
            self.tell(RetryChange::Postponed, now, out);
        }
        Some(at)
    }

    /// Pays for one more attempt out of the group's budget; false, and told, if that is spent.
    pub fn pay(&self, now: Offset, context: &Context<'_>, out: &mut Vec<Action>) -> bool {
        let paid = context.budget.withdraw(now);
        if !paid {
            self.tell(RetryChange::Denied, now, out);
        }
        paid
    }

    fn tell(&self, change: RetryChange, at: Offset, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Retry {
            operation: self.operation,
            change,
            at,
        }));
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

//! What is known of one command, and the state that follows from it.

use super::ledger::{GRACE, State};
use crate::event::{CommandStep, Offset};
use crate::plan::{IssuerGroup, Plan};
use std::time::Duration;

/// What one issuer group's commands are held to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    in_time: Duration,
    ttl: Duration,
    /// The device answers; without an answer, delivery is the end.
    answered: bool,
}

impl Rules {
    pub(super) fn of(plan: &Plan, issuer: &IssuerGroup) -> Rules {
        let device = plan
            .hubs
            .get(issuer.to)
            .and_then(|group| plan.target.devices.get(group.device));
        Rules {
            in_time: issuer.in_time,
            ttl: issuer.ttl,
            answered: device.is_some_and(|device| device.answer.is_some()),
        }
    }
}

/// The facts of one command. Each is the earliest of its kind, so that their order does not matter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub due: Option<Offset>,
    /// The first step told, whatever it was.
    pub first: Offset,
    pub steps: u32,
    pub accepted: bool,
    /// Attempts told as leaving, and those of them that had no room to leave.
    sent: u32,
    refused: bool,
    in_doubt: bool,
    not_sent: u32,
    expired: Option<Offset>,
    gave_up: Option<Offset>,
    pub delivered: Option<Offset>,
    pub deliveries: u32,
    pub acknowledged: Option<Offset>,
    pub state: State,
    /// Its state was told.
    pub settled: bool,
}

impl Entry {
    pub(super) fn new(at: Offset) -> Entry {
        Entry {
            due: None,
            first: at,
            steps: 0,
            accepted: false,
            sent: 0,
            refused: false,
            in_doubt: false,
            not_sent: 0,
            expired: None,
            gave_up: None,
            delivered: None,
            deliveries: 0,
            acknowledged: None,
            state: State::Open,
            settled: false,
        }
    }

    pub(super) fn take(&mut self, step: CommandStep, at: Offset) {
        let earliest = |known: Option<Offset>| Some(known.map_or(at, |known| known.min(at)));
        self.steps += 1;
        self.first = self.first.min(at);
        match step {
            // Told once; a second one would move what is booked already.
            CommandStep::Due => self.due = self.due.or(Some(at)),
            CommandStep::Sent => self.sent += 1,
            CommandStep::Accepted => self.accepted = true,
            CommandStep::Refused => self.refused = true,
            CommandStep::InDoubt => self.in_doubt = true,
            CommandStep::Expired => self.expired = earliest(self.expired),
            CommandStep::NotSent => self.not_sent += 1,
            CommandStep::GaveUp => self.gave_up = earliest(self.gave_up),
            CommandStep::Delivered => {
                self.delivered = earliest(self.delivered);
                self.deliveries += 1;
            }
            CommandStep::Acknowledged => self.acknowledged = earliest(self.acknowledged),
        }
    }

    /// When it is closed: its time to live and the grace are over. Without a due time, both run from the first step told.
    pub(super) fn closes(&self, rules: &Rules) -> Offset {
        self.due.unwrap_or(self.first).after(rules.ttl).after(GRACE)
    }

    /// The state that the facts give at `now`.
    pub(super) fn state_at(&self, rules: &Rules, now: Offset) -> State {
        let Some(due) = self.due else {
            return State::Open;
        };
        let within = |at: Offset, limit: Duration| at.since(due) <= limit;
        // An answer proves the delivery even if nobody told of it.
        let delivered = [self.delivered, self.acknowledged]
            .into_iter()
            .flatten()
            .min();
        let done = if rules.answered {
            self.acknowledged
        } else {
            delivered
        };
        let closed = now >= self.closes(rules);
        match (delivered, done) {
            (Some(delivered), Some(_)) if !within(delivered, rules.ttl) => State::AfterTtl,
            (Some(_), Some(done)) if within(done, rules.in_time) => State::InTime,
            (Some(_), Some(_)) => State::Late,
            (Some(_), None) if !closed => State::Open,
            (Some(delivered), None) if within(delivered, rules.ttl) => State::Unanswered,
            (Some(_), None) => State::AfterTtl,
            (None, _) => self.undelivered(closed),
        }
    }

    fn undelivered(&self, closed: bool) -> State {
        if self.expired.is_some() {
            return State::Expired;
        }
        let nobody_has_it = !self.accepted && !self.in_doubt;
        let left = self.sent > self.not_sent;
        if self.not_sent > 0 && !left && !self.refused && nobody_has_it {
            return State::NotSent;
        }
        if self.gave_up.is_some() && self.refused && nobody_has_it {
            return State::Refused;
        }
        if !closed {
            return State::Open;
        }
        match (self.accepted, self.in_doubt, self.refused, left) {
            (true, ..) => State::Lost,
            (false, true, ..) => State::InDoubt,
            (false, false, true, _) => State::Refused,
            // It left, and nobody said what came of it.
            (false, false, false, true) => State::InDoubt,
            (false, false, false, false) => State::NotSent,
        }
    }

    /// When the present state was decided: at the answer, or `now` where its absence decided.
    pub(super) fn decided_at(&self, now: Offset) -> Offset {
        match self.state {
            State::InTime | State::Late | State::AfterTtl => {
                self.acknowledged.or(self.delivered).unwrap_or(now)
            }
            State::Expired => self.expired.unwrap_or(now),
            _ => now,
        }
    }

    pub(super) fn may_be_in_time(&self, rules: &Rules, now: Offset) -> bool {
        self.due.is_some_and(|due| now.since(due) <= rules.in_time)
    }

    pub(super) fn after_give_up(&self) -> bool {
        matches!((self.delivered, self.gave_up), (Some(delivered), Some(gave_up)) if delivered > gave_up)
    }
}

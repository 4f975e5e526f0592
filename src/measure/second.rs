//! One second of the run, as counts: what shards fill and everything else reads.

use super::histogram::Histogram;
use super::recovery::{TENTHS, Tenths};
use super::returns::DockSecond;
use crate::event::{HubChange, Offset, Outcome};
use crate::plan::Plan;

/// What happened in one whole second of the clock. The lists are parallel to those of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Second {
    /// Seconds since the clock began (not since 0:00).
    pub index: u64,
    /// Parallel to `Plan::operations`.
    pub operations: Vec<OperationSecond>,
    /// Parallel to `Plan::hubs`.
    pub hubs: Vec<HubSecond>,
    /// Parallel to `Plan::issuers`.
    pub commands: Vec<CommandSecond>,
    /// Parallel to `Plan::docks`.
    pub docks: Vec<DockSecond>,
}

/// Actions and attempts of one operation, by the second in which each thing happened.
/// Over the whole run started = ok + declined + failed + timed out + unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperationSecond {
    pub started: u32,
    pub attempted: u32,
    /// Attempts that were meant and no retries (polls, further candidates); they are not among `attempted`.
    pub continued: u32,
    /// Actions that the target did twice for certain, and those that it may have done twice.
    pub duplicated: u32,
    pub doubtful: u32,
    /// Journeys on an account that somebody else was using.
    pub shared_accounts: u32,
    /// `attempted` by tenths of the second.
    pub tenths: Tenths,
    /// Attempts that the target refused.
    pub refused: u32,
    /// Of those: because there were too many at once.
    pub throttled: u32,
    pub ok: u32,
    pub declined: u32,
    /// Ended in any other way than ok, declined or timed out; `not_sent` is among them.
    pub failed: u32,
    pub timed_out: u32,
    pub not_sent: u32,
    /// From the due time, of all that were ok, declined or timed out: who waited in vain waited at least so long, while a
    /// quick refusal would make the target look fast.
    pub latency: Histogram,
    /// From the start, of the same.
    pub service: Histogram,
    /// Start − due: how late the generator was.
    pub lag: Histogram,
}

/// Sessions of one group of hubs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HubSecond {
    /// Attempts to connect: what the target's listener sees.
    pub connects: u32,
    pub opened: u32,
    pub accepted: u32,
    pub connected: u32,
    pub lost: u32,
    pub left: u32,
    /// Messages on a command topic that carry no id of this run.
    pub foreign: u32,
    /// Retained messages on a command topic.
    pub retained: u32,
    /// Hubs that became stuck, and that were freed.
    pub stuck: u32,
    pub freed: u32,
    /// Hubs connected at the end of the second, stuck ones left out; known once the second is closed.
    pub standing: u32,
    /// Hubs stuck at the end of the second; known once the second is closed.
    pub standing_stuck: u32,
}

/// Commands of one issuer group, by the second of each step; known once the second is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandSecond {
    pub due: u32,
    pub accepted: u32,
    /// First arrivals at a hub.
    pub delivered: u32,
    /// First answers.
    pub acknowledged: u32,
    /// Commands without a final state at the end of the second.
    pub open: u32,
}

impl Second {
    /// An empty second of this plan.
    #[must_use]
    pub fn new(plan: &Plan, index: u64) -> Second {
        Second {
            index,
            operations: vec![OperationSecond::default(); plan.operations.len()],
            hubs: vec![HubSecond::default(); plan.hubs.len()],
            commands: vec![CommandSecond::default(); plan.issuers.len()],
            docks: vec![DockSecond::default(); plan.docks.len()],
        }
    }

    /// Adds what another worker saw in the same second.
    pub fn add(&mut self, other: &Second) {
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.hubs.iter_mut().zip(&other.hubs) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.docks.iter_mut().zip(&other.docks) {
            mine.add(theirs);
        }
    }
}

impl OperationSecond {
    /// Actions that ended.
    #[must_use]
    pub fn finished(&self) -> u32 {
        self.ok + self.declined + self.failed + self.timed_out
    }

    /// One attempt left at `at`.
    pub(super) fn attempt(&mut self, at: Offset) {
        self.attempted += 1;
        let tenth = at.0 % 1_000_000 * TENTHS as u64 / 1_000_000;
        if let Some(count) = usize::try_from(tenth)
            .ok()
            .and_then(|row| self.tenths.get_mut(row))
        {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn finish(&mut self, outcome: Outcome, latency_us: u64, service_us: u64) {
        match outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Declined => self.declined += 1,
            Outcome::TimedOut => self.timed_out += 1,
            _ => self.failed += 1,
        }
        match outcome {
            Outcome::Ok | Outcome::Declined | Outcome::TimedOut => {
                self.latency.record(latency_us);
                self.service.record(service_us);
            }
            Outcome::NotSent => self.not_sent += 1,
            _ => {}
        }
    }

    pub(super) fn add(&mut self, other: &OperationSecond) {
        self.started += other.started;
        self.attempted += other.attempted;
        for (mine, theirs) in self.tenths.iter_mut().zip(other.tenths) {
            *mine = mine.saturating_add(theirs);
        }
        self.continued += other.continued;
        self.duplicated += other.duplicated;
        self.doubtful += other.doubtful;
        self.shared_accounts += other.shared_accounts;
        self.refused += other.refused;
        self.throttled += other.throttled;
        self.ok += other.ok;
        self.declined += other.declined;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.not_sent += other.not_sent;
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.lag.add(&other.lag);
    }
}

impl HubSecond {
    pub(super) fn change(&mut self, change: HubChange) {
        match change {
            HubChange::Opened => self.opened += 1,
            HubChange::Accepted => self.accepted += 1,
            HubChange::Connected => self.connected += 1,
            HubChange::Lost(_) => self.lost += 1,
            HubChange::Left => self.left += 1,
            HubChange::Stuck => self.stuck += 1,
            HubChange::Freed => self.freed += 1,
        }
    }

    fn add(&mut self, other: &HubSecond) {
        self.connects += other.connects;
        self.opened += other.opened;
        self.accepted += other.accepted;
        self.connected += other.connected;
        self.lost += other.lost;
        self.left += other.left;
        self.foreign += other.foreign;
        self.retained += other.retained;
        self.stuck += other.stuck;
        self.freed += other.freed;
    }
}

//! Sums over the whole run, from the clock's beginning to now.

use super::explained::{self, Explained, Explanations};
use super::histogram::Histogram;
use super::ledger::State;
use super::publishers::PublisherTotal;
use super::retries::RetryTotal;
use super::second::{OperationSecond, Second};
use super::shard::{Handshakes, PacketCount, Tally};
use crate::event::{Cause, OperationId, Outcome, PacketKind};
use crate::plan::{IssuerGroup, Plan};
use std::collections::BTreeMap;

/// Everything that was counted, connecting before 0:00 and draining included: what a server's own counts must equal.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// Parallel to `Plan::operations`.
    pub operations: Vec<OperationTotal>,
    /// Parallel to `Plan::hubs`.
    pub hubs: Vec<HubTotal>,
    /// By issuer group, then by shard of its hubs: commands by the state in which they were first settled.
    pub by_shard: Vec<Vec<[u64; State::ALL.len()]>>,
    /// Parallel to `Plan::hubs`: lost sessions by what ended them.
    pub losses: Vec<BTreeMap<Cause, u64>>,
    /// Parallel to `Target::devices`.
    pub publishers: Vec<PublisherTotal>,
    /// Steps of commands that did not fit between two visits of the collector.
    pub lost_steps: u64,
}

/// One operation over the whole run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationTotal {
    pub started: u64,
    pub attempted: u64,
    /// Attempts that were meant and no retries (polls, further candidates); they are not among `attempted`.
    pub continued: u64,
    /// Actions that the target did twice for certain, and those that it may have done twice.
    pub duplicated: u64,
    pub doubtful: u64,
    /// Journeys on an account that somebody else was using.
    pub shared_accounts: u64,
    pub ok: u64,
    pub declined: u64,
    /// Attempts that the target refused, and of those: because there were too many at once.
    pub refused: u64,
    pub throttled: u64,
    /// `not_sent` is among them, `timed_out` is not.
    pub failed: u64,
    pub timed_out: u64,
    pub not_sent: u64,
    pub latency: Histogram,
    pub service: Histogram,
    pub lag: Histogram,
    /// How attempts and actions ended, by class and code.
    pub outcomes: BTreeMap<Outcome, Tally>,
    pub retries: RetryTotal,
    /// What exactly was wrong, where it was told.
    pub explained: BTreeMap<Outcome, Explained>,
    /// Of those that were under way at the end: how long since they were due, in microseconds.
    pub unfinished_ages: Histogram,
}

/// One group of hubs over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HubTotal {
    pub opened: u64,
    pub accepted: u64,
    pub connected: u64,
    pub lost: u64,
    pub left: u64,
    pub foreign: u64,
    pub retained: u64,
    pub stuck: u64,
    pub freed: u64,
    pub handshakes: Handshakes,
    /// Attempts to connect.
    pub connects: u64,
    /// Of those: after 0:00, when every hub had stood.
    pub reconnects: u64,
    /// By the discriminant of [`PacketKind`].
    pub packets: [PacketCount; PacketKind::ALL.len()],
}

impl OperationTotal {
    /// Started and not ended.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.started
            .saturating_sub(self.ok + self.declined + self.failed + self.timed_out)
    }

    fn add(&mut self, second: &OperationSecond) {
        self.started += u64::from(second.started);
        self.attempted += u64::from(second.attempted);
        self.continued += u64::from(second.continued);
        self.duplicated += u64::from(second.duplicated);
        self.doubtful += u64::from(second.doubtful);
        self.shared_accounts += u64::from(second.shared_accounts);
        self.ok += u64::from(second.ok);
        self.declined += u64::from(second.declined);
        self.refused += u64::from(second.refused);
        self.throttled += u64::from(second.throttled);
        self.failed += u64::from(second.failed);
        self.timed_out += u64::from(second.timed_out);
        self.not_sent += u64::from(second.not_sent);
        self.latency.add(&second.latency);
        self.service.add(&second.service);
        self.lag.add(&second.lag);
    }
}

impl HubTotal {
    /// Connected now and not stuck.
    #[must_use]
    pub fn standing(&self) -> u64 {
        self.connected
            .saturating_sub(self.lost + self.left + self.standing_stuck())
    }

    /// Stuck now.
    #[must_use]
    pub fn standing_stuck(&self) -> u64 {
        self.stuck.saturating_sub(self.freed)
    }
}

impl Totals {
    pub(super) fn new(plan: &Plan) -> Totals {
        Totals {
            operations: vec![OperationTotal::default(); plan.operations.len()],
            hubs: vec![HubTotal::default(); plan.hubs.len()],
            by_shard: plan
                .issuers
                .iter()
                .map(|group| by_shard(plan, group))
                .collect(),
            losses: vec![BTreeMap::new(); plan.hubs.len()],
            publishers: vec![PublisherTotal::default(); plan.target.devices.len()],
            lost_steps: 0,
        }
    }

    /// Adds one second; `loaded` says that 0:00 had passed.
    pub(super) fn add(&mut self, second: &Second, loaded: bool) {
        for (total, now) in self.operations.iter_mut().zip(&second.operations) {
            total.add(now);
        }
        for (total, now) in self.hubs.iter_mut().zip(&second.hubs) {
            total.opened += u64::from(now.opened);
            total.accepted += u64::from(now.accepted);
            total.connected += u64::from(now.connected);
            total.lost += u64::from(now.lost);
            total.left += u64::from(now.left);
            total.foreign += u64::from(now.foreign);
            total.retained += u64::from(now.retained);
            total.stuck += u64::from(now.stuck);
            total.freed += u64::from(now.freed);
            total.connects += u64::from(now.connects);
            total.reconnects += if loaded { u64::from(now.connects) } else { 0 };
        }
    }

    pub(super) fn tally(&mut self, tallies: BTreeMap<(OperationId, Outcome), Tally>) {
        for ((operation, outcome), tally) in tallies {
            if let Some(total) = self.operations.get_mut(usize::from(operation.0)) {
                let sum = total.outcomes.entry(outcome).or_default();
                sum.attempts += tally.attempts;
                sum.actions += tally.actions;
            }
        }
    }

    pub(super) fn retries(&mut self, retries: BTreeMap<OperationId, RetryTotal>) {
        for (operation, counts) in retries {
            if let Some(total) = self.operations.get_mut(usize::from(operation.0)) {
                total.retries.add(counts);
            }
        }
    }

    pub(super) fn handshakes(&mut self, groups: &BTreeMap<u16, Handshakes>) {
        for (group, told) in groups {
            if let Some(total) = self.hubs.get_mut(usize::from(*group)) {
                total.handshakes.full += told.full;
                total.handshakes.resumed += told.resumed;
            }
        }
    }

    pub(super) fn explained(&mut self, told: Explanations) {
        explained::add(&mut self.operations, told);
    }

    pub(super) fn losses(&mut self, losses: BTreeMap<(u16, Cause), u64>) {
        for ((group, cause), count) in losses {
            if let Some(causes) = self.losses.get_mut(usize::from(group)) {
                *causes.entry(cause).or_default() += count;
            }
        }
    }

    pub(super) fn packets(&mut self, groups: &[[PacketCount; PacketKind::ALL.len()]]) {
        for (total, counts) in self.hubs.iter_mut().zip(groups) {
            for (sum, count) in total.packets.iter_mut().zip(counts) {
                sum.add(count);
            }
        }
    }

    /// A command for a hub of this shard was settled.
    pub(super) fn settled(&mut self, issuer: usize, shard: usize, state: State) {
        let row = self.by_shard.get_mut(issuer);
        if let Some(states) = row.and_then(|shards| shards.get_mut(shard)) {
            states[state as usize] += 1;
        }
    }

    pub(super) fn publishers(&mut self, devices: &[PublisherTotal]) {
        for (total, device) in self.publishers.iter_mut().zip(devices) {
            total.add(device);
        }
    }
}

fn by_shard(plan: &Plan, group: &IssuerGroup) -> Vec<[u64; State::ALL.len()]> {
    let hubs = plan.hubs.get(group.to);
    let device = hubs.and_then(|hubs| plan.target.devices.get(hubs.device));
    vec![[0; State::ALL.len()]; device.map_or(0, |device| device.shards.len())]
}

//! The connections over which issuers publish commands: a broker counts them too.

use super::shard::PacketCount;
use crate::event::{Cause, HubChange, Outcome, PacketKind};
use std::collections::BTreeMap;

/// The connections to the brokers of one device over the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublisherTotal {
    /// TCP connections that stood.
    pub opened: u64,
    /// Sessions accepted.
    pub accepted: u64,
    /// Sessions that ended although nobody had asked for it, by what ended them.
    pub losses: BTreeMap<Cause, u64>,
    /// Attempts to connect that came to nothing, by how they ended.
    pub failures: BTreeMap<Outcome, u64>,
    /// By the discriminant of [`PacketKind`].
    pub packets: [PacketCount; PacketKind::ALL.len()],
}

impl PublisherTotal {
    /// Sessions that ended although nobody had asked for it.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.losses.values().sum()
    }

    pub(super) fn change(&mut self, change: HubChange) {
        match change {
            HubChange::Opened => self.opened += 1,
            HubChange::Accepted => self.accepted += 1,
            HubChange::Lost(cause) => *self.losses.entry(cause).or_default() += 1,
            HubChange::Connected | HubChange::Left | HubChange::Stuck | HubChange::Freed => {}
        }
    }

    pub(super) fn failed(&mut self, outcome: Outcome) {
        *self.failures.entry(outcome).or_default() += 1;
    }

    pub(super) fn packet(&mut self, kind: PacketKind, sent: bool) {
        self.packets[kind as usize].count(sent);
    }

    pub(super) fn add(&mut self, other: &PublisherTotal) {
        self.opened += other.opened;
        self.accepted += other.accepted;
        for (cause, count) in &other.losses {
            *self.losses.entry(*cause).or_default() += count;
        }
        for (outcome, count) in &other.failures {
            *self.failures.entry(*outcome).or_default() += count;
        }
        for (sum, count) in self.packets.iter_mut().zip(&other.packets) {
            sum.add(count);
        }
    }
}

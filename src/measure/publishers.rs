//! The connections over which issuers publish commands: a broker counts them too.

use super::shard::PacketCount;
use crate::event::{HubChange, PacketKind};

/// The connections to the brokers of one device over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PublisherTotal {
    /// TCP connections that stood.
    pub opened: u64,
    /// Sessions accepted.
    pub accepted: u64,
    /// Sessions that ended although nobody had asked for it.
    pub lost: u64,
    /// By the discriminant of [`PacketKind`].
    pub packets: [PacketCount; PacketKind::ALL.len()],
}

impl PublisherTotal {
    pub(super) fn change(&mut self, change: HubChange) {
        match change {
            HubChange::Opened => self.opened += 1,
            HubChange::Accepted => self.accepted += 1,
            HubChange::Lost(_) => self.lost += 1,
            HubChange::Connected | HubChange::Left | HubChange::Stuck | HubChange::Freed => {}
        }
    }

    pub(super) fn packet(&mut self, kind: PacketKind, sent: bool) {
        self.packets[kind as usize].count(sent);
    }

    pub(super) fn add(&mut self, other: &PublisherTotal) {
        self.opened += other.opened;
        self.accepted += other.accepted;
        self.lost += other.lost;
        for (sum, count) in self.packets.iter_mut().zip(&other.packets) {
            sum.add(count);
        }
    }
}

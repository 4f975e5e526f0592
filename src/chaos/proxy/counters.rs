//! What a link has carried, counted while connections live.

use super::chain::Direction;
use super::wire::{FaultState, LinkAddress, LinkState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of a link.
#[derive(Debug, Default)]
pub(super) struct Counters {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
    to_target_bytes: AtomicU64,
    to_client_bytes: AtomicU64,
    held_chunks: AtomicU64,
}

/// Counts a connection as open for as long as it lives.
pub(super) struct Open(Arc<Counters>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub(super) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn open(self: &Arc<Counters>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    pub(super) fn carried(&self, direction: Direction, bytes: usize) {
        self.way(direction)
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn held(&self, by_toxics: bool) {
        self.held_chunks
            .fetch_add(u64::from(by_toxics), Ordering::Relaxed);
    }

    pub(super) fn bytes(&self, direction: Direction) -> u64 {
        self.way(direction).load(Ordering::Relaxed)
    }

    fn way(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::ToTarget => &self.to_target_bytes,
            Direction::ToClient => &self.to_client_bytes,
        }
    }

    pub(super) fn state(
        &self,
        name: &str,
        addresses: Vec<LinkAddress>,
        on: bool,
        (faults, past): (Vec<FaultState>, Vec<FaultState>),
    ) -> LinkState {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LinkState {
            name: name.to_owned(),
            addresses,
            on,
            open: read(&self.open),
            accepted: read(&self.accepted),
            refused: read(&self.refused),
            cut: read(&self.cut),
            to_target_bytes: read(&self.to_target_bytes),
            to_client_bytes: read(&self.to_client_bytes),
            held_chunks: read(&self.held_chunks),
            faults,
            past,
        }
    }
}

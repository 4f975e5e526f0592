//! What a fault has done to real connections, counted while it stands. Canaries are not counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of one fault.
#[derive(Debug, Default)]
pub struct Tally {
    /// Live connections that it acts on.
    acts_on: AtomicU64,
    /// Connections that it ever acted on.
    reached: AtomicU64,
    /// Live connections that speak something else than it understands.
    foreign: AtomicU64,
    /// What it did: chunks delayed, narrowed, cut or lost; packets withheld; requests delayed or answered; connections refused or ended.
    hits: AtomicU64,
}

/// The numbers at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tallied {
    pub acts_on: u64,
    pub reached: u64,
    pub foreign: u64,
    pub hits: u64,
}

impl Tally {
    /// One thing done, or several.
    pub fn hit(&self, count: u64) {
        if count > 0 {
            self.hits.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// What is counted so far.
    #[must_use]
    pub fn read(&self) -> Tallied {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Tallied {
            acts_on: read(&self.acts_on),
            reached: read(&self.reached),
            foreign: read(&self.foreign),
            hits: read(&self.hits),
        }
    }
}

/// A connection on which a fault acts, for as long as it does.
#[derive(Debug)]
pub(super) struct Acting(Arc<Tally>);

impl Acting {
    pub(super) fn on(tally: &Arc<Tally>) -> Acting {
        tally.acts_on.fetch_add(1, Ordering::Relaxed);
        tally.reached.fetch_add(1, Ordering::Relaxed);
        Acting(Arc::clone(tally))
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        self.0.acts_on.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that a fault does not understand, for as long as both are there.
#[derive(Debug)]
pub(super) struct Foreign(Arc<Tally>);

impl Foreign {
    pub(super) fn to(tally: &Arc<Tally>) -> Foreign {
        tally.foreign.fetch_add(1, Ordering::Relaxed);
        Foreign(Arc::clone(tally))
    }

    pub(super) fn is_of(&self, tally: &Arc<Tally>) -> bool {
        Arc::ptr_eq(&self.0, tally)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.0.foreign.fetch_sub(1, Ordering::Relaxed);
    }
}

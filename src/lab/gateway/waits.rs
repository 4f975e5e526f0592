//! How long requests waited for a connection: as the histogram that `/metrics` shows, and exactly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, in microseconds. They reach beyond any acquire timeout that makes sense: a p99 that
/// ends at the last bucket would hide an outage.
pub const BOUNDS_US: [u64; 16] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 20_000_000, 30_000_000, 60_000_000,
];

/// Waits that have ended, with a connection or without.
#[derive(Debug, Default)]
pub struct Waits {
    /// Per bound, not cumulative; the last is above all bounds.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    count: AtomicU64,
    sum_us: AtomicU64,
    max_us: AtomicU64,
}

/// The waits so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub count: u64,
    pub sum_us: u64,
    pub max_us: u64,
}

impl Waits {
    /// Adds a wait that has ended.
    pub fn add(&self, wait: Duration) {
        let us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
        self.max_us.fetch_max(us, Ordering::Relaxed);
    }

    /// Everything so far.
    pub fn seen(&self) -> Seen {
        Seen {
            count: self.count.load(Ordering::Relaxed),
            sum_us: self.sum_us.load(Ordering::Relaxed),
            max_us: self.max_us.load(Ordering::Relaxed),
        }
    }

    /// Each bound in seconds with the number of waits up to it; the last bound is infinite.
    pub fn cumulative(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_US
            .iter()
            .map(|us| *us as f64 / 1e6)
            .chain([f64::INFINITY]);
        let counts = self.buckets.iter().scan(0, |total, bucket| {
            *total += bucket.load(Ordering::Relaxed);
            Some(*total)
        });
        bounds.zip(counts).collect()
    }
}

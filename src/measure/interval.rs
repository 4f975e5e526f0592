//! The latencies of ten seconds at a time, on their way to the interval log.

use super::histogram::Histogram;
use super::second::Second;
use crate::plan::Plan;

/// Length of an interval in seconds.
pub const INTERVAL_SECONDS: u64 = 10;

/// The latencies of one operation in one interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// `group/operation`, as a tag: without commas, spaces and line ends.
    pub tag: String,
    /// Seconds since the clock began.
    pub start_s: u64,
    pub length_s: u64,
    pub latency: Histogram,
}

/// Sums seconds until an interval is full.
#[derive(Debug)]
pub(super) struct Intervals {
    tags: Vec<String>,
    /// Of the interval that is being filled.
    start_s: u64,
    sums: Vec<Histogram>,
    ready: Vec<Interval>,
}

impl Intervals {
    pub(super) fn new(plan: &Plan) -> Intervals {
        let tag = |text: &str| text.replace([',', ' ', '\r', '\n'], "-");
        Intervals {
            tags: plan
                .operations
                .iter()
                .map(|row| tag(&format!("{}/{}", row.group, row.name)))
                .collect(),
            start_s: 0,
            sums: vec![Histogram::default(); plan.operations.len()],
            ready: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, second: &Second) {
        for (sum, operation) in self.sums.iter_mut().zip(&second.operations) {
            sum.add(&operation.latency);
        }
        if second.index + 1 >= self.start_s + INTERVAL_SECONDS {
            self.close(second.index + 1);
        }
    }

    /// Adds what belongs to no second: it counts in the last interval.
    pub(super) fn add_carried(&mut self, carried: &Second) {
        for (sum, operation) in self.sums.iter_mut().zip(&carried.operations) {
            sum.add(&operation.latency);
        }
    }

    /// Ends the interval before second `end`.
    pub(super) fn close(&mut self, end: u64) {
        let length_s = end.saturating_sub(self.start_s).max(1);
        for (tag, sum) in self.tags.iter().zip(&mut self.sums) {
            if sum.count() > 0 {
                let latency = std::mem::take(sum);
                self.ready.push(Interval {
                    tag: tag.clone(),
                    start_s: self.start_s,
                    length_s,
                    latency,
                });
            }
        }
        self.start_s = end;
    }

    pub(super) fn take(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.ready)
    }
}

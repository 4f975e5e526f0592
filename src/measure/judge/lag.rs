//! How late the generator itself was: start − due. A late generator can't judge latencies.

use crate::measure::histogram::Histogram;
use crate::measure::second::Second;
use crate::plan::Plan;
use std::collections::VecDeque;

/// The window in which lag is judged.
const WINDOW_SECONDS: usize = 10;

/// The share of the tightest limit on a latency that lag may use up.
const ALLOWED_SHARE: f64 = 0.1;

/// The lag of the last seconds, and the worst so far. Only of seconds of the load.
#[derive(Debug)]
pub struct LagWatch {
    allowed_us: Option<f64>,
    recent: VecDeque<Histogram>,
    whole: Histogram,
    worst_us: Option<u64>,
    /// The first window in which the lag was more than allowed: its p99 and its last second.
    late: Option<(u64, u64)>,
}

impl LagWatch {
    pub(in crate::measure) fn new(plan: &Plan) -> LagWatch {
        let limits = plan.expect.iter().filter_map(super::latency_limit);
        LagWatch {
            allowed_us: limits.reduce(f64::min).map(|limit| limit * ALLOWED_SHARE),
            recent: VecDeque::new(),
            whole: Histogram::default(),
            worst_us: None,
            late: None,
        }
    }

    pub(in crate::measure) fn second(&mut self, second: &Second) {
        let lag = Histogram::sum(second.operations.iter().map(|row| &row.lag));
        self.whole.add(&lag);
        self.recent.push_back(lag);
        if self.recent.len() > WINDOW_SECONDS {
            self.recent.pop_front();
        }
        let window = Histogram::sum(self.recent.iter());
        let Some(p99) = window.percentile_us(99.0) else {
            return;
        };
        self.worst_us = self.worst_us.max(Some(p99));
        if self.late.is_none()
            && let Some(allowed) = self.allowed_us
            && p99 as f64 > allowed
            // One late start among few is no percentile.
            && window.count_above(allowed as u64) > 1
        {
            self.late = Some((p99, second.index));
        }
    }

    /// Lag of everything that was started during the load.
    #[must_use]
    pub fn whole(&self) -> &Histogram {
        &self.whole
    }

    /// The worst p99 of the lag in any ten seconds, in microseconds.
    #[must_use]
    pub fn worst_us(&self) -> Option<u64> {
        self.worst_us
    }

    /// The lag that would spoil the tightest limit on a latency, in microseconds.
    #[must_use]
    pub fn allowed_us(&self) -> Option<u64> {
        self.allowed_us.map(|us| us as u64)
    }

    /// The p99 (microseconds) and the last second of the first ten seconds in which the lag was more than allowed.
    #[must_use]
    pub fn late(&self) -> Option<(u64, u64)> {
        self.late
    }
}

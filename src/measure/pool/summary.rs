//! One source in a few figures, for reports.

use super::buckets::Estimate;
use super::window::{Blind, GaugeSpan, Saturation, WaitMean};
use super::{Costs, PoolSeries};
use crate::event::Offset;
use crate::plan::signal::Signal;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// A pool over a window. What the target does not export is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PoolSummary {
    pub wait: Option<WaitMean>,
    pub wait_p99: Option<Estimate>,
    pub wait_max: Option<Estimate>,
    pub waiting: Option<GaugeSpan>,
    pub in_use: Option<GaugeSpan>,
    /// Connections that the pool may lend out, as last read.
    pub max: Option<f64>,
    pub saturation: Option<Saturation>,
    pub stalled_us: Option<u64>,
    pub timeouts: Option<f64>,
    pub acquires: Option<f64>,
}

/// How well a source could be read over a window, and over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceSummary {
    pub blind: Blind,
    /// Rounds with an answer in the window.
    pub readings: u64,
    /// Readings that did not come about in the whole run, by reason.
    pub gaps: BTreeMap<&'static str, u64>,
    /// Why the last of them did not.
    pub last_gap: Option<String>,
    /// Restarts of an instance that the counters showed in the whole run.
    pub restarts: u64,
    pub costs: Option<Costs>,
}

impl PoolSeries {
    /// The pool's figures of a window.
    #[must_use]
    pub fn summary(&self, window: Range<Offset>) -> PoolSummary {
        PoolSummary {
            wait: self.wait_mean(window.clone()),
            wait_p99: self.wait_quantile(window.clone(), 0.99),
            wait_max: self.wait_max(window.clone()),
            waiting: self.gauge(Signal::Waiting, window.clone()),
            in_use: self.gauge(Signal::InUse, window.clone()),
            max: self
                .gauge(Signal::Max, window.clone())
                .map(|span| span.last),
            saturation: self.saturation(window.clone()),
            stalled_us: self
                .stalled(window.clone())
                .map(|stalled| u64::try_from(stalled.as_micros()).unwrap_or(u64::MAX)),
            timeouts: self.increase_of(Signal::Timeouts, window.clone()),
            acquires: self.acquires(window),
        }
    }

    /// How well the source could be read.
    #[must_use]
    pub fn source_summary(&self, window: Range<Offset>) -> SourceSummary {
        SourceSummary {
            blind: self.blind(window.clone()),
            readings: self.readings_in(&window).len() as u64,
            gaps: self
                .gaps
                .iter()
                .map(|(reason, count)| (reason.name(), *count))
                .collect(),
            last_gap: self.last_gap.clone(),
            restarts: self.restarts,
            costs: self.costs(),
        }
    }
}

//! What the readings of one probed source say: pool wait, waiting, saturation, stalls; depth and value likewise.
//!
//! Five signals, never one. Counters of waits are written when a wait *ends*, so they freeze while a pool is stalled; Little's
//! law on the sampled number of waiting requests does not. Both are reported, the larger is judged, and a stall is a signal of its own.
//! A missing reading is a gap, never a zero. This module knows no socket and no text format: `probe` reads, this adds up.

mod buckets;
mod counters;
mod summary;
mod window;

pub use buckets::Estimate;
pub use summary::{PoolSummary, SourceSummary};
pub use window::{Blind, GaugeSpan, Saturation, WaitMean};

use crate::event::Offset;
use crate::plan::signal::Signal;
use buckets::Bounds;
use counters::Counters;

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// One round of readings of one source: every instance was asked once, at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Row in `Probes::sources`.
    pub source: usize,
    /// When the round began.
    pub at: Offset,
    /// One entry for each instance, in the order of `ProbeSource::scrape`, always of the same number.
    pub instances: Vec<Result<Reading, Gap>>,
}

/// What one instance said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The middle of the request.
    pub at: Offset,
    /// `process_start_time_seconds`, if exported: a change proves a restart.
    pub started: Option<f64>,
    pub values: Vec<Value>,
    pub cost: Cost,
}

/// What one reading cost, and how well it could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// From the question to the last byte of the answer.
    pub took_us: u64,
    pub bytes: u64,
    /// Lines that make no sense.
    pub bad_lines: u64,
    /// Lines that repeat a series.
    pub duplicate_lines: u64,
}

/// One value in the unit of its signal (times in microseconds).
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Gauge {
        signal: Signal,
        value: f64,
    },
    /// A counter as it stands; `series` tells apart the series of one counter within an instance.
    Counter {
        counter: Counter,
        series: String,
        value: f64,
    },
}

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counter {
    /// Time waited, in microseconds, written when a wait ends.
    WaitSum,
    /// Waits that ended, those of no length and those that gave up included.
    WaitCount,
    /// Requests that had to wait at all: the pools of Go's `database/sql` export no other count.
    Waiters,
    /// Waits of at most this many microseconds (`le` of a histogram; infinite for all).
    WaitBucket { at_most_us: f64 },
    /// Requests that arrived, counted before they wait: of PgBouncer before 1.23 these are the only count that goes with the time waited.
    Arrivals,
    /// The counter of a signal that only grows.
    Of(Signal),
}

/// A reading that did not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub reason: GapReason,
    /// What exactly, for the report: the error's text, the status, the metric that was not found.
    pub detail: String,
}

/// Why a reading did not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapReason {
    /// No answer within the probe's timeout.
    TimedOut,
    /// No connection, or it broke.
    Unreachable,
    /// An answer other than 200.
    Refused,
    /// A body that is too large, or not text.
    Unreadable,
    /// A good answer that holds none of the signals.
    NothingFound,
}

impl GapReason {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GapReason::TimedOut => "timed out",
            GapReason::Unreachable => "unreachable",
            GapReason::Refused => "refused",
            GapReason::Unreadable => "unreadable",
            GapReason::NothingFound => "no signal found",
        }
    }
}

/// All readings of one source, one small row for each round.
#[derive(Debug, Clone)]
pub struct PoolSeries {
    /// Time between two rounds by plan.
    every: Duration,
    rows: Vec<Row>,
    counters: Counters,
    bounds: Bounds,
    gaps: BTreeMap<GapReason, u64>,
    /// The last gap's text, for a person who asks why.
    last_gap: Option<String>,
    restarts: u64,
    /// The last round brought an answer of every instance.
    sees: bool,
    costs: Costs,
}

/// What the readings of a source cost, over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Costs {
    pub answers: u64,
    /// Of the slowest instance in the last round.
    pub last_us: u64,
    pub mean_us: f64,
    pub longest_us: u64,
    /// Of the largest answer.
    pub bytes: u64,
    /// Lines that make no sense, and lines that repeat a series, in the last round.
    pub bad_lines: u64,
    pub duplicate_lines: u64,
}

impl Costs {
    fn begin_round(&mut self) {
        (self.last_us, self.bad_lines, self.duplicate_lines) = (0, 0, 0);
    }

    fn add(&mut self, cost: Cost) {
        self.answers += 1;
        self.last_us = self.last_us.max(cost.took_us);
        self.longest_us = self.longest_us.max(cost.took_us);
        self.mean_us += (cost.took_us as f64 - self.mean_us) / self.answers as f64;
        self.bytes = self.bytes.max(cost.bytes);
        self.bad_lines += cost.bad_lines;
        self.duplicate_lines += cost.duplicate_lines;
    }
}

/// One round, summed over the instances that answered.
#[derive(Debug, Clone, Default)]
struct Row {
    /// The middle of the requests.
    at: Offset,
    /// The row before: the increases happened from there to `at`. The first row has none.
    since: Option<Offset>,
    /// Whether every instance answered.
    complete: bool,
    /// In the order of `Signal::ALL`: the gauges, and how much each counter of a signal grew.
    signals: [Option<f64>; Signal::ALL.len()],
    wait_sum_us: Option<f64>,
    wait_count: Option<f64>,
    waiters: Option<f64>,
    /// Increase of each cumulative bucket, in the order of `PoolSeries::bounds`.
    buckets: Box<[f64]>,
}

impl PoolSeries {
    /// No readings yet; `every` is the time between two rounds.
    #[must_use]
    pub fn new(every: Duration) -> PoolSeries {
        PoolSeries {
            every,
            rows: Vec::new(),
            counters: Counters::default(),
            bounds: Bounds::default(),
            gaps: BTreeMap::new(),
            last_gap: None,
            restarts: 0,
            sees: false,
            costs: Costs::default(),
        }
    }

    /// Adds one round. Rounds come in the order of time.
    pub fn add(&mut self, sample: Sample) {
        let instances = sample.instances.len();
        let mut row = Row {
            since: self.rows.last().map(|row| row.at),
            ..Row::default()
        };
        let mut buckets = vec![0.0; self.bounds.len()];
        let (mut answered, mut middle_us) = (0_u64, 0_u128);
        if sample.instances.iter().any(Result::is_ok) {
            self.costs.begin_round();
        }
        for (instance, outcome) in sample.instances.into_iter().enumerate() {
            match outcome {
                Err(gap) => {
                    *self.gaps.entry(gap.reason).or_default() += 1;
                    self.last_gap = Some(format!("{}: {}", gap.reason.name(), gap.detail));
                }
                Ok(reading) => {
                    answered += 1;
                    middle_us += u128::from(reading.at.0);
                    row.add_gauges(&reading.values);
                    self.costs.add(reading.cost);
                    let (increases, restarted) = self.counters.increases(instance, reading);
                    self.restarts += u64::from(restarted);
                    for (counter, increase) in increases {
                        row.add_increase(counter, increase, &mut self.bounds, &mut buckets);
                    }
                }
            }
        }
        self.sees = answered == instances as u64 && instances > 0;
        if answered == 0 {
            return;
        }
        row.at = Offset(u64::try_from(middle_us / u128::from(answered)).unwrap_or(u64::MAX));
        row.complete = answered == instances as u64;
        row.buckets = buckets.into_boxed_slice();
        self.rows.push(row);
    }

    /// Whether the last round brought an answer of every instance.
    #[must_use]
    pub fn is_seeing(&self) -> bool {
        self.sees
    }

    /// What its readings cost; `None` before the first.
    #[must_use]
    pub fn costs(&self) -> Option<Costs> {
        (self.costs.answers > 0).then_some(self.costs)
    }

    /// Whether any round brought this gauge or counter.
    #[must_use]
    pub fn has(&self, signal: Signal) -> bool {
        self.rows.iter().any(|row| {
            row.of(signal).is_some() || (signal == Signal::Wait && row.wait_sum_us.is_some())
        })
    }
}

impl Row {
    /// Gauges are summed over series and instances, times are not: the longest counts, and so does the fullest instance.
    fn add_gauges(&mut self, values: &[Value]) {
        let (mut in_use, mut max) = (None, None);
        for value in values {
            let Value::Gauge { signal, value } = *value else {
                continue;
            };
            if !value.is_finite() {
                continue;
            }
            match signal {
                Signal::InUse => add(&mut in_use, value),
                Signal::Max => add(&mut max, value),
                // A probe's own connection may be one above the limit: a pool is never more than full.
                Signal::Saturation => self.raise(signal, value.clamp(0.0, 1.0)),
                signal if signal.is_time() => self.raise(signal, value),
                signal => add(self.slot(signal), value),
            }
        }
        if let (Some(in_use), Some(max)) = (in_use, max)
            && max > 0.0
        {
            self.raise(Signal::Saturation, (in_use / max).clamp(0.0, 1.0));
        }
        if let Some(in_use) = in_use {
            add(self.slot(Signal::InUse), in_use);
        }
        if let Some(max) = max {
            add(self.slot(Signal::Max), max);
        }
    }

    fn raise(&mut self, signal: Signal, value: f64) {
        let slot = self.slot(signal);
        *slot = Some(slot.map_or(value, |other| other.max(value)));
    }

    fn add_increase(
        &mut self,
        counter: Counter,
        increase: f64,
        bounds: &mut Bounds,
        buckets: &mut Vec<f64>,
    ) {
        match counter {
            Counter::WaitSum => add(&mut self.wait_sum_us, increase),
            Counter::WaitCount => add(&mut self.wait_count, increase),
            Counter::Waiters => add(&mut self.waiters, increase),
            // The preset reads the same counter as a signal of its own.
            Counter::Arrivals => {}
            Counter::Of(signal) => add(self.slot(signal), increase),
            Counter::WaitBucket { at_most_us } => {
                let place = bounds.place(at_most_us);
                if buckets.len() <= place {
                    buckets.resize(place + 1, 0.0);
                }
                buckets[place] += increase;
            }
        }
    }

    fn slot(&mut self, signal: Signal) -> &mut Option<f64> {
        &mut self.signals[signal as usize]
    }

    /// A gauge, or the increase of a counter.
    fn of(&self, signal: Signal) -> Option<f64> {
        self.signals[signal as usize]
    }

    /// Requests that got a connection in this row. Where no counter says so: waits that ended less those that ended by giving up,
    /// which HikariCP and OpenTelemetry's histograms count. More give-ups than ended waits prove that they are not counted here.
    fn acquired(&self) -> Option<f64> {
        let ended = self.wait_count.map(|ended| {
            let gave_up = self.of(Signal::Timeouts).unwrap_or(0.0);
            if gave_up <= ended {
                ended - gave_up
            } else {
                ended
            }
        });
        self.of(Signal::Acquires).or(ended)
    }

    /// The middle of the time that the increases cover: it decides to which window they belong.
    fn middle(&self) -> Offset {
        self.since.map_or(self.at, |since| {
            Offset(since.0 + self.at.since(since).as_micros() as u64 / 2)
        })
    }

    /// The time that the increases cover.
    fn covers(&self) -> Duration {
        self.since
            .map_or(Duration::ZERO, |since| self.at.since(since))
    }
}

fn add(to: &mut Option<f64>, value: f64) {
    *to = Some(to.unwrap_or(0.0) + value);
}

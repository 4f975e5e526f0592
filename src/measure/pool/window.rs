//! Questions about a part of the run, `from` included, `to` not.
//!
//! A gauge belongs to the moment at which it was read; an increase to the middle of the time that it covers, so that a row on
//! the edge is counted on one side only.

use super::buckets::{self, Estimate};
use super::{PoolSeries, Row};
use crate::event::Offset;
use crate::plan::signal::Signal;
use serde::Serialize;
use std::ops::Range;
use std::time::Duration;

/// The mean wait of a window, by two ways of knowing it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WaitMean {
    /// Increase of the time waited over increase of the waits that ended.
    pub by_counters_us: Option<f64>,
    /// Little's law: mean number waiting over the rate of arrivals; counts those who gave up and who still wait.
    pub by_little_us: Option<f64>,
    /// What expectations are judged on: the larger. Sampled once a second, `waiting` is noisy where waits are short, so Little's
    /// law wins only by more than two standard errors of its own.
    pub judged_us: f64,
}

/// A gauge over a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GaugeSpan {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
    pub last: f64,
    pub readings: u64,
}

/// How full a pool was; shares from 0 to 1. Of several instances the fullest counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Saturation {
    pub mean: f64,
    pub max: f64,
    /// Share of the readings at 95 % or more.
    pub full_share: f64,
    /// The longest time at 95 % or more without a break.
    pub longest_full_us: u64,
}

/// How much of a window had no complete reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Blind {
    /// 0 to 1.
    pub share: f64,
    pub longest_us: u64,
}

/// A pool counts as full from this share of its connections on.
const FULL: f64 = 0.95;

impl PoolSeries {
    /// The mean wait; `None` if nothing was asked of the pool, or the target exports too little to know.
    #[must_use]
    pub fn wait_mean(&self, window: Range<Offset>) -> Option<WaitMean> {
        let rows = self.increases_in(&window);
        let counted = sum(rows, |row| row.wait_count).filter(|count| *count > 0.0);
        let by_counters_us = match (sum(rows, |row| row.wait_sum_us), counted) {
            (Some(waited), Some(count)) => Some(waited / count),
            (Some(waited), None) => match sum(rows, |row| row.waiters) {
                Some(0.0) => Some(0.0),
                Some(waiters) => Some(waited / waiters),
                None => sum(rows, |row| row.of(Signal::Arrivals))
                    .filter(|arrived| *arrived > 0.0)
                    .map(|arrived| waited / arrived),
            },
            // A mean that somebody else has computed.
            (None, _) => self
                .gauge(Signal::Wait, window.clone())
                .map(|span| span.mean),
        };
        let little = self.little(&window);
        let judged_us = match (by_counters_us, little) {
            (Some(counters), Some(little)) if little.lowest_us > counters => little.mean_us,
            (Some(counters), _) => counters,
            (None, Some(little)) => little.mean_us,
            (None, None) => return None,
        };
        Some(WaitMean {
            by_counters_us,
            by_little_us: little.map(|little| little.mean_us),
            judged_us,
        })
    }

    /// A quantile (0 to 1) of the wait; `None` where the target exports no histogram, or nothing waited.
    #[must_use]
    pub fn wait_quantile(&self, window: Range<Offset>, q: f64) -> Option<Estimate> {
        buckets::quantile(&self.buckets_in(&window), q).or_else(|| {
            let is_p99 = (q - 0.99).abs() < 1e-9;
            let told = self.gauge(Signal::WaitP99, window).filter(|_| is_p99)?;
            Some(exactly(told.max))
        })
    }

    /// The longest wait: the upper bound of the histogram's highest used bucket; without one, the longest that was seen to wait.
    #[must_use]
    pub fn wait_max(&self, window: Range<Offset>) -> Option<Estimate> {
        buckets::largest(&self.buckets_in(&window)).or_else(|| {
            let seen = self.gauge(Signal::WaitMax, window)?;
            Some(exactly(seen.max))
        })
    }

    /// The readings of a gauge, summed over the instances (for times: the longest).
    #[must_use]
    pub fn gauge(&self, signal: Signal, window: Range<Offset>) -> Option<GaugeSpan> {
        let values = self
            .readings_in(&window)
            .iter()
            .filter_map(|row| row.of(signal));
        let mut span: Option<GaugeSpan> = None;
        for value in values {
            let next = span.get_or_insert(GaugeSpan {
                min: value,
                mean: 0.0,
                max: value,
                last: value,
                readings: 0,
            });
            next.min = next.min.min(value);
            next.max = next.max.max(value);
            next.last = value;
            next.readings += 1;
            next.mean += (value - next.mean) / next.readings as f64;
        }
        span
    }

    /// The most requests that waited at once.
    #[must_use]
    pub fn waiting_max(&self, window: Range<Offset>) -> Option<f64> {
        self.gauge(Signal::Waiting, window).map(|span| span.max)
    }

    /// How full the pool was; `None` where the target does not export both `in_use` and `max`.
    #[must_use]
    pub fn saturation(&self, window: Range<Offset>) -> Option<Saturation> {
        let (mut count, mut full, mut mean, mut max) = (0_u64, 0_u64, 0.0, 0.0_f64);
        let (mut run_us, mut longest_full_us) = (0_u64, 0_u64);
        for row in self.readings_in(&window) {
            let Some(saturation) = row.of(Signal::Saturation) else {
                continue;
            };
            count += 1;
            mean += (saturation - mean) / count as f64;
            max = max.max(saturation);
            run_us = if saturation >= FULL {
                full += 1;
                run_us
                    + self
                        .every
                        .min(row.covers().max(Duration::from_micros(1)))
                        .as_micros() as u64
            } else {
                0
            };
            longest_full_us = longest_full_us.max(run_us);
        }
        (count > 0).then(|| Saturation {
            mean,
            max,
            full_share: full as f64 / count as f64,
            longest_full_us,
        })
    }

    /// Time in which requests waited and none got a connection, counted from two readings in a row on. `None` where the target
    /// exports no `waiting`, or nothing that counts acquires.
    #[must_use]
    pub fn stalled(&self, window: Range<Offset>) -> Option<Duration> {
        let in_window = |row: &Row| (window.start..window.end).contains(&row.middle());
        let mut known = false;
        let mut stalled = Duration::ZERO;
        for (number, row) in self.rows.iter().enumerate() {
            let Some(is_stalled) = row.is_stalled() else {
                continue;
            };
            if !in_window(row) {
                continue;
            }
            known = true;
            let before = number
                .checked_sub(1)
                .and_then(|number| self.rows.get(number));
            let next = self.rows.get(number + 1);
            let in_a_row = [before, next]
                .into_iter()
                .flatten()
                .any(|row| row.is_stalled() == Some(true));
            if is_stalled && in_a_row {
                stalled += row.covers();
            }
        }
        known.then_some(stalled)
    }

    /// How much a counter grew; `None` where it is not exported.
    #[must_use]
    pub fn increase_of(&self, signal: Signal, window: Range<Offset>) -> Option<f64> {
        self.increase(&window, |row| {
            row.of(signal).filter(|_| signal.is_counter())
        })
    }

    /// A counter's growth per second of the time that its readings cover.
    #[must_use]
    pub fn rate_of(&self, signal: Signal, window: Range<Offset>) -> Option<f64> {
        let rows = self.increases_in(&window);
        let grew = sum(rows, |row| row.of(signal).filter(|_| signal.is_counter()))?;
        let covered: f64 = rows
            .iter()
            .filter(|row| row.of(signal).is_some())
            .map(|row| row.covers().as_secs_f64())
            .sum();
        (covered > 0.0).then(|| grew / covered)
    }

    /// Whether the last two readings of the window show a stall; `None` where that can't be known.
    #[must_use]
    pub fn is_stalled(&self, window: Range<Offset>) -> Option<bool> {
        let mut last = self.readings_in(&window).iter().rev();
        let (newest, before) = (last.next()?.is_stalled()?, last.next());
        Some(newest && before.and_then(Row::is_stalled) == Some(true))
    }

    /// Requests that got a connection; where no such counter is exported, waits that ended less those that gave up.
    #[must_use]
    pub fn acquires(&self, window: Range<Offset>) -> Option<f64> {
        self.increase(&window, Row::acquired)
    }

    /// How much of the window had no reading of every instance. A reading covers the time up to half an interval after the next
    /// one was due.
    #[must_use]
    pub fn blind(&self, window: Range<Offset>) -> Blind {
        let length = window.end.since(window.start).as_micros() as u64;
        if length == 0 {
            return Blind {
                share: 0.0,
                longest_us: 0,
            };
        }
        let every = self.every.as_micros() as u64;
        let (mut blind_us, mut longest_us) = (0_u64, 0_u64);
        let mut seen_to = 0_u64;
        let complete = self
            .rows
            .iter()
            .filter(|row| row.complete)
            .map(|row| row.at.0);
        for at in complete.chain([window.end.0]) {
            // What lies between `seen_to` and this reading was not seen, unless the reading is merely a little late.
            if at > seen_to.saturating_add(every / 2) {
                let begin = seen_to.max(window.start.0);
                let gap = at.min(window.end.0).saturating_sub(begin);
                blind_us += gap;
                longest_us = longest_us.max(gap);
            }
            seen_to = at.saturating_add(every);
            if at >= window.end.0 {
                break;
            }
        }
        Blind {
            share: blind_us as f64 / length as f64,
            longest_us,
        }
    }

    /// The wait of each second from `first` (of the clock) to `to`, which is not included. While nothing gets a connection, the time
    /// since something did: the head of the queue has waited at least that long. `None` for a second without a reading.
    #[must_use]
    pub fn wait_by_second(&self, first: u64, to: u64) -> Vec<Option<f64>> {
        let mut seconds = vec![None; usize::try_from(to.saturating_sub(first)).unwrap_or(0)];
        let mut acquired_at = None;
        for row in &self.rows {
            let got = row.served() != Some(false);
            if got {
                acquired_at = Some(row.at);
            }
            let waiting = row.of(Signal::Waiting);
            let count = row.wait_count.or(row.waiters).or(row.of(Signal::Arrivals));
            let wait = match (row.wait_sum_us, count) {
                (Some(waited), Some(count)) if count > 0.0 && got => Some(waited / count),
                _ if !got && waiting.is_some_and(|waiting| waiting > 0.0) => {
                    acquired_at.map(|last| row.at.since(last).as_micros() as f64)
                }
                _ if waiting == Some(0.0) || row.waiters == Some(0.0) => Some(0.0),
                _ => row.little_us().or(row.of(Signal::Wait)),
            };
            let second = row.middle().second();
            if let Some(wait) = wait
                && (first..to).contains(&second)
                && let Some(slot) = seconds.get_mut((second - first) as usize)
            {
                *slot = Some(slot.map_or(wait, |other: f64| other.max(wait)));
            }
        }
        seconds
    }

    fn increase(&self, window: &Range<Offset>, of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        sum(self.increases_in(window), of)
    }

    /// Rows read within the window.
    pub(super) fn readings_in(&self, window: &Range<Offset>) -> &[Row] {
        let begin = self.rows.partition_point(|row| row.at < window.start);
        let end = self.rows.partition_point(|row| row.at < window.end);
        &self.rows[begin..end.max(begin)]
    }

    /// Rows whose increases belong to the window.
    fn increases_in(&self, window: &Range<Offset>) -> &[Row] {
        let begin = self.rows.partition_point(|row| row.middle() < window.start);
        let end = self.rows.partition_point(|row| row.middle() < window.end);
        &self.rows[begin..end.max(begin)]
    }

    fn buckets_in(&self, window: &Range<Offset>) -> Vec<(f64, f64)> {
        let mut totals = vec![0.0; self.bounds.len()];
        for row in self.increases_in(window) {
            for (total, increase) in totals.iter_mut().zip(&row.buckets) {
                *total += increase;
            }
        }
        self.bounds.sorted(&totals)
    }

    /// Little's law over the window: requests that waited on average, over those that arrived in a unit of time. Who arrived got a
    /// connection, gave up, or still waits; where nobody arrived, those who wait have waited for the whole time.
    fn little(&self, window: &Range<Offset>) -> Option<Little> {
        let readings: Vec<f64> = self
            .readings_in(window)
            .iter()
            .filter_map(|row| row.of(Signal::Waiting))
            .collect();
        let (first, last) = (*readings.first()?, *readings.last()?);
        let rows = self.increases_in(window);
        let covered_us: f64 = rows.iter().map(|row| row.covers().as_micros() as f64).sum();
        let arrived = match sum(rows, |row| row.of(Signal::Arrivals)) {
            Some(arrived) => arrived,
            None => {
                sum(rows, Row::acquired)?
                    + sum(rows, |row| row.of(Signal::Timeouts)).unwrap_or(0.0)
                    + (last - first).max(0.0)
            }
        };
        let count = readings.len() as f64;
        let mean = readings.iter().sum::<f64>() / count;
        if mean == 0.0 && arrived == 0.0 {
            return None;
        }
        let arrived = if arrived > 0.0 { arrived } else { mean };
        let variance = readings
            .iter()
            .map(|waiting| (waiting - mean).powi(2))
            .sum::<f64>()
            / (count - 1.0);
        let error = if count > 2.0 {
            2.0 * (variance / count).sqrt()
        } else {
            f64::INFINITY
        };
        let wait_us = |waiting: f64| waiting * covered_us / arrived;
        Some(Little {
            mean_us: wait_us(mean),
            lowest_us: wait_us(mean - error),
        })
    }
}

/// A mean wait by Little's law, and what it is at least by two standard errors.
#[derive(Debug, Clone, Copy)]
struct Little {
    mean_us: f64,
    lowest_us: f64,
}

impl Row {
    /// Whether requests waited and none got a connection; `None` if that cannot be known. Where nothing says how many wait (Go's
    /// `database/sql`), requests that began to wait while no wait ended say it.
    fn is_stalled(&self) -> Option<bool> {
        match self.of(Signal::Waiting) {
            Some(waiting) => Some(waiting > 0.0 && !self.served()?),
            None => Some(self.waiters? > 0.0 && self.wait_sum_us? <= 0.0),
        }
    }

    /// Whether anybody got a connection. Where no counter says so: whether any wait ended.
    fn served(&self) -> Option<bool> {
        match (self.acquired(), self.wait_sum_us) {
            (Some(acquired), _) => Some(acquired > 0.0),
            (None, Some(waited)) if self.waiters.is_none() => {
                Some(waited > 0.0 || self.of(Signal::Waiting) == Some(0.0))
            }
            _ => None,
        }
    }

    fn little_us(&self) -> Option<f64> {
        let arrived = self.of(Signal::Arrivals).or(self.acquired());
        let arrived = arrived.filter(|arrived| *arrived > 0.0)?;
        Some(self.of(Signal::Waiting)? * self.covers().as_micros() as f64 / arrived)
    }
}

fn exactly(value_us: f64) -> Estimate {
    Estimate {
        value_us,
        at_least: false,
    }
}

fn sum(rows: &[Row], of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    rows.iter()
        .filter_map(of)
        .fold(None, |total, value| Some(total.unwrap_or(0.0) + value))
}

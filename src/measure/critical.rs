//! The critical number: the largest disconnect from which the target recovers by itself.
//!
//! The formula is the plan's ([`Boundary`]); how fast the target serves connects is measured here.

use super::Collector;
use super::pool::PoolSeries;
use crate::event::{MarkId, Offset};
use crate::plan::HubGroup;
use crate::plan::boundary::Boundary;
use crate::plan::fault::TriggerKind;
use crate::plan::signal::Signal;
use crate::plan::target::Plays;
use serde::Serialize;
use std::time::Duration;

/// Readings of a busy pool that say how fast it is.
const FEWEST_READINGS: usize = 3;

/// A reading covers this long.
const READING: Duration = Duration::from_secs(1);

/// 95 % of a normal distribution lie within so many deviations.
const TWO_SIDED_95: f64 = 1.96;

/// A number with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
}

/// What was found of one group of hubs that a trigger disconnected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Critical {
    pub mark: MarkId,
    /// Row in `Plan::hubs`.
    pub group: usize,
    pub fleet: u64,
    /// Hubs that the trigger disconnected.
    pub dropped: u64,
    /// Connects a second that the target serves when it is busy.
    pub per_second: Interval,
    /// How that was seen.
    pub seen: String,
    /// It never was busy for long: `per_second` and `number` are lower bounds.
    pub at_least: bool,
    /// Share of it that was used before the trigger.
    pub background: Interval,
    pub timeout: Duration,
    pub mean_wait: Duration,
    /// First attempts are spread over this.
    pub spread: Duration,
    /// D*, with the width of the coin toss in its interval.
    pub number: Interval,
}

/// On which side of the boundary a run lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// It comes back by itself.
    Below,
    /// Within the interval: it may or may not.
    Near,
    /// It does not.
    Above,
}

impl Critical {
    /// On which side the trigger lies.
    #[must_use]
    pub fn side(&self) -> Side {
        let dropped = self.dropped as f64;
        if dropped < self.number.low {
            Side::Below
        } else if dropped > self.number.high && !self.at_least {
            Side::Above
        } else {
            Side::Near
        }
    }

    /// D* as a share of the fleet.
    #[must_use]
    pub fn share(&self) -> Interval {
        let fleet = self.fleet.max(1) as f64;
        Interval {
            low: self.number.low / fleet,
            middle: self.number.middle / fleet,
            high: if self.at_least {
                f64::INFINITY
            } else {
                self.number.high / fleet
            },
        }
    }
}

/// The critical numbers that the disconnects of a run let us measure.
#[must_use]
pub fn critical(collector: &Collector, pools: &[PoolSeries]) -> Vec<Critical> {
    let plan = collector.plan();
    let rows = collector.marks().rows.iter().zip(&plan.triggers);
    let found = rows.filter_map(|(row, trigger)| {
        let TriggerKind::Disconnect(disconnect) = trigger.kind else {
            return None;
        };
        let begin = row.begin?;
        let group = plan.hubs.get(disconnect.group)?;
        let dropped = collector
            .affected_hubs(row.id)
            .filter(|hubs| *hubs > 0)
            .unwrap_or((f64::from(group.count) * disconnect.share).round() as u64);
        let next = collector.marks().rows.iter().filter_map(|row| row.begin);
        let end = collector.series().end();
        let ends = collector.marks().arrivals_end.map_or(end, Offset::second);
        let until = next.filter(|other| *other > begin).min();
        let until = until.map_or(ends, Offset::second).min(end);
        let spread = disconnect.within.max(group.reconnect.first);
        let window = (begin, Offset(until * 1_000_000));
        Some((row.id, disconnect.group, group, dropped, spread, window))
    });
    found
        .filter_map(|(mark, row, group, dropped, spread, window)| {
            let speed = busy_pool(collector, pools, window)
                .or_else(|| served_connects(collector, row, window))?;
            Some(of(mark, (row, group), dropped, spread, &speed))
        })
        .collect()
}

/// How fast connects are served.
struct Speed {
    per_second: Interval,
    background: Interval,
    seen: String,
    at_least: bool,
}

fn of(
    mark: MarkId,
    (row, group): (usize, &HubGroup),
    dropped: u64,
    spread: Duration,
    speed: &Speed,
) -> Critical {
    let mean_wait = group.reconnect.retry.backoff.mean_at_cap();
    let boundary = |per_second: f64, background: f64| Boundary {
        per_second,
        background,
        timeout: group.timeout,
        mean_wait,
        spread,
    };
    let number = |per_second, background| boundary(per_second, background).critical_number();
    let (fast, slow) = (&speed.per_second, &speed.background);
    let coin = boundary(fast.middle, slow.middle).coin();
    Critical {
        mark,
        group: row,
        fleet: u64::from(group.count),
        dropped,
        per_second: speed.per_second,
        seen: speed.seen.clone(),
        at_least: speed.at_least,
        background: speed.background,
        timeout: group.timeout,
        mean_wait,
        spread,
        number: Interval {
            low: number(fast.low, slow.high) * (1.0 - coin),
            middle: number(fast.middle, slow.middle),
            high: number(fast.high, slow.low) * (1.0 + coin),
        },
    }
}

/// What a probed pool handed out while somebody waited for it all the time.
fn busy_pool(
    collector: &Collector,
    pools: &[PoolSeries],
    (begin, until): (Offset, Offset),
) -> Option<Speed> {
    let plan = collector.plan();
    let sources = plan.target.probes.sources.iter().zip(pools);
    let playing = sources.filter(|(source, _)| source.plays == Plays::Pool);
    let zero = collector.marks().zero?;
    let measured = playing.filter_map(|(source, series)| {
        let step = plan.target.probes.every.max(Duration::from_millis(100));
        let step = READING.max(step * 2);
        let mut rates = Vec::new();
        let mut from = begin;
        while from.after(step) <= until {
            let window = from..from.after(step);
            let waiting = series.gauge(Signal::Waiting, window.clone());
            let busy = waiting.is_some_and(|span| span.min > 0.0 && span.readings > 1);
            if let Some(acquires) = series.acquires(window).filter(|_| busy) {
                rates.push(acquires / step.as_secs_f64());
            }
            from = from.after(step / 2);
        }
        if rates.len() < FEWEST_READINGS {
            return None;
        }
        let quiet = Offset(begin.0.saturating_sub(micros(plan.baseline)).max(zero.0))..begin;
        let before = series.acquires(quiet.clone())? / quiet.end.since(quiet.start).as_secs_f64();
        Some((interval(&rates), before, source.name.clone()))
    });
    // The slowest stage is the one that others wait behind.
    let slowest = measured.min_by(|(a, ..), (b, ..)| a.middle.total_cmp(&b.middle));
    let (per_second, before, source) = slowest?;
    Some(Speed {
        background: Interval {
            low: before / per_second.high,
            middle: before / per_second.middle,
            high: before / per_second.low,
        },
        seen: format!("what {source} handed out while hubs waited for it"),
        per_second,
        at_least: false,
    })
}

/// The most connects that were let in during one second: a lower bound, since nobody knows whether more would have been.
fn served_connects(
    collector: &Collector,
    group: usize,
    (begin, until): (Offset, Offset),
) -> Option<Speed> {
    let accepted = |second: u64| {
        let point = collector.series().get(second)?;
        Some(f64::from(point.hubs.get(group)?.connected))
    };
    let most = (begin.second()..until.second())
        .filter_map(accepted)
        .reduce(f64::max)
        .filter(|most| *most > 0.0)?;
    let none = Interval {
        low: 0.0,
        middle: 0.0,
        high: 0.0,
    };
    let chance = TWO_SIDED_95 * most.sqrt();
    Some(Speed {
        per_second: Interval {
            low: (most - chance).max(0.0),
            middle: most,
            high: most,
        },
        background: none,
        seen: "the most connects that were let in during one second".to_owned(),
        at_least: true,
    })
}

/// The mean with its interval; neighbours overlap by half, so that half of them count.
fn interval(values: &[f64]) -> Interval {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
    let half = TWO_SIDED_95 * deviation / (count / 2.0).max(1.0).sqrt();
    Interval {
        low: (mean - half).max(0.0),
        middle: mean,
        high: mean + half,
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

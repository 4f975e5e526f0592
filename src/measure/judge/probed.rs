//! What a line about a probe measures: pools, queues, brokers, and how long nothing was seen.

use super::Judge;
use super::value::{Found, Part, Pick, total};
use crate::event::Offset;
use crate::measure::pool::{Estimate, PoolSeries};
use crate::plan::expect::{BrokerSignal, PoolSignal, Stat, Unit};
use crate::plan::signal::Signal;
use std::ops::Range;

impl Judge<'_> {
    pub(super) fn pool(
        &self,
        series: &PoolSeries,
        of: PoolSignal,
        stat: Option<Stat>,
        part: &Part<'_>,
    ) -> Option<Found> {
        match of {
            PoolSignal::Wait => wait(series, stat.unwrap_or(Stat::Mean), part),
            PoolSignal::Waiting => gauge(series, Signal::Waiting, part),
            PoolSignal::Saturation => {
                let values = part.ranges().filter_map(|range| {
                    let saturation = series.saturation(range.clone())?;
                    Some((range.start.second(), saturation.mean))
                });
                part.pick(values)
            }
            PoolSignal::Stalled => {
                let stalled = part.ranges().filter_map(|range| series.stalled(range));
                let stalled: Vec<f64> = stalled.map(|time| time.as_micros() as f64).collect();
                total(&stalled)
            }
            PoolSignal::Timeouts => {
                let timeouts: Vec<f64> = part
                    .ranges()
                    .filter_map(|range| series.increase_of(Signal::Timeouts, range))
                    .collect();
                total(&timeouts)
            }
            PoolSignal::AcquiresPerRequest => {
                let acquired: Vec<f64> = part
                    .ranges()
                    .filter_map(|range| series.acquires(range))
                    .collect();
                let requests: u64 = part
                    .ranges()
                    .map(|range| {
                        self.collector
                            .requests(range.start.second()..range.end.second())
                    })
                    .sum();
                let acquired = total(&acquired)?;
                (requests > 0).then(|| Found::exactly(acquired.low / requests as f64, requests))
            }
        }
    }

    /// The longest time without a reading of any source, or the largest share.
    pub(super) fn blind(&self, part: &Part<'_>) -> Option<Found> {
        let length_us = part.length() as f64 * 1e6;
        let of = |series: &PoolSeries| {
            let blinds = part
                .ranges()
                .map(|range| (series.blind(range.clone()), range));
            let (mut share, mut longest) = (0.0, 0.0_f64);
            for (blind, range) in blinds {
                share += blind.share * range.end.since(range.start).as_micros() as f64 / length_us;
                longest = longest.max(blind.longest_us as f64);
            }
            if part.unit == Unit::Time {
                longest
            } else {
                share
            }
        };
        let worst = self.pools.iter().map(of).reduce(f64::max)?;
        (length_us > 0.0).then(|| Found::exactly(worst, part.length()))
    }
}

/// What a broker counts: what stands as any gauge, rates over the whole part, the rest as a sum.
pub(super) fn broker(series: &PoolSeries, of: BrokerSignal, part: &Part<'_>) -> Option<Found> {
    let signal = match of {
        BrokerSignal::Connections => return gauge(series, Signal::Connections, part),
        BrokerSignal::Connects => Signal::Connects,
        BrokerSignal::Disconnects => Signal::Disconnects,
        BrokerSignal::Takeovers => Signal::Takeovers,
        BrokerSignal::Dropped => Signal::Dropped,
    };
    let grew: Vec<f64> = part
        .ranges()
        .filter_map(|range| series.increase_of(signal, range))
        .collect();
    let total = total(&grew)?;
    match of {
        BrokerSignal::Connects | BrokerSignal::Disconnects => {
            let seconds = part.length();
            (seconds > 0).then(|| Found::exactly(total.low / seconds as f64, seconds))
        }
        _ => Some(total),
    }
}

pub(super) fn gauge(series: &PoolSeries, signal: Signal, part: &Part<'_>) -> Option<Found> {
    let values = part.ranges().filter_map(|range| {
        let span = series.gauge(signal, range.clone())?;
        let value = match part.pick {
            Pick::Highest => span.max,
            Pick::Lowest => span.min,
            Pick::Last => span.last,
        };
        Some((range.start.second(), value))
    });
    // Which second of a stretch it was is not known here.
    part.pick(values).map(|found| Found { at: None, ..found })
}

/// Means of several stretches weigh by their length: by what was acquired, a stall would weigh nothing.
fn wait(series: &PoolSeries, stat: Stat, part: &Part<'_>) -> Option<Found> {
    match stat {
        Stat::Percentile(percentile) => longest(part, |range| {
            series.wait_quantile(range, percentile / 100.0)
        }),
        Stat::Max => longest(part, |range| series.wait_max(range)),
        Stat::Mean => {
            let (mut sum, mut weights, mut readings) = (0.0, 0.0, 0);
            for range in part.ranges() {
                let Some(mean) = series.wait_mean(range.clone()) else {
                    continue;
                };
                let length = range.end.since(range.start).as_secs_f64();
                sum += mean.judged_us * length;
                weights += length;
                readings += 1;
            }
            (weights > 0.0).then(|| Found::exactly(sum / weights, readings))
        }
    }
}

/// The longest of several stretches. Beyond the last bucket of the target's histogram a wait has no upper end.
fn longest(part: &Part<'_>, of: impl Fn(Range<Offset>) -> Option<Estimate>) -> Option<Found> {
    let found = |estimate: Estimate| Found {
        high: if estimate.at_least {
            f64::INFINITY
        } else {
            estimate.value_us
        },
        ..Found::exactly(estimate.value_us, 1)
    };
    part.ranges()
        .filter_map(of)
        .map(found)
        .reduce(|a, b| Found {
            low: a.low.max(b.low),
            high: a.high.max(b.high),
            samples: a.samples + b.samples,
            at: None,
        })
}

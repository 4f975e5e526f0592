//! The quiet time before a mark, and the band around it that counts as healthy.

use super::SignalKind;
use super::trend::{Trend, median_of, trend};
use crate::event::Offset;
use crate::plan::SHORTEST_BASELINE;
use serde::Serialize;

/// The quiet time of one signal: median and 1.4826 × the median absolute deviation, which one bad second cannot move.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Baseline {
    pub from: Offset,
    pub to: Offset,
    pub median: f64,
    pub deviation: f64,
    /// Seconds with a value.
    pub seconds: usize,
}

/// What counts as leaving and as being back; apart from each other, so that a signal on the edge does not flutter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Band {
    pub baseline: Baseline,
    /// Beyond this the mark's effect begins.
    pub enter: f64,
    /// Within this the effect is over.
    pub leave: f64,
    /// True if worse means below.
    pub lower_is_worse: bool,
    /// Share of the quiet seconds outside `leave`; at least 0.002.
    pub quiet_exceed_rate: f64,
}

/// Fewer quiet seconds than this say nothing.
pub(super) const FEWEST_QUIET_SECONDS: usize = SHORTEST_BASELINE.as_secs() as usize;

/// Nobody leaves a band less often than this, however quiet the baseline was.
const LOWEST_EXCEED_RATE: f64 = 0.002;

/// Connected hubs are healthy from this share of the quiet time's number on.
const CONNECTED_SHARE: f64 = 0.99;

/// A stock of up to so many is one of few.
const FEW: f64 = 3.0;

/// A quiet time that moves by more than this share of its median is not quiet.
const DRIFT: f64 = 0.05;

impl Baseline {
    /// The baseline of `values`, seconds without a value left out; `None` if too few are left.
    pub(super) fn of(values: &[Option<f64>], from: Offset, to: Offset) -> Option<Baseline> {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        if known.len() < FEWEST_QUIET_SECONDS {
            return None;
        }
        let middle = median(&known)?;
        let distances: Vec<f64> = known.iter().map(|value| (value - middle).abs()).collect();
        let deviation = 1.4826 * median(&distances)?;
        Some(Baseline {
            from,
            to,
            median: middle,
            deviation,
            seconds: known.len(),
        })
    }
}

impl Band {
    /// The band of a signal around its quiet time: entered beyond three deviations and 10 %, left within two and 5 %.
    pub(super) fn around(baseline: Baseline, kind: SignalKind, quiet: &[Option<f64>]) -> Band {
        let Baseline {
            median, deviation, ..
        } = baseline;
        let (enter, leave, lower_is_worse) = match kind {
            SignalKind::Goodput => {
                let enter = (median - 3.0 * deviation).min(0.90 * median);
                (enter, (median - 2.0 * deviation).min(0.95 * median), true)
            }
            SignalKind::Connected => (CONNECTED_SHARE * median, CONNECTED_SHARE * median, true),
            SignalKind::Backlog { slack } => {
                // The deviation of a few that come and go by chance is often none at all, while chance moves them by their root.
                let spread = deviation.max(median.clamp(0.0, FEW).sqrt());
                let high = (median + 3.0 * spread)
                    .max(1.10 * median)
                    .max(median + slack.max(1.0));
                (high, high, false)
            }
            SignalKind::Wait { slack } => {
                let enter = (median + 3.0 * deviation)
                    .max(1.10 * median)
                    .max(median + slack);
                (
                    enter,
                    (median + 2.0 * deviation)
                        .max(1.05 * median)
                        .max(median + slack / 2.0),
                    false,
                )
            }
        };
        let mut band = Band {
            baseline,
            enter,
            leave,
            lower_is_worse,
            quiet_exceed_rate: LOWEST_EXCEED_RATE,
        };
        let outside = quiet
            .iter()
            .flatten()
            .filter(|value| band.is_outside_leave(**value))
            .count();
        band.quiet_exceed_rate = (outside as f64 / baseline.seconds as f64).max(LOWEST_EXCEED_RATE);
        band
    }

    pub(super) fn is_outside_enter(&self, value: f64) -> bool {
        if self.lower_is_worse {
            value < self.enter
        } else {
            value > self.enter
        }
    }

    pub(super) fn is_outside_leave(&self, value: f64) -> bool {
        if self.lower_is_worse {
            value < self.leave
        } else {
            value > self.leave
        }
    }

    /// Whether `value` is worse than `other`.
    pub(super) fn is_worse(&self, value: f64, other: f64) -> bool {
        if self.lower_is_worse {
            value < other
        } else {
            value > other
        }
    }
}

/// By which share of its median the quiet time moved from its first to its last second (Theil–Sen), if that is more than 5 % and
/// cannot be noise: five standard errors of a line through that many values with the residuals' deviation.
pub(super) fn drift(values: &[Option<f64>], band: &Band) -> Option<f64> {
    let points: Vec<(f64, f64)> = (0_u32..)
        .zip(values)
        .filter_map(|(second, value)| Some((f64::from(second), (*value)?)))
        .collect();
    let allowed =
        (DRIFT * band.baseline.median.abs()).max((band.leave - band.baseline.median).abs());
    // All pairs are many, and a line that moves so far has halves that differ by half of it: most quiet times end here.
    let (first, second) = points.split_at(points.len() / 2);
    let middle_of =
        |half: &[(f64, f64)]| median(&half.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    if (middle_of(second)? - middle_of(first)?).abs() < allowed / 4.0 {
        return None;
    }
    let Trend { moved, error, .. } = trend(&points)?;
    (moved.abs() > allowed && moved.abs() > 5.0 * error).then(|| moved / band.baseline.median)
}

/// The middle of the values; the mean of the two in the middle for an even number.
fn median(values: &[f64]) -> Option<f64> {
    median_of(&mut values.to_vec())
}

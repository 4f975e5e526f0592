//! Quantiles out of cumulative buckets, and no further than the buckets reach.

use serde::Serialize;

/// The bounds of a source's buckets in microseconds, in the order in which they were first seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds(Vec<f64>);

impl Bounds {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The place of a bound; a new one is appended, so that places of older rows stay.
    pub(super) fn place(&mut self, bound: f64) -> usize {
        self.0
            .iter()
            .position(|known| known.total_cmp(&bound).is_eq())
            .unwrap_or_else(|| {
                self.0.push(bound);
                self.0.len() - 1
            })
    }

    /// Bounds with their increases, sorted and made monotonic: a scrape is not atomic, so a bucket may lag behind.
    pub(super) fn sorted(&self, increases: &[f64]) -> Vec<(f64, f64)> {
        let mut buckets: Vec<_> = self
            .0
            .iter()
            .copied()
            .zip(increases.iter().copied())
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut most = 0.0_f64;
        for (_, count) in &mut buckets {
            most = most.max(*count);
            *count = most;
        }
        buckets
    }
}

/// A time that is known, or known to be at least that long because the histogram ends there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    pub value_us: f64,
    /// True beyond the last finite bucket.
    pub at_least: bool,
}

/// The quantile `q` (0 to 1) by linear interpolation within its bucket, the lowest one starting at 0 (as Prometheus'
/// `histogram_quantile`, but beyond the last finite bound the answer is "at least", never the bound itself).
/// `None` without observations or without the infinite bucket.
pub(super) fn quantile(buckets: &[(f64, f64)], q: f64) -> Option<Estimate> {
    let total = total(buckets)?;
    // Less than one observation beyond the quantile (100 for a p99): the highest bucket is all that can be said.
    if total * (1.0 - q) < 1.0 - 1e-9 {
        return largest(buckets);
    }
    let rank = q * total;
    let place = buckets.iter().position(|(_, count)| *count >= rank)?;
    let (upper, count) = buckets[place];
    let (lower, below) = if place == 0 {
        (0.0, 0.0)
    } else {
        buckets[place - 1]
    };
    if upper.is_infinite() {
        return Some(Estimate {
            value_us: lower,
            at_least: true,
        });
    }
    let share = if count > below {
        (rank - below) / (count - below)
    } else {
        1.0
    };
    Some(Estimate {
        value_us: lower + (upper - lower) * share,
        at_least: false,
    })
}

/// The upper bound of the highest bucket that holds an observation: no wait was longer.
pub(super) fn largest(buckets: &[(f64, f64)]) -> Option<Estimate> {
    let total = total(buckets)?;
    let place = buckets.iter().position(|(_, count)| *count >= total)?;
    let (upper, _) = buckets[place];
    if upper.is_infinite() {
        let lower = if place == 0 {
            0.0
        } else {
            buckets[place - 1].0
        };
        return Some(Estimate {
            value_us: lower,
            at_least: true,
        });
    }
    Some(Estimate {
        value_us: upper,
        at_least: false,
    })
}

fn total(buckets: &[(f64, f64)]) -> Option<f64> {
    let (bound, total) = *buckets.last()?;
    (bound.is_infinite() && total > 0.0).then_some(total)
}

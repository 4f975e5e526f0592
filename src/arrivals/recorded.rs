//! Arrivals that were counted once, bin by bin: each bin has exactly as many again, at places drawn from the seed.
//!
//! The places inside a bin are those of as many uniform draws, sorted. Arrival i of c is found by halving: the middle one of c stands
//! at a Beta-distributed place, then the middle one of the half that holds i, and so on, so that it takes log₂ c draws and nothing is
//! remembered.

use super::poisson::gamma;
use crate::dice::Dice;

/// Keeps these draws apart from all others: "reco" in ASCII.
const PURPOSE: u64 = 0x7265_636f;

/// The counts of one recording.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counts {
    seed: u64,
    /// Arrivals in each bin and all before it.
    through: Vec<u64>,
}

impl Counts {
    pub fn of(seed: u64, counts: &[u64]) -> Counts {
        let sums = counts.iter().scan(0_u64, |sum, count| {
            *sum = sum.saturating_add(*count);
            Some(*sum)
        });
        Counts {
            seed,
            through: sums.collect(),
        }
    }

    pub fn total(&self) -> u64 {
        self.through.last().copied().unwrap_or(0)
    }

    /// The bin of arrival `n` (from 1) and its place there, in [0, 1); `None` beyond the last one.
    pub fn place(&self, n: u64) -> Option<(usize, f64)> {
        let bin = self.through.partition_point(|through| *through < n);
        let before = bin.checked_sub(1).map_or(0, |row| self.through[row]);
        let count = self.through.get(bin)?.checked_sub(before)?;
        Some((bin, self.sorted(bin, n.checked_sub(before)?, count)))
    }

    /// The place of number `rank` (from 1) of `count` sorted draws.
    fn sorted(&self, bin: usize, mut rank: u64, mut count: u64) -> f64 {
        let (mut low, mut high, mut node) = (0.0, 1.0, 1_u64);
        let purpose = (PURPOSE << 32) | bin as u64;
        loop {
            let middle = count.div_ceil(2).max(1);
            let share = beta(
                middle as f64,
                (count + 1).saturating_sub(middle).max(1) as f64,
                &mut Dice::named(self.seed, purpose, node),
            );
            let place: f64 = low + (high - low) * share;
            match rank.cmp(&middle) {
                std::cmp::Ordering::Equal => return place,
                std::cmp::Ordering::Less => {
                    high = place;
                    count = middle - 1;
                    node = node.wrapping_mul(2);
                }
                std::cmp::Ordering::Greater => {
                    low = place;
                    rank -= middle;
                    count -= middle;
                    node = node.wrapping_mul(2).wrapping_add(1);
                }
            }
        }
    }
}

/// Beta with these shapes, both at least 1.
fn beta(left: f64, right: f64, dice: &mut Dice) -> f64 {
    let left = gamma(left, dice);
    left / (left + gamma(right, dice))
}

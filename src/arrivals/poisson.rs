//! The points of a Poisson process of rate 1, each a function of the seed and its number alone.
//!
//! Point n is not the sum of n gaps, which would take n draws: the points 2^k are laid first, each a gamma-distributed
//! step after the one before, and between two of them the middle point is drawn, then the middle of the half that holds n, and so on. Given
//! two points that are 2h points apart, the one in the middle divides the distance as Beta(h, h) does, so the result is exactly a
//! Poisson process. Point n takes log₂ n draws and nothing is remembered.
//!
//! Gamma: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables" (2000). Beta(h, h): Ulrich (1984), in Devroye,
//! "Non-Uniform Random Variate Generation" (1986), IX.4.

use crate::dice::Dice;
use std::f64::consts::TAU;

/// Points are numbered up to 2 to the power of this.
const LARGEST_POWER: u32 = 47;

/// Keeps these draws apart from all others: "arri" in ASCII.
const PURPOSE: u64 = 0x6172_7269;

/// The points of one seed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Points {
    seed: u64,
    /// Where point 2^k stands.
    powers: Vec<f64>,
}

impl Points {
    pub fn of(seed: u64) -> Points {
        let mut powers = vec![gamma(1.0, &mut dice(seed, LARGEST_POWER + 1, 0))];
        for power in 0..LARGEST_POWER {
            let step = gamma(
                (1_u64 << power) as f64,
                &mut dice(seed, LARGEST_POWER + 1, u64::from(power) + 1),
            );
            powers.push(powers[powers.len() - 1] + step);
        }
        Points { seed, powers }
    }

    /// Where point `n` (from 1) stands; infinite where it is numbered beyond all reason.
    pub fn position(&self, n: u64) -> f64 {
        let power = n.max(1).ilog2();
        let mut offset = n.max(1) - (1 << power);
        let powers = &self.powers[(power as usize).min(self.powers.len())..];
        let (mut low, mut high) = match *powers {
            [low, ..] if offset == 0 => return low,
            [low, high, ..] => (low, high),
            _ => return f64::INFINITY,
        };
        let (mut half, mut node) = (1_u64 << power >> 1, 1_u64);
        loop {
            let share = beta(half as f64, &mut dice(self.seed, power, node));
            let middle = (low + (high - low) * share).clamp(low, high);
            match offset.cmp(&half) {
                std::cmp::Ordering::Equal => return middle,
                std::cmp::Ordering::Less => {
                    high = middle;
                    node *= 2;
                }
                std::cmp::Ordering::Greater => {
                    low = middle;
                    node = node * 2 + 1;
                    offset -= half;
                }
            }
            half /= 2;
        }
    }

    /// How many points stand at `end` or before.
    pub fn up_to(&self, end: f64) -> u64 {
        let (mut within, mut beyond) = (0, 1_u64 << LARGEST_POWER);
        while beyond - within > 1 {
            let middle = within + (beyond - within) / 2;
            if self.position(middle) <= end {
                within = middle;
            } else {
                beyond = middle;
            }
        }
        within
    }
}

/// The stream of one node in the tree below the points 2^power and 2^(power + 1).
fn dice(seed: u64, power: u32, node: u64) -> Dice {
    Dice::named(seed, (PURPOSE << 32) | u64::from(power), node)
}

/// Gamma with this shape (at least 1) and scale 1.
pub(super) fn gamma(shape: f64, dice: &mut Dice) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = normal(dice);
        let cube = (1.0 + c * normal).powi(3);
        if cube > 0.0 {
            let uniform = 1.0 - dice.fraction();
            if uniform.ln() < normal * normal / 2.0 + d - d * cube + d * cube.ln() {
                return d * cube;
            }
        }
    }
}

/// Normal with mean 0 and variance 1 (Box and Muller).
fn normal(dice: &mut Dice) -> f64 {
    let radius = (-2.0 * (1.0 - dice.fraction()).ln()).sqrt();
    radius * (TAU * dice.fraction()).cos()
}

/// Beta(shape, shape) with this shape (at least 1): half of 1 + √(1 − u^(2 ÷ (2·shape − 1))) · cos 2πv.
fn beta(shape: f64, dice: &mut Dice) -> f64 {
    let exponent = 2.0 / (2.0 * shape - 1.0);
    let radius = (-((1.0 - dice.fraction()).ln() * exponent).exp_m1()).sqrt();
    (1.0 + radius * (TAU * dice.fraction()).cos()) / 2.0
}

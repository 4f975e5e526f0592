//! Places that riders go to, and which of them each rider takes.
//!
//! A rider's place is drawn from (seed, group, number of the arrival), so it is the same whatever else happens in the run.

use crate::dice::Dice;

/// Keeps the draw of a place apart from every other draw.
const PURPOSE: u64 = 0x0070_6c61_6365_0000;

/// A list of places of the target, such as its stations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// As the target file calls the list.
    pub name: String,
    /// What stands in addresses; all different, in the order of the file. At least one.
    pub names: Vec<String>,
}

impl Places {
    /// What stands for one of them in a journey: `station` for `stations`.
    #[must_use]
    pub fn placeholder(&self) -> &str {
        placeholder(&self.name)
    }
}

/// What stands for one place of the list `name`: the name without its plural `s`.
#[must_use]
pub fn placeholder(name: &str) -> &str {
    match name.strip_suffix('s') {
        Some(one) if !one.is_empty() => one,
        _ => name,
    }
}

/// How the riders of a group are spread over the places of their journey.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Choice {
    /// Every place is as likely as any other.
    #[default]
    Even,
    /// Parallel to [`Places::names`]: none below 0, at least one above.
    Weighted(Vec<f64>),
    /// The place of rank k (from 1, in the order of the file) weighs 1 ÷ k^s; `s` is above 0.
    Zipf(f64),
}

/// Chooses places; made once for a group of riders.
#[derive(Debug, Clone)]
pub struct Chooser {
    seed: u64,
    purpose: u64,
    /// Sums of the weights up to and with each place.
    sums: Vec<f64>,
}

impl Chooser {
    /// The chooser of row `group` of the plan's riders over `places` places (at least one).
    #[must_use]
    pub fn new(choice: &Choice, places: usize, seed: u64, group: usize) -> Chooser {
        let mut sum = 0.0;
        let sums = (0..places.max(1)).map(|row| {
            sum += choice.weight(row);
            sum
        });
        Chooser {
            seed,
            purpose: PURPOSE | group as u64,
            sums: sums.collect(),
        }
    }

    /// The row of the place that rider `number` takes.
    #[must_use]
    pub fn place(&self, number: u64) -> usize {
        let last = self.sums.len() - 1;
        let point = Dice::named(self.seed, self.purpose, number).fraction() * self.sums[last];
        // Rounding may bring the point up to the whole sum.
        self.sums.partition_point(|sum| *sum <= point).min(last)
    }

    /// The share of the riders that a place is likely to get.
    #[must_use]
    pub fn share(&self, row: usize) -> f64 {
        let before = row.checked_sub(1).map_or(0.0, |row| self.sums[row]);
        (self.sums[row] - before) / self.sums[self.sums.len() - 1]
    }
}

impl Choice {
    fn weight(&self, row: usize) -> f64 {
        match self {
            Choice::Even => 1.0,
            Choice::Weighted(weights) => weights.get(row).copied().unwrap_or(1.0),
            Choice::Zipf(exponent) => (row as f64 + 1.0).powf(-exponent),
        }
    }
}

//! What a mark did to commands that it did not hit: those for hubs on other shards, and of other groups.
//!
//! A class is one group of issuers and one shard of its hubs. A class was hit if its shard lost hubs; what happens to the others tells
//! whether the target keeps them apart. The slope of command latency over the rate of connects tells the same of pools that are shared.

use super::Collector;
use super::ledger::State;
use super::recovery::Recovery;
use crate::event::{MarkId, Offset};
use crate::plan::Plan;
use serde::Serialize;
use std::ops::Range;

/// A shard was hit if it lost this share of the hubs that it had.
const HIT_SHARE: f64 = 0.01;
/// The slope is taken over means of so many seconds, since neighbours are alike.
const BLOCK_SECONDS: usize = 5;
/// Fewer blocks say nothing.
const FEWEST_BLOCKS: usize = 6;
/// 95 % of a normal distribution lie within so many deviations.
const TWO_SIDED_95: f64 = 1.96;

/// Commands of one class that were settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cell {
    settled: u32,
    in_time: u32,
    took_us: u64,
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.settled += other.settled;
        self.in_time += other.in_time;
        self.took_us += other.took_us;
    }
}

/// Commands by class and second of their settling.
#[derive(Debug, Clone)]
pub(super) struct Classes {
    /// Group of issuers and shard of each class.
    rows: Vec<(usize, usize)>,
    open: Vec<Cell>,
    seconds: Vec<Box<[Cell]>>,
}

impl Classes {
    pub(super) fn new(plan: &Plan) -> Classes {
        let issuers = plan.issuers.iter().enumerate();
        let rows: Vec<(usize, usize)> = issuers
            .flat_map(|(issuer, group)| {
                let device = plan.hubs.get(group.to).map(|hubs| hubs.device);
                let device = device.and_then(|row| plan.target.devices.get(row));
                let shards = device.map_or(1, |device| device.shards.len().max(1));
                (0..shards).map(move |shard| (issuer, shard))
            })
            .collect();
        Classes {
            open: vec![Cell::default(); rows.len()],
            seconds: Vec::new(),
            rows,
        }
    }

    /// A command was settled for the first time.
    pub(super) fn settled(
        &mut self,
        issuer: usize,
        shard: Option<usize>,
        state: State,
        took_us: u64,
    ) {
        let class = (issuer, shard.unwrap_or(0));
        let row = self.rows.iter().position(|row| *row == class);
        if let Some(cell) = row.and_then(|row| self.open.get_mut(row)) {
            cell.settled += 1;
            cell.in_time += u32::from(state == State::InTime);
            cell.took_us += took_us;
        }
    }

    /// A second is closed.
    pub(super) fn second(&mut self) {
        let empty = vec![Cell::default(); self.rows.len()];
        let closed = std::mem::replace(&mut self.open, empty);
        self.seconds.push(closed.into_boxed_slice());
    }

    fn sum(&self, rows: Range<usize>, wanted: impl Fn(usize) -> bool) -> Cell {
        let mut sum = Cell::default();
        for second in self.seconds.get(rows).unwrap_or_default() {
            for (_, cell) in second.iter().enumerate().filter(|(row, _)| wanted(*row)) {
                sum.add(cell);
            }
        }
        sum
    }
}

/// Commands in one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CommandsSeen {
    pub settled: u64,
    /// Share of them that was answered in time.
    pub in_time: f64,
    pub latency_mean_us: f64,
}

/// Commands that a mark did not hit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interference {
    pub mark: MarkId,
    /// Shards (and groups) that were hit, and classes that were not.
    pub hit: u64,
    pub others: u64,
    pub before: Option<CommandsSeen>,
    pub during: Option<CommandsSeen>,
}

/// How command latency follows the rate of connects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slope {
    /// Microseconds of command latency for each connect a second more, with a 95 % interval.
    pub us_per_connect: f64,
    pub low: f64,
    pub high: f64,
    pub blocks: u64,
}

impl Collector {
    /// What each mark did to the commands that it did not hit; nothing where nobody sends commands.
    #[must_use]
    pub fn interference(&self, recoveries: &[Recovery]) -> Vec<Interference> {
        if self.plan().issuers.is_empty() {
            return Vec::new();
        }
        let rows = recoveries.iter().map(|recovery| {
            let marks = self.marks();
            let end = self.series().end();
            let next = marks.rows.iter().filter_map(|row| row.begin);
            let next = next.filter(|at| *at > recovery.begin).min();
            let to = next.map_or(end, Offset::second).min(end);
            let load_end = marks.arrivals_end.map_or(end, Offset::second);
            let begin = row_of(recovery.begin.second());
            let during = begin..row_of(to.min(load_end)).max(begin);
            let length = self.plan().baseline.as_secs();
            let zero = marks.zero.map_or(0, Offset::second);
            let from = recovery.begin.second().saturating_sub(length).max(zero);
            let hit = self.hit(&during);
            let others = hit.iter().filter(|hit| !**hit).count() as u64;
            let seen = |rows: Range<usize>| {
                let sum = self.classes().sum(rows, |row| !hit[row]);
                (sum.settled > 0).then(|| CommandsSeen {
                    settled: u64::from(sum.settled),
                    in_time: f64::from(sum.in_time) / f64::from(sum.settled),
                    latency_mean_us: sum.took_us as f64 / f64::from(sum.settled),
                })
            };
            Interference {
                mark: recovery.mark,
                hit: hit.len() as u64 - others,
                others,
                before: seen(row_of(from)..begin),
                during: seen(during.clone()),
            }
        });
        rows.collect()
    }

    /// For each class, whether its shard lost hubs in these seconds.
    fn hit(&self, rows: &Range<usize>) -> Vec<bool> {
        let standing = |group: usize, shard: usize, row: usize| -> Option<f64> {
            let places = self.places().groups.get(group);
            match places.and_then(|places| places.by_second.get(row)) {
                Some(counts) => counts.get(shard).map(|count| f64::from(*count)),
                None => {
                    let point = self.series().get(row as u64)?;
                    point.hubs.get(group).map(|hubs| f64::from(hubs.standing))
                }
            }
        };
        let classes = self.classes().rows.iter().map(|(issuer, shard)| {
            let group = self.plan().issuers[*issuer].to;
            let before = rows.start.checked_sub(1);
            let before = before.and_then(|row| standing(group, *shard, row));
            let least = rows
                .clone()
                .filter_map(|row| standing(group, *shard, row))
                .reduce(f64::min);
            match (before, least) {
                (Some(before), Some(least)) => least < before * (1.0 - HIT_SHARE),
                _ => false,
            }
        });
        classes.collect()
    }

    /// The dependence of command latency on connects, over the load; `None` where connects did not vary or nobody sends commands.
    #[must_use]
    pub fn latency_over_connects(&self) -> Option<Slope> {
        let zero = self.marks().zero?.second();
        let end = self
            .marks()
            .arrivals_end
            .or(self.marks().load_end)?
            .second();
        let rows = row_of(zero)..row_of(end.min(self.series().end()));
        let blocks: Vec<(f64, f64)> = rows
            .step_by(BLOCK_SECONDS)
            .filter_map(|from| {
                let rows = from..from + BLOCK_SECONDS;
                let sum = self.classes().sum(rows.clone(), |_| true);
                let connects: f64 = rows
                    .filter_map(|row| self.series().get(row as u64))
                    .flat_map(|point| point.hubs.iter().map(|hubs| f64::from(hubs.connects)))
                    .sum();
                (sum.settled > 0).then(|| {
                    (
                        connects / BLOCK_SECONDS as f64,
                        sum.took_us as f64 / f64::from(sum.settled),
                    )
                })
            })
            .collect();
        slope(&blocks)
    }
}

/// Least squares through (connects a second, latency).
fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    if points.len() < FEWEST_BLOCKS {
        return None;
    }
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let both = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean));
    let slope = both.sum::<f64>() / spread;
    let left = points
        .iter()
        .map(|(x, y)| (y - y_mean - slope * (x - x_mean)).powi(2));
    let half = TWO_SIDED_95 * (left.sum::<f64>() / (count - 2.0) / spread).sqrt();
    Some(Slope {
        us_per_connect: slope,
        low: slope - half,
        high: slope + half,
        blocks: points.len() as u64,
    })
}

fn row_of(second: u64) -> usize {
    usize::try_from(second).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn a_line_is_found_with_its_interval() {
        let noise = [3.0, -2.0, 1.0, -3.0, 2.0, -1.0, 0.0, 1.0];
        let points: Vec<(f64, f64)> = (0_u32..8)
            .zip(noise)
            .map(|(x, noise)| (f64::from(x), 100.0 + 5.0 * f64::from(x) + noise))
            .collect();
        let found = slope(&points).expect("eight points have a slope");
        assert!(found.low < 5.0 && found.high > 5.0, "{found:?}");
        assert!(found.low > 3.5 && found.high < 6.5, "{found:?}");
        assert_eq!(slope(&points[..3]), None, "too few");
        assert_eq!(slope(&[(1.0, 2.0); 8]), None, "connects did not vary");
    }
}

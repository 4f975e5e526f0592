//! How hubs that were disconnected together are let back: at a rate, or in batches.

use std::time::Duration;

/// Hubs that were dropped stay away until they are let back, in the order in which they were dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Readmission {
    /// From the last drop to the first hub that is let back.
    pub after: Duration,
    pub pace: Pace,
}

/// How fast hubs are let back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// So many a second, one after the other.
    Rate(f64),
    /// This share of those that were dropped, at once, and again after this time.
    Batches { share: f64, every: Duration },
}

/// Hubs that are let back by one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub hubs: u32,
    /// Over which they are spread evenly.
    pub over: Duration,
    /// From this order to the next.
    pub every: Duration,
}

/// A rate is kept by an order a second.
const TICK: Duration = Duration::from_secs(1);

impl Readmission {
    /// The orders that let `hubs` back, all of them together and none twice.
    #[must_use]
    pub fn steps(&self, hubs: u32) -> Vec<Step> {
        let mut left = hubs;
        let mut steps = Vec::new();
        let mut given = 0.0;
        while left > 0 {
            let (wanted, over, every) = match self.pace {
                Pace::Rate(per_second) => {
                    let tick = TICK.max(Duration::from_secs_f64(1.0 / per_second));
                    // What the fraction of the step before left over comes now.
                    let before: f64 = given;
                    given += per_second * tick.as_secs_f64();
                    ((given + 1e-9).floor() - (before + 1e-9).floor(), tick, tick)
                }
                Pace::Batches { share, every } => {
                    ((f64::from(hubs) * share).ceil(), Duration::ZERO, every)
                }
            };
            let hubs = (wanted as u32).clamp(1, left);
            left -= hubs;
            steps.push(Step { hubs, over, every });
        }
        steps
    }

    /// From the last drop to the last hub that is let back, if nothing pauses it.
    #[must_use]
    pub fn lasts(&self, hubs: u32) -> Duration {
        let steps = self.steps(hubs);
        let last = steps.last().map_or(Duration::ZERO, |step| step.over);
        let before = steps.iter().rev().skip(1).map(|step| step.every);
        self.after + before.sum::<Duration>() + last
    }
}

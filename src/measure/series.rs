//! What stays of every closed second: counts and a few percentiles, about 60 bytes an operation and second.

use super::recovery::Tenths;
use super::returns::DockSecond;
use super::second::{CommandSecond, HubSecond, OperationSecond, Second};

/// The whole run by the second, from the clock's beginning.
#[derive(Debug, Clone, Default)]
pub struct Series {
    points: Vec<Point>,
}

/// One closed second. The lists are parallel to those of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub operations: Box<[OperationPoint]>,
    pub hubs: Box<[HubSecond]>,
    pub commands: Box<[CommandSecond]>,
    pub docks: Box<[DockSecond]>,
}

/// One operation in one second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OperationPoint {
    pub started: u32,
    pub attempted: u32,
    /// `attempted` by tenths of the second.
    pub tenths: Tenths,
    /// Attempts that were meant and no retries (polls, further candidates); they are not among `attempted`.
    pub continued: u32,
    /// Attempts that the target refused.
    pub refused: u32,
    /// Of those: because there were too many at once.
    pub throttled: u32,
    pub ok: u32,
    pub declined: u32,
    /// `not_sent` is among them, `timed_out` is not.
    pub failed: u32,
    pub timed_out: u32,
    pub not_sent: u32,
    /// Under way at the end of the second.
    pub in_flight: u32,
    /// Percentiles of the latency in microseconds; `None` where nothing ended.
    pub p50_us: Option<f32>,
    pub p95_us: Option<f32>,
    pub p99_us: Option<f32>,
}

impl OperationPoint {
    /// Actions that ended.
    #[must_use]
    pub fn finished(&self) -> u32 {
        self.ok + self.declined + self.failed + self.timed_out
    }

    fn of(second: &OperationSecond, in_flight: u32) -> OperationPoint {
        let percentile = |percentile| second.latency.percentile_us(percentile).map(|us| us as f32);
        OperationPoint {
            started: second.started,
            attempted: second.attempted,
            tenths: second.tenths,
            continued: second.continued,
            refused: second.refused,
            throttled: second.throttled,
            ok: second.ok,
            declined: second.declined,
            failed: second.failed,
            timed_out: second.timed_out,
            not_sent: second.not_sent,
            in_flight,
            p50_us: percentile(50.0),
            p95_us: percentile(95.0),
            p99_us: percentile(99.0),
        }
    }
}

impl Series {
    /// The seconds that are closed: indices 0 to this, exclusive.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.points.len() as u64
    }

    /// One closed second of the clock.
    #[must_use]
    pub fn get(&self, second: u64) -> Option<&Point> {
        self.points.get(usize::try_from(second).ok()?)
    }

    /// Adds the next second.
    pub(super) fn push(&mut self, second: &Second) {
        let before = self.points.last();
        let operations = second
            .operations
            .iter()
            .enumerate()
            .map(|(row, now)| {
                let under_way = before.map_or(0, |point| point.operations[row].in_flight);
                OperationPoint::of(
                    now,
                    (under_way + now.started).saturating_sub(now.finished()),
                )
            })
            .collect();
        self.points.push(Point {
            operations,
            hubs: second.hubs.clone().into_boxed_slice(),
            commands: second.commands.clone().into_boxed_slice(),
            docks: second.docks.clone().into_boxed_slice(),
        });
    }
}

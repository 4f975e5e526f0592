//! The run by time: a few lines that people look at together, in at most [`MOST_STEPS`] steps.

use super::build::from_zero_s;
use super::data::{Join, Timeline, TimelineRow};
use crate::measure::Collector;
use crate::measure::pool::PoolSeries;
use crate::measure::second::HubSecond;
use crate::measure::series::OperationPoint;
use crate::plan::OperationKind;
use crate::plan::target::Plays;
use std::ops::Range;

/// Steps of a timeline at most.
pub const MOST_STEPS: u64 = 600;

/// The seconds of the clock from 0:00 to the load's end, as far as they are closed.
pub(super) fn load_seconds(collector: &Collector) -> Range<u64> {
    let end = collector.series().end();
    let marks = collector.marks();
    let first = marks.zero.map_or(end, |zero| zero.second()).min(end);
    first
        ..marks
            .load_end
            .map_or(end, |load_end| load_end.second())
            .clamp(first, end)
}

pub(super) fn timeline(collector: &Collector, pools: &[PoolSeries]) -> Timeline {
    let end = collector.series().end();
    let mut lines = Lines {
        collector,
        end,
        step_s: end.div_ceil(MOST_STEPS).max(1),
        rows: Vec::new(),
    };
    lines.load();
    lines.hubs();
    lines.shards();
    lines.docks();
    lines.waits(pools);
    Timeline {
        from_s: from_zero_s(collector, 0),
        step_s: lines.step_s,
        lines: lines.rows,
    }
}

/// The lines as they are added.
struct Lines<'a> {
    collector: &'a Collector,
    end: u64,
    step_s: u64,
    rows: Vec<TimelineRow>,
}

impl Lines<'_> {
    /// Adds a line, unless it has no value at all.
    fn add(&mut self, name: &str, unit: &str, join: Join, of: impl Fn(u64) -> Option<f64>) {
        let seconds: Vec<Option<f64>> = (0..self.end).map(of).collect();
        if seconds.iter().flatten().next().is_some() {
            let steps = seconds.chunks(usize::try_from(self.step_s).unwrap_or(1));
            self.rows.push(TimelineRow {
                name: name.to_owned(),
                unit: unit.to_owned(),
                by: join,
                values: steps.map(|step| join.of(step)).collect(),
            });
        }
    }

    fn load(&mut self) {
        let collector = self.collector;
        let sum = |rows: fn(OperationKind) -> bool, of: fn(&OperationPoint) -> u32| {
            move |second| {
                let point = collector.series().get(second)?;
                let all = collector.plan().operations.iter().zip(&point.operations);
                let chosen = all.filter(|(operation, _)| rows(operation.kind));
                Some(chosen.map(|(_, row)| f64::from(of(row))).sum())
            }
        };
        self.add(
            "arrivals",
            "/s",
            Join::Mean,
            sum(is_arrival, |row| row.started),
        );
        self.add("completed", "/s", Join::Mean, sum(is_wanted, |row| row.ok));
        self.add(
            "failed",
            "/s",
            Join::Mean,
            sum(is_wanted, |row| row.failed + row.timed_out),
        );
        // Those of a journey are those of its steps.
        let own = |kind: OperationKind| !kind.is_made_of_steps();
        self.add("attempts", "/s", Join::Mean, sum(own, |row| row.attempted));
        self.add(
            "in flight",
            "",
            Join::Highest,
            sum(is_wanted, |row| row.in_flight),
        );
        if !collector.plan().issuers.is_empty() {
            self.add("commands open", "", Join::Highest, |second| {
                let rows = collector.series().get(second)?.commands.iter();
                Some(rows.map(|row| f64::from(row.open)).sum())
            });
        }
    }

    fn hubs(&mut self) {
        let collector = self.collector;
        if collector.plan().hubs.is_empty() {
            return;
        }
        let sum = |of: fn(&HubSecond) -> u32| {
            move |second| {
                let rows = collector.series().get(second)?.hubs.iter();
                Some(rows.map(|row| f64::from(of(row))).sum())
            }
        };
        // When the load is over they are told to leave: that is no loss.
        let ends = load_seconds(collector).end;
        let leaves = sum(|row| row.left);
        let left =
            (ends..self.end).find(|second| leaves(*second).is_some_and(|left: f64| left > 0.0));
        let standing = sum(|row| row.standing);
        self.add("connected", "", Join::Lowest, |second| {
            standing(second).filter(|_| left.is_none_or(|left| second < left))
        });
        let stuck = sum(|row| row.standing_stuck);
        if (0..self.end).any(|second| stuck(second).is_some_and(|count: f64| count > 0.0)) {
            self.add("stuck", "", Join::Highest, stuck);
        }
        // Before 0:00 they connect for the first time.
        let zero = collector
            .marks()
            .zero
            .map_or(u64::MAX, |zero| zero.second());
        let connects = sum(|row| row.connects);
        self.add("reconnects", "/s", Join::Mean, |second| {
            connects(second).filter(|_| second >= zero)
        });
    }

    /// Hubs by shard, where there are several.
    fn shards(&mut self) {
        let collector = self.collector;
        let plan = collector.plan();
        let ends = load_seconds(collector).end;
        for (group, row) in plan.hubs.iter().zip(&collector.places().groups) {
            let names = &plan.target.devices[group.device].shards;
            for (shard, (name, _)) in names.iter().enumerate().take(row.standing.len()) {
                let name = match plan.hubs.len() {
                    1 => format!("on {name}"),
                    _ => format!("{} on {name}", group.name),
                };
                self.add(&name, "", Join::Lowest, |second| {
                    if second >= ends {
                        return None;
                    }
                    let counts = row.by_second.get(usize::try_from(second).ok()?)?;
                    counts.get(shard).copied().map(f64::from)
                });
            }
        }
    }

    fn docks(&mut self) {
        let collector = self.collector;
        if collector.plan().docks.is_empty() {
            return;
        }
        self.add("returns stored", "", Join::Highest, |second| {
            let rows = collector.series().get(second)?.docks.iter();
            Some(rows.map(|row| f64::from(row.stored)).sum())
        });
    }

    fn waits(&mut self, pools: &[PoolSeries]) {
        let collector = self.collector;
        for (row, operation) in collector.plan().operations.iter().enumerate() {
            if is_wanted(operation.kind) {
                self.add(
                    &format!("{} p95", operation.name),
                    "us",
                    Join::Highest,
                    |second| {
                        collector
                            .series()
                            .get(second)?
                            .operations
                            .get(row)?
                            .p95_us
                            .map(f64::from)
                    },
                );
            }
        }
        for (source, series) in collector.plan().target.probes.sources.iter().zip(pools) {
            if source.plays == Plays::Pool {
                let waits = series.wait_by_second(0, self.end);
                self.add(
                    &format!("{} wait", source.name),
                    "us",
                    Join::Highest,
                    |second| waits.get(usize::try_from(second).ok()?).copied().flatten(),
                );
            }
        }
    }
}

fn is_arrival(kind: OperationKind) -> bool {
    matches!(
        kind,
        OperationKind::Journey { .. } | OperationKind::Issue { .. }
    )
}

/// What people wait for.
fn is_wanted(kind: OperationKind) -> bool {
    matches!(
        kind,
        OperationKind::Step { .. } | OperationKind::Command { .. }
    )
}

//! What keeps a run from passing although no line failed.

use super::Judge;
use crate::arrivals::Schedule;
use crate::event::Offset;
use crate::measure::figures;
use crate::measure::verdict::{Judgement, Verdict};
use crate::plan::OperationKind;
use std::time::Duration;

/// The share of the planned arrivals that may be missing: due in the last moment, or stopped with it.
const MISSING_SHARE: f64 = 0.01;

impl Judge<'_> {
    /// All reasons, the weightiest first.
    pub(super) fn doubts(&self, judgements: &[Judgement]) -> Vec<String> {
        let mut doubts = Vec::new();
        self.doubt_work(judgements, &mut doubts);
        self.doubt_load(&mut doubts);
        self.doubt_lag(&mut doubts);
        self.doubt_counts(&mut doubts);
        self.doubt_marks(&mut doubts);
        self.doubt_probes(&mut doubts);
        doubts
    }

    fn doubt_work(&self, judgements: &[Judgement], doubts: &mut Vec<String>) {
        // Where people wait for something, connecting alone is no work done.
        let operations = self.collector.plan().operations.iter();
        let totals = || operations.clone().zip(&self.collector.totals().operations);
        let wanted = |kind| {
            matches!(
                kind,
                OperationKind::Step { .. } | OperationKind::Command { .. }
            )
        };
        let any_wanted = totals().any(|(row, _)| wanted(row.kind));
        let mut counted = totals().filter(|(row, _)| !any_wanted || wanted(row.kind));
        if counted.all(|(_, total)| total.ok == 0) {
            doubts.push("nothing completed: not one action was ok".to_owned());
        }
        let no_data = |judgement: &Judgement| {
            !matches!(
                judgement.verdict,
                Some(Verdict::Pass | Verdict::Fail { .. })
            )
        };
        if judgements.is_empty() {
            doubts.push(
                "nothing was expected of the run: the profile has no `expect` line".to_owned(),
            );
        } else if judgements.iter().all(no_data) {
            doubts.push("no expectation had data".to_owned());
        }
    }

    /// The load was not what the profile asked for.
    fn doubt_load(&self, doubts: &mut Vec<String>) {
        let plan = self.collector.plan();
        for (operation, total) in plan
            .operations
            .iter()
            .zip(&self.collector.totals().operations)
        {
            let counted_elsewhere = matches!(operation.kind, OperationKind::Command { .. });
            if total.not_sent > 0 && !counted_elsewhere {
                doubts.push(format!(
                    "the load was not offered: {} of {} `{}` of {} were not sent; {}",
                    figures::count(total.not_sent),
                    figures::count(total.started),
                    operation.name,
                    operation.group,
                    why_not_sent(operation.kind),
                ));
            }
        }
        let (Some(zero), Some(load_end)) =
            (self.collector.marks().zero, self.collector.marks().load_end)
        else {
            doubts.push("the load never began: not every group stood".to_owned());
            return;
        };
        let issuers = plan.issuers.iter().enumerate();
        let issues = issuers.map(|(issuers, group)| {
            (
                OperationKind::Issue { issuers },
                &group.name,
                &group.arrivals,
            )
        });
        let riders = plan.riders.iter().enumerate();
        let journeys = riders.map(|(riders, group)| {
            (
                OperationKind::Journey { riders },
                &group.name,
                &group.arrivals,
            )
        });
        for (kind, group, arrivals) in issues.chain(journeys) {
            let due = arrivals_until(arrivals, load_end.since(zero)) as f64;
            let started = self.started(kind, zero, load_end) as f64;
            if started < due - 1.0 - due * MISSING_SHARE {
                doubts.push(format!(
                    "the load was not offered: {} of {} arrivals of {group} were started",
                    figures::number(started),
                    figures::number(due),
                ));
            }
        }
    }

    fn started(&self, kind: OperationKind, zero: Offset, load_end: Offset) -> u64 {
        let Some(operation) = self.collector.plan().operation(kind) else {
            return 0;
        };
        let row = usize::from(operation.0);
        let seconds = zero.second()..=load_end.second();
        seconds
            .filter_map(|second| self.collector.series().get(second)?.operations.get(row))
            .map(|point| u64::from(point.started))
            .sum()
    }

    fn doubt_lag(&self, doubts: &mut Vec<String>) {
        let lag = self.collector.lag();
        if let (Some((p99_us, second)), Some(allowed_us)) = (lag.late(), lag.allowed_us()) {
            let from = self.collector.marks().zero.map_or(0, Offset::second);
            doubts.push(format!(
                "the generator was late: p99 of start − due {} in the 10 s before {}, more than {} (10 % of the tightest latency limit)",
                figures::time(p99_us as f64),
                figures::clock(second as i64 + 1 - from as i64),
                figures::time(allowed_us as f64),
            ));
        }
    }

    fn doubt_counts(&self, doubts: &mut Vec<String>) {
        let totals = self.collector.totals();
        if totals.lost_steps > 0 {
            doubts.push(format!(
                "measurements were lost: {} steps of commands did not fit",
                figures::count(totals.lost_steps)
            ));
        }
        let plan = self.collector.plan();
        for (issuers, group) in plan.issuers.iter().enumerate() {
            let account = self.collector.ledger().total(issuers);
            let issued = plan
                .operation(OperationKind::Issue { issuers })
                .and_then(|id| totals.operations.get(usize::from(id.0)))
                .map_or(0, |total| total.started);
            if !account.adds_up() || (account.due != issued && totals.lost_steps == 0) {
                doubts.push(format!(
                    "the ledger of {} does not add up: {} due, {} in a state, {} started",
                    group.name,
                    figures::count(account.due),
                    figures::count(account.states.iter().sum()),
                    figures::count(issued),
                ));
            }
        }
        for (docks, group) in plan.docks.iter().enumerate() {
            let account = self.collector.returns().total(docks);
            let started = plan
                .operation(OperationKind::Return { docks })
                .and_then(|id| totals.operations.get(usize::from(id.0)))
                .map_or(0, |total| total.started);
            if !account.adds_up() || account.created != started {
                doubts.push(format!(
                    "the account of the returns of {} does not add up: {} handed over, {} started, {:?} by state",
                    group.name,
                    figures::count(account.created),
                    figures::count(started),
                    account.states,
                ));
            }
        }
        for (operation, total) in plan.operations.iter().zip(&totals.operations) {
            let ended = total.ok + total.declined + total.failed + total.timed_out;
            if ended > total.started {
                doubts.push(format!(
                    "the counts of {} `{}` do not add up: {} ended, {} started",
                    operation.group,
                    operation.name,
                    figures::count(ended),
                    figures::count(total.started),
                ));
            }
        }
    }

    fn doubt_marks(&self, doubts: &mut Vec<String>) {
        for row in &self.collector.marks().rows {
            let kind = if row.is_fault { "fault" } else { "trigger" };
            match (&row.failed, row.begin, &row.observed) {
                (Some(why), ..) => doubts.push(format!("{kind} {} failed: {why}", row.name)),
                (None, None, _) => doubts.push(format!("{kind} {} never happened", row.name)),
                (None, Some(_), Some(Err(why))) => {
                    doubts.push(format!(
                        "{kind} {} was not observed to take effect: {why}",
                        row.name
                    ));
                }
                (None, Some(_), None) if row.is_fault => {
                    doubts.push(format!(
                        "{kind} {} was not observed to take effect",
                        row.name
                    ));
                }
                (None, Some(_), _) => {}
            }
        }
    }

    fn doubt_probes(&self, doubts: &mut Vec<String>) {
        let marks = self.collector.marks();
        let probes = &self.collector.plan().target.probes;
        let Some(window) = marks
            .zero
            .zip(marks.load_end)
            .map(|(zero, end)| zero..end.min(self.now))
        else {
            return;
        };
        for (source, series) in probes.sources.iter().zip(self.pools) {
            let summary = series.source_summary(window.clone());
            if summary.blind.share > probes.max_blind {
                let gap = summary
                    .last_gap
                    .map(|gap| format!(" ({gap})"))
                    .unwrap_or_default();
                doubts.push(format!(
                    "the probe {} was blind for {} of the load, longest {}{gap}",
                    source.name,
                    figures::share(summary.blind.share),
                    figures::short_time(
                        Duration::from_micros(summary.blind.longest_us).as_micros() as f64
                    ),
                ));
            }
        }
    }
}

/// What keeps actions of a kind from leaving, and what to do about it.
fn why_not_sent(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Telemetry { .. } | OperationKind::Answer { .. } => {
            "the broker acknowledged too few for the next to leave (see `hubs stuck`), or takes no packet of that size"
        }
        OperationKind::Reauthenticate { .. } => {
            "those hubs had no session just then, or were authenticating already"
        }
        OperationKind::Connect { .. } => {
            "no socket or port was to be had; raise the limits of this machine"
        }
        _ => "raise `max_in_flight` or the limits of this machine",
    }
}

/// Arrivals that are due until `length` after 0:00.
fn arrivals_until(arrivals: &Schedule, length: Duration) -> u64 {
    let (mut low, mut high) = (0, arrivals.total());
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if arrivals.due(middle).is_some_and(|due| due <= length) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

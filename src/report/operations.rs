//! The rows of the table of operations.

use super::build::from_zero_s;
use super::data::{OperationRow, OutcomeRow, RetryRow, SpanRow, Times, WorstTen};
use super::timeline::load_seconds;
use crate::event::Outcome;
use crate::measure::phases::Phase;
use crate::measure::totals::OperationTotal;
use crate::measure::{Collector, Histogram};
use crate::plan::target::Repeat;
use crate::plan::{Operation, OperationKind, Plan};

/// Length of the worst window of amplification.
const WORST_SECONDS: u64 = 10;
/// Fewer started actions than this in ten seconds say nothing of amplification.
const FEWEST_STARTED: u64 = 10;

pub(super) fn rows(collector: &Collector) -> Vec<OperationRow> {
    let rows = collector
        .plan()
        .operations
        .iter()
        .zip(&collector.totals().operations)
        .enumerate();
    rows.map(|(row, (operation, total))| self::row(collector, row, operation, total))
        .collect()
}

fn row(
    collector: &Collector,
    row: usize,
    operation: &Operation,
    total: &OperationTotal,
) -> OperationRow {
    let unsent = total
        .outcomes
        .get(&Outcome::NotSent)
        .map_or(0, |tally| tally.attempts);
    let tries = total.attempted.saturating_sub(unsent);
    let (attempts, amplification) = match operation.kind {
        // Its attempts are those of handing it over.
        OperationKind::Command { .. }
        | OperationKind::Journey { .. }
        | OperationKind::Span { .. } => (0, None),
        _ => (tries + total.continued, ratio(tries, total.started)),
    };
    OperationRow {
        name: operation.name.clone(),
        group: operation.group.clone(),
        kind: kind(operation.kind).to_owned(),
        started: total.started,
        ok: total.ok,
        declined: total.declined,
        failed: total.failed,
        timed_out: total.timed_out,
        not_sent: total.not_sent,
        unfinished: total.unfinished(),
        unfinished_ages: times(&total.unfinished_ages),
        success: success(total.ok, total.failed + total.timed_out, total.not_sent),
        attempts,
        continued: total.continued,
        continued_as: continued_as(collector.plan(), operation.kind).to_owned(),
        duplicated: total.duplicated,
        doubtful: total.doubtful,
        shared_accounts: total.shared_accounts,
        amplification,
        amplification_worst: amplification.and_then(|_| worst_ten(collector, row)),
        outcomes: total
            .outcomes
            .iter()
            .map(|(outcome, tally)| OutcomeRow {
                outcome: collector.plan().outcome_text(row, *outcome),
                attempts: tally.attempts,
                actions: tally.actions,
            })
            .collect(),
        retries: RetryRow {
            denied: total.retries.denied,
            asked_to_wait: total.retries.asked,
            postponed: total.retries.postponed,
        },
        latency: times(&total.latency),
        service: times(&total.service),
        lag: times(&total.lag),
        spans: Phase::ALL
            .iter()
            .filter_map(|phase| span(collector, row, *phase))
            .collect(),
    }
}

fn span(collector: &Collector, row: usize, phase: Phase) -> Option<SpanRow> {
    let sum = collector.phases().operation(phase, row)?;
    Some(SpanRow {
        span: phase.name().to_owned(),
        latency: times(&sum.latency),
        success: success(
            u64::from(sum.ok),
            u64::from(sum.failed) + u64::from(sum.timed_out),
            u64::from(sum.not_sent),
        ),
    })
}

/// ok ÷ (ended − declined − not sent).
fn success(ok: u64, bad: u64, not_sent: u64) -> Option<f64> {
    ratio(ok, (ok + bad).saturating_sub(not_sent))
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn worst_ten(collector: &Collector, row: usize) -> Option<WorstTen> {
    let load = load_seconds(collector);
    let last = load.end.checked_sub(WORST_SECONDS)?;
    let mut worst: Option<WorstTen> = None;
    for from in load.start..=last {
        let points = (from..from + WORST_SECONDS)
            .filter_map(|second| collector.series().get(second)?.operations.get(row));
        let (started, attempts) = points.fold((0, 0), |(started, attempts), point| {
            (
                started + u64::from(point.started),
                attempts + u64::from(point.attempted),
            )
        });
        if started < FEWEST_STARTED {
            continue;
        }
        let attempts_per_action = attempts as f64 / started as f64;
        if worst.is_none_or(|worst| attempts_per_action > worst.attempts_per_action) {
            worst = Some(WorstTen {
                attempts_per_action,
                at_s: from_zero_s(collector, from),
            });
        }
    }
    worst
}

/// The percentiles of a histogram; `None` if it is empty.
pub(super) fn times(times: &Histogram) -> Option<Times> {
    let percentile = |percentile| times.percentile_us(percentile);
    Some(Times {
        count: times.count(),
        mean_us: times.mean_us()?,
        p50_us: percentile(50.0)?,
        p95_us: percentile(95.0)?,
        p99_us: percentile(99.0)?,
        p999_us: percentile(99.9)?,
        max_us: times.max_us()?,
    })
}

/// What attempts are that were meant.
fn continued_as(plan: &Plan, kind: OperationKind) -> &'static str {
    let OperationKind::Step { riders, step } = kind else {
        return "";
    };
    let journey = plan.riders.get(riders).map(|group| group.journey);
    let journey = journey.and_then(|row| plan.target.journeys.get(row));
    let repeat = journey
        .and_then(|journey| journey.steps.get(step))
        .map(|step| &step.repeat);
    match repeat {
        Some(Repeat::Until(_)) => "polls",
        Some(Repeat::ForEach(_)) => "further candidates",
        Some(Repeat::Once) | None => "",
    }
}

fn kind(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Find { .. } => "find",
        OperationKind::Connect { .. } => "connect",
        OperationKind::Handshake { .. } => "handshake",
        OperationKind::Telemetry { .. } => "telemetry",
        OperationKind::Answer { .. } => "answer",
        OperationKind::Reauthenticate { .. } => "reauthenticate",
        OperationKind::Step { .. } => "step",
        OperationKind::Journey { .. } => "journey",
        OperationKind::Span { .. } => "span",
        OperationKind::Closing { .. } => "always",
        OperationKind::Issue { .. } => "issue",
        OperationKind::Command { .. } => "command",
        OperationKind::Status { .. } => "status",
        OperationKind::Return { .. } => "return",
        OperationKind::Token { .. } => "token",
    }
}

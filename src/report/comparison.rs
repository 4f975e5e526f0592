//! Two runs, or two sets of runs, side by side: what got worse, what got better, and what chance explains.

use super::data::Report;
use super::repetition::recovery_us;
use crate::measure::figures;
use crate::measure::statistics::{compare, median};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Fewer runs on a side can't be told from chance: the smallest probability of three against three is 0.10.
pub const FEWEST_RUNS: usize = 4;
const SIGNIFICANT: f64 = 0.05;

/// What a number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
}

/// What came of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    Same,
    Better,
    /// One side has no such number: never a pass.
    NoData,
    /// It moved by more than the floor, and there are too few runs to tell that from chance.
    Unproven,
    Worse,
}

/// One number of both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRow {
    pub name: String,
    pub first: Option<f64>,
    pub second: Option<f64>,
    /// Second ÷ first of the shift between the two.
    pub ratio: Option<f64>,
    pub p: Option<f64>,
    pub change: Change,
}

/// Compares what both sides measured. `floor`: a change by less than this share is none.
#[must_use]
pub fn comparison(first: &[Report], second: &[Report], floor: f64) -> Vec<ComparedRow> {
    let (before, after) = (numbers(first), numbers(second));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let none = (Better::Lower, Vec::new());
    let rows = names.into_iter().map(|name| {
        let (better, a) = before.get(name).or_else(|| after.get(name)).map_or(
            (Better::Lower, Vec::new()),
            |(better, _)| {
                (
                    *better,
                    before
                        .get(name)
                        .map_or_else(Vec::new, |(_, values)| values.clone()),
                )
            },
        );
        let (_, b) = after.get(name).unwrap_or(&none);
        row(name, better, &a, b, floor)
    });
    rows.collect()
}

fn row(name: &str, better: Better, first: &[f64], second: &[f64], floor: f64) -> ComparedRow {
    let (a, b) = (median(first), median(second));
    let found = compare(first, second);
    let mut row = ComparedRow {
        name: name.to_owned(),
        first: a,
        second: b,
        ratio: None,
        p: None,
        change: Change::NoData,
    };
    let (Some(a), Some(found)) = (a, found) else {
        return row;
    };
    // What does not end on both sides has not changed.
    let ratio = if found.shift == 0.0 {
        1.0
    } else if a == 0.0 {
        1.0 + found.shift.signum() * f64::INFINITY
    } else {
        (a + found.shift) / a
    };
    row.ratio = Some(ratio);
    let enough = first.len() >= FEWEST_RUNS && second.len() >= FEWEST_RUNS;
    row.p = enough.then_some(found.p);
    let moved = (ratio - 1.0).abs() >= floor;
    let worse = (ratio > 1.0) == (better == Better::Lower);
    row.change = match (moved, enough) {
        (false, _) => Change::Same,
        (true, false) => Change::Unproven,
        (true, true) if found.p >= SIGNIFICANT => Change::Same,
        (true, true) if worse => Change::Worse,
        (true, true) => Change::Better,
    };
    row
}

/// Every number that runs are compared by, one value a run.
fn numbers(reports: &[Report]) -> BTreeMap<String, (Better, Vec<f64>)> {
    let mut all: BTreeMap<String, (Better, Vec<f64>)> = BTreeMap::new();
    for report in reports {
        let mut add = |name: String, better: Better, value: Option<f64>| {
            let (_, values) = all.entry(name).or_insert((better, Vec::new()));
            values.extend(value);
        };
        for row in &report.recoveries {
            let mark = &row.mark;
            add(
                format!("recovery from the end of {mark}, µs"),
                Better::Lower,
                Some(recovery_us(row)),
            );
            add(
                format!("amplification after {mark}"),
                Better::Lower,
                row.amplification,
            );
            add(
                format!("hub-minutes offline after {mark}"),
                Better::Lower,
                row.offline_hub_minutes,
            );
        }
        for row in report.operations.iter().filter(|row| row.started > 0) {
            let name = format!("{} {} {}", row.group, row.name, row.kind);
            add(format!("{name} success"), Better::Higher, row.success);
            let p95 = row.latency.map(|times| times.p95_us as f64);
            add(format!("{name} latency p95, µs"), Better::Lower, p95);
        }
        for row in &report.pools {
            let wait = row.overall.as_ref().and_then(|span| span.wait_mean_us);
            if wait.is_some() {
                add(format!("{} wait mean, µs", row.source), Better::Lower, wait);
            }
        }
        for row in &report.critical {
            add(
                format!("critical number after {}", row.mark),
                Better::Higher,
                Some(row.number.middle),
            );
        }
    }
    // What neither side measured is nothing to compare.
    all.retain(|_, (_, values)| !values.is_empty());
    all
}

/// The table, the worst first.
#[must_use]
pub fn comparison_text(rows: &[ComparedRow], runs: (usize, usize), floor: f64) -> String {
    let mut text = String::new();
    let mut rows: Vec<&ComparedRow> = rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.change));
    let number = |value: Option<f64>| match value {
        None => "no data".to_owned(),
        Some(value) if value.is_infinite() => "not seen".to_owned(),
        Some(value) => figures::number(value),
    };
    let _ = writeln!(
        text,
        "{:<52} {:>12} {:>12} {:>9} {:>8}  (medians of {} and {} runs)",
        "COMPARISON", "first", "second", "change", "p", runs.0, runs.1
    );
    for row in rows {
        let sign = match row.change {
            Change::Same => "=",
            Change::Better => "✓ better",
            Change::NoData => "? no data",
            Change::Unproven => "? too few runs",
            Change::Worse => "✗ worse",
        };
        let change = row.ratio.map_or_else(
            || "-".to_owned(),
            |ratio| format!("{:+.0}%", (ratio - 1.0) * 100.0),
        );
        let p = row.p.map_or_else(|| "-".to_owned(), |p| format!("{p:.3}"));
        let _ = writeln!(
            text,
            "  {:<50} {:>12} {:>12} {change:>9} {p:>8}  {sign}",
            row.name,
            number(row.first),
            number(row.second),
        );
    }
    let _ = writeln!(
        text,
        "\nWorse or better: moved by {} or more, and by chance (Mann-Whitney, two-sided) less often than once in 20 times.",
        figures::share(floor)
    );
    if runs.0.min(runs.1) < FEWEST_RUNS {
        let _ = writeln!(
            text,
            "A test takes {FEWEST_RUNS} runs on each side: `rushhour run … --repeat {FEWEST_RUNS}`."
        );
    }
    text
}

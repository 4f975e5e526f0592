//! What exactly was wrong, as report rows: how often, and in words as it was first seen.

use super::Report;
use super::data::TroubleRow;
use crate::measure::Collector;
use crate::measure::figures;
use std::fmt::Write;

/// One row for each operation and explained outcome.
pub(super) fn rows(collector: &Collector) -> Vec<TroubleRow> {
    let plan = collector.plan();
    let operations = plan.operations.iter().zip(&collector.totals().operations);
    let rows = operations
        .enumerate()
        .flat_map(|(row, (operation, total))| {
            total.explained.iter().map(move |(outcome, explained)| {
                let marks = collector.marks();
                TroubleRow {
                    group: operation.group.clone(),
                    operation: operation.name.clone(),
                    trouble: plan.outcome_text(row, *outcome),
                    count: explained.count,
                    first_us: marks.from_zero_us(explained.at),
                    example: explained.text.clone(),
                }
            })
        });
    rows.collect()
}

/// `homes connect: tls: certificate expired, 12 times; first at 0:03: …`
pub(super) fn sentence(row: &TroubleRow) -> String {
    let times = match row.count {
        1 => "once".to_owned(),
        count => format!("{} times", figures::count(count)),
    };
    format!(
        "{} {}: {}, {times}; first at {}: {}",
        row.group,
        row.operation,
        row.trouble,
        figures::clock(row.first_us.div_euclid(1_000_000)),
        row.example
    )
}

/// The part of `report.md`.
pub(super) fn section(report: &Report, text: &mut String) {
    if report.troubles.is_empty() {
        return;
    }
    let _ = writeln!(text, "## What was wrong\n");
    for row in &report.troubles {
        let _ = writeln!(text, "- {}", sentence(row));
    }
    text.push('\n');
}

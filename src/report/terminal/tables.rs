//! The tables of the summary.

use super::Page;
use crate::measure::figures;
use crate::report::Report;
use crate::report::certificates;
use crate::report::data::{OperationRow, PoolSpan};
use crate::report::places;
use crate::report::probes;
use crate::report::sessions;
use crate::report::text;
use crate::report::troubles;
use std::fmt::Write;

/// Before, during and after; without triggers and faults, the percentiles of the whole run.
pub(super) fn latency(report: &Report, page: &mut Page) {
    let rows = || report.operations.iter().filter(|row| row.latency.is_some());
    if rows().next().is_none() {
        return;
    }
    if report.marks.is_empty() {
        page.line(&format!(
            "{:<26}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}",
            "LATENCY", "p50", "p95", "p99", "p99.9", "max", "samples"
        ));
        for row in rows() {
            let Some(times) = &row.latency else { continue };
            let time = |us: u64| figures::time(us as f64);
            page.line(&format!(
                "  {:<24}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}",
                name(row),
                time(times.p50_us),
                time(times.p95_us),
                time(times.p99_us),
                time(times.p999_us),
                time(times.max_us),
                figures::count(times.count)
            ));
        }
    } else {
        page.line(&format!(
            "{:<26}{:>18}{:>18}{:>18}{:>12}",
            "LATENCY", "before", "during", "after", "samples"
        ));
        page.line(&format!(
            "{:<26}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
            "", "p50", "p99", "p50", "p99", "p50", "p99"
        ));
        for row in rows() {
            let mut line = format!("  {:<24}", name(row));
            for span in &row.spans {
                let (p50, p99) = text::p50_p99(span.latency.as_ref());
                let _ = write!(line, "{p50:>9}{p99:>9}");
            }
            let _ = write!(
                line,
                "{:>12}",
                figures::count(row.latency.map_or(0, |times| times.count))
            );
            page.line(&line);
        }
    }
    page.gap();
}

/// What was started and how it ended.
pub(super) fn actions(report: &Report, page: &mut Page) {
    let rows = || report.operations.iter().filter(|row| row.started > 0);
    if rows().next().is_none() {
        return;
    }
    page.line(&format!(
        "{:<26}{:>10}{:>10}{:>10}{:>9}{:>11}{:>12}{:>10}",
        "ACTIONS", "started", "ok", "declined", "failed", "timed out", "unfinished", "success"
    ));
    for row in rows() {
        page.line(&format!(
            "  {:<24}{:>10}{:>10}{:>10}{:>9}{:>11}{:>12}{:>10}",
            name(row),
            figures::count(row.started),
            figures::count(row.ok),
            figures::count(row.declined),
            figures::count(row.failed),
            figures::count(row.timed_out),
            figures::count(row.unfinished),
            row.success.map_or_else(|| "-".to_owned(), figures::share),
        ));
        if let Some(ages) = &row.unfinished_ages {
            page.wrapped(
                "    ",
                &format!(
                    "unfinished at the end: due {} ago in the middle, {} at most",
                    figures::time(ages.p50_us as f64),
                    figures::time(ages.max_us as f64)
                ),
            );
        }
    }
    page.gap();
}

/// Attempts for each action, and how those that were not ok ended.
pub(super) fn attempts(report: &Report, page: &mut Page) {
    let telling = |row: &&OperationRow| {
        row.attempts > row.started
            || row.shared_accounts > 0
            || row.outcomes.iter().any(|row| row.outcome != "ok")
    };
    let rows: Vec<&OperationRow> = report.operations.iter().filter(telling).collect();
    if rows.is_empty() {
        return;
    }
    page.line("ATTEMPTS");
    for row in rows {
        let mut line = String::new();
        if let Some(amplification) = row.amplification {
            let _ = write!(line, "{} per action", figures::number(amplification));
            if let Some(worst) = row.amplification_worst {
                let _ = write!(
                    line,
                    ", worst 10 s {} at {}",
                    figures::number(worst.attempts_per_action),
                    figures::clock(worst.at_s)
                );
            }
            line.push_str("  ");
        }
        line.push_str(&text::beside_retries(row));
        for outcome in &row.outcomes {
            let count = outcome.attempts.max(outcome.actions);
            let _ = write!(line, " {} {} ", outcome.outcome, figures::count(count));
        }
        for (what, count) in text::held_back(&row.retries) {
            let _ = write!(line, " {what} {} ", figures::count(count));
        }
        page.wrapped(&format!("  {:<24}", name(row)), line.trim_end());
    }
    page.gap();
}

/// What exactly was wrong.
pub(super) fn troubles(report: &Report, page: &mut Page) {
    for row in &report.troubles {
        page.wrapped("TROUBLE  ", &troubles::sentence(row));
    }
    if !report.troubles.is_empty() {
        page.gap();
    }
}

pub(super) fn hubs(report: &Report, page: &mut Page) {
    for row in &report.hubs {
        let least = row
            .standing_least
            .map(|least| format!(" (least {})", figures::count(least)));
        page.wrapped(
            "HUBS     ",
            &format!(
                "{}: connected {} of {}{}  TCP opened {}  accepted {}  lost {}  refused {}  reconnects {}",
                row.group,
                figures::count(row.standing),
                figures::count(row.count),
                least.unwrap_or_default(),
                figures::count(row.opened),
                figures::count(row.accepted),
                figures::count(row.lost),
                text::refused(row),
                figures::count(row.reconnects),
            ),
        );
        if let Some(sessions) = text::sessions(row) {
            page.wrapped("         ", &sessions);
        }
    }
    for row in &report.places {
        for sentence in places::sentences(row) {
            page.wrapped("         ", &format!("{}: {sentence}", row.group));
        }
    }
    for row in &report.certificates {
        for sentence in certificates::sentences(row) {
            page.wrapped("         ", &format!("{}: {sentence}", row.group));
        }
    }
    for row in &report.publishers {
        page.wrapped(
            "         ",
            &format!(
                "publishers to {}: TCP opened {}  accepted {}  lost {}",
                row.device,
                figures::count(row.opened),
                figures::count(row.accepted),
                figures::count(row.lost),
            ),
        );
        if let Some(causes) = sessions::publishers(row) {
            page.wrapped("         ", &causes);
        }
    }
    if !report.hubs.is_empty() {
        page.gap();
    }
}

pub(super) fn ledger(report: &Report, page: &mut Page) {
    for row in &report.ledger {
        let adds_up = if row.adds_up {
            "✓ adds up"
        } else {
            "✗ does not add up"
        };
        page.wrapped(
            "LEDGER   ",
            &format!("{}: {}   {adds_up}", row.group, text::account(row)),
        );
        page.wrapped("         ", &text::apart(row));
        if let Some(shards) = text::shards(row) {
            page.wrapped("         ", &shards);
        }
    }
    if !report.ledger.is_empty() {
        page.gap();
    }
}

pub(super) fn returns(report: &Report, page: &mut Page) {
    for row in &report.returns {
        let adds_up = if row.adds_up {
            "✓ adds up"
        } else {
            "✗ does not add up"
        };
        page.wrapped(
            "RETURNS  ",
            &format!("{}: {}   {adds_up}", row.group, text::returns(row)),
        );
        for line in text::returns_apart(row) {
            page.wrapped("         ", &line);
        }
    }
    if !report.returns.is_empty() {
        page.gap();
    }
}

pub(super) fn pools(report: &Report, page: &mut Page) {
    let pools: Vec<_> = report
        .pools
        .iter()
        .filter(|row| row.overall.is_some())
        .collect();
    if !pools.is_empty() {
        page.line(&format!(
            "{:<32}{:>10}{:>10}{:>9}{:>10}{:>10}{:>10}",
            "POOL", "wait mean", "p99", "waiting", "in use", "stalled", "timeouts"
        ));
    }
    for row in &pools {
        for span in row.overall.iter().chain(&row.spans) {
            page.line(&pool_line(&row.source, span));
        }
    }
    for (row, value) in report
        .pools
        .iter()
        .filter_map(|row| Some((row, row.value?)))
    {
        page.wrapped("VALUE    ", &text::value(&row.source, &value));
    }
    for row in &pools {
        if let Some(assumption) = &row.assumption {
            page.wrapped("  ", &format!("{} is {assumption}", row.source));
        }
    }
    for text in report.pools.iter().filter_map(probes::broker) {
        page.wrapped("BROKER   ", &text);
    }
    for row in &report.inferred {
        let text = format!("{}: {}; {}", row.of, row.text, row.assumption);
        page.wrapped("INFERRED ", &text);
    }
    for row in report.pools.iter().filter(|row| row.blind > 0.0) {
        let gap = row
            .last_gap
            .as_ref()
            .map(|gap| format!(", last {gap}"))
            .unwrap_or_default();
        let blind = format!(
            "{} blind for {}, longest {}{gap}",
            row.source,
            figures::share(row.blind),
            figures::time(row.blind_longest_us as f64)
        );
        page.wrapped("  ", &blind);
    }
    if !(report.pools.is_empty() && report.inferred.is_empty()) {
        page.gap();
    }
}

fn pool_line(source: &str, span: &PoolSpan) -> String {
    let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), figures::time);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figures::number);
    let at_least = if span.wait_p99_at_least { ">" } else { "" };
    let in_use = match (span.in_use_max, span.max) {
        (Some(in_use), Some(max)) => {
            format!("{}/{}", figures::number(in_use), figures::number(max))
        }
        (in_use, _) => number(in_use),
    };
    format!(
        "  {:<30}{:>10}{:>10}{:>9}{:>10}{:>10}{:>10}",
        format!("{source} {}", span.span),
        time(span.wait_mean_us),
        format!("{at_least}{}", time(span.wait_p99_us)),
        number(span.waiting_max),
        in_use,
        time(span.stalled_us.map(|us| us as f64)),
        number(span.timeouts),
    )
}

/// The operation with its group where the name alone would not tell.
fn name(row: &OperationRow) -> String {
    let name = match row.kind.as_str() {
        "issue" => format!("{} hand-over", row.name),
        "command" => format!("{} end to end", row.group),
        _ => format!("{} {}", row.group, row.name),
    };
    name.chars().take(24).collect()
}

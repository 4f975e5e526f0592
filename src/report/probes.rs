//! What probes said beside a pool's own figures, in words.

use super::Report;
use super::data::{InferredRow, PoolRow, PoolSpan, ProbeCost, SignalFigures};
use super::markdown::table;
use super::text;
use crate::measure::inferred::Finding;
use crate::measure::pool::PoolSeries;
use crate::measure::{Collector, figures};
use crate::plan::signal::Signal;
use std::fmt::Write;

/// What a broker counted, for the terminal.
pub(super) fn broker(row: &PoolRow) -> Option<String> {
    let is_broker = row.plays == crate::plan::probe::Plays::Broker.name();
    let signals: Vec<String> = row.signals.iter().map(signal).collect();
    (is_broker && !signals.is_empty()).then(|| format!("{}: {}", row.source, signals.join("; ")))
}

/// Signals that no table of pools shows.
pub(super) fn besides(row: &PoolRow) -> Option<String> {
    let in_the_table = [
        Signal::Wait,
        Signal::Waiting,
        Signal::InUse,
        Signal::Max,
        Signal::Saturation,
        Signal::Timeouts,
        Signal::Acquires,
        Signal::Value,
    ];
    let signals: Vec<String> = row
        .signals
        .iter()
        .filter(|one| in_the_table.iter().all(|known| known.name() != one.signal))
        .map(signal)
        .collect();
    (!signals.is_empty()).then(|| signals.join("; "))
}

/// What its readings cost.
pub(super) fn cost(cost: &ProbeCost) -> String {
    let mut text = format!(
        "answers took {} on average, {} at most, {} bytes",
        figures::time(cost.mean_us),
        figures::time(cost.longest_us as f64),
        figures::count(cost.bytes)
    );
    for (count, what) in [
        (cost.bad_lines, "lines that make no sense"),
        (cost.duplicate_lines, "lines that repeat a series"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {} {what}", figures::count(count)));
        }
    }
    text
}

fn signal(figures_of: &SignalFigures) -> String {
    let shown = |value: f64| {
        if figures_of.is_time {
            figures::time(value)
        } else {
            figures::number(value)
        }
    };
    let name = figures_of.signal.replace('_', " ");
    match (
        figures_of.grew,
        figures_of.least,
        figures_of.most,
        figures_of.last,
    ) {
        (Some(grew), ..) => {
            let rate = figures_of.per_second.unwrap_or(0.0);
            let rate = figures::number((rate * 10.0).round() / 10.0);
            format!("{name} {} ({rate}/s)", shown(grew))
        }
        (None, Some(least), Some(most), Some(last)) => format!(
            "{name} {} to {}, {} at the end",
            shown(least),
            shown(most),
            shown(last)
        ),
        _ => name,
    }
}

/// What the load alone says.
pub(super) fn inferred(collector: &Collector, pools: &[PoolSeries]) -> Vec<InferredRow> {
    let found = collector.inferred(pools).into_iter();
    let row = found.map(|inferred| {
        let text = match inferred.finding {
            Finding::Knee(knee) => format!(
                "throughput stays at {}/s; a pool of about {} connections, of which a request holds one for {} and waits {} for it",
                figures::number((knee.plateau_per_second * 10.0).round() / 10.0),
                figures::number((knee.effective_pool * 10.0).round() / 10.0),
                figures::time(knee.service_us),
                figures::time(knee.wait_us),
            ),
            Finding::ConnectionsPerRequest {
                connections,
                requests,
            } => format!(
                "a request takes {} connections, seen from {} requests of this kind alone",
                figures::number((connections * 100.0).round() / 100.0),
                figures::count(requests)
            ),
        };
        let (mut effective_pool, mut wait_us, mut connections_per_request) = (None, None, None);
        match inferred.finding {
            Finding::Knee(knee) => {
                (effective_pool, wait_us) = (Some(knee.effective_pool), Some(knee.wait_us));
            }
            Finding::ConnectionsPerRequest { connections, .. } => {
                connections_per_request = Some(connections);
            }
        }
        InferredRow {
            of: inferred.of,
            text,
            assumption: inferred.finding.assumption().to_owned(),
            effective_pool,
            wait_us,
            connections_per_request,
        }
    });
    row.collect()
}

/// The same as a part of the Markdown report.
pub(super) fn markdown(report: &Report, text: &mut String) {
    if report.inferred.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Inferred\n");
    for row in &report.inferred {
        let _ = writeln!(text, "- {}: {} ({})", row.of, row.text, row.assumption);
    }
    text.push('\n');
}

/// The table of pools, and what every source said besides.
pub(super) fn pools(report: &Report, text: &mut String) {
    if report.pools.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Pool wait\n");
    let rows = report.pools.iter().flat_map(|row| {
        row.overall
            .iter()
            .chain(&row.spans)
            .map(|span| pool_row(&row.source, span))
    });
    let heading = [
        "source",
        "part",
        "wait mean",
        "by counters",
        "by Little",
        "p99",
        "waiting",
        "in use",
        "max",
        "stalled",
        "timeouts",
        "acquires",
        "per request",
    ];
    table(text, &heading, rows);
    for row in &report.pools {
        let gap = row
            .last_gap
            .as_ref()
            .map(|gap| format!("; last gap: {gap}"))
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "- {} ({}): {} readings, blind for {}, longest {}{gap}",
            row.source,
            row.plays,
            figures::count(row.readings),
            figures::share(row.blind),
            figures::time(row.blind_longest_us as f64),
        );
        let value = row
            .value
            .as_ref()
            .map(|value| text::value(&row.source, value));
        let paid = row.cost.as_ref().map(cost);
        for line in [value, besides(row), paid, row.assumption.clone()]
            .into_iter()
            .flatten()
        {
            let _ = writeln!(text, "  - {line}");
        }
    }
    text.push('\n');
}

fn pool_row(source: &str, span: &PoolSpan) -> Vec<String> {
    let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), figures::time);
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figures::number);
    let at_least = if span.wait_p99_at_least { ">" } else { "" };
    vec![
        source.to_owned(),
        span.span.clone(),
        time(span.wait_mean_us),
        time(span.wait_by_counters_us),
        time(span.wait_by_little_us),
        format!("{at_least}{}", time(span.wait_p99_us)),
        number(span.waiting_max),
        number(span.in_use_max),
        number(span.max),
        time(span.stalled_us.map(|us| us as f64)),
        number(span.timeouts),
        number(span.acquires),
        number(span.acquires_per_request),
    ]
}

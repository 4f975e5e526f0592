//! `report.md`: the verdict first, plain headings, details folded away. It stays far below the 1 MiB that CI systems take.

use super::Report;
use super::data::{OperationRow, Times};
use super::text::{self, sign};
use super::{certificates, places, probes, recoveries, returns, sessions, troubles};
use crate::measure::figures;
use std::fmt::Write;

/// The report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    head(report, &mut text);
    verdicts(report, &mut text);
    marks(report, &mut text);
    probes::pools(report, &mut text);
    probes::markdown(report, &mut text);
    ledger(report, &mut text);
    places::section(report, &mut text);
    certificates::section(report, &mut text);
    returns::markdown(report, &mut text);
    troubles::section(report, &mut text);
    latency(report, &mut text);
    details(report, &mut text);
    generator(report, &mut text);
    text
}

/// A table with its heading.
pub(super) fn table(text: &mut String, heading: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| cell.replace('|', "\\|").replace('\n', " "))
            .collect();
        format!("| {} |", cells.join(" | "))
    };
    let heading: Vec<String> = heading.iter().map(|cell| (*cell).to_owned()).collect();
    let _ = writeln!(
        text,
        "{}\n|{}",
        line(&heading),
        "---|".repeat(heading.len())
    );
    for row in rows {
        let _ = writeln!(text, "{}", line(&row));
    }
    text.push('\n');
}

fn head(report: &Report, text: &mut String) {
    let run = &report.run;
    let verdict = &report.verdict;
    let _ = writeln!(
        text,
        "# {} {}: {}\n",
        sign(&verdict.verdict),
        verdict.verdict.to_uppercase(),
        run.profile
    );
    if !run.about.is_empty() {
        let _ = writeln!(text, "{}\n", run.about);
    }
    let _ = writeln!(
        text,
        "Run `{}` of {}, seed {}, against {} ({}), load {}, {} hubs, {} arrivals. Exit code {}: {}.\n",
        run.id,
        run.started,
        run.seed,
        run.target,
        run.environment,
        figures::clock(i64::try_from(run.duration_s).unwrap_or(i64::MAX)),
        figures::count(run.hubs),
        figures::count(run.arrivals),
        verdict.exit_code,
        verdict.exit_text,
    );
    if let Some(stopped) = &run.stopped {
        let _ = writeln!(text, "Stopped: {stopped}\n");
    }
}

fn verdicts(report: &Report, text: &mut String) {
    let rows = report.judgements.iter().map(|row| {
        vec![
            format!("{} {}", sign(&row.verdict), row.verdict),
            format!("`{}`", row.text),
            row.limit.clone(),
            row.measured.clone(),
            text::at(row),
        ]
    });
    let _ = writeln!(text, "## Verdict\n");
    table(text, &["", "expectation", "limit", "measured", "at"], rows);
    for reason in &report.verdict.reasons {
        let _ = writeln!(text, "- {reason}");
    }
    if !report.verdict.reasons.is_empty() {
        text.push('\n');
    }
}

fn marks(report: &Report, text: &mut String) {
    if report.marks.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Triggers and faults\n");
    let at = |us: Option<i64>| {
        us.map_or_else(
            || "-".to_owned(),
            |us| figures::clock(us.div_euclid(1_000_000)),
        )
    };
    let rows = report.marks.iter().map(|row| {
        let recovery = report
            .recoveries
            .iter()
            .find(|recovery| recovery.mark == row.name);
        vec![
            row.kind.clone(),
            row.name.clone(),
            row.what.clone(),
            at(row.begin_us),
            at(row.end_us),
            row.problem
                .clone()
                .or(row.observed.clone())
                .unwrap_or_default(),
            recovery.map_or_else(|| "-".to_owned(), |recovery| recovery.text.clone()),
        ]
    });
    table(
        text,
        &["", "name", "what", "from", "to", "seen", "recovery"],
        rows,
    );
    for row in &report.marks {
        for line in row.readmission.iter().flat_map(text::readmission) {
            let _ = writeln!(text, "- {}, let back: {line}", row.name);
        }
    }
    recoveries::section(report, text);
    text.push('\n');
}

fn ledger(report: &Report, text: &mut String) {
    if report.ledger.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Ledger\n");
    for row in &report.ledger {
        let adds_up = if row.adds_up {
            "adds up"
        } else {
            "**does not add up**"
        };
        let _ = writeln!(
            text,
            "- {}: {} ({adds_up}); {}",
            row.group,
            text::account(row),
            text::apart(row)
        );
        if let Some(shards) = text::shards(row) {
            let _ = writeln!(text, "  - {shards}");
        }
    }
    text.push('\n');
}

fn latency(report: &Report, text: &mut String) {
    let rows: Vec<&OperationRow> = report
        .operations
        .iter()
        .filter(|row| row.latency.is_some())
        .collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Latency from the due time\n");
    let whole = |times: &Option<Times>| {
        times.as_ref().map_or_else(
            || vec!["-".to_owned(); 6],
            |times| {
                let mut cells: Vec<String> = [
                    times.p50_us,
                    times.p95_us,
                    times.p99_us,
                    times.p999_us,
                    times.max_us,
                ]
                .iter()
                .map(|us| figures::time(*us as f64))
                .collect();
                cells.push(figures::count(times.count));
                cells
            },
        )
    };
    let cells = rows.iter().map(|row| {
        let mut cells = vec![row.group.clone(), row.name.clone(), row.kind.clone()];
        cells.extend(whole(&row.latency));
        cells
    });
    table(
        text,
        &[
            "group",
            "operation",
            "kind",
            "p50",
            "p95",
            "p99",
            "p99.9",
            "max",
            "samples",
        ],
        cells,
    );
    if !report.marks.is_empty() {
        by_phase(&rows, text);
    }
}

fn by_phase(rows: &[&OperationRow], text: &mut String) {
    let cells = rows.iter().map(|row| {
        let mut cells = vec![row.group.clone(), row.name.clone()];
        for span in &row.spans {
            let (p50, p99) = text::p50_p99(span.latency.as_ref());
            cells.extend([
                p50,
                p99,
                span.success.map_or_else(|| "-".to_owned(), figures::share),
            ]);
        }
        cells
    });
    let heading = [
        "group",
        "operation",
        "before p50",
        "p99",
        "success",
        "during p50",
        "p99",
        "success",
        "after p50",
        "p99",
        "success",
    ];
    table(text, &heading, cells);
}

fn details(report: &Report, text: &mut String) {
    let _ = writeln!(
        text,
        "<details><summary>Actions, attempts, hubs</summary>\n"
    );
    let rows = report.operations.iter().map(|row| {
        let outcomes = row.outcomes.iter().map(|outcome| {
            format!(
                "{} {}",
                outcome.outcome,
                figures::count(outcome.attempts.max(outcome.actions))
            )
        });
        let held_back = text::held_back(&row.retries)
            .map(|(what, count)| format!("{what} {}", figures::count(count)));
        vec![
            row.group.clone(),
            row.name.clone(),
            figures::count(row.started),
            figures::count(row.ok),
            figures::count(row.declined),
            figures::count(row.failed),
            figures::count(row.timed_out),
            figures::count(row.unfinished),
            row.success.map_or_else(|| "-".to_owned(), figures::share),
            row.amplification
                .map_or_else(|| "-".to_owned(), figures::number),
            row.amplification_worst.map_or_else(
                || "-".to_owned(),
                |worst| figures::number(worst.attempts_per_action),
            ),
            outcomes.chain(held_back).collect::<Vec<_>>().join(", "),
        ]
    });
    let heading = [
        "group",
        "operation",
        "started",
        "ok",
        "declined",
        "failed",
        "timed out",
        "unfinished",
        "success",
        "attempts per action",
        "worst 10 s",
        "besides",
        "outcomes",
    ];
    table(text, &heading, rows);
    if !report.hubs.is_empty() {
        hubs(report, text);
    }
    let _ = writeln!(text, "</details>\n");
}

fn hubs(report: &Report, text: &mut String) {
    let rows = report.hubs.iter().map(|row| {
        let numbers = [
            row.count,
            row.standing,
            row.standing_least.unwrap_or(row.standing),
            row.opened,
            row.accepted,
            row.lost,
            row.left,
            row.refused,
            row.throttled,
            row.reconnects,
            row.foreign,
        ];
        std::iter::once(row.group.clone())
            .chain(numbers.iter().map(|number| figures::count(*number)))
            .collect()
    });
    let heading = [
        "hubs",
        "count",
        "connected",
        "least",
        "TCP opened",
        "accepted",
        "lost",
        "left",
        "refused",
        "throttled",
        "reconnects",
        "foreign messages",
    ];
    table(text, &heading, rows);
    for row in &report.hubs {
        if let Some(sessions) = text::sessions(row) {
            let _ = writeln!(text, "{}: {sessions}\n", row.group);
        }
    }
    sessions::section(report, text);
}

fn generator(report: &Report, text: &mut String) {
    let generator = &report.generator;
    let lag = generator.lag.as_ref();
    let _ = writeln!(text, "## Generator\n");
    let _ = writeln!(
        text,
        "- start − due: p50 {}, p99 {}, max {}; worst p99 of ten seconds {}, allowed {}",
        text::time(lag.map(|lag| lag.p50_us)),
        text::time(lag.map(|lag| lag.p99_us)),
        text::time(lag.map(|lag| lag.max_us)),
        text::time(generator.lag_worst_us),
        text::time(generator.lag_allowed_us),
    );
    let _ = writeln!(
        text,
        "- not sent {}, measurements lost {}, {} workers, CPU {}, memory {}",
        figures::count(generator.not_sent),
        figures::count(generator.lost_steps),
        generator.workers,
        generator.cpu_share.map_or_else(
            || "-".to_owned(),
            |share| format!("{} of a core", figures::share(share))
        ),
        generator
            .resident_bytes
            .map_or_else(|| "-".to_owned(), text::bytes),
    );
    for note in &report.notes {
        let _ = writeln!(text, "- {note}");
    }
    let _ = writeln!(text, "\nRun it again: `{}`", report.run.replay);
}

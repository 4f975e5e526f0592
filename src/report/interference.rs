//! What happened to commands that were not hit, as rows and as sentences.

use super::Report;
use super::data::{CommandsRow, InterferenceRow, SlopeRow};
use crate::measure::interference::{CommandsSeen, Interference};
use crate::measure::recovery::Recovery;
use crate::measure::{Collector, figures};

pub(super) fn rows(collector: &Collector, recoveries: &[Recovery]) -> Vec<InterferenceRow> {
    let found = collector.interference(recoveries);
    found.iter().map(|found| row(collector, found)).collect()
}

fn row(collector: &Collector, found: &Interference) -> InterferenceRow {
    let seen = |seen: CommandsSeen| CommandsRow {
        settled: seen.settled,
        in_time: seen.in_time,
        latency_mean_us: seen.latency_mean_us,
    };
    InterferenceRow {
        mark: collector.plan().mark_name(found.mark).to_owned(),
        hit: found.hit,
        others: found.others,
        before: found.before.map(seen),
        during: found.during.map(seen),
    }
}

pub(super) fn slope(collector: &Collector) -> Option<SlopeRow> {
    collector.latency_over_connects().map(|slope| SlopeRow {
        us_per_connect: slope.us_per_connect,
        low: slope.low,
        high: slope.high,
        blocks: slope.blocks,
    })
}

/// One sentence for each mark, and one for the slope.
pub(super) fn sentences(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = report.interference.iter().map(mark_text).collect();
    if let Some(slope) = &report.latency_over_connects {
        let time = |us: f64| {
            let sign = if us < 0.0 { "−" } else { "" };
            format!("{sign}{}", figures::time(us.abs()))
        };
        let zero = if slope.low <= 0.0 && slope.high >= 0.0 {
            "which may be none"
        } else {
            "which is not chance"
        };
        lines.push(format!(
            "command latency changes by {} for each connect/s ({} to {}), {zero}",
            time(slope.us_per_connect),
            time(slope.low),
            time(slope.high)
        ));
    }
    lines
}

fn mark_text(row: &InterferenceRow) -> String {
    if row.others == 0 {
        return format!(
            "{}: every shard with commands was hit, there are no others",
            row.mark
        );
    }
    let seen = |seen: &Option<CommandsRow>| {
        seen.as_ref().map_or_else(
            || "none".to_owned(),
            |seen| {
                format!(
                    "{} in time, {} on average ({})",
                    figures::share(seen.in_time),
                    figures::time(seen.latency_mean_us),
                    figures::count(seen.settled)
                )
            },
        )
    };
    format!(
        "{}: commands on other shards: before {}; after its begin {}",
        row.mark,
        seen(&row.before),
        seen(&row.during)
    )
}

//! The account of the returns as rows, and as Markdown.

use super::build::from_zero_s;
use super::data::{Report, ReturnRow, StateCount};
use super::operations::times;
use super::text;
use super::timeline::load_seconds;
use crate::event::ReturnState;
use crate::measure::Collector;
use crate::plan::OperationKind;
use std::fmt::Write;

pub(super) fn rows(collector: &Collector) -> Vec<ReturnRow> {
    let docks = 0..collector.plan().docks.len();
    docks.map(|docks| row(collector, docks)).collect()
}

fn row(collector: &Collector, docks: usize) -> ReturnRow {
    let plan = collector.plan();
    let group = &plan.docks[docks];
    let account = collector.returns().total(docks);
    let sent = plan
        .operation(OperationKind::Return { docks })
        .and_then(|id| collector.totals().operations.get(usize::from(id.0)));
    let peak = peak(collector, docks);
    let (left_out_offline, left_out_shed) = collector.returns().left_out(docks);
    let states = ReturnState::ALL.map(|state| StateCount {
        state: state.name().to_owned(),
        count: account.of(state),
    });
    ReturnRow {
        group: group.name.clone(),
        docks: u64::from(group.count),
        created: account.created,
        states: states.to_vec(),
        adds_up: account.adds_up(),
        retries: sent.map_or(0, |total| total.attempted.saturating_sub(total.started)),
        asked: account.asked,
        unanswered: account.unanswered,
        active_first: account.active_first,
        active: account.active,
        stored_peak: peak.map(|peak| u64::from(peak.stored)),
        stored_peak_at_s: peak.map(|peak| from_zero_s(collector, peak.second)),
        drained_at_s: peak.and_then(|peak| Some(from_zero_s(collector, peak.drained?))),
        left_out_offline,
        left_out_shed,
        delay: sent.and_then(|total| times(&total.latency)),
    }
}

/// The most that docks held at the end of a second.
#[derive(Clone, Copy)]
struct Peak {
    second: u64,
    stored: u32,
    /// The second at whose end no more was held than usual: the middle of the load's seconds, at most half the peak.
    drained: Option<u64>,
}

fn peak(collector: &Collector, docks: usize) -> Option<Peak> {
    let stored = |second| Some(collector.series().get(second)?.docks.get(docks)?.stored);
    let load = load_seconds(collector);
    let mut all: Vec<u32> = load.clone().filter_map(stored).collect();
    let (second, highest) = load
        .filter_map(|second| Some((second, stored(second)?)))
        .fold(None, |best: Option<(u64, u32)>, now| match best {
            Some(best) if best.1 >= now.1 => Some(best),
            _ => Some(now),
        })
        .filter(|(_, stored)| *stored > 0)?;
    all.sort_unstable();
    let usual = all
        .get(all.len() / 2)
        .copied()
        .unwrap_or(0)
        .min(highest / 2);
    let after = second..collector.series().end();
    Some(Peak {
        second,
        stored: highest,
        drained: after
            .into_iter()
            .find(|second| stored(*second).is_some_and(|stored| stored <= usual)),
    })
}

/// A list of the accounts.
pub(super) fn markdown(report: &Report, text: &mut String) {
    if report.returns.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Returns\n");
    for row in &report.returns {
        let adds_up = if row.adds_up {
            "adds up"
        } else {
            "**does not add up**"
        };
        let _ = writeln!(text, "- {}: {} ({adds_up})", row.group, text::returns(row));
        for line in text::returns_apart(row) {
            let _ = writeln!(text, "  - {line}");
        }
    }
    text.push('\n');
}

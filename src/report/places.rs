//! Where hubs were, as report rows: shards, moves, what moving did to commands.

use super::Report;
use super::data::{PlaceRow, ReferenceRow, ShardHubs, StateCount};
use super::timeline::load_seconds;
use crate::event::{Offset, ReferenceVerdict};
use crate::measure::Collector;
use crate::measure::figures;
use crate::measure::ledger::State;
use crate::measure::places::GroupPlaces;
use std::fmt::Write;

/// One row for each group of hubs that has several shards, or to which other servers were named.
pub(super) fn rows(collector: &Collector) -> Vec<PlaceRow> {
    let plan = collector.plan();
    let groups = plan.hubs.iter().zip(&collector.places().groups);
    let told = groups.filter(|(_, row)| !row.standing.is_empty() || !row.references.is_empty());
    told.map(|(group, row)| {
        let watched = collector
            .places()
            .watched(group.device, load_end(collector))
            .unwrap_or_default();
        let names = &plan.target.devices[group.device].shards;
        PlaceRow {
            group: group.name.clone(),
            shards: shards(collector, row, names.iter().map(|(name, _)| name.as_str())),
            moves: row.moves,
            moved_hubs: row.moved_hubs,
            commands_to_moved: State::ALL
                .iter()
                .zip(row.commands)
                .map(|(state, count)| StateCount {
                    state: state.name().to_owned(),
                    count,
                })
                .collect(),
            stale_seen: plan.target.devices[group.device]
                .ghost
                .then_some(row.stale.seen),
            stale_longest_us: row.stale.longest_after_us,
            ghost_gaps: watched.gaps,
            ghost_blind_us: watched.blind_us,
            references: row
                .references
                .iter()
                .map(|((verdict, text), count)| ReferenceRow {
                    text: text.clone(),
                    verdict: verdict_name(*verdict).to_owned(),
                    count: *count,
                })
                .collect(),
        }
    })
    .collect()
}

fn load_end(collector: &Collector) -> Offset {
    let end = collector.marks().load_end;
    end.unwrap_or(Offset(collector.series().end() * 1_000_000))
}

fn shards<'a>(
    collector: &Collector,
    row: &GroupPlaces,
    names: impl Iterator<Item = &'a str>,
) -> Vec<ShardHubs> {
    let seconds = load_seconds(collector);
    let of = |shard: usize| {
        let seconds = seconds.clone();
        seconds.filter_map(move |second| {
            let counts = row.by_second.get(usize::try_from(second).ok()?)?;
            counts.get(shard).copied()
        })
    };
    names
        .take(row.standing.len())
        .enumerate()
        .map(|(shard, name)| ShardHubs {
            shard: name.to_owned(),
            first: of(shard).next().map(u64::from),
            least: of(shard).min().map(u64::from),
            most: of(shard).max().map(u64::from),
            last: of(shard).next_back().map(u64::from),
        })
        .collect()
}

fn verdict_name(verdict: ReferenceVerdict) -> &'static str {
    match verdict {
        ReferenceVerdict::Followed => "followed",
        ReferenceVerdict::Ignored => "not followed: hubs of this device follow none",
        ReferenceVerdict::Refused => "refused: the target file names no such shard",
    }
}

/// The row in sentences, for the forms that people read.
pub(super) fn sentences(row: &PlaceRow) -> Vec<String> {
    let mut lines = Vec::new();
    let known = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), figures::count);
    let shards = row.shards.iter().map(|shard| {
        format!(
            "{} {} → {} (least {}, most {})",
            shard.shard,
            known(shard.first),
            known(shard.last),
            known(shard.least),
            known(shard.most)
        )
    });
    if !row.shards.is_empty() {
        lines.push(format!(
            "hubs by shard: {}",
            shards.collect::<Vec<_>>().join("; ")
        ));
        lines.push(format!(
            "moved: {} hubs in {} moves; {}",
            figures::count(row.moved_hubs),
            figures::count(row.moves),
            moved_commands(row)
        ));
    }
    if let Some(seen) = row.stale_seen {
        lines.push(if seen == 0 {
            "ghosts saw no command on a shard that its hub had left".to_owned()
        } else {
            format!(
                "ghosts saw {} commands on a shard that their hubs had left, up to {} after the move",
                figures::count(seen),
                figures::time(row.stale_longest_us as f64)
            )
        });
    }
    if row.ghost_gaps > 0 {
        lines.push(format!(
            "ghosts lost their connection {} times and did not watch for {}: what arrived meanwhile nobody knows",
            figures::count(row.ghost_gaps),
            figures::short_time(row.ghost_blind_us as f64)
        ));
    }
    for reference in &row.references {
        lines.push(format!(
            "told to go to {}: {} ({} times)",
            reference.text,
            reference.verdict,
            figures::count(reference.count)
        ));
    }
    lines
}

fn moved_commands(row: &PlaceRow) -> String {
    let states: Vec<String> = row
        .commands_to_moved
        .iter()
        .filter(|state| state.count > 0)
        .map(|state| format!("{} {}", state.state, figures::count(state.count)))
        .collect();
    match states.is_empty() {
        true => "no commands to them since".to_owned(),
        false => format!("commands to them since: {}", states.join(", ")),
    }
}

/// The part of `report.md`.
pub(super) fn section(report: &Report, text: &mut String) {
    if report.places.is_empty() {
        return;
    }
    let _ = writeln!(text, "## Where hubs were\n");
    for row in &report.places {
        for sentence in sentences(row) {
            let _ = writeln!(text, "- {}: {sentence}", row.group);
        }
    }
    text.push('\n');
}

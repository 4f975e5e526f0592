//! Small pieces of text that several forms share.

use super::data::{
    CauseRow, HubRow, JudgementRow, LedgerRow, OperationRow, ReadmissionRow, ReconnectRow,
    RetryRow, ReturnRow, Times, ValueRow,
};
use crate::measure::figures;

/// The sign of a verdict.
pub(super) fn sign(verdict: &str) -> &'static str {
    match verdict {
        "pass" => "✓",
        "fail" => "✗",
        "not judged" => "-",
        _ => "?",
    }
}

/// `5:58`, or nothing for what holds for the whole.
pub(super) fn at(row: &JudgementRow) -> String {
    row.at_s.map(figures::clock).unwrap_or_default()
}

/// `12.3 ms`, or `-`.
pub(super) fn time(us: Option<u64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| figures::time(us as f64))
}

/// Attempts to connect that were refused, and how many of them because there were too many at once.
pub(super) fn refused(row: &HubRow) -> String {
    let refused = figures::count(row.refused);
    match row.throttled {
        0 => refused,
        throttled => format!("{refused} (throttled {})", figures::count(throttled)),
    }
}

/// How hubs were let back: a line for the whole, and one for each pause.
pub(super) fn readmission(row: &ReadmissionRow) -> Vec<String> {
    let at = |us: Option<i64>| {
        us.map_or_else(
            || "the end".to_owned(),
            |us| figures::clock(us.div_euclid(1_000_000)),
        )
    };
    let mut lines = vec![format!(
        "{} in {}, from {} to {}, {}",
        counted(row.hubs, "hub", "hubs"),
        counted(row.batches, "batch", "batches"),
        at(row.first_us),
        at(row.last_us),
        counted(row.paused, "pause", "pauses")
    )];
    lines.extend(row.pauses.iter().map(|pause| {
        format!(
            "paused from {} to {}: {}",
            at(Some(pause.from_us)),
            at(pause.to_us),
            pause.why
        )
    }));
    lines
}

/// `1 batch`, `12 batches`
fn counted(count: u64, one: &str, many: &str) -> String {
    let unit = if count == 1 { one } else { many };
    format!("{} {unit}", figures::count(count))
}

/// What held retries back, and how often; only what did.
pub(super) fn held_back(row: &RetryRow) -> impl Iterator<Item = (&'static str, u64)> {
    [
        ("retries denied", row.denied),
        ("asked to wait", row.asked_to_wait),
        ("retries postponed", row.postponed),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
}

/// The p50 and p99 of what may be nothing.
pub(super) fn p50_p99(times: Option<&Times>) -> (String, String) {
    (
        time(times.map(|times| times.p50_us)),
        time(times.map(|times| times.p99_us)),
    )
}

/// Attempts that were meant and no retries, and what retries may have done: ` polls 5,812 `.
pub(super) fn beside_retries(row: &OperationRow) -> String {
    let counts = [
        (row.continued_as.as_str(), row.continued),
        ("duplicated", row.duplicated),
        ("perhaps duplicated", row.doubtful),
        ("on an account in use", row.shared_accounts),
    ];
    let shown = counts.iter().filter(|(_, count)| *count > 0);
    shown
        .map(|(what, count)| format!(" {what} {} ", figures::count(*count)))
        .collect()
}

/// `due 1,080 = in time 1,000 + late 80`: every state that has a command, and always those that matter.
pub(super) fn account(row: &LedgerRow) -> String {
    let shown = row.states.iter().filter(|state| {
        state.count > 0 || ["in time", "late", "lost"].contains(&state.state.as_str())
    });
    let states: Vec<String> = shown
        .map(|state| format!("{} {}", state.state, figures::count(state.count)))
        .collect();
    format!("due {} = {}", figures::count(row.due), states.join(" + "))
}

/// What became of the commands for the hubs of each shard.
pub(super) fn shards(row: &LedgerRow) -> Option<String> {
    let shards = row.shards.iter().map(|shard| {
        let states = shard.states.iter().filter(|state| state.count > 0);
        let states: Vec<String> = states
            .map(|state| format!("{} {}", state.state, figures::count(state.count)))
            .collect();
        format!("{}: {}", shard.shard, states.join(", "))
    });
    let shards: Vec<String> = shards.collect();
    (!shards.is_empty()).then(|| format!("by shard: {}", shards.join("; ")))
}

/// What is counted apart.
pub(super) fn apart(row: &LedgerRow) -> String {
    let per_command = if row.due > 0 {
        row.retries as f64 / row.due as f64
    } else {
        0.0
    };
    format!(
        "duplicated {}  unexpected {}  delivered after giving up {}, after closing {}  retries {} ({} per command)",
        figures::count(row.duplicated),
        figures::count(row.unexpected),
        figures::count(row.after_give_up),
        figures::count(row.after_closing),
        figures::count(row.retries),
        figures::number(per_command),
    )
}

/// `created 1,080 = delivered once 1,078 + lost 2`: every state that has a return, and always those that matter.
pub(super) fn returns(row: &ReturnRow) -> String {
    let shown = row
        .states
        .iter()
        .filter(|state| state.count > 0 || !matches!(state.state.as_str(), "in doubt" | "stored"));
    let states: Vec<String> = shown
        .map(|state| format!("{} {}", state.state, figures::count(state.count)))
        .collect();
    let created = figures::count(row.created);
    format!("created {created} = {}", states.join(" + "))
}

/// What docks held, how long returns took, and what the target said of them.
pub(super) fn returns_apart(row: &ReturnRow) -> Vec<String> {
    let mut lines = Vec::new();
    let clock = |at: Option<i64>| at.map_or_else(|| "never".to_owned(), figures::clock);
    if let Some(peak) = row.stored_peak {
        lines.push(format!(
            "stored at most {} at {}, drained at {}  delay p50 {} p95 {} max {}  retries {}",
            figures::count(peak),
            clock(row.stored_peak_at_s),
            clock(row.drained_at_s),
            time(row.delay.map(|delay| delay.p50_us)),
            time(row.delay.map(|delay| delay.p95_us)),
            time(row.delay.map(|delay| delay.max_us)),
            figures::count(row.retries),
        ));
    }
    if row.asked + row.unanswered > 0 {
        lines.push(format!(
            "the target was asked for {}: trips still active {} at first, {} at last; no answer for {}",
            figures::count(row.asked + row.unanswered),
            figures::count(row.active_first),
            figures::count(row.active),
            figures::count(row.unanswered),
        ));
    }
    if row.left_out_offline + row.left_out_shed > 0 {
        lines.push(format!(
            "refreshes of the status left out: {} without a network, {} shed",
            figures::count(row.left_out_offline),
            figures::count(row.left_out_shed),
        ));
    }
    lines
}

/// A number that was read from the target.
pub(super) fn value(source: &str, value: &ValueRow) -> String {
    format!(
        "{source}: {} to {}, mean {}, {} at the end",
        figures::number(value.least),
        figures::number(value.most),
        figures::number(value.mean),
        figures::number(value.last),
    )
}

/// An amount of memory.
pub(super) fn bytes(bytes: u64) -> String {
    let mebibytes = bytes as f64 / 1_048_576.0;
    if mebibytes < 1024.0 {
        format!("{mebibytes:.0} MiB")
    } else {
        format!("{:.1} GiB", mebibytes / 1024.0)
    }
}

/// By how much reconnects multiplied. Over a quiet time without any, a multiple would say nothing.
pub(super) fn reconnects(row: &ReconnectRow) -> String {
    let peak = figures::number(row.peak_per_second);
    let more = figures::number(row.extra_per_hub);
    if row.baseline_per_second > 0.0 {
        let times = figures::number(row.times);
        let quiet = figures::number(row.baseline_per_second);
        format!(
            "{times}x the quiet time's rate at their peak ({peak}/s over {quiet}/s), {more} more for each hub"
        )
    } else {
        format!("up to {peak}/s over a minute, none in the quiet time; {more} for each hub")
    }
}

/// `losses by cause: FIN 3`; `None` if there is no row.
pub(super) fn causes(what: &str, rows: &[CauseRow]) -> Option<String> {
    let named = rows
        .iter()
        .map(|row| format!("{} {}", row.cause, figures::count(row.count)));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("{what}: {}", named.join(", ")))
}

/// What became of sessions and publishes besides: losses by cause, handshakes, stuck hubs, retained messages; `None` if there were none.
#[must_use]
pub fn sessions(row: &HubRow) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(causes("losses by cause", &row.losses));
    if row.handshakes_full + row.handshakes_resumed > 0 {
        parts.push(format!(
            "TLS handshakes: full {}, resumed {}",
            figures::count(row.handshakes_full),
            figures::count(row.handshakes_resumed)
        ));
    }
    if row.stuck > 0 {
        parts.push(format!(
            "stuck {} times, {} at the same time at most",
            figures::count(row.stuck),
            figures::count(row.stuck_most)
        ));
    }
    if row.retained > 0 {
        parts.push(format!(
            "retained messages {}",
            figures::count(row.retained)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

//! What piled up: how high, when it turned, when it was gone.

use super::analysis::{Look, Watched};
use super::{SignalKind, micros};
use crate::event::Offset;
use serde::Serialize;

/// The longest window in which drain is compared with what comes in, in seconds (field notes on recovery, §2.2).
const LONGEST_TURN_WINDOW: usize = 30;
const SHORTEST_TURN_WINDOW: usize = 3;

/// One stock over the effect of a mark. Hubs that are away are a stock as well.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Backlog {
    /// `commands open`, `homes away`, `returns-queue depth`.
    pub name: String,
    /// In the quiet time.
    pub baseline: f64,
    pub peak: f64,
    pub peak_at: Offset,
    /// From when on more left than came, and kept leaving.
    pub turned: Option<Offset>,
    /// Back at the quiet time's level, for the sustain time.
    pub drained: Option<Offset>,
    /// From the mark's end to then; `None` while it is not drained.
    pub drain_us: Option<u64>,
    /// At the last second looked at.
    pub at_end: f64,
}

/// The stocks that left their bands.
pub(super) fn backlogs(look: &Look<'_>, watched: &[Watched<'_>]) -> Vec<Backlog> {
    let stocks = watched.iter().filter(|signal| {
        signal.onset.is_some()
            && matches!(
                signal.rows.kind,
                SignalKind::Backlog { .. } | SignalKind::Connected
            )
    });
    stocks.filter_map(|signal| backlog(look, signal)).collect()
}

fn backlog(look: &Look<'_>, signal: &Watched<'_>) -> Option<Backlog> {
    let level = |row: usize| signal.stock(row);
    let seen = look.begin..look.horizon;
    let (peak_row, peak) = seen
        .clone()
        .filter_map(|row| Some((row, level(row)?)))
        .fold(
            None,
            |best: Option<(usize, f64)>, (row, value)| match best {
                Some((_, highest)) if highest >= value => best,
                _ => Some((row, value)),
            },
        )?;
    let recovered = look.recovered_alone(signal);
    let at_end = seen.rev().find_map(level)?;
    let drained = recovered.map(|row| look.offset_of(row));
    Some(Backlog {
        name: stock_name(&signal.rows.name, signal.rows.kind),
        baseline: signal.stock_baseline(),
        peak,
        peak_at: look.offset_of(peak_row),
        turned: turned(look, signal, peak_row)
            .filter(|turned| recovered.is_none_or(|gone| *turned <= gone))
            // What is gone has turned, at its peak at the earliest.
            .or(recovered.map(|_| peak_row))
            .map(|row| look.offset_of(row)),
        drained,
        drain_us: drained
            .zip(look.removal)
            .map(|(at, removal)| micros(at.since(removal))),
        at_end,
    })
}

fn stock_name(signal: &str, kind: SignalKind) -> String {
    match kind {
        SignalKind::Connected => signal.replace(" connected", " away"),
        _ => signal.to_owned(),
    }
}

/// The first row, from that of the peak on, from which the stock is lower a window later, and so from every row of two windows: for
/// the notes' 30 and 60 s where the sustain time is long enough, and shorter in shorter runs.
fn turned(look: &Look<'_>, signal: &Watched<'_>, peak_row: usize) -> Option<usize> {
    let window = (look.sustain / 2).clamp(SHORTEST_TURN_WINDOW, LONGEST_TURN_WINDOW);
    let last = look.horizon.checked_sub(window)?;
    let falls = |row: usize| {
        let now = signal.stock(row)?;
        let later = signal.stock(row + window)?;
        Some(later < now || signal.is_healthy(row))
    };
    (peak_row.max(signal.onset?)..last).find(|row| {
        let until = (row + 2 * window).min(last);
        !signal.is_healthy(*row)
            && (*row..until).all(|row| falls(row).unwrap_or(true))
            && falls(*row) == Some(true)
    })
}

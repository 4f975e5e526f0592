//! A target that was back and goes down again, with nothing that explains it: readmitted too early, a backlog that comes due.

use super::analysis::{Look, Watched, together};
use super::sustained::{COLLAPSE_SECONDS, Holds};
use crate::event::Offset;
use serde::Serialize;

/// One collapse after a recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collapse {
    pub at: Offset,
    /// The signal that showed it first.
    pub signal: String,
    /// When the target was back for the sustain time; `None` if it did not come back.
    pub back: Option<Offset>,
    /// How far it was watched.
    pub watched_to: Offset,
}

/// All collapses after the recovery at row `recovered`.
pub(super) fn collapses(
    look: &Look<'_>,
    watched: &[Watched<'_>],
    recovered: usize,
) -> Vec<Collapse> {
    let mut found = Vec::new();
    let mut from = recovered + look.sustain;
    while let Some((row, signal)) = first_collapse(look, watched, from) {
        let back = look
            .complete(row)
            .find(|row| together(watched, *row..*row + look.sustain).0 == Holds::Yes);
        found.push(Collapse {
            at: look.offset_of(row),
            signal: signal.to_owned(),
            back: back.map(|row| look.offset_of(row)),
            watched_to: look.offset_of(look.horizon),
        });
        match back {
            Some(back) => from = back + look.sustain,
            None => break,
        }
    }
    found
}

fn first_collapse<'w>(
    look: &Look<'_>,
    watched: &'w [Watched<'_>],
    from: usize,
) -> Option<(usize, &'w str)> {
    let last = look.horizon.checked_sub(COLLAPSE_SECONDS)?;
    (from..=last).find_map(|row| {
        let mut signals = watched.iter();
        let signal = signals.find(|signal| signal.judged.collapses_at(row))?;
        Some((row, signal.rows.name.as_str()))
    })
}

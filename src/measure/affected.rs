//! Which different hubs lost a session after each mark: a hub that loses three counts once.

use super::marks::Marks;
use crate::event::{MarkId, Offset};
use crate::plan::Plan;
use std::collections::BTreeMap;

/// The session of one hub ended, whoever ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostHub {
    pub group: u16,
    pub hub: u32,
    pub at: Offset,
}

/// A bit for each hub of each group, by mark.
#[derive(Debug, Clone)]
pub(super) struct Affected {
    /// Number of the first hub of each group, and at the end of them all.
    firsts: Vec<u64>,
    hubs: BTreeMap<MarkId, Vec<u64>>,
}

impl Affected {
    pub(super) fn new(plan: &Plan) -> Affected {
        let mut firsts = vec![0];
        for group in &plan.hubs {
            let before = firsts.last().copied().unwrap_or_default();
            firsts.push(before + u64::from(group.count));
        }
        Affected {
            firsts,
            hubs: BTreeMap::new(),
        }
    }

    /// A loss is of the mark that began last before it.
    pub(super) fn take(&mut self, marks: &Marks, lost: LostHub) {
        // Who leaves after the last arrival was told to.
        if marks.arrivals_end.is_some_and(|end| lost.at >= end) {
            return;
        }
        let begun = marks
            .rows
            .iter()
            .filter_map(|row| Some((row.begin?, row.id)));
        let Some((_, mark)) = begun.filter(|(begin, _)| *begin <= lost.at).max() else {
            return;
        };
        let group = usize::from(lost.group);
        let (Some(first), Some(all)) = (self.firsts.get(group), self.firsts.last()) else {
            return;
        };
        let number = first + u64::from(lost.hub);
        let words = usize::try_from(all.div_ceil(64)).unwrap_or(usize::MAX);
        let bits = self.hubs.entry(mark).or_insert_with(|| vec![0; words]);
        let word = usize::try_from(number / 64)
            .ok()
            .and_then(|row| bits.get_mut(row));
        if let Some(word) = word {
            *word |= 1 << (number % 64);
        }
    }

    /// How many hubs a mark has affected.
    pub(super) fn count(&self, mark: MarkId) -> u64 {
        let bits = self.hubs.get(&mark);
        bits.map_or(0, |bits| {
            bits.iter().map(|word| u64::from(word.count_ones())).sum()
        })
    }
}

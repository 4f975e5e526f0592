//! What exactly was wrong, where the class of an outcome does not say it all: how often, and the first time in words.
//!
//! Outcomes are a closed list and a text is cut, so this stays small however long the run is.

use super::totals::OperationTotal;
use crate::event::{Offset, OperationId, Outcome};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Characters of a text that are kept: a certificate may be for hundreds of names.
const LONGEST_TEXT: usize = 400;

/// How often one operation, or a session that it had opened, ended in one explained way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub count: u64,
    /// When it was first seen.
    pub at: Offset,
    /// What was wrong then.
    pub text: String,
}

/// By operation and outcome.
pub(super) type Explanations = BTreeMap<(OperationId, Outcome), Explained>;

/// Counts one explanation.
pub(super) fn tell(
    sums: &mut Explanations,
    (operation, outcome): (OperationId, Outcome),
    text: &str,
    at: Offset,
) {
    let explained = |text: &str| Explained {
        count: 1,
        at,
        text: text.chars().take(LONGEST_TEXT).collect(),
    };
    match sums.entry((operation, outcome)) {
        Entry::Occupied(mut known) if known.get().at <= at => known.get_mut().count += 1,
        Entry::Occupied(mut known) => known.get_mut().add(explained(text)),
        Entry::Vacant(free) => {
            free.insert(explained(text));
        }
    }
}

/// Adds what a shard was told to the sums of the run.
pub(super) fn add(operations: &mut [OperationTotal], told: Explanations) {
    for ((operation, outcome), explained) in told {
        let Some(total) = operations.get_mut(usize::from(operation.0)) else {
            continue;
        };
        match total.explained.entry(outcome) {
            Entry::Vacant(free) => {
                free.insert(explained);
            }
            Entry::Occupied(mut known) => known.get_mut().add(explained),
        }
    }
}

impl Explained {
    /// Adds others of the same kind; the text that was seen first stays.
    fn add(&mut self, other: Explained) {
        self.count += other.count;
        if other.at < self.at {
            self.at = other.at;
            self.text = other.text;
        }
    }
}

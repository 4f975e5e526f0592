//! What the reader expects where, noted while it reads: the schemas for editors are made from it and from nothing else.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What one reading of a value expects it to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    Text,
    Duration,
    Rate,
    Share,
    Size,
    ByteRate,
    Number,
    /// From, to.
    Count(u64, u64),
    Truth,
    Words(Vec<&'static str>),
    /// A text, a number or a truth.
    Scalar,
    /// Any JSON.
    Json,
    List,
    /// A map whose keys are names.
    Names,
    Keys(Keys),
}

/// A map with known keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Keys {
    pub known: BTreeSet<&'static str>,
    /// Of each of these one must be there.
    pub needed: BTreeSet<Vec<&'static str>>,
}

/// By file and path: keys joined by `/`, with `*` for a name and `[]` for an item of a list.
#[derive(Debug, Default)]
pub(super) struct Shapes(RefCell<BTreeMap<(usize, String), BTreeSet<Shape>>>);

impl Shapes {
    pub fn note(&self, file: usize, path: &str, shape: Shape) {
        let mut all = self.0.borrow_mut();
        all.entry((file, path.to_owned()))
            .or_default()
            .insert(shape);
    }

    /// Everything noted so far.
    #[cfg(test)]
    pub fn all(&self) -> BTreeMap<(usize, String), BTreeSet<Shape>> {
        self.0.borrow().clone()
    }
}

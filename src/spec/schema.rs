//! JSON Schemas of the files, for editors that complete and check while somebody writes.
//!
//! They hold what has a shape: keys, words, units, ranges, lists. Names, placeholders and what must fit together stay with
//! `rushhour check`. They are made from what the reader notes while it reads; a test refuses one that says anything else.

#[cfg(test)]
mod proof;

use clap::ValueEnum;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileKind {
    Profile,
    Target,
    Experiment,
}

/// The JSON Schema (2020-12) of a kind of file.
#[must_use]
pub fn schema(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Profile => include_str!("schema/profile.json"),
        FileKind::Target => include_str!("schema/target.json"),
        FileKind::Experiment => include_str!("schema/experiment.json"),
    }
}

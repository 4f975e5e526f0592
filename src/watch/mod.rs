//! A running test, seen live. What is shown comes from `measure::Live`; nothing here decides anything.

pub mod terminal;

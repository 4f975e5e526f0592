//! Measuring: the recorder's sums, the account of commands, judging.

mod doubts;
mod guards;
mod histograms;
mod inferred;
mod judging;
mod ledger;
mod recorder;
pub mod stage;
mod subjects;
mod whole;

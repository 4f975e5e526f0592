//! One run as plain data, and the forms in which people and programs read it.
//!
//! [`Report`] holds everything that any form shows, so that no form computes a number that another lacks. The forms are one function
//! each; none of them knows a plan, a recorder or a clock.

pub mod build;
mod certificates;
pub mod comparison;
mod critical;
pub mod data;
pub mod events;
pub mod hlog;
mod interference;
mod json;
mod junit;
mod markdown;
mod operations;
mod places;
mod pools;
mod probes;
mod recoveries;
pub mod repetition;
mod returns;
mod sessions;
pub mod terminal;
mod text;
mod timeline;
mod troubles;

pub use build::{Facts, build};
pub use comparison::{Change, comparison, comparison_text};
pub use data::Report;
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use repetition::{Repetition, repetition, repetition_text};
pub use terminal::summary;

//! One run as plain data, and the forms in which people and programs read it.
//!
//! [`Report`] holds everything that any form shows, so that no form computes a number that another lacks. The forms are one function
//! each; none of them knows a plan, a recorder or a clock.

pub mod build;
pub mod data;
mod operations;
mod pools;
mod timeline;

pub use build::{Facts, build};
pub use data::Report;

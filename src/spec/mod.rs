//! YAML in, plan out.
//!
//! [`read`] takes the files of one run and gives a checked [`Plan`], or every problem at once with its place. This module
//! knows how files are written; what the run does with them is none of its business.

mod problem;

pub use problem::{Problem, Problems};

use crate::plan::Plan;
use std::path::PathBuf;

/// The files and overrides that make up one run.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub profile: PathBuf,
    /// In place of the profile's own `target:`.
    pub target: Option<PathBuf>,
    /// Experiments, all of them part of the run.
    pub chaos: Vec<PathBuf>,
    /// In place of the profile's `seed:`.
    pub seed: Option<u64>,
    /// In place of the target's `lab: { database: … }`.
    pub database: Option<String>,
    /// Defects of the lab in addition to those of the target's `lab: { on: […] }`.
    pub on: Vec<String>,
}

/// Reads and checks everything.
///
/// # Errors
/// Every problem of every file, each with its place and a remedy.
pub fn read(sources: &Sources) -> Result<Plan, Problems> {
    let mut problems = Problems::default();
    problems.add(Problem::of_file(
        &sources.profile,
        "profiles can't be read yet",
        None,
    ));
    Err(problems)
}

/// Every file that [`read`] reads, as far as it can be known: profile, target, experiments.
#[must_use]
pub fn files(sources: &Sources) -> Vec<PathBuf> {
    let mut files = vec![sources.profile.clone()];
    files.extend(sources.target.clone());
    files.extend(sources.chaos.iter().cloned());
    files
}

//! What probes said beside a pool's own figures.

use serde::{Deserialize, Serialize};

/// One signal of a source over the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalFigures {
    /// Its name in target files.
    pub signal: String,
    /// Times are in microseconds.
    pub is_time: bool,
    /// Of what is at every moment something; absent for a counter.
    pub least: Option<f64>,
    pub mean: Option<f64>,
    pub most: Option<f64>,
    pub last: Option<f64>,
    /// Of what only grows: how much it grew, and by how much a second.
    pub grew: Option<f64>,
    pub per_second: Option<f64>,
}

/// Something that nobody measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InferredRow {
    /// Of which kind of request.
    pub of: String,
    /// In a sentence, with its numbers.
    pub text: String,
    /// What has to be true for it.
    pub assumption: String,
    pub effective_pool: Option<f64>,
    pub wait_us: Option<f64>,
    pub connections_per_request: Option<f64>,
}

/// What the readings of a source cost over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeCost {
    pub answers: u64,
    pub mean_us: f64,
    pub longest_us: u64,
    /// Of the largest answer.
    pub bytes: u64,
    /// Of the last round.
    pub bad_lines: u64,
    pub duplicate_lines: u64,
}

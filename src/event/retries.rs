//! What is told of retries beside the attempts themselves.

use serde::{Deserialize, Serialize};

/// What became of a retry that the policy alone would have made at its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryChange {
    /// The group's budget was spent: it does not leave.
    Denied,
    /// The target refused with 429 or 503 and said when to come again (`Retry-After`), whether or not that is respected.
    Asked,
    /// It was respected, and the wait became longer for it.
    Postponed,
}

//! How triggers and faults go on.

use super::{MarkId, Offset};
use serde::{Deserialize, Serialize};

/// Where a trigger or fault stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkPhase {
    /// It starts to act (for a fault: injected).
    Begin,
    /// Its effect was seen from outside; the text says how.
    Observed(String),
    /// Its effect could not be seen: the run cannot pass.
    NotObserved(String),
    /// So many of the hubs that it had disconnected were let back.
    Admitted(u32),
    /// Nobody is let back for now; the text says why.
    Paused(String),
    /// They are let back again.
    Resumed,
    /// It stopped acting (for a fault: undone and verified).
    End,
    /// It could not be done, or not be undone; the text says why.
    Failed(String),
}

/// A trigger or a fault changed its phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub id: MarkId,
    pub phase: MarkPhase,
    pub at: Offset,
}

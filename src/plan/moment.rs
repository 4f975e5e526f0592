//! When a fault begins that waits for something else in the run.

use super::quantity::duration;
use crate::event::MarkId;
use std::time::Duration;

/// What a fault waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct After {
    /// The trigger or other fault.
    pub mark: MarkId,
    pub edge: Edge,
    /// From there.
    pub wait: Duration,
}

/// A moment in the life of a trigger or fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It begins to act.
    Begin,
    /// It has stopped acting.
    End,
    /// The target has recovered from it.
    Recovery,
}

impl After {
    /// As an experiment says it; `name` is that of the mark.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        let wait = duration(self.wait);
        match self.edge {
            Edge::Begin => format!("{wait} into {name}"),
            Edge::End => format!("{wait} after {name}"),
            Edge::Recovery => format!("{wait} after {name} recovers"),
        }
    }
}

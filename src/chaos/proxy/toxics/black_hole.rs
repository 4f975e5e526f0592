//! Nothing comes through, not even the end of the stream: each side is left with a half-open connection, as behind a path that drops
//! packets. Going, it resets the connections: they have lost bytes.

use super::Step;
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};

/// Bytes and ends are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlackHole {}

impl BlackHole {
    pub(super) fn step(&self, queue: &mut Queue) -> Step {
        queue.discard();
        Step::Nothing
    }
}

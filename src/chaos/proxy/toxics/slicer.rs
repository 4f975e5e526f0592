//! Bytes arrive in small pieces, with a pause between them.

use super::{Draws, Progress, Step, pass_end};
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Pieces of `average_bytes` ± up to `variation_bytes`, uniformly; an average of zero cuts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slicer {
    pub average_bytes: u64,
    pub variation_bytes: u64,
    /// Between two pieces.
    pub delay_us: u64,
}

impl Slicer {
    pub(super) fn step(
        &self,
        progress: &mut Progress,
        queue: &mut Queue,
        now: Instant,
        draws: Draws,
    ) -> Step {
        let Some(front) = queue.front() else {
            return pass_end(queue);
        };
        let due = progress.free_at.max(front.arrived);
        if due > now {
            return Step::At(due);
        }
        let piece = queue.take(self.piece(draws, progress.pieces));
        progress.pieces += 1;
        progress.free_at = due + Duration::from_micros(self.delay_us);
        Step::Emit(piece, due)
    }

    /// Bytes of the n-th piece, at least one.
    fn piece(&self, draws: Draws, number: u64) -> usize {
        if self.average_bytes == 0 {
            return usize::MAX;
        }
        let variation = self.variation_bytes.min(self.average_bytes);
        let spread = draws.dice(number).below(2 * variation + 1);
        let bytes = (self.average_bytes - variation + spread).max(1);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

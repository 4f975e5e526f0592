//! A narrow path: so many bytes a second, at most a tenth of a second's worth at once.

use super::{Progress, Step, pass_end};
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Pieces a second.
const PIECES_PER_SECOND: u64 = 10;

/// A rate of zero holds everything until the toxic goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bandwidth {
    pub bytes_per_second: u64,
}

impl Bandwidth {
    pub(super) fn step(&self, progress: &mut Progress, queue: &mut Queue, now: Instant) -> Step {
        let Some(front) = queue.front() else {
            return pass_end(queue);
        };
        if self.bytes_per_second == 0 {
            return Step::Nothing;
        }
        let most = (self.bytes_per_second / PIECES_PER_SECOND).max(1);
        let piece = most.min(front.bytes.len() as u64);
        let lasts = Duration::from_secs_f64(piece as f64 / self.bytes_per_second as f64);
        let due = progress.free_at.max(front.arrived) + lasts;
        if due > now {
            return Step::At(due);
        }
        progress.free_at = due;
        Step::Emit(
            queue.take(usize::try_from(piece).unwrap_or(usize::MAX)),
            due,
        )
    }
}

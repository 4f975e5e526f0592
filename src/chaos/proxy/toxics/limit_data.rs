//! The connection is closed after so many bytes.

use super::{Progress, Step, pass_end};
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};

/// Bytes of one way of one connection, counted from when the toxic came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitData {
    pub bytes: u64,
}

impl LimitData {
    pub(super) fn step(&self, progress: &mut Progress, queue: &mut Queue) -> Step {
        if progress.over {
            return Step::Close;
        }
        let Some(front) = queue.front() else {
            return pass_end(queue);
        };
        let arrived = front.arrived;
        let left = self.bytes.saturating_sub(progress.passed_bytes);
        if left == 0 {
            return Step::Close;
        }
        let taken = queue.take(usize::try_from(left).unwrap_or(usize::MAX));
        progress.passed_bytes += taken.len() as u64;
        progress.over = progress.passed_bytes >= self.bytes;
        Step::Emit(taken, arrived)
    }
}

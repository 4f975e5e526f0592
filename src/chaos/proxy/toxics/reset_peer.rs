//! The connection is reset, idle or not: RST to both sides after a while in which bytes are lost.

use super::{Progress, Step, pass_end};
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Counted from when the toxic comes to the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetPeer {
    pub after_us: u64,
}

impl ResetPeer {
    pub(super) fn step(&self, progress: &Progress, queue: &mut Queue, now: Instant) -> Step {
        queue.discard();
        let due = progress.since + Duration::from_micros(self.after_us);
        if due <= now {
            Step::Reset
        } else if queue.ended().is_some() {
            pass_end(queue)
        } else {
            Step::At(due)
        }
    }
}

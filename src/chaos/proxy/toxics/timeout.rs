//! Bytes are lost, and after a while without any the connection is closed. Going, it closes the connections that lost bytes.

use super::{Progress, Step, pass_end};
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Zero never closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeout {
    pub timeout_us: u64,
}

impl Timeout {
    pub(super) fn step(&self, progress: &mut Progress, queue: &mut Queue, now: Instant) -> Step {
        if queue.front().is_some() {
            queue.discard();
            progress.since = now;
        }
        if queue.ended().is_some() {
            return pass_end(queue);
        }
        if self.timeout_us == 0 {
            return Step::Nothing;
        }
        let due = progress.since + Duration::from_micros(self.timeout_us);
        if due <= now {
            Step::Close
        } else {
            Step::At(due)
        }
    }
}

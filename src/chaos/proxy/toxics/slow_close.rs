//! The connection's end arrives late; bytes don't.

use super::{Step, pass};
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// The end is held for this long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowClose {
    pub delay_us: u64,
}

impl SlowClose {
    pub(super) fn step(&self, queue: &mut Queue, now: Instant) -> Step {
        match (queue.front(), queue.ended()) {
            (None, Some((at, end))) => {
                let due = at + Duration::from_micros(self.delay_us);
                if due <= now {
                    Step::End(end, due)
                } else {
                    Step::At(due)
                }
            }
            _ => pass(queue),
        }
    }
}

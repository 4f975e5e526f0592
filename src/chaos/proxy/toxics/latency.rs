//! Everything arrives later. Bytes, their order and the speed stay as they are; a FIN and an RST are late too.

use super::{Draws, Step};
use crate::chaos::proxy::queue::{End, Queue};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Each chunk is held for `latency_us` ± up to `jitter_us`, uniformly, from its arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    pub latency_us: u64,
    pub jitter_us: u64,
}

impl Latency {
    /// A pure function of the chunk, so that a change applies to what is held already: it leaves at its arrival plus the delay in
    /// force.
    #[must_use]
    pub fn delay(&self, draws: Draws, chunk: u64) -> Duration {
        let add = Duration::from_micros(self.latency_us);
        if self.jitter_us == 0 {
            return add;
        }
        let jitter = Duration::from_micros(self.jitter_us);
        draws
            .dice(chunk)
            .between(add.saturating_sub(jitter), add + jitter)
    }

    pub(super) fn step(&self, queue: &mut Queue, now: Instant, draws: Draws) -> Step {
        let end_due = |at: Instant| at + self.delay(draws, queue.next_number());
        let reset_due = match queue.ended() {
            Some((at, End::Reset)) => Some(end_due(at)),
            _ => None,
        };
        if let Some(due) = reset_due.filter(|due| *due <= now) {
            return Step::End(End::Reset, due);
        }
        let Some(front) = queue.front() else {
            return match queue.ended() {
                Some((at, end)) if end_due(at) <= now => Step::End(end, end_due(at)),
                Some((at, _)) => Step::At(end_due(at)),
                None => Step::Nothing,
            };
        };
        let due = front.arrived + self.delay(draws, front.number);
        if due <= now {
            Step::Emit(queue.take_front(), due)
        } else {
            // An RST does not wait for what is held.
            Step::At(reset_due.map_or(due, |reset| reset.min(due)))
        }
    }
}

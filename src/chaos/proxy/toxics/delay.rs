//! Requests reach the target later; answers are as quick as ever, and so are the requests that are not chosen.

use super::{Draws, Progress, Step, pass_end};
use crate::chaos::proxy::queue::Queue;
use crate::chaos::proxy::requests::{Seen, see};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Of the requests this share; which ones is drawn from the seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// From the arrival of the request's head.
    pub delay_us: u64,
    pub share: f64,
}

impl Delay {
    pub(super) fn step(
        &self,
        progress: &mut Progress,
        queue: &mut Queue,
        now: Instant,
        draws: Draws,
    ) -> Step {
        let Some(arrived) = queue.front().map(|front| front.arrived) else {
            return pass_end(queue);
        };
        match see(progress, queue) {
            Seen::Wait => Step::Nothing,
            Seen::Foreign => Step::Emit(queue.take_front(), arrived),
            Seen::Body(bytes) => Step::Emit(queue.take(bytes), arrived),
            Seen::Head(head, bytes) => {
                if !progress.over {
                    progress.over = true;
                    let chosen = draws.chooses(self.share, progress.pieces);
                    progress.pieces += 1;
                    progress.hits += u64::from(chosen);
                    let wait = Duration::from_micros(if chosen { self.delay_us } else { 0 });
                    progress.free_at = arrived + wait;
                }
                if progress.free_at > now {
                    return Step::At(progress.free_at);
                }
                progress.over = false;
                progress.requests.begin(&head);
                Step::Emit(queue.take(bytes), progress.free_at)
            }
        }
    }
}

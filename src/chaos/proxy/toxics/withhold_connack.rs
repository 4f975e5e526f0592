//! The broker's word that a client is connected is held back with all that follows it, and comes late when the toxic goes. Clients
//! that are connected already notice nothing.

use super::{Progress, Step, next_packet, pass_end};
use crate::chaos::proxy::mqtt;
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};

/// CONNACK does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithholdConnack {}

impl WithholdConnack {
    pub(super) fn step(&self, progress: &mut Progress, queue: &mut Queue) -> Step {
        let Some(front) = queue.front() else {
            return pass_end(queue);
        };
        let first = front.bytes.first().copied().unwrap_or_default();
        if progress.frames.at_start() && mqtt::kind(first) == mqtt::CONNACK {
            progress.hits += u64::from(!progress.over);
            progress.over = true;
            return Step::Nothing;
        }
        let (bytes, arrived, _) = next_packet(progress, queue);
        Step::Emit(bytes, arrived)
    }
}

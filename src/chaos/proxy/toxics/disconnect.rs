//! The client is told to go: DISCONNECT with a reason code between two packets, then FIN. MQTT 3.1.1 has no such word for a server
//! (§3.14 there): its connections are closed without.

use super::{Progress, Step, next_packet, pass_end};
use crate::chaos::proxy::mqtt;
use crate::chaos::proxy::queue::Queue;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::Instant;

/// Counted from when the toxic comes to the connection, and not before its CONNACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnect {
    pub reason: u8,
    pub after_us: u64,
}

impl Disconnect {
    pub(super) fn step(
        &self,
        progress: &mut Progress,
        queue: &mut Queue,
        now: Instant,
        level: u8,
    ) -> Step {
        if progress.over {
            return Step::Close;
        }
        let between = progress.frames.at_start() && progress.frames.greeted();
        let due = progress.since + Duration::from_micros(self.after_us);
        if between && due <= now {
            progress.over = true;
            progress.hits += 1;
            queue.discard();
            if level != mqtt::MQTT_5 {
                return Step::Close;
            }
            return Step::Emit(Bytes::copy_from_slice(&mqtt::disconnect(self.reason)), now);
        }
        if queue.front().is_some() {
            let (bytes, arrived, _) = next_packet(progress, queue);
            return Step::Emit(bytes, arrived);
        }
        match pass_end(queue) {
            Step::Nothing if between => Step::At(due),
            other => other,
        }
    }
}

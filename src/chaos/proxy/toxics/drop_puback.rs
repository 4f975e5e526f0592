//! Messages of QoS 1 arrive, and who sent them never hears so: it sends them again, in the end on another connection.

use super::{Progress, Step, without};
use crate::chaos::proxy::mqtt;
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};

/// Every PUBACK is lost: of the broker, of the client, or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropPuback {}

impl DropPuback {
    pub(super) fn step(&self, progress: &mut Progress, queue: &mut Queue) -> Step {
        without(mqtt::PUBACK, progress, queue)
    }
}

//! Nobody answers pings: whoever checks its keep-alive takes the connection for dead, while everything else still passes.

use super::{Progress, Step, without};
use crate::chaos::proxy::mqtt;
use crate::chaos::proxy::queue::Queue;
use serde::{Deserialize, Serialize};

/// Every PINGRESP is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithholdPingresp {}

impl WithholdPingresp {
    pub(super) fn step(&self, progress: &mut Progress, queue: &mut Queue) -> Step {
        without(mqtt::PINGRESP, progress, queue)
    }
}

//! The faults of a link, a file each. Each decides, without a clock or a socket, what leaves its step of a connection's way
//! next, and when.

pub mod bandwidth;
pub mod black_hole;
pub mod latency;
pub mod limit_data;
pub mod reset_peer;
pub mod slicer;
pub mod slow_close;
pub mod timeout;

pub use bandwidth::Bandwidth;
pub use black_hole::BlackHole;
pub use latency::Latency;
pub use limit_data::LimitData;
pub use reset_peer::ResetPeer;
pub use slicer::Slicer;
pub use slow_close::SlowClose;
pub use timeout::Timeout;

use super::queue::{End, Queue};
use crate::dice::Dice;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// What a toxic does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing.
    Noop,
    Latency(Latency),
    Bandwidth(Bandwidth),
    SlowClose(SlowClose),
    Timeout(Timeout),
    BlackHole(BlackHole),
    ResetPeer(ResetPeer),
    Slicer(Slicer),
    LimitData(LimitData),
    /// New connections are refused; those that stand go on.
    Refuse,
}

/// What leaves a step next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes, which were due at that moment.
    Emit(Bytes, Instant),
    /// The end of the stream, which was due at that moment.
    End(End, Instant),
    /// Something, but not before this moment.
    At(Instant),
    /// Nothing before more arrives.
    Nothing,
    /// The connection is closed once what has left is delivered: FIN to both sides.
    Close,
    /// The connection is reset now: RST to both sides.
    Reset,
}

/// How far a toxic has come on one way of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// When it began to act here; for a timeout, when the last bytes came.
    pub since: Instant,
    /// When the step is free for the next piece.
    pub free_at: Instant,
    pub passed_bytes: u64,
    /// Pieces cut so far; numbers the draws.
    pub pieces: u64,
    /// Everything that it lets pass has passed.
    pub over: bool,
}

impl Progress {
    /// Nothing done yet.
    #[must_use]
    pub fn begun(now: Instant) -> Progress {
        Progress {
            since: now,
            free_at: now,
            passed_bytes: 0,
            pieces: 0,
            over: false,
        }
    }
}

/// Where a toxic's draws come from: its seed and the connection's number in its link.
#[derive(Debug, Clone, Copy)]
pub struct Draws {
    pub seed: u64,
    pub connection: u64,
}

impl Draws {
    /// The dice of the n-th draw on this connection.
    #[must_use]
    pub fn dice(self, number: u64) -> Dice {
        Dice::named(self.seed, self.connection, number)
    }
}

impl Kind {
    /// What leaves next. An RST waits for a delay only.
    pub fn step(
        &self,
        progress: &mut Progress,
        queue: &mut Queue,
        now: Instant,
        draws: Draws,
    ) -> Step {
        if let Kind::Latency(latency) = self {
            return latency.step(queue, now, draws);
        }
        if let (Some((at, End::Reset)), false) = (queue.ended(), self.swallows_ends()) {
            return Step::End(End::Reset, at);
        }
        match self {
            Kind::Bandwidth(bandwidth) => bandwidth.step(progress, queue, now),
            Kind::SlowClose(close) => close.step(queue, now),
            Kind::Timeout(timeout) => timeout.step(progress, queue, now),
            Kind::BlackHole(hole) => hole.step(queue),
            Kind::ResetPeer(reset) => reset.step(progress, queue, now),
            Kind::Slicer(slicer) => slicer.step(progress, queue, now, draws),
            Kind::LimitData(limit) => limit.step(progress, queue),
            Kind::Noop | Kind::Latency(_) | Kind::Refuse => pass(queue),
        }
    }

    /// Whether it acts on bytes that pass; the others act on connecting only, or not at all.
    #[must_use]
    pub fn acts_on_bytes(&self) -> bool {
        !matches!(self, Kind::Noop | Kind::Refuse)
    }

    /// Whether what is held is held on purpose, so that more must be taken in to keep the peer's speed.
    #[must_use]
    pub fn delays(&self) -> bool {
        matches!(self, Kind::Latency(_))
    }

    /// Whether bytes are lost while it acts: when it goes, its connections can't go on.
    #[must_use]
    pub fn loses_bytes(&self) -> bool {
        matches!(self, Kind::Timeout(_) | Kind::BlackHole(_))
    }

    fn swallows_ends(&self) -> bool {
        matches!(self, Kind::BlackHole(_))
    }
}

/// Everything passes as it came.
fn pass(queue: &mut Queue) -> Step {
    match queue.front() {
        Some(front) => {
            let arrived = front.arrived;
            Step::Emit(queue.take_front(), arrived)
        }
        None => pass_end(queue),
    }
}

/// Nothing is held: the end passes as it came.
fn pass_end(queue: &Queue) -> Step {
    queue
        .ended()
        .map_or(Step::Nothing, |(at, end)| Step::End(end, at))
}

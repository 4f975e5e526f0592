//! The faults of a link, a file each. Each decides, without a clock or a socket, what leaves its step of a connection's way
//! next, and when.

pub mod abort;
pub mod bandwidth;
pub mod black_hole;
pub mod delay;
pub mod disconnect;
pub mod drop_puback;
pub mod latency;
pub mod limit_data;
pub mod reset_peer;
pub mod slicer;
pub mod slow_close;
pub mod timeout;
pub mod withhold_connack;
pub mod withhold_pingresp;

pub use abort::Abort;
pub use bandwidth::Bandwidth;
pub use black_hole::BlackHole;
pub use delay::Delay;
pub use disconnect::Disconnect;
pub use drop_puback::DropPuback;
pub use latency::Latency;
pub use limit_data::LimitData;
pub use reset_peer::ResetPeer;
pub use slicer::Slicer;
pub use slow_close::SlowClose;
pub use timeout::Timeout;
pub use withhold_connack::WithholdConnack;
pub use withhold_pingresp::WithholdPingresp;

use super::chain::Direction;
use super::mqtt::{self, Frames, Speech};
use super::queue::{End, Queue};
use super::requests::{Head, Requests};
use crate::dice::Dice;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// What a toxic does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
    /// MQTT
    WithholdConnack(WithholdConnack),
    /// MQTT
    WithholdPingresp(WithholdPingresp),
    /// MQTT
    DropPuback(DropPuback),
    /// MQTT
    Disconnect(Disconnect),
    /// HTTP
    Abort(Abort),
    /// HTTP
    Delay(Delay),
}

/// What a toxic must understand of the bytes that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Mqtt,
    Http,
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
    /// These bytes go back to where the others came from; after the last of them the connection ends.
    Answer { bytes: Bytes, last: bool },
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
    /// Everything that it lets pass has passed; for a delay of requests, the one in front has been decided.
    pub over: bool,
    /// Where the packets of MQTT begin in what comes to this step.
    pub frames: Frames,
    /// Where the requests of HTTP begin in what comes to this step.
    pub requests: Requests,
    /// Something came back since the last request passed.
    pub answered: bool,
    /// The request that is being thrown away, to be answered at its end.
    pub aborted: Option<Head>,
    /// What came last is not what the toxic understands.
    pub foreign: bool,
    /// Things done, to be counted.
    pub hits: u64,
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
            frames: Frames::default(),
            requests: Requests::default(),
            answered: false,
            aborted: None,
            foreign: false,
            hits: 0,
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

    /// Whether the n-th thing is one of `share` of them; on a canary each is.
    #[must_use]
    pub fn chooses(self, share: f64, number: u64) -> bool {
        share >= 1.0 || self.connection == 0 || self.dice(number).fraction() < share
    }
}

impl Kind {
    /// What leaves next. An RST waits for a delay only. `level` is MQTT's, 0 for anything else.
    pub fn step(
        &self,
        progress: &mut Progress,
        queue: &mut Queue,
        now: Instant,
        draws: Draws,
        level: u8,
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
            Kind::WithholdConnack(withhold) => withhold.step(progress, queue),
            Kind::WithholdPingresp(withhold) => withhold.step(progress, queue),
            Kind::DropPuback(lose) => lose.step(progress, queue),
            Kind::Disconnect(say) => say.step(progress, queue, now, level),
            Kind::Abort(abort) => abort.step(progress, queue, draws),
            Kind::Delay(delay) => delay.step(progress, queue, now, draws),
            Kind::Noop | Kind::Latency(_) | Kind::Refuse => pass(queue),
        }
    }

    /// Whether it acts on bytes that pass; the others act on connecting only, or not at all.
    #[must_use]
    pub fn acts_on_bytes(&self) -> bool {
        !matches!(self, Kind::Noop | Kind::Refuse)
    }

    /// What it must understand; `None` if bytes are bytes to it.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        match self {
            Kind::WithholdConnack(_)
            | Kind::WithholdPingresp(_)
            | Kind::DropPuback(_)
            | Kind::Disconnect(_) => Some(Protocol::Mqtt),
            Kind::Abort(_) | Kind::Delay(_) => Some(Protocol::Http),
            _ => None,
        }
    }

    /// Whether there is anything for it to do on this way.
    #[must_use]
    pub fn acts_towards(&self, direction: Direction) -> bool {
        match self {
            Kind::WithholdConnack(_) | Kind::WithholdPingresp(_) | Kind::Disconnect(_) => {
                direction == Direction::ToClient
            }
            Kind::Abort(_) | Kind::Delay(_) => direction == Direction::ToTarget,
            _ => true,
        }
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

impl Protocol {
    /// Whether a connection that speaks this may be understood.
    #[must_use]
    pub fn may_be(self, speech: Speech) -> bool {
        match speech {
            Speech::Unknown => true,
            Speech::Mqtt(_) => self == Protocol::Mqtt,
            Speech::Other => self == Protocol::Http,
        }
    }
}

/// Takes the bytes of the packet in front as far as they are there, with their arrival, the packet's type and whether it begins.
/// The queue is not empty.
fn next_packet(progress: &mut Progress, queue: &mut Queue) -> (Bytes, Instant, mqtt::Run) {
    let (run, arrived) = match queue.front() {
        Some(front) => (progress.frames.next(&front.bytes), front.arrived),
        None => (progress.frames.next(&[]), progress.since),
    };
    (queue.take(run.bytes), arrived, run)
}

/// Everything passes but packets of this type.
fn without(kind: u8, progress: &mut Progress, queue: &mut Queue) -> Step {
    while queue.front().is_some() {
        let (bytes, arrived, run) = next_packet(progress, queue);
        if run.kind != kind {
            return Step::Emit(bytes, arrived);
        }
        progress.hits += u64::from(run.begins);
    }
    pass_end(queue)
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

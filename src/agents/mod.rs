//! What hubs, riders and issuers decide.
//!
//! An agent is a pure state machine: it is told what happened and answers with actions. It reads no clock, opens no socket
//! and draws only from the dice that it is handed, so that the same agent runs over real sockets and in virtual time.

use crate::dice::Dice;
use crate::event::{CommandId, Event, Offset, Outcome};
use crate::plan::fault::How;
use std::time::Duration;

/// An agent decides; a driver performs its actions and tells it what came of them.
pub trait Agent {
    /// `input` happened at `now`; what to do is appended to `out`, in order.
    fn on(
        &mut self,
        now: Offset,
        input: Input<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    );
}

/// What an agent shares with others while it decides.
pub struct Context<'a> {
    pub dice: &'a mut Dice,
}

/// What a driver tells an agent.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// Its time has come; `due` is what the schedule said.
    Due { due: Offset },
    /// A timer that it asked for has run out.
    Timer(Timer),
    /// Hub: a TCP connection stands and CONNECT is being written.
    Opened,
    /// Hub: CONNACK accepted the session.
    Accepted { session_present: bool },
    /// Hub: SUBACK granted every subscription.
    Subscribed,
    /// Hub: the attempt to connect failed, or the session ended.
    Lost { outcome: Outcome },
    /// Hub: PINGRESP arrived.
    Pong,
    /// Hub: the publish of this token is out (QoS 0) or acknowledged (QoS 1).
    Published { token: u64 },
    /// Hub: a message on the command topic; `id` is `None` if it is not of this run.
    Command { id: Option<CommandId> },
    /// Rider, issuer: the answer to the request, or why there is none.
    Reply(Reply<'a>),
    /// An order of the timeline or of the end of the run.
    Told(Order),
}

/// What came of a request.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    pub result: ReplyResult,
    /// The body of an answer; empty where there is none.
    pub body: &'a [u8],
}

/// A status, or the class of what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyResult {
    Status(u16),
    Failed(Outcome),
}

/// The timers of all kinds of agents. Asking for one that runs moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Hub: time for the next attempt to connect.
    Connect,
    /// Hub: the attempt to connect, PINGRESP or PUBACK is overdue.
    Deadline,
    /// Hub: send PINGREQ.
    KeepAlive,
    /// Hub: publish telemetry.
    Telemetry,
    /// Hub: the oldest command under way has been acted on.
    Actuated,
    /// Rider, issuer: think time or the wait before a retry is over.
    Wait,
}

/// What an agent is told from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Hub: end the session this way, stay away so long, then reconnect by policy.
    Drop { how: How, away: Duration },
    /// The run is over: end what can be ended, tell what is unfinished.
    Stop,
}

/// What an agent wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Hub: open a connection to its shard and send CONNECT.
    Connect,
    /// Hub: subscribe to the command topic.
    Subscribe,
    /// Hub: end the connection.
    Close(How),
    /// Hub: send PINGREQ.
    Ping,
    /// Hub: publish; `Published` with this token follows.
    Publish { token: u64, message: Message },
    /// Rider, issuer: send the request of the agent's current step; `Reply` follows. The driver gives up after `timeout`.
    Request { timeout: Duration },
    /// Call back with `Timer` at this offset.
    WakeAt(Timer, Offset),
    /// The timer is no longer wanted.
    Cancel(Timer),
    /// Tell this.
    Tell(Event),
    /// The agent is at its end.
    Done,
}

/// What a hub publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    Telemetry,
    Answer(CommandId),
}

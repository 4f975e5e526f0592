//! What hubs, riders, issuers and docks decide.
//!
//! An agent is a pure state machine: it is told what happened and answers with actions. It reads no clock, opens no socket
//! and draws only from the dice that it is handed, so that the same agent runs over real sockets and in virtual time.
//!
//! # What a driver owes an agent
//! - It makes one [`Budget`] per group and hands in the same one to every agent of it.
//! - It makes one [`crate::dice::Dice::of`] per agent and hands in the same one every time; indices of hubs and docks count from 0
//!   within their group, riders and issuers are the arrival number n (from 1) of their schedule.
//! - It performs the actions in the order in which they stand in `out`, and tells [`Action::Tell`] to its sink unchanged.
//! - A timer never fires before its offset. [`Action::WakeAt`] for a timer that runs moves it.
//! - After [`Action::Close`] and after [`Input::Lost`] nothing of that connection is told any more, neither packets that had
//!   been read nor its end (the stale events of an old connection are a known trap).
//! - After [`Action::Done`] the agent is told nothing; if it is, it does nothing.
//! - At the end of the run every rider and issuer under way is told [`Order::Leave`], and after that every agent that is not done
//!   [`Order::Stop`], also those that were never told `Due`.
//!
//! # Who tells which event
//! Agents tell everything about their intended actions (`Started`, `Attempted`, `Answered`, `Finished`, `Unfinished`), `Hub`, `Command`,
//! `Foreign`, `Return` and `LeftOut`; whoever asks the target at the end tells what it said of a return. Drivers tell `Packet`. The runner tells `Zero`, `LoadEnd` and `Mark`. Of the operations of the plan:
//!
//! | operation | told by | one action is |
//! |---|---|---|
//! | find | hub | asking the target for its shard, once; before each attempt to connect where the target file says so |
//! | connect | hub | one outage: due when the policy let the first attempt go, attempts are its tries, `Ok` at SUBACK |
//! | telemetry, answer | hub | one publish: ends when `Published`, timed out after the group's timeout; reset with a clean session, attempted again in a resumed one |
//! | reauthenticate | hub | one re-authentication of a live session, due when it was ordered |
//! | step | rider | one request step with its retries; the first is due with the journey, later ones when the one before ended |
//! | journey | rider | no `Attempted` and `Answered` of its own; `attempts` in `Finished` are the requests of all its steps, those left out that were meant to be repeated |
//! | span | rider | like the journey, from the due time of its first step to the end of its last |
//! | always | rider | one request after the end of the journey, due when that or the one before it ended |
//! | issue | issuer | handing one command over, due time to "accepted" |
//! | status | dock | one refresh, one attempt; due by the dock's own schedule |
//! | returns | dock | one return, due when it is handed over; `Ok` when the target took it |
//! | command | nobody here | the ledger in `measure` derives it from the steps of the command |

mod attempt;
pub mod dock;
mod errand;
mod hand_over;
mod handshake;
pub mod hub;
pub mod issuer;
pub mod rider;
pub mod whereabouts;

pub use dock::{Dock, DockConfig, Handed, Left, Post};
pub use hub::{Hub, HubConfig};
pub use issuer::{Issuer, IssuerConfig};
pub use rider::{AccountRow, Rider, RiderConfig};
pub use whereabouts::{Reference, ShardRow};

use crate::dice::Dice;
use crate::event::{Cause, CommandName, Event, Offset, Outcome};
use crate::plan::fault::How;
use crate::retry::Budget;
use std::time::Duration;

/// An agent decides; a driver performs its actions and tells it what came of them.
pub trait Agent {
    /// `input` happened at `now`; what to do is appended to `out`, in order. `now` never runs backwards. An input that makes no sense
    /// in the agent's state is ignored.
    fn on(
        &mut self,
        now: Offset,
        input: Input<'_>,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    );

    /// Whether the request that it wants to send must be sent however its work has ended.
    fn is_closing(&self) -> bool {
        false
    }
}

/// What an agent shares with others while it decides.
pub struct Context<'a> {
    pub dice: &'a mut Dice,
    /// Of the agent's group.
    pub budget: &'a Budget,
}

/// What a driver tells an agent.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// Its time has come; `due` is what the schedule said. Hub: the first connect, at [`HubConfig::first_connect`] after the fleet
    /// began to connect. Rider, issuer: zero + `arrivals.due(n)`. Dock: 0:00, from which its refreshes are spread.
    Due { due: Offset },
    /// A timer that it asked for has run out.
    Timer(Timer),
    /// Hub: what came of the question for its shard.
    Found(Result<ShardRow, Outcome>),
    /// Hub: a Server Reference to a shard of the device arrived; `Lost` follows.
    Pointed { text: String, reference: Reference },
    /// Hub: a TCP connection stands.
    Opened,
    /// Hub: the TLS handshake begins; only where TLS is spoken.
    Securing,
    /// Hub: TLS stands.
    Secured,
    /// Hub: CONNACK accepted the session.
    Accepted(Accepted),
    /// Hub: SUBACK granted every subscription.
    Subscribed,
    /// Hub: the attempt to connect failed, or the session ended, by the target or the network; the connection is gone already.
    /// `Unreachable`: no TCP connection · `Refused(code)`: CONNACK with that return code, or SUBACK with 128 · `Reset`: the
    /// connection ended (FIN, RST, broken pipe) · `Protocol`: bytes that are no MQTT, or a packet out of place · `NotSent`: no socket or
    /// no port to be had on this machine · `Tls`: TLS did not come about, or the peer ended it over our certificate. `outcome` is what it
    /// means for an attempt that was under way, `cause` for a session that stood.
    Lost { outcome: Outcome, cause: Cause },
    /// Hub: PINGRESP arrived.
    Pong,
    /// Hub: what came of the publish of this token. `Ok`: out (QoS 0) or acknowledged (QoS 1) · `Refused(code)`: PUBACK with a reason
    /// code above 0x7F · `NotSent`: larger than the broker takes. Told at most once a token and session.
    Published { token: u64, outcome: Outcome },
    /// Hub: a message on the command topic; `id` is `None` if it is not of this run.
    Command {
        id: Option<CommandName>,
        /// It was kept by the broker, and is no live command.
        retained: bool,
    },
    /// Hub: AUTH 0x00 ended a re-authentication with success. (A failure is `Lost`.)
    Reauthenticated,
    /// Rider, issuer: the answer to the request, or why there is none.
    Reply(Reply<'a>),
    /// Dock: the answer to the post of this token, or why there is none.
    Answered { token: u64, reply: Reply<'a> },
    /// Dock: a rider hands something over.
    Handed(Handed),
    /// An order of the timeline or of the end of the run.
    Told(Order),
}

/// What CONNACK said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// The broker has kept the session: its subscriptions, and what was not acknowledged on either side.
    pub session_present: bool,
    /// MQTT 5: Server Keep Alive in seconds; it replaces the hub's own, 0 for none at all.
    pub keep_alive_s: Option<u16>,
    /// MQTT 5: publishes with QoS 1 that may be without PUBACK at the same time; `None`: no limit but our own.
    pub receive_maximum: Option<u16>,
}

/// What came of a request.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    pub result: ReplyResult,
    /// The body of an answer; empty where there is none.
    pub body: &'a [u8],
    /// What the answer's `Retry-After` asks for, from now.
    pub retry_after: Option<Duration>,
}

/// A status, or the class of what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyResult {
    /// An HTTP answer arrived whole. What it means is the agent's business.
    Status(u16),
    /// Issuer by publish: the message is written (QoS 0) or has its PUBACK (QoS 1).
    Accepted,
    /// There is no answer: `TimedOut` after the request's timeout, `Unreachable`, `Reset`, `Protocol`, or `NotSent` if there was no room
    /// under `max_in_flight` or no socket to be had here.
    Failed(Outcome),
}

/// The timers of all kinds of agents. Asking for one that runs moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Hub: time for the next attempt to connect.
    Connect,
    /// Hub: the attempt to connect, PINGRESP or PUBACK may be overdue.
    Deadline,
    /// Hub: send PINGREQ.
    KeepAlive,
    /// Hub: publish telemetry.
    Telemetry,
    /// Hub: the oldest command under way has been acted on.
    Actuated,
    /// Rider, issuer: think time or the wait before a retry is over. Nothing else is under way meanwhile, so the agent may be parked;
    /// it counts under `max_in_flight` from `Request` to `Reply` only. Dock: the wait before the next attempt or the next return is over.
    Wait,
    /// Dock: a refresh of the status is due.
    Status,
}

/// What an agent is told from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Hub: end the session this way, stay away so long, then reconnect by policy.
    Drop { how: How, away: Duration },
    /// Hub: it was dropped for ever and may come back now; at once, since the pace is that of whoever lets it back.
    Admit,
    /// The load is over and the agent's time, too: leave off what is under way (nothing of a request in flight is told any more), tell
    /// what is unfinished, and do only what must always be done at the end of a journey. `Done` follows, at once or after that.
    Leave,
    /// Hub: take the next certificate into use. `Some`: end the session this way and connect again at once. `None`: keep it.
    Renew { end: Option<How> },
    /// Hub: authenticate again on the live session (MQTT 5, AUTH 0x19); `NotSent` if there is none.
    Reauthenticate,
    /// Dock: the network is gone.
    Offline,
    /// Dock: the network is back.
    Online,
    /// Dock: leave out refreshes of the status, or no more.
    Shed(bool),
    /// The run is over: end what can be ended, tell what is unfinished. `Done` follows.
    Stop,
}

/// What an agent wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Hub: ask the target for its shard; `Found` follows. The agent keeps the time, and gives up with `Close`.
    Find,
    /// Hub: open a connection to this shard and send CONNECT. `Opened`, `Accepted` follow, or `Lost` at any point. The agent keeps the time:
    /// the driver sets no timeout of its own.
    Connect { shard: ShardRow },
    /// Hub: from the next handshake on use the next certificate.
    Renew,
    /// Hub: subscribe to the command topic; `Subscribed` or `Lost` follows.
    Subscribe,
    /// Hub: end the connection, also one that is only being opened. DISCONNECT is sent only in a session that was accepted. Nothing is
    /// told back.
    Close(How),
    /// Hub: end the connection with DISCONNECT for good: of a session that the broker would keep it says, where the protocol can, that
    /// nobody will come back for it.
    Leave,
    /// Hub: send PINGREQ; `Pong` follows.
    Ping,
    /// Hub: publish; `Published` with this token follows. Tokens are not used twice in the life of a hub; the packet id is
    /// the driver's business. `again`: it was sent in an earlier connection of this session and had no PUBACK; it goes out with DUP and
    /// the packet id that it had.
    Publish {
        token: u64,
        message: Message,
        again: bool,
    },
    /// Hub: send AUTH 0x19; `Reauthenticated` follows, or `Lost`.
    Reauthenticate,
    /// Rider: send [`Rider::request`]. Issuer: send [`Issuer::send`]. Exactly one `Reply` follows, at once if it can't be sent. The
    /// driver gives up after `timeout`, which covers connect, head and body.
    Request { timeout: Duration },
    /// Rider: hand this to dock `dock` (from 0) of row `docks` of `Plan::docks`. Nothing is told back: docks acknowledge at once.
    HandOver {
        docks: u16,
        dock: u32,
        handed: Handed,
    },
    /// Dock: send [`Dock::request`] of this post as it is now. `Answered` with this token follows, unless it is abandoned; the driver
    /// gives up after `timeout`.
    Post {
        token: u64,
        post: Post,
        timeout: Duration,
    },
    /// Dock: end the connection of this post; nothing of it is told any more.
    Abandon { token: u64 },
    /// Dock: a return that the target may be asked for at the end of the run.
    Left(Left),
    /// Call back with `Timer` at this offset, or as soon after it as possible; at once if it has passed.
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
    /// `bytes` of the group's telemetry to the telemetry topic.
    Telemetry,
    /// The answer to a command, with the id under which it came, to the answer topic.
    Answer(CommandName),
}

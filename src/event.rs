//! The few words that cross threads, processes and files.
//!
//! Everything that happens in a run is told as an [`Event`]: agents decide, drivers do, and both tell it here.
//! This module knows no clock: an [`Offset`] is handed in by whoever drives.

mod command;
mod loss;
mod marks;
mod packets;
mod retries;
mod returns;

pub use command::{CommandId, CommandName, id_key, id_text, uuid_bytes};
pub use loss::{Cause, HubChange, reason, return_code};
pub use marks::{Mark, MarkPhase};
pub use packets::PacketKind;
pub use retries::RetryChange;
pub use returns::{LeftOut, ReturnId, ReturnState, ReturnStep};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Microseconds since the clock of the run began. `0:00` of a profile is a later offset (see [`Event::Zero`]).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Offset(pub u64);

impl Offset {
    /// The beginning of the clock.
    pub const ZERO: Offset = Offset(0);

    /// The offset `duration` after this one; stops at the largest offset.
    #[must_use]
    pub fn after(self, duration: Duration) -> Offset {
        Offset(
            self.0
                .saturating_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)),
        )
    }

    /// The time from `earlier` to this offset; zero if it lies the other way round.
    #[must_use]
    pub fn since(self, earlier: Offset) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The whole second that holds this offset, counted from the clock's beginning.
    #[must_use]
    pub fn second(self) -> u64 {
        self.0 / 1_000_000
    }
}

/// One agent: `group` is the row in its list of the plan (hubs, riders, issuers or docks), `index` counts from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AgentId {
    pub kind: AgentKind,
    pub group: u16,
    pub index: u64,
}

/// What an agent plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    Hub,
    Rider,
    Issuer,
    Dock,
}

/// How an attempt or an intended action ended. A closed list: every report shows all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The target did what was asked.
    Ok,
    /// A plain "no" that the target file calls normal (no bike left); neither success nor failure.
    Declined,
    /// The target refused, with its code (HTTP status, MQTT return code).
    Refused(u16),
    /// No answer within the timeout; whether the target acted is not known.
    TimedOut,
    /// No connection: refused by the operating system, no route, name not found.
    Unreachable,
    /// The connection ended before the answer.
    Reset,
    /// An answer that breaks the protocol, or lacks what the target file keeps from it.
    Protocol,
    /// Never left: no room under `max_in_flight`, or no socket to be had here.
    NotSent,
    /// TLS did not come about, or the peer ended it over a certificate.
    Tls(TlsTrouble),
}

/// What is wrong when TLS does not come about. A closed list, like [`Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsTrouble {
    /// The peer's certificate is past its `notAfter`.
    Expired,
    /// The peer's certificate is before its `notBefore`.
    NotYetValid,
    /// Nobody whom the target file trusts vouches for the peer's certificate, or it is malformed or revoked.
    Untrusted,
    /// The peer's certificate is for other names.
    WrongName,
    /// The peer wants a certificate and there is none.
    ClientCertificateRequired,
    /// The peer refused our certificate or what we offered.
    Refused,
    /// No version, cipher or key exchange that both sides speak.
    Version,
}

impl TlsTrouble {
    /// All troubles, in the order of their discriminants.
    pub const ALL: [TlsTrouble; 7] = [
        TlsTrouble::Expired,
        TlsTrouble::NotYetValid,
        TlsTrouble::Untrusted,
        TlsTrouble::WrongName,
        TlsTrouble::ClientCertificateRequired,
        TlsTrouble::Refused,
        TlsTrouble::Version,
    ];

    /// As reports name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TlsTrouble::Expired => "tls: certificate expired",
            TlsTrouble::NotYetValid => "tls: certificate not yet valid",
            TlsTrouble::Untrusted => "tls: certificate not trusted",
            TlsTrouble::WrongName => "tls: certificate for another name",
            TlsTrouble::ClientCertificateRequired => "tls: client certificate required",
            TlsTrouble::Refused => "tls: refused by the peer",
            TlsTrouble::Version => "tls: no common version",
        }
    }
}

impl Outcome {
    /// True for everything that is neither `Ok` nor `Declined`.
    #[must_use]
    pub fn is_failure(self) -> bool {
        !matches!(self, Outcome::Ok | Outcome::Declined)
    }

    /// Of an attempt to connect: the target said that there are too many at once (MQTT 3.1.1 code 3, MQTT 5 reason 0x9F, HTTP 429).
    #[must_use]
    pub fn is_throttling(self) -> bool {
        matches!(self, Outcome::Refused(3 | 0x9f | 429))
    }

    /// The class without its code, as reports name it.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Declined => "declined",
            Outcome::Refused(_) => "refused",
            Outcome::TimedOut => "timed out",
            Outcome::Unreachable => "unreachable",
            Outcome::Reset => "reset",
            Outcome::Protocol => "protocol",
            Outcome::NotSent => "not sent",
            Outcome::Tls(trouble) => trouble.name(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Refused(code) => write!(formatter, "refused {code}"),
            other => formatter.write_str(other.class()),
        }
    }
}

/// The serial number of a certificate: at most 20 bytes (RFC 5280 §4.1.2.2), the highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CertificateSerial([u8; 20]);

impl CertificateSerial {
    /// The serial number with these bytes; `None` if there are more than 20 that count.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<CertificateSerial> {
        let first = bytes.iter().position(|byte| *byte != 0);
        let digits = &bytes[first.unwrap_or(bytes.len())..];
        let mut whole = [0; 20];
        let start = whole.len().checked_sub(digits.len())?;
        whole[start..].copy_from_slice(digits);
        Some(CertificateSerial(whole))
    }

    /// The bytes that count.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let first = self.0.iter().position(|byte| *byte != 0);
        &self.0[first.unwrap_or(self.0.len() - 1)..]
    }
}

impl fmt::Display for CertificateSerial {
    /// In hexadecimal, as OpenSSL prints it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes()
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02X}"))
    }
}

/// A row of the plan's table of operations (`Plan::operations`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationId(pub u16);

/// A row of the plan's table of marks: triggers first, then faults (`Plan::marks`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MarkId(pub u16);

/// What became of the name of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceVerdict {
    /// The hub goes there.
    Followed,
    /// Hubs of this device follow no references.
    Ignored,
    /// It is no shard of the device in the target file, so nothing connects to it.
    Refused,
}

/// What happened to one command. The ledger orders these; they may arrive out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandStep {
    /// The schedule called for it at this offset.
    Due,
    /// One attempt left.
    Sent,
    /// The target said that it takes it.
    Accepted,
    /// An attempt was refused, or it left and never reached the target.
    Refused,
    /// An attempt ended without an answer: the target may have it.
    InDoubt,
    /// The target reported that its time to live had passed.
    Expired,
    /// The attempt that was just told as `Sent` never left: there was no room for it.
    NotSent,
    /// The issuer stopped trying without having been told yes.
    GaveUp,
    /// A hub received it.
    Delivered,
    /// The hub's answer is out (QoS 0) or acknowledged by the broker (QoS 1).
    Acknowledged,
}

/// The one thing that flows from agents and drivers to measuring and telling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Every group stands: `0:00` of the profile is here (a whole second of the clock).
    Zero { at: Offset },
    /// The load's planned end, or the moment at which the run was stopped.
    LoadEnd { at: Offset },
    /// An intended action starts: `due` by the schedule, `at` in fact. Exactly one `Finished` follows, or it is unfinished.
    Started {
        operation: OperationId,
        due: Offset,
        at: Offset,
    },
    /// One attempt of it leaves. Exactly one `Answered` follows, or it is unfinished.
    Attempted { operation: OperationId, at: Offset },
    /// One more attempt of it leaves that is meant and no retry: the next poll, the next candidate. Exactly one `Answered` follows, or it
    /// is unfinished.
    Continued { operation: OperationId, at: Offset },
    /// The attempt sent at `sent` ended.
    Answered {
        operation: OperationId,
        sent: Offset,
        at: Offset,
        outcome: Outcome,
    },
    /// The intended action ended after `attempts` attempts (a journey or a span: after so many requests, without the `Continued` ones; it has no
    /// `Attempted` of its own).
    Finished {
        operation: OperationId,
        due: Offset,
        started: Offset,
        at: Offset,
        outcome: Outcome,
        attempts: u32,
    },
    /// The target did the same thing twice, because an attempt that it had accepted was repeated: `known` from its answers, or else
    /// possible, since nothing told it that the second attempt was a repeated one.
    Duplicated {
        operation: OperationId,
        known: bool,
        at: Offset,
    },
    /// A rider had to take an account that another one is using: there are too few.
    AccountShared { operation: OperationId, at: Offset },
    /// At the end of the run: this action of `due` was still under way.
    Unfinished {
        operation: OperationId,
        due: Offset,
        at: Offset,
    },
    /// Something changed the retry that would follow the last attempt.
    Retry {
        operation: OperationId,
        change: RetryChange,
        at: Offset,
    },
    /// A hub's session changed; `group` is the row in `Plan::hubs`, `hub` its number in it.
    Hub {
        group: u16,
        hub: u32,
        change: HubChange,
        at: Offset,
    },
    /// A hub's session began (`stands`) or ended on a shard, a row in `Device::shards`. Told with `Connected`, `Lost` and `Left`
    /// by hubs of a device with several shards.
    Standing {
        group: u16,
        hub: u32,
        shard: u16,
        stands: bool,
        at: Offset,
    },
    /// A hub took its next certificate into use: every later handshake is to show it.
    Renewed { group: u16, hub: u32, at: Offset },
    /// The target's own list of live sessions has this hub's, with the client certificate that the target saw.
    SessionSeen {
        group: u16,
        hub: u32,
        certificate: Option<CertificateSerial>,
        at: Offset,
    },
    /// A ghost subscriber saw a command arrive on a shard although its hub, of this group, had stood on another for so long.
    Stale {
        group: u16,
        command: CommandId,
        shard: u16,
        after_us: u64,
        at: Offset,
    },
    /// The target named another server to a hub, or a place that a hub had asked for; the text is cut where it is long.
    Reference {
        group: u16,
        text: String,
        verdict: ReferenceVerdict,
        at: Offset,
    },
    /// A hub's TLS session stands: with which certificates, and whether it took up an earlier one.
    Secured {
        group: u16,
        hub: u32,
        resumed: bool,
        /// Of the certificate that the hub has to show, whether or not the peer asked for it.
        own: Option<CertificateSerial>,
        peer: Option<CertificateSerial>,
        at: Offset,
    },
    /// What exactly was wrong when an attempt of this operation, or a session that it had opened, ended like this. It counts nothing:
    /// the end itself is told apart.
    Explained {
        operation: OperationId,
        outcome: Outcome,
        text: String,
        at: Offset,
    },
    /// An MQTT packet of a hub was written (`sent`) or read.
    Packet {
        group: u16,
        kind: PacketKind,
        sent: bool,
        at: Offset,
    },
    /// A message arrived at a hub's command topic that carries no id of this run, or that of a command for another hub.
    Foreign { group: u16, at: Offset },
    /// A retained message arrived at a hub's command topic: whatever it carries, it is no live command.
    Retained { group: u16, at: Offset },
    /// The connection over which issuers publish commands changed; `device` is the row in `Target::devices`.
    Publisher {
        device: u16,
        change: HubChange,
        at: Offset,
    },
    /// An attempt to make that connection came to nothing.
    PublisherFailed {
        device: u16,
        outcome: Outcome,
        at: Offset,
    },
    /// A ghost subscriber watches a shard (`watches`), or does so no more: nobody would see a stale command there then. `shard` is a
    /// row in `Device::shards` of the row `device` of `Target::devices`.
    Ghost {
        device: u16,
        shard: u16,
        watches: bool,
        at: Offset,
    },
    /// An MQTT packet of that connection was written (`sent`) or read.
    PublisherPacket {
        device: u16,
        kind: PacketKind,
        sent: bool,
        at: Offset,
    },
    /// A step in the life of a command.
    Command {
        id: CommandId,
        step: CommandStep,
        at: Offset,
    },
    /// A step in the life of a return; `docks` is the row in `Plan::docks`, `created` when it was handed over.
    Return {
        docks: u16,
        id: ReturnId,
        created: Offset,
        step: ReturnStep,
        at: Offset,
    },
    /// A dock left out a refresh of its status that was due.
    LeftOut {
        docks: u16,
        why: LeftOut,
        at: Offset,
    },
    /// A trigger or fault changed its phase.
    Mark(Mark),
}

/// Where drivers tell events: one per worker, so that no two workers wait for each other. Must not block.
pub type Sink = std::sync::Arc<dyn Fn(Event) + Send + Sync>;

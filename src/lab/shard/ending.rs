//! How a connection ends: why, what is said about it, and whether its session may live on.

use super::packet::{Flaw, reason};
use crate::lab::messages::{Cause, Moves};

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub cause: Cause,
    /// The reason code of the DISCONNECT with which MQTT 5 is told; none where nobody is there to hear it.
    pub reason: Option<u8>,
    /// Where the client is to go instead, as `host:port`.
    pub reference: Option<String>,
    /// By a reset, and without a word.
    pub by_reset: bool,
}

impl End {
    fn of(cause: Cause, reason: Option<u8>) -> End {
        End {
            cause,
            reason,
            reference: None,
            by_reset: false,
        }
    }

    /// The end that sends a client to the shard of that address.
    pub fn moved(moves: Moves, reference: String) -> End {
        let (reason, reference) = match moves {
            Moves::UseAnotherServer => (Some(reason::USE_ANOTHER_SERVER), Some(reference)),
            Moves::ServerMoved => (Some(reason::SERVER_MOVED), Some(reference)),
            Moves::ShuttingDown => (Some(reason::SHUTTING_DOWN), None),
            Moves::Fin | Moves::Rst => (None, None),
        };
        End {
            reference,
            by_reset: moves == Moves::Rst,
            ..End::of(Cause::Rebalance, reason)
        }
    }
}

impl From<Cause> for End {
    fn from(cause: Cause) -> End {
        let reason = match cause {
            Cause::Takeover => Some(reason::TAKEN_OVER),
            Cause::Revoked | Cause::Expired => Some(reason::NOT_AUTHORIZED),
            Cause::KeepAlive => Some(reason::KEEP_ALIVE),
            Cause::Unavailable => Some(reason::UNAVAILABLE),
            Cause::Protocol => Some(reason::PROTOCOL_ERROR),
            Cause::Throttled => Some(reason::TOO_MANY_CONNECTS),
            Cause::Disconnect
            | Cause::Rebalance
            | Cause::Elsewhere
            | Cause::Gone
            | Cause::Stuck
            | Cause::ShardLost
            | Cause::SessionExpired => None,
        };
        End::of(cause, reason)
    }
}

impl From<Flaw> for End {
    fn from(flaw: Flaw) -> End {
        End::of(Cause::Protocol, Some(flaw.0))
    }
}

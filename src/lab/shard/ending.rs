//! How a connection ends: why, what is said about it, and whether its session may live on.

use super::packet::{Flaw, reason};
use crate::lab::messages::Cause;

/// The end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub cause: Cause,
    /// The reason code of the DISCONNECT with which MQTT 5 is told; none where nobody is there to hear it.
    pub reason: Option<u8>,
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
            Cause::Rebalance => Some(reason::USE_ANOTHER_SERVER),
            Cause::Disconnect
            | Cause::Gone
            | Cause::Stuck
            | Cause::ShardLost
            | Cause::SessionExpired => None,
        };
        End { cause, reason }
    }
}

impl From<Flaw> for End {
    fn from(flaw: Flaw) -> End {
        End {
            cause: Cause::Protocol,
            reason: Some(flaw.0),
        }
    }
}

//! What becomes of a hub's session, why it ended although the hub had not asked for it, and the standard names of MQTT's codes.

use super::TlsTrouble;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change in the life of one hub's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HubChange {
    /// A TCP connection stands (what a broker logs as a new connection).
    Opened,
    /// CONNACK accepted (what a broker logs as a new client).
    Accepted,
    /// SUBACK granted, or nothing to subscribe to: from here on the hub counts as connected.
    Connected,
    /// The session ended although the hub had not asked for it; only after `Connected`.
    Lost(Cause),
    /// The hub ended the session itself (order, end of run); only after `Connected`.
    Left,
    /// The session stands, but a publish has had no acknowledgement for the group's timeout: until `Freed` the hub does not count as connected.
    Stuck,
    /// A publish of a stuck hub was acknowledged, or its session ends; `Lost` or `Left` follows then.
    Freed,
}

impl HubChange {
    /// Whether the session was lost, whatever the cause.
    #[must_use]
    pub fn is_lost(self) -> bool {
        matches!(self, HubChange::Lost(_))
    }
}

/// What ended a session. A closed list: every report shows all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// FIN without a word.
    Closed,
    /// RST, or a write into a connection that was gone.
    Reset,
    /// The broker did not answer PINGREQ.
    KeepAlive,
    /// MQTT 5: the broker said DISCONNECT with this reason code.
    Disconnected(u8),
    /// The broker sent what MQTT forbids, or a packet out of place.
    Protocol,
    /// The broker sent a packet above the limit that it had been told.
    TooLarge,
    /// The peer ended TLS over a certificate or over what was offered.
    Tls(TlsTrouble),
    /// The network or this machine: no route any more, retransmissions given up, a broken TLS record.
    Network,
}

impl Cause {
    /// MQTT 5: another connection with the same client id took the session over.
    pub const TAKEN_OVER: Cause = Cause::Disconnected(0x8e);
}

impl fmt::Display for Cause {
    /// As reports name it: `FIN`, `keep-alive`, `0x8E session taken over`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Closed => formatter.write_str("FIN"),
            Cause::Reset => formatter.write_str("reset"),
            Cause::KeepAlive => formatter.write_str("keep-alive"),
            Cause::Disconnected(code) => write!(formatter, "0x{code:02X} {}", reason(*code)),
            Cause::Protocol => formatter.write_str("protocol"),
            Cause::TooLarge => formatter.write_str("packet too large"),
            Cause::Tls(trouble) => formatter.write_str(trouble.name()),
            Cause::Network => formatter.write_str("network"),
        }
    }
}

/// The standard name of a reason code of MQTT 5 (section 2.4), in any packet. 0x00 has several names and is `success` here.
#[must_use]
pub fn reason(code: u8) -> &'static str {
    match code {
        0x00 => "success",
        0x01 => "granted QoS 1",
        0x02 => "granted QoS 2",
        0x04 => "disconnect with will message",
        0x10 => "no matching subscribers",
        0x11 => "no subscription existed",
        0x18 => "continue authentication",
        0x19 => "re-authenticate",
        0x80 => "unspecified error",
        0x81 => "malformed packet",
        0x82 => "protocol error",
        0x83 => "implementation specific error",
        0x84 => "unsupported protocol version",
        0x85 => "client identifier not valid",
        0x86 => "bad user name or password",
        0x87 => "not authorized",
        0x88 => "server unavailable",
        0x89 => "server busy",
        0x8a => "banned",
        0x8b => "server shutting down",
        0x8c => "bad authentication method",
        0x8d => "keep alive timeout",
        0x8e => "session taken over",
        0x8f => "topic filter invalid",
        0x90 => "topic name invalid",
        0x91 => "packet identifier in use",
        0x92 => "packet identifier not found",
        0x93 => "receive maximum exceeded",
        0x94 => "topic alias invalid",
        0x95 => "packet too large",
        0x96 => "message rate too high",
        0x97 => "quota exceeded",
        0x98 => "administrative action",
        0x99 => "payload format invalid",
        0x9a => "retain not supported",
        0x9b => "QoS not supported",
        0x9c => "use another server",
        0x9d => "server moved",
        0x9e => "shared subscriptions not supported",
        0x9f => "connection rate exceeded",
        0xa0 => "maximum connect time",
        0xa1 => "subscription identifiers not supported",
        0xa2 => "wildcard subscriptions not supported",
        _ => "unknown reason",
    }
}

/// The standard name of a return code of MQTT 3.1.1: 1 to 5 of CONNACK, 128 of SUBACK.
#[must_use]
pub fn return_code(code: u16) -> &'static str {
    match code {
        0 => "accepted",
        1 => "unacceptable protocol version",
        2 => "identifier rejected",
        3 => "server unavailable",
        4 => "bad user name or password",
        5 => "not authorized",
        128 => "subscription failed",
        _ => "unknown return code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_named_with_their_codes() {
        let named = |cause: Cause| cause.to_string();
        assert_eq!(named(Cause::TAKEN_OVER), "0x8E session taken over");
        assert_eq!(named(Cause::Disconnected(0x9d)), "0x9D server moved");
        assert_eq!(named(Cause::Disconnected(0xa3)), "0xA3 unknown reason");
        assert_eq!(named(Cause::KeepAlive), "keep-alive");
    }
}

//! MQTT 5 on the wire, as far as a client that publishes and subscribes with QoS 0 and 1 needs it.
//!
//! A layer of our own: no published codec reads every legal form of the packets that a fleet test is about (DISCONNECT with a reason
//! and no properties, AUTH, two subscription identifiers in a PUBLISH). Reading is strict: whatever is lacking inside a complete packet
//! is malformed, never waited for. Reason codes stay bytes, so that one that nobody knows yet is told and not an error. Reading and
//! writing are each other's inverse. Knows neither sockets nor what packets mean.

mod bytes;
mod packet;
mod property;
#[cfg(test)]
mod tests;

pub(in crate::live) use packet::{
    Acknowledgement, Authentication, ConnAck, Connect, Disconnect, Packet, Publish, SubAck,
    Subscribe, Will,
};
pub(in crate::live) use property::Property;

use ::bytes::BytesMut;

/// Bytes that are no MQTT 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Why no packet could be taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    Malformed,
    /// Longer than the limit.
    TooLarge,
}

impl From<Malformed> for Unreadable {
    fn from(_: Malformed) -> Self {
        Unreadable::Malformed
    }
}

/// The packets that are known, and the will, which has properties of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect,
    ConnAck,
    Publish,
    Will,
    PubAck,
    Subscribe,
    SubAck,
    Disconnect,
    Auth,
}

/// Takes one whole packet of at most `limit` bytes off the front; `None` if it is not whole yet.
pub(super) fn take(bytes: &mut BytesMut, limit: usize) -> Result<Option<Packet>, Unreadable> {
    let Some(first) = bytes.first().copied() else {
        return Ok(None);
    };
    // A wrong first byte is wrong at once; the length behind it may be anything.
    if !Packet::may_begin(first) {
        return Err(Unreadable::Malformed);
    }
    let Some((length, width)) = self::bytes::variable(&bytes[1..])? else {
        return Ok(None);
    };
    let whole = 1 + width + usize::try_from(length).unwrap_or(usize::MAX - 5);
    if whole > limit {
        return Err(Unreadable::TooLarge);
    }
    if bytes.len() < whole {
        return Ok(None);
    }
    let mut packet = bytes.split_to(whole).freeze();
    let body = packet.split_off(1 + width);
    Ok(Some(Packet::read(first, body)?))
}

//! MQTT 3.1.1 and 5 as a broker of hubs meets them: the packets that clients send, and those that they get.
//!
//! Written for the lab alone: what finds the faults of another codec must not share them, and no published one reads all
//! that MQTT 5 allows. QoS 2 is left out; a broker may refuse it.

mod properties;
mod read;
mod write;

pub use properties::{Properties, Value, id};
pub use read::{frame, incoming};
pub use write::Outgoing;

use bytes::Bytes;

/// The protocol level of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// MQTT 3.1.1.
    V4,
    /// MQTT 5.
    V5,
}

/// Reason codes of MQTT 5 that the shard says.
pub mod reason {
    pub const SUCCESS: u8 = 0x00;
    pub const DISCONNECT_WITH_WILL: u8 = 0x04;
    pub const NO_MATCHING_SUBSCRIBERS: u8 = 0x10;
    pub const NO_SUBSCRIPTION: u8 = 0x11;
    pub const CONTINUE_AUTHENTICATION: u8 = 0x18;
    pub const RE_AUTHENTICATE: u8 = 0x19;
    pub const MALFORMED: u8 = 0x81;
    pub const PROTOCOL_ERROR: u8 = 0x82;
    pub const BAD_CLIENT_ID: u8 = 0x85;
    pub const NOT_AUTHORIZED: u8 = 0x87;
    pub const UNAVAILABLE: u8 = 0x88;
    pub const SHUTTING_DOWN: u8 = 0x8b;
    pub const BAD_METHOD: u8 = 0x8c;
    pub const KEEP_ALIVE: u8 = 0x8d;
    pub const TAKEN_OVER: u8 = 0x8e;
    pub const BAD_FILTER: u8 = 0x8f;
    pub const BAD_TOPIC: u8 = 0x90;
    pub const RECEIVE_MAXIMUM: u8 = 0x93;
    pub const BAD_ALIAS: u8 = 0x94;
    pub const TOO_LARGE: u8 = 0x95;
    pub const NO_QOS: u8 = 0x9b;
    pub const USE_ANOTHER_SERVER: u8 = 0x9c;
    pub const SERVER_MOVED: u8 = 0x9d;
    pub const NO_SHARED: u8 = 0x9e;
    pub const TOO_MANY_CONNECTS: u8 = 0x9f;
    pub const NO_SUBSCRIPTION_IDS: u8 = 0xa1;
}

/// What is wrong with bytes or a packet, as the reason code that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flaw(pub u8);

/// Bytes that are no packet.
pub const MALFORMED: Flaw = Flaw(reason::MALFORMED);
/// A packet that must not be there, or holds what it must not hold.
pub const PROTOCOL_ERROR: Flaw = Flaw(reason::PROTOCOL_ERROR);

/// A packet that a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    Connect(Box<Connect>),
    /// A CONNECT of a protocol that the shard doesn't speak.
    OtherLevel,
    Publish(Publish),
    PubAck {
        packet: u16,
    },
    Subscribe {
        packet: u16,
        properties: Properties,
        wishes: Vec<Wish>,
    },
    Unsubscribe {
        packet: u16,
        filters: Vec<String>,
    },
    PingReq,
    Disconnect {
        reason: u8,
        properties: Properties,
    },
    Auth {
        reason: u8,
        properties: Properties,
    },
}

/// CONNECT. User name and password are read and not looked at: who a hub is stands in its client identifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connect {
    pub version: Version,
    pub id: String,
    pub clean_start: bool,
    /// Seconds; zero is none.
    pub keep_alive: u16,
    pub will: Option<Will>,
    pub properties: Properties,
}

/// What is to be published when the client is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Will {
    pub topic: String,
    pub payload: Bytes,
    pub qos: u8,
    pub retain: bool,
    /// Seconds before it is published.
    pub delay: u32,
    /// Those that go out with it.
    pub properties: Properties,
}

/// PUBLISH, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    pub duplicate: bool,
    pub qos: u8,
    pub retain: bool,
    /// May be empty if an alias stands for it.
    pub topic: String,
    /// Zero with QoS 0.
    pub packet: u16,
    pub properties: Properties,
    pub payload: Bytes,
}

/// One filter of a SUBSCRIBE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub filter: String,
    pub qos: u8,
    pub no_local: bool,
    pub retain_as_published: bool,
    /// 0: retained messages are sent; 1: only for a new subscription; 2: not.
    pub retain_handling: u8,
}

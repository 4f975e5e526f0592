//! MQTT packets by kind.

use serde::{Deserialize, Serialize};

/// An MQTT packet by kind, for counts that must equal a broker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketKind {
    Connect,
    ConnAck,
    Publish,
    PubAck,
    Subscribe,
    SubAck,
    PingReq,
    PingResp,
    Disconnect,
    /// MQTT 5 only.
    Auth,
}

impl PacketKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [PacketKind; 10] = [
        PacketKind::Connect,
        PacketKind::ConnAck,
        PacketKind::Publish,
        PacketKind::PubAck,
        PacketKind::Subscribe,
        PacketKind::SubAck,
        PacketKind::PingReq,
        PacketKind::PingResp,
        PacketKind::Disconnect,
        PacketKind::Auth,
    ];
}

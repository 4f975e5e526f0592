//! What the report says of hubs and of the connections of publishers.

use serde::{Deserialize, Serialize};

/// One group of hubs, over the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubRow {
    pub group: String,
    pub count: u64,
    /// TCP connections that stood: what a broker logs as new connections.
    pub opened: u64,
    /// Sessions accepted: what a broker logs as new clients.
    pub accepted: u64,
    /// Connected at the load's end.
    pub standing: u64,
    /// The fewest that were connected at the end of a second of the load.
    pub standing_least: Option<u64>,
    /// Sessions that ended without the hub asking for it.
    pub lost: u64,
    /// The same by what ended them: `FIN`, `keep-alive`, `0x8E session taken over`.
    #[serde(default)]
    pub losses: Vec<CauseRow>,
    /// Handshakes of TLS that were completed with everything that they take.
    #[serde(default)]
    pub handshakes_full: u64,
    /// Those that took up an earlier session.
    #[serde(default)]
    pub handshakes_resumed: u64,
    /// How often a hub became stuck: its session stood, and no publish was acknowledged for the group's timeout.
    #[serde(default)]
    pub stuck: u64,
    /// The most that were stuck at the end of a second of the load.
    #[serde(default)]
    pub stuck_most: u64,
    /// Retained messages on a command topic; they are no commands.
    #[serde(default)]
    pub retained: u64,
    /// Sessions that the hub ended itself.
    pub left: u64,
    /// Attempts to connect that were refused.
    pub refused: u64,
    /// Of those: because there were too many at once (code 3, 0x9F, 429).
    pub throttled: u64,
    /// Attempts to connect after 0:00, when every hub had stood.
    pub reconnects: u64,
    /// Messages on a command topic that carry no id of this run.
    pub foreign: u64,
    pub packets: Vec<PacketRow>,
}

/// What was lost or failed for one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseRow {
    pub cause: String,
    pub count: u64,
}

/// The connections over which issuers publish commands to the brokers of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherRow {
    pub device: String,
    /// TCP connections that stood.
    pub opened: u64,
    /// Sessions accepted.
    pub accepted: u64,
    /// Sessions that ended although nobody had asked for it.
    pub lost: u64,
    /// The same by what ended them.
    #[serde(default)]
    pub losses: Vec<CauseRow>,
    /// Attempts to connect that came to nothing, by how they ended.
    #[serde(default)]
    pub failures: Vec<CauseRow>,
    pub packets: Vec<PacketRow>,
}

/// Packets of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketRow {
    pub kind: String,
    pub sent: u64,
    pub received: u64,
}

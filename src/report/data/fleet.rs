//! Where hubs were and which certificates they showed, as data.

use super::StateCount;
use serde::{Deserialize, Serialize};

/// Where the hubs of one group were, and what moving did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceRow {
    pub group: String,
    pub shards: Vec<ShardHubs>,
    /// Sessions that began on another shard than the hub's session before.
    pub moves: u64,
    pub moved_hubs: u64,
    /// Commands that were due after their hub had left its first shard.
    pub commands_to_moved: Vec<StateCount>,
    /// Commands that a ghost subscriber saw on a shard although their hub stood on another; `None` without ghosts.
    pub stale_seen: Option<u64>,
    /// The longest time from a hub's standing elsewhere to such a command.
    pub stale_longest_us: u64,
    /// How often a ghost stopped watching, and for how long in all.
    #[serde(default)]
    pub ghost_gaps: u64,
    #[serde(default)]
    pub ghost_blind_us: u64,
    /// Other servers that the target named.
    pub references: Vec<ReferenceRow>,
}

/// The certificates of one group of hubs, by the serial numbers that went over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateRow {
    pub group: String,
    /// Orders to renew that hubs took.
    pub renewals: u64,
    /// Hubs that have shown another certificate since.
    pub changed: u64,
    /// Handshakes of hubs that had not renewed yet.
    pub handshakes_before: u64,
    /// Handshakes after a renewal, with another certificate than before it.
    pub handshakes_new: u64,
    /// Handshakes after a renewal, still with the certificate from before it.
    pub handshakes_old: u64,
    /// What the target listed at the end, where its file says how to ask.
    pub seen: Option<SeenRow>,
    /// The first few hubs.
    pub examples: Vec<CertificateExample>,
}

/// Sessions that the target listed, by the client certificate that it saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRow {
    /// The one that the hub showed last.
    pub as_shown: u64,
    /// The one from before the renewal.
    pub outdated: u64,
    pub unknown: u64,
    pub without: u64,
}

/// Serial numbers of one hub's certificates, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateExample {
    pub hub: String,
    pub before: String,
    pub after: String,
    pub seen_by_target: Option<String>,
}

/// Hubs connected to one shard, at the end of a second of the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardHubs {
    pub shard: String,
    pub first: Option<u64>,
    pub least: Option<u64>,
    pub most: Option<u64>,
    pub last: Option<u64>,
}

/// A server that the target named, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceRow {
    pub text: String,
    /// `followed`, `not followed: …`, `refused: …`.
    pub verdict: String,
    pub count: u64,
}

/// What exactly was wrong with one operation in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TroubleRow {
    pub group: String,
    /// The operation that ended so, or that had opened the session which ended so.
    pub operation: String,
    /// The class, as in the operation's outcomes and in the causes of losses.
    pub trouble: String,
    pub count: u64,
    /// When it was first seen, from 0:00.
    pub first_us: i64,
    /// What was wrong then, in words.
    pub example: String,
}

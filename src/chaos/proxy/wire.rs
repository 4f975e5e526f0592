//! What goes over the proxy's control port, as data. Times carry their unit in the name.

use crate::plan::fault::Way;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Where our own requests live; the paths without it are left to Toxiproxy's API.
pub const PREFIX: &str = "/rushhour/v1";

/// How a running proxy is found: written by the proxy into the state directory when it is ready, removed when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub process: crate::chaos::process::Identity,
    /// The run that started it; `None` for one started by hand.
    pub run: Option<String>,
    pub control: SocketAddr,
    /// Must be shown with every request. Of no use to another user: the file is readable by its owner only.
    pub token: String,
    pub links: Vec<LinkAddress>,
}

/// A link as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAddress {
    pub name: String,
    /// `host:port`; a port of 0 has been replaced by the real one.
    pub listen: String,
    /// `host:port`, resolved anew for every connection.
    pub to: String,
}

/// A link and what it has carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkState {
    pub address: LinkAddress,
    /// Connections carried now.
    pub open: u64,
    pub accepted: u64,
    /// Connections for which the target could not be reached.
    pub refused: u64,
    pub to_target_bytes: u64,
    pub to_client_bytes: u64,
    /// Chunks of real connections that a latency held back.
    pub delayed_chunks: u64,
    pub latencies: Vec<LatencyState>,
}

/// A latency in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyState {
    pub id: String,
    pub add_us: u64,
    pub jitter_us: u64,
    pub way: Way,
    /// `None`: until it is removed.
    pub left_ms: Option<u64>,
}

/// Sets a latency on a link; one of the same id is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetLatency {
    pub id: String,
    pub add_us: u64,
    pub jitter_us: u64,
    pub way: Way,
    /// It ends by itself after this time.
    pub for_ms: Option<u64>,
    pub seed: u64,
}

/// The answer to a removal: false if there was nothing of this id, which is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub removed: bool,
}

/// One round trip of a byte through a link's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryReading {
    pub round_trip_us: u64,
}

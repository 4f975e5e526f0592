//! What goes over the proxy's control port, as data. Times carry their unit in the name.

use super::toxics::Kind;
use crate::plan::fault::{Connections, CutBy, Way};
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

/// The answer to the wish that a link be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// It was before.
    pub already: bool,
}

/// A link and what it has carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkState {
    pub name: String,
    /// One or several; each leads somewhere of its own.
    pub addresses: Vec<LinkAddress>,
    /// Whether it listens.
    pub on: bool,
    /// Connections carried now.
    pub open: u64,
    pub accepted: u64,
    /// Connections for which the target could not be reached, or that a fault refused after they were accepted.
    pub refused: u64,
    /// Connections that were cut.
    pub cut: u64,
    pub to_target_bytes: u64,
    pub to_client_bytes: u64,
    /// Chunks of real connections that went through a fault.
    pub held_chunks: u64,
    pub faults: Vec<FaultState>,
    /// Those that have ended, the latest last; the proxy forgets the oldest.
    #[serde(default)]
    pub past: Vec<FaultState>,
}

/// A fault in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultState {
    pub id: String,
    pub kind: Kind,
    pub to_target: bool,
    pub to_client: bool,
    /// The share of the connections that it acts on, 0 to 1.
    pub toxicity: f64,
    /// Whether connections that stood, new ones, or both.
    #[serde(default)]
    pub connections: Connections,
    /// `None`: until it is removed.
    pub left_ms: Option<u64>,
    /// Live connections that it acts on.
    pub acts_on: u64,
    /// Connections that it ever acted on.
    pub reached: u64,
    /// Live connections that speak something else than it understands: they pass.
    pub foreign: u64,
    /// Chunks delayed, narrowed, cut or lost; packets withheld; requests delayed or answered; connections refused or ended.
    pub hits: u64,
}

/// Sets a fault on a link; one of the same id is replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetFault {
    pub id: String,
    pub kind: Kind,
    pub way: Way,
    /// The share of the connections that it acts on, 0 to 1.
    pub toxicity: f64,
    /// Whether connections that stand when it is set, new ones, or both.
    #[serde(default)]
    pub connections: Connections,
    /// It ends by itself after this time.
    pub for_ms: Option<u64>,
    pub seed: u64,
}

/// Ends a share of the connections that a link carries now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutConnections {
    pub id: String,
    /// 0 to 1
    pub share: f64,
    pub within_ms: u64,
    pub by: CutBy,
    pub seed: u64,
}

/// The answer to a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutAnswer {
    /// Connections chosen.
    pub chosen: usize,
    /// Connections that lived.
    pub of: usize,
}

/// The answer to a removal: false if there was nothing of this id, which is no error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub removed: bool,
}

/// What a canary sends through a link's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanaryOrder {
    /// What has to come back: bytes, or packets of MQTT, of which 4 are answered.
    pub bytes: u64,
    /// Whether it ends its side, and waits for the end of the other.
    pub close: bool,
    /// How long it waits.
    pub limit_ms: u64,
    /// What it says.
    #[serde(default)]
    pub speaks: Speaks,
}

/// The language of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaks {
    /// Bytes, which an echo gives back.
    #[default]
    Bytes,
    /// CONNECT, PINGREQ, PUBLISH, PUBACK of MQTT 5, each of which is answered.
    Mqtt,
    /// A GET, which is answered with 200.
    Http,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryReading {
    /// Until everything was back, the connection had ended, or the limit was over.
    pub round_trip_us: u64,
    pub back_bytes: u64,
    pub end: CanaryEnd,
    /// The types of the MQTT packets that came back, or the status of the HTTP answer.
    #[serde(default)]
    pub heard: Vec<u16>,
}

/// How a canary's flight ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryEnd {
    /// Everything came back, and the connection goes on.
    Open,
    /// By FIN.
    Finished,
    /// By RST.
    Reset,
    /// Not within the limit.
    Silent,
}

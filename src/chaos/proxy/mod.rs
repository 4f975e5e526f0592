//! The fault proxy: always an own process, because the target's connections depend on it longer than on any run.
//!
//! A link listens and carries every connection to one address. Faults stand in the link's chain, which all its connections share,
//! so a fault acts on existing connections as on new ones. Adding or removing one never waits for a peer.
//! The proxy cannot delay the TCP handshake itself: a delay acts on what is sent.

mod canary;
pub mod carrier;
mod carry;
pub mod chain;
pub mod client;
mod control;
mod counters;
mod door;
mod link;
mod links;
mod metrics;
pub mod mqtt;
pub mod pipeline;
mod process;
pub mod queue;
pub mod requests;
pub mod tally;
pub mod toxics;
mod toxiproxy;
pub mod wire;

pub use process::{ProxyArguments, ProxyError, run};

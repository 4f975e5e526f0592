//! What agents decided, done for real.
//!
//! Drivers perform the actions of agents over sockets, feed back what came of them, and tell what agents can't know. They
//! decide nothing: no retry, no wait, no timeout that the plan does not name.

mod carrier;
mod clients;
pub mod docks;
mod explain;
pub mod ghosts;
pub mod given;
mod greeting;
pub mod hubs;
pub mod issuers;
mod mqtt;
pub mod outgoing;
pub mod publish;
mod schedule;
pub mod seats;
mod shards;
mod ticket;
pub mod tokens;
pub mod users;
pub mod witness;

pub use carrier::NotReady;

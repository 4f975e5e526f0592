//! What agents decided, done for real.
//!
//! Drivers perform the actions of agents over sockets, feed back what came of them, and tell what agents can't know. They
//! decide nothing: no retry, no wait, no timeout that the plan does not name.

pub mod hubs;
mod mqtt;
pub mod publish;
mod shards;

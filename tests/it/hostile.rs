//! Servers that misbehave: each keeps a log of what arrived when, and what the product tells must agree with it.

pub mod broker;
mod connecting;
mod ghosts;
mod http;
mod hubs;
mod issuing;
mod keep_alive;
mod kicked;
mod mqtt5;
mod nobody;
pub mod peer;
mod publishers;
mod sessions;
pub mod stage;

//! Servers that misbehave: each keeps a log of what arrived when, and what the product tells must agree with it.

mod broker;
mod connecting;
mod ghosts;
mod http;
mod hubs;
mod keep_alive;
mod kicked;
mod mqtt5;
mod nobody;
mod peer;
mod publishers;
mod sessions;
mod stage;

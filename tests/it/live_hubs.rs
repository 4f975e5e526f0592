//! Hubs and publishers over real sockets: against mosquitto, and against scripted servers that say odd things.

mod broker;
mod commands;
pub mod fleet;
mod ids;
mod moves;
mod mqtt5;
mod odd_servers;
mod publisher;
mod sessions;

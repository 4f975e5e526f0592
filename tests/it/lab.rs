//! The embedded target, looked at from outside: its processes, its API, its shards, its database and its defects.

mod commands;
mod cures;
mod database;
mod defects;
mod garbage;
mod hub;
mod metrics;
mod mqtt5;
mod processes;
mod raw;
mod rebalance;
mod riders;
mod shards;
mod tls;

//! Agents are pure: everything they decide is tested here without a clock and without a socket.

mod account;
mod budgets;
mod fuzz;
mod given;
mod hubs;
mod issuers;
mod measured;
mod places;
mod plans;
mod profiles;
mod retry;
mod riders;
pub mod target;
pub mod world;

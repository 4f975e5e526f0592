//! Agents are pure: everything they decide is tested here without a clock and without a socket.

mod account;
mod accounts;
mod budgets;
mod fuzz;
mod given;
mod hubs;
mod issuers;
mod journeys;
mod measured;
mod places;
mod plans;
mod profiles;
mod readmission;
mod retry;
mod riders;
mod seen;
pub mod target;
mod whole;
pub mod world;

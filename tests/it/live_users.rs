//! Riders and issuers over real sockets, against small servers on free ports.

mod budgets;
mod closing;
mod counts;
mod freeze;
mod issuing;
mod journeys;
mod members;
mod secrets;
mod stage;
mod strangers;
mod tokens;

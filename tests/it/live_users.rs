//! Riders and issuers over real sockets, against small servers on free ports.

mod budgets;
mod counts;
mod freeze;
mod issuing;
mod journeys;
mod secrets;
mod stage;
mod strangers;
mod tokens;

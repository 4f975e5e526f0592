//! Riders and issuers over real sockets, against small servers on free ports.

mod counts;
mod freeze;
mod stage;

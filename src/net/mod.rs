//! The only door to the network.

pub mod clock;
pub mod connect;
pub mod hosts;
pub mod limits;
mod resolve;

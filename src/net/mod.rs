//! The only door to the network.

pub mod clock;

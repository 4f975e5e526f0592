//! The only door to the network.

pub mod clock;
pub mod connect;
pub mod hosts;
pub mod http;
pub mod kept;
pub mod limits;
mod resolve;
pub mod secrets;
pub mod state;
pub mod stream;
pub mod tls;
pub mod websocket;

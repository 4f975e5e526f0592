//! TLS as every part of the tool speaks it.
//!
//! Decides whom we trust, who we are and what went wrong when TLS does not come about. Knows neither agents nor what is said
//! over the connection.

mod trouble;

pub use trouble::trouble;

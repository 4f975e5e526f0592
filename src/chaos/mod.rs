//! chaos.

//! live.

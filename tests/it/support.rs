//! What several areas of the tests share: peers that are started, waits on a value with a limit.

pub mod authority;
pub mod lab;
pub mod postgres;
pub mod program;
pub mod service;

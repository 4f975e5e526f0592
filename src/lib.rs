//! rushhour: load generation and chaos testing for fleets of connected devices and the people who use them.

pub mod agents;
pub mod arrivals;
pub mod chaos;
pub mod cli;
pub mod dice;
pub mod event;
pub mod lab;
pub mod live;
pub mod measure;
pub mod net;
pub mod plan;
pub mod probe;
pub mod report;
pub mod retry;
pub mod run;
pub mod spec;
pub mod watch;

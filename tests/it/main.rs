//! The one integration binary: a module per area.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests play the world: they start peers, wait by the clock, and a panic is how they fail"
)]

mod agents;
mod arrivals;
mod chaos;
mod cli;
mod docks;
mod hostile;
mod lab;
mod live_hubs;
mod live_users;
mod measure;
mod net;
mod probe;
mod recovery;
mod report;
mod run;
mod spec;
mod support;
mod tidy;
mod tls;
mod watch;

//! rushhour: load generation and chaos testing for fleets of connected devices and the people who use them.

pub mod agents;
pub mod arrivals;
#[expect(
    clippy::disallowed_methods,
    reason = "injects faults into real processes and links, by the clock"
)]
pub mod chaos;
pub mod cli;
pub mod dice;
pub mod event;
#[expect(
    clippy::disallowed_methods,
    reason = "a target of its own, in real processes on real sockets"
)]
pub mod lab;
#[expect(
    clippy::disallowed_methods,
    reason = "performs over real sockets what agents decide"
)]
pub mod live;
pub mod measure;
#[expect(
    clippy::disallowed_methods,
    reason = "the only door to the network, and the clock of a run"
)]
pub mod net;
pub mod plan;
#[expect(
    clippy::disallowed_methods,
    reason = "reads the target over the network, by the clock"
)]
pub mod probe;
pub mod report;
pub mod retry;
#[expect(
    clippy::disallowed_methods,
    reason = "drives one run by the clock and starts the lab"
)]
pub mod run;
pub mod spec;
pub mod watch;

//! rushhour: load generation and chaos testing for fleets of connected devices and the people who use them.
//!
//! # The code map
//! An agent is a pure state machine; a driver performs its actions and tells it what came of them. What happens is told as
//! [`event::Event`], counted by `measure`, judged there, and shown by `report` from one plain value.
//!
//! | area | decides or does |
//! |---|---|
//! | [`event`] | the few words that cross threads, processes and files |
//! | [`dice`] | randomness drawn from (seed, agent, count) |
//! | [`arrivals`] | when the n-th arrival is due |
//! | [`retry`] | how long to wait before the next attempt, and how many retries a group may make |
//! | [`plan`] | what a run is, as checked plain data; `plan::outlook` says what it asks of target and machine |
//! | [`spec`] | YAML in, plan out, with every problem at its place; the JSON Schemas that editors use |
//! | [`agents`] | what hub, rider, issuer and dock decide |
//! | [`net`] | the only door to the network: host list, look-ups, source addresses, TLS, identities, HTTP, secrets, limits, the clock |
//! | [`live`] | what agents decided, done for real: MQTT, riders on Goose, issuers, docks, tokens |
//! | [`chaos`] | faults done and undone: proxy process with Toxiproxy's API, links, cuts; processes, programs, units, containers, clusters, packets, sessions; journal, watchdog, heal, dry run |
//! | [`probe`] | reads the target: Prometheus texts, JSON, SQL, consoles, `$SYS` topics, PromQL, programs, canaries; presets are data |
//! | [`measure`] | recorder, ledger, pool, recovery, the critical number, what was not hit, verdict; several runs together |
//! | [`report`] | one plain `Report`; a function for each form |
//! | [`watch`] | a running test seen live: the terminal's line, the page that Prometheus reads |
//! | [`run`] | one run from start to report, and the table of exit codes |
//! | [`lab`] | the embedded target, in processes of its own |
//! | [`cli`] | commands and help texts |
//!
//! # Who may know whom
//! `tests/it/tidy.rs` holds the table and enforces it: `event dice` know nothing of ours; `arrivals retry` know these; `plan`
//! knows all four; `spec`, `agents`, `measure` and `net` know `plan` but not each other; `live` knows `agents net`; `chaos`
//! knows `net`; `probe` knows `net measure`; `report` and `watch` know `measure`; `run` knows everything above; `lab` knows
//! nothing of ours and only `cli` knows it.
//!
//! # Invariants
//! 1. `event dice arrivals retry plan agents measure` read no clock, open no socket, spawn nothing. Clippy's
//!    `disallowed-methods` enforces it; the exceptions below say why.
//! 2. The lab is reached over the wire only: a defect is found there or not at all.
//! 3. Reports see only `Report`. No form computes a number that another lacks.
//! 4. A fault's undo is data, in the journal and on the disk, before the fault is injected; a fault that was not observed to
//!    take effect makes the run inconclusive.
//! 5. Only `net` connects, and only to hosts that the target file names.
//! 6. Nothing blocks the send path: each worker tells events to its own shard; what does not fit is counted.
//! 7. Latency runs from the due time. started = ok + declined + failed + timed out + unfinished, always, and attempts equal
//!    what a server counts.
//! 8. Verdicts are Pass, Inconclusive or Fail; worst wins; no data is never a pass.
//! 9. Memory is flat in the length of a run, but for one small row a second.
//! 10. The only trait of the design is [`agents::Agent`]; faults, retries and outcomes are closed enums.
//! 11. Values of secrets stay out of every file and output.

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

//! Reads the target while the run goes on.
//!
//! Decides when each source is asked and what of its answer is a signal; what the readings mean is `measure::pool`'s. Whatever a source
//! speaks (Prometheus' text format, JSON, SQL, the console of a pooler, `$SYS` topics, PromQL, a program's output), its answer becomes
//! series, and one extractor finds the signals in them. A reading that does not come about is told as a gap, never left out and never
//! asked for twice. Runs on a thread of its own, so that a busy generator does not delay it. Contacts only hosts that the target file
//! names.

pub mod canary;
mod command;
pub mod extract;
mod instance;
pub mod json;
mod look;
mod postgres;
pub mod presets;
pub mod prometheus;
mod scrape;
pub mod sys;
pub mod table;

pub use look::{Look, Sight, look};
pub use scrape::{ProbeError, ProbeHandle, start};

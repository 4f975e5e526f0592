//! Reads the target while the run goes on.
//!
//! Decides when each source is asked and what of its text is a signal; what the readings mean is `measure::pool`'s. A reading that
//! does not come about is told as a gap, never left out and never asked for twice. Runs on a thread of its own, so that a busy
//! generator does not delay it. Contacts only hosts that the target file names.

pub mod extract;
pub mod presets;
pub mod prometheus;
mod scrape;

pub use scrape::{ProbeError, ProbeHandle, start};

//! What a run is, as checked plain data.
//!
//! A [`Plan`] is what `spec` makes of the files and what everything else reads. It decides nothing about time and knows
//! neither files nor sockets. Texts that are known only when the run starts (`<lab.api>`, `<secret.x>`) or when an agent acts
//! (`<serial>`, `<command>`) are [`Template`]s.

mod address;
pub mod boundary;
mod budgets;
pub mod command;
pub mod component;
pub mod dock;
mod environment;
pub mod expect;
pub mod fault;
mod fingerprint;
pub mod fleet;
mod happening;
pub mod identity;
pub mod journey;
pub mod json_path;
mod lab;
pub mod link_fault;
pub mod metric;
pub mod moment;
pub mod operation;
mod outcome;
pub mod outlook;
pub mod payload;
pub mod places;
pub mod probe;
pub mod quantity;
pub mod readmission;
pub mod routing;
pub mod session;
pub mod signal;
pub mod target;
pub mod template;
pub mod tls;
pub mod token;
pub mod wave;
pub mod witness;

pub use dock::DockGroup;
pub use expect::Expectation;
pub use fault::{Fault, Trigger};
pub use fleet::{HubGroup, IssuerGroup, RiderGroup};
pub use operation::{Operation, OperationKind};
pub use target::Target;
pub use template::Template;

use crate::event::MarkId;
use std::path::PathBuf;
use std::time::Duration;

/// The shortest quiet time that says what normal is: fewer seconds have no spread to speak of.
pub const SHORTEST_BASELINE: Duration = Duration::from_secs(10);

/// A line that pauses the readmission of one trigger.
#[derive(Debug, Clone, PartialEq)]
pub struct Pause {
    /// Row in `Plan::triggers`.
    pub trigger: usize,
    pub line: Expectation,
}

/// One run, checked.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The profile file, as given.
    pub profile: PathBuf,
    pub about: String,
    /// Runs of one series are compared with each other.
    pub series: Option<String>,
    pub seed: u64,
    /// Length of the load from 0:00.
    pub duration: Duration,
    /// Quiet time read before each trigger.
    pub baseline: Duration,
    /// How long "recovered" must hold.
    pub sustain: Duration,
    /// How long the run may go on past `duration` until recovery is decided.
    pub settle: Duration,
    /// How long what is in flight may take at the end.
    pub drain: Duration,
    pub target: Target,
    pub hubs: Vec<HubGroup>,
    pub riders: Vec<RiderGroup>,
    pub issuers: Vec<IssuerGroup>,
    pub docks: Vec<DockGroup>,
    /// Sorted by their time.
    pub triggers: Vec<Trigger>,
    pub faults: Vec<Fault>,
    /// What must hold before a fault is injected.
    pub steady: Vec<Expectation>,
    /// What ends the run at once.
    pub stop_if: Vec<Expectation>,
    /// What keeps hubs from being let back while it holds.
    pub pause_while: Vec<Pause>,
    pub expect: Vec<Expectation>,
    /// What `last` in a line stands for.
    pub against: Option<expect::Against>,
    /// Everything that is measured by name; built by [`operation::table`].
    pub operations: Vec<Operation>,
}

impl Plan {
    /// The name of a mark: triggers come first, then faults.
    #[must_use]
    pub fn mark_name(&self, id: MarkId) -> &str {
        let row = usize::from(id.0);
        match self.triggers.get(row) {
            Some(trigger) => &trigger.name,
            None => self
                .faults
                .get(row - self.triggers.len())
                .map_or("unknown", |fault| &fault.name),
        }
    }

    /// Where the quiet time ends that a mark is compared with, from 0:00: its own begin, or that of the mark in whose course it begins.
    #[must_use]
    pub fn quiet_end(&self, id: MarkId) -> Duration {
        if let Some(trigger) = self.triggers.get(usize::from(id.0)) {
            return trigger.at;
        }
        match self.fault_of(id) {
            Some(Fault {
                after: Some(after), ..
            }) => self.quiet_end(after.mark),
            Some(_) => {
                let first = self.fault_of(self.first_of(id));
                first.map_or(Duration::ZERO, |first| first.at)
            }
            None => Duration::ZERO,
        }
    }

    /// The first repetition of a fault; itself, of anything that is not repeated.
    #[must_use]
    pub fn first_of(&self, id: MarkId) -> MarkId {
        let repeats = self.fault_of(id).and_then(|fault| fault.repeats.as_ref());
        let first = repeats.and_then(|name| {
            let mut faults = self.faults.iter();
            faults.position(|fault| fault.repeats.as_ref() == Some(name))
        });
        first.map_or(id, |row| self.fault_mark(row))
    }

    /// The fault of a mark; none if it is a trigger.
    #[must_use]
    pub fn fault_of(&self, id: MarkId) -> Option<&Fault> {
        let row = usize::from(id.0).checked_sub(self.triggers.len())?;
        self.faults.get(row)
    }

    /// The mark of the fault in row `row` of `faults`.
    #[must_use]
    pub fn fault_mark(&self, row: usize) -> MarkId {
        MarkId(u16::try_from(self.triggers.len() + row).unwrap_or(u16::MAX))
    }
}

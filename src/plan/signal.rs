//! What can be read from a target, by name, and the presets that a target file may ask for.
//!
//! The names are here because files use them; what a preset looks for in a scraped text is data of `probe`.

use super::target::{Plays, Reading};
use serde::{Deserialize, Serialize};

/// One thing that a probe reads. Times are in microseconds, everything else is a count or the target's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// How long requests waited for a connection: a ratio of two counters or a histogram.
    Wait,
    /// Requests that wait right now.
    Waiting,
    /// Connections lent out right now.
    InUse,
    /// The most connections that the pool may lend out.
    Max,
    /// Requests that gave up waiting.
    Timeouts,
    /// Requests that got a connection.
    Acquires,
    /// Messages or jobs that wait in a queue.
    Depth,
    /// Age of the oldest of them.
    Age,
    /// Sessions that stand right now.
    Connections,
    /// Sessions opened.
    Connects,
    /// The one value of a probe that plays nothing else.
    Value,
}

impl Signal {
    /// All signals, in the order of reports.
    pub const ALL: [Signal; 11] = [
        Signal::Wait,
        Signal::Waiting,
        Signal::InUse,
        Signal::Max,
        Signal::Timeouts,
        Signal::Acquires,
        Signal::Depth,
        Signal::Age,
        Signal::Connections,
        Signal::Connects,
        Signal::Value,
    ];

    /// Its name in a target file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Signal::Wait => "wait",
            Signal::Waiting => "waiting",
            Signal::InUse => "in_use",
            Signal::Max => "max",
            Signal::Timeouts => "timeouts",
            Signal::Acquires => "acquires",
            Signal::Depth => "depth",
            Signal::Age => "age",
            Signal::Connections => "connections",
            Signal::Connects => "connects",
            Signal::Value => "value",
        }
    }

    /// The signal of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| signal.name() == name)
    }

    /// Whether a source that plays this part may have the signal.
    #[must_use]
    pub fn belongs_to(self, plays: Plays) -> bool {
        match plays {
            Plays::Pool => matches!(
                self,
                Signal::Wait
                    | Signal::Waiting
                    | Signal::InUse
                    | Signal::Max
                    | Signal::Timeouts
                    | Signal::Acquires
            ),
            Plays::Queue => matches!(self, Signal::Depth | Signal::Age),
            Plays::Broker => matches!(self, Signal::Connections | Signal::Connects),
            Plays::Value => self == Signal::Value,
        }
    }

    /// Whether the signal can be read in this way: a wait as a ratio or a histogram, what only grows as a counter, the rest as a gauge.
    #[must_use]
    pub fn reads_as(self, reading: &Reading) -> bool {
        match self {
            Signal::Wait => matches!(reading, Reading::Ratio { .. } | Reading::Histogram(_)),
            Signal::Timeouts | Signal::Acquires | Signal::Connects => {
                matches!(reading, Reading::Counter(_))
            }
            _ => matches!(reading, Reading::Gauge(_)),
        }
    }
}

/// A preset by its name in a target file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetName {
    pub name: &'static str,
    pub plays: Plays,
    /// Whether it may export a histogram of waits, so that a p99 can exist. Whether the histogram reaches far enough is known only when it is read.
    pub has_wait_histogram: bool,
}

/// Every preset. `probe::presets` has the data of each.
pub const PRESETS: [PresetName; 6] = [
    PresetName {
        name: "otel-db",
        plays: Plays::Pool,
        has_wait_histogram: true,
    },
    PresetName {
        name: "hikaricp",
        plays: Plays::Pool,
        has_wait_histogram: true,
    },
    PresetName {
        name: "hikaricp-prometheus",
        plays: Plays::Pool,
        has_wait_histogram: true,
    },
    PresetName {
        name: "go-sql",
        plays: Plays::Pool,
        has_wait_histogram: false,
    },
    PresetName {
        name: "pgxpool",
        plays: Plays::Pool,
        has_wait_histogram: false,
    },
    PresetName {
        name: "pgbouncer-exporter",
        plays: Plays::Pool,
        has_wait_histogram: false,
    },
];

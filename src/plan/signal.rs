//! What can be read from a target, by name, and the presets that a target file may ask for.
//!
//! The names are here because files use them; what a preset looks for in a scraped text is data of `probe`.

use super::target::{Plays, Reading};
use serde::{Deserialize, Serialize};

/// One thing that a probe reads. Times are in microseconds, everything else is a count or the target's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// How long requests waited for a connection: a ratio of two counters or a histogram, or a mean that somebody else has computed.
    Wait,
    /// The 99th percentile of these, where somebody else has computed it.
    WaitP99,
    /// How long the one that has waited longest has waited by now.
    WaitMax,
    /// Requests that wait right now.
    Waiting,
    /// Connections lent out right now.
    InUse,
    /// The most connections that the pool may lend out, or that a broker takes.
    Max,
    /// How full the pool is (0 to 1), where the target says so itself.
    Saturation,
    /// Requests that gave up waiting.
    Timeouts,
    /// Requests that got a connection.
    Acquires,
    /// Requests that asked for a connection, whatever came of it.
    Arrivals,
    /// Messages or jobs that wait in a queue.
    Depth,
    /// Age of the oldest of them.
    Age,
    /// Sessions or connections that stand right now.
    Connections,
    /// Sessions or connections opened.
    Connects,
    /// Sessions or connections that ended.
    Disconnects,
    /// Sessions that a newer one of the same client id has ended.
    Takeovers,
    /// Messages thrown away.
    Dropped,
    /// The one value of a probe that plays nothing else.
    Value,
}

impl Signal {
    /// All signals, in the order of reports.
    pub const ALL: [Signal; 18] = [
        Signal::Wait,
        Signal::WaitP99,
        Signal::WaitMax,
        Signal::Waiting,
        Signal::InUse,
        Signal::Max,
        Signal::Saturation,
        Signal::Timeouts,
        Signal::Acquires,
        Signal::Arrivals,
        Signal::Depth,
        Signal::Age,
        Signal::Connections,
        Signal::Connects,
        Signal::Disconnects,
        Signal::Takeovers,
        Signal::Dropped,
        Signal::Value,
    ];

    /// Its name in a target file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Signal::Wait => "wait",
            Signal::WaitP99 => "wait_p99",
            Signal::WaitMax => "wait_max",
            Signal::Waiting => "waiting",
            Signal::InUse => "in_use",
            Signal::Max => "max",
            Signal::Saturation => "saturation",
            Signal::Timeouts => "timeouts",
            Signal::Acquires => "acquires",
            Signal::Arrivals => "arrivals",
            Signal::Depth => "depth",
            Signal::Age => "age",
            Signal::Connections => "connections",
            Signal::Connects => "connects",
            Signal::Disconnects => "disconnects",
            Signal::Takeovers => "takeovers",
            Signal::Dropped => "dropped",
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
            Plays::Pool => !matches!(
                self,
                Signal::Depth
                    | Signal::Age
                    | Signal::Connections
                    | Signal::Takeovers
                    | Signal::Dropped
                    | Signal::Value
            ),
            Plays::Queue => matches!(self, Signal::Depth | Signal::Age | Signal::Dropped),
            Plays::Broker => matches!(
                self,
                Signal::Connections
                    | Signal::Max
                    | Signal::Connects
                    | Signal::Disconnects
                    | Signal::Takeovers
                    | Signal::Depth
                    | Signal::Dropped
            ),
            Plays::Value => self == Signal::Value,
        }
    }

    /// Whether it only grows while the target runs.
    #[must_use]
    pub fn is_counter(self) -> bool {
        matches!(
            self,
            Signal::Timeouts
                | Signal::Acquires
                | Signal::Arrivals
                | Signal::Connects
                | Signal::Disconnects
                | Signal::Takeovers
                | Signal::Dropped
        )
    }

    /// Whether it is a time.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(
            self,
            Signal::Wait | Signal::WaitP99 | Signal::WaitMax | Signal::Age
        )
    }

    /// Whether the signal can be read in this way: a wait in any way but a counter, what only grows as a counter, the rest as a gauge
    /// or a fixed number.
    #[must_use]
    pub fn reads_as(self, reading: &Reading) -> bool {
        match reading {
            Reading::Ratio { .. } | Reading::Histogram(_) => self == Signal::Wait,
            Reading::Counter(_) => self.is_counter(),
            Reading::Gauge(_) => !self.is_counter(),
            Reading::Fixed(_) => self == Signal::Max,
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
    /// Keys of the origins that it can be read from, the usual one first.
    pub origins: &'static [&'static str],
}

const fn preset(name: &'static str, plays: Plays, origins: &'static [&'static str]) -> PresetName {
    PresetName {
        name,
        plays,
        has_wait_histogram: false,
        origins,
    }
}

const fn with_histogram(name: &'static str) -> PresetName {
    PresetName {
        has_wait_histogram: true,
        ..preset(name, Plays::Pool, TEXT)
    }
}

/// A program may print what a library would have exported.
const TEXT: &[&str] = &["scrape", "command"];

/// Every preset. `probe::presets` has the data of each.
pub const PRESETS: [PresetName; 22] = [
    with_histogram("otel-db"),
    with_histogram("hikaricp"),
    with_histogram("hikaricp-prometheus"),
    preset("go-sql", Plays::Pool, TEXT),
    preset("pgxpool", Plays::Pool, TEXT),
    preset("pgbouncer", Plays::Pool, &["admin"]),
    preset("pgbouncer-exporter", Plays::Pool, TEXT),
    preset("pgcat", Plays::Pool, TEXT),
    preset("odyssey", Plays::Pool, &["scrape", "admin"]),
    with_histogram("vertx"),
    with_histogram("r2dbc"),
    preset("npgsql", Plays::Pool, TEXT),
    preset("active-record", Plays::Pool, TEXT),
    preset("node-pg", Plays::Pool, TEXT),
    preset("emqx", Plays::Broker, TEXT),
    preset("vernemq", Plays::Broker, TEXT),
    preset("hivemq", Plays::Broker, TEXT),
    preset("mosquitto", Plays::Broker, &["sys"]),
    preset("rabbitmq", Plays::Broker, TEXT),
    preset("nats", Plays::Broker, &["json"]),
    preset("postgres", Plays::Pool, &["sql"]),
    preset("envoy", Plays::Pool, TEXT),
];

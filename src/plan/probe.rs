//! What is read from the target while the run goes on: sources, where their readings come from, how each signal is read.

use super::template::Template;
use std::time::Duration;

/// What is read from the target while the run goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Probes {
    pub every: Duration,
    pub timeout: Duration,
    /// Share of the run without readings from which on a verdict is not possible.
    pub max_blind: f64,
    pub sources: Vec<ProbeSource>,
}

impl Default for Probes {
    fn default() -> Self {
        Probes {
            every: Duration::from_secs(1),
            timeout: Duration::from_millis(800),
            max_blind: 0.05,
            sources: Vec::new(),
        }
    }
}

/// One source of readings.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeSource {
    pub name: String,
    pub plays: Plays,
    pub origin: Origin,
    /// Labels that a series must carry as given; a series without the label is taken all the same.
    pub labels: Vec<(String, String)>,
    pub signals: Signals,
}

impl ProbeSource {
    /// Whether one of its addresses is nothing but a secret: where that leads is known only in a run.
    #[must_use]
    pub fn is_secret_as_a_whole(&self) -> bool {
        let addresses = self.origin.addresses();
        addresses
            .iter()
            .any(|address| address.to_string().starts_with("<secret."))
    }
}

/// The part that a source plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plays {
    Pool,
    Queue,
    Broker,
    /// A value of its own, known by the source's name.
    Value,
}

impl Plays {
    /// The word for it in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Plays::Pool => "pool",
            Plays::Queue => "queue",
            Plays::Broker => "broker",
            Plays::Value => "value",
        }
    }
}

/// Where readings come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// Texts of Prometheus, one address per instance.
    Scrape(Vec<Template>),
    /// JSON documents, one address per instance; signals stand at paths.
    Json(Vec<Template>),
    /// A PostgreSQL, by one connection that is held for the whole run. Without a query, the preset's own.
    Sql { at: Template, query: Option<String> },
    /// The admin console of PgBouncer or of what speaks like it.
    Console(Template),
    /// `$SYS` topics of a broker.
    Sys(Template),
    /// Instant queries of a Prometheus server: names and expressions.
    PromQl {
        at: Template,
        queries: Vec<(String, String)>,
    },
    /// Two requests of our own, sent together: one that needs the database, and one to the same service that does not.
    Canary { with: Template, without: Template },
    /// A program that prints lines of Prometheus' text format; the program and its arguments.
    Command(Vec<Template>),
}

impl Origin {
    /// Its key in a target file.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Origin::Scrape(_) => "scrape",
            Origin::Json(_) => "json",
            Origin::Sql { .. } => "sql",
            Origin::Console(_) => "admin",
            Origin::Sys(_) => "sys",
            Origin::PromQl { .. } => "promql",
            Origin::Canary { .. } => "canary",
            Origin::Command(_) => "command",
        }
    }

    /// Every address that is contacted, in order: one for each instance. A program contacts what it likes by itself.
    #[must_use]
    pub fn addresses(&self) -> Vec<&Template> {
        match self {
            Origin::Scrape(all) | Origin::Json(all) => all.iter().collect(),
            Origin::Sql { at, .. }
            | Origin::Console(at)
            | Origin::Sys(at)
            | Origin::PromQl { at, .. } => vec![at],
            Origin::Canary { with, without } => vec![with, without],
            Origin::Command(_) => Vec::new(),
        }
    }

    /// Calls `each` with every text that may hold a placeholder.
    pub fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        match self {
            Origin::Scrape(all) | Origin::Json(all) | Origin::Command(all) => {
                all.iter_mut().for_each(each);
            }
            Origin::Sql { at, .. }
            | Origin::Console(at)
            | Origin::Sys(at)
            | Origin::PromQl { at, .. } => each(at),
            Origin::Canary { with, without } => {
                each(with);
                each(without);
            }
        }
    }

    /// What has to be true for what it says, where that is not read but inferred.
    #[must_use]
    pub fn assumption(&self) -> Option<&'static str> {
        match self {
            Origin::Canary { .. } => Some(
                "inferred: assumes that the two requests differ in nothing but the database, and that a connection is what it waits for",
            ),
            _ => None,
        }
    }
}

/// Where the signals stand in what an origin says.
#[derive(Debug, Clone, PartialEq)]
pub enum Signals {
    /// A preset by its name; presets are data in `probe`.
    Preset(String),
    /// Signal name to its reading.
    Own(Vec<(String, Reading)>),
}

/// How one signal is read.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Gauge(SeriesSelector),
    Counter(SeriesSelector),
    /// Increase of the first over increase of the second.
    Ratio {
        sum: SeriesSelector,
        count: SeriesSelector,
    },
    /// A histogram by its base name.
    Histogram(SeriesSelector),
    /// A number that the target does not export, such as the size of a pool.
    Fixed(f64),
}

/// A metric name (of a JSON document: a path; of SQL: a column) with labels that must match, and the factor that brings its value to
/// the signal's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesSelector {
    pub metric: String,
    pub labels: Vec<(String, String)>,
    pub scale: f64,
}

impl SeriesSelector {
    /// The series of this name, whatever its labels.
    #[must_use]
    pub fn named(metric: &str, scale: f64) -> SeriesSelector {
        SeriesSelector {
            metric: metric.to_owned(),
            labels: Vec::new(),
            scale,
        }
    }
}

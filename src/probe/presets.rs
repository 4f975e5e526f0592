//! Presets as data: where well-known pools, poolers, brokers and databases put their signals.
//!
//! Several spellings of one signal are tried in order, and the first that is there counts: libraries rename metrics and change
//! units between versions. Sources of every row: `field/pool-and-broker-metrics.md` §1 to §3. Dots in names count as underscores.

mod brokers;
mod pools;

use crate::plan::signal::Signal;

/// The signals of one library.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    pub name: &'static str,
    /// Rows of one signal are alternatives, the preferred one first.
    pub rows: &'static [Row],
}

/// One spelling of one signal.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub signal: Signal,
    pub form: Form,
    /// What the exported value is multiplied by; times become microseconds.
    pub scale: f64,
    /// A series is read only with this label.
    pub only: Option<(&'static str, &'static str)>,
    /// A series with this label is left out.
    pub except: Option<(&'static str, &'static str)>,
    /// This label says what other metrics of the preset call by the second name.
    pub renamed: Option<(&'static str, &'static str)>,
}

/// How the metric is to be read, whatever its `# TYPE` says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Gauge(&'static str),
    Counter(&'static str),
    /// Time waited and waits that ended.
    Ratio {
        sum: &'static str,
        count: &'static str,
    },
    /// Time waited and requests that had to wait; those that did not are in neither.
    WaitersOnly {
        sum: &'static str,
        count: &'static str,
    },
    /// Time waited, and requests that arrived: counted before they wait, and whatever comes of them.
    Arrived {
        sum: &'static str,
        count: &'static str,
    },
    /// The base name of a histogram, or of a summary of which only sum and count are read.
    Histogram(&'static str),
}

const SECONDS: f64 = 1e6;
const MILLISECONDS: f64 = 1e3;
const MICROSECONDS: f64 = 1.0;
const NANOSECONDS: f64 = 1e-3;

/// The data of a preset.
#[must_use]
pub fn named(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

const fn of(name: &'static str, rows: &'static [Row]) -> Preset {
    Preset { name, rows }
}

/// Every preset; the names are those of `plan::signal::PRESETS`.
pub const ALL: [Preset; 22] = [
    of("otel-db", pools::OTEL_DB),
    of("hikaricp", pools::HIKARICP),
    of("hikaricp-prometheus", pools::HIKARICP_PROMETHEUS),
    of("go-sql", pools::GO_SQL),
    of("pgxpool", pools::PGXPOOL),
    of("pgbouncer", pools::PGBOUNCER),
    of("pgbouncer-exporter", pools::PGBOUNCER_EXPORTER),
    of("pgcat", pools::PGCAT),
    of("odyssey", pools::ODYSSEY),
    of("vertx", pools::VERTX),
    of("r2dbc", pools::R2DBC),
    of("npgsql", pools::NPGSQL),
    of("active-record", pools::ACTIVE_RECORD),
    of("node-pg", pools::NODE_PG),
    of("emqx", brokers::EMQX),
    of("vernemq", brokers::VERNEMQ),
    of("hivemq", brokers::HIVEMQ),
    of("mosquitto", brokers::MOSQUITTO),
    of("rabbitmq", brokers::RABBITMQ),
    of("nats", brokers::NATS),
    of("postgres", pools::POSTGRES),
    of("envoy", pools::ENVOY),
];

impl Row {
    const fn new(signal: Signal, form: Form, scale: f64) -> Row {
        Row {
            signal,
            form,
            scale,
            only: None,
            except: None,
            renamed: None,
        }
    }

    const fn only(self, label: &'static str, value: &'static str) -> Row {
        Row {
            only: Some((label, value)),
            ..self
        }
    }

    const fn except(self, label: &'static str, value: &'static str) -> Row {
        Row {
            except: Some((label, value)),
            ..self
        }
    }

    const fn renamed(self, label: &'static str, to: &'static str) -> Row {
        Row {
            renamed: Some((label, to)),
            ..self
        }
    }
}

const fn wait(metric: &'static str, scale: f64) -> Row {
    Row::new(Signal::Wait, Form::Histogram(metric), scale)
}

const fn ratio(sum: &'static str, count: &'static str, scale: f64) -> Row {
    Row::new(Signal::Wait, Form::Ratio { sum, count }, scale)
}

const fn gauge(signal: Signal, metric: &'static str) -> Row {
    Row::new(signal, Form::Gauge(metric), 1.0)
}

const fn counter(signal: Signal, metric: &'static str) -> Row {
    Row::new(signal, Form::Counter(metric), 1.0)
}

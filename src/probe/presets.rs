//! Presets as data: where well-known libraries put the signals of a pool.
//!
//! Several spellings of one signal are tried in order, and the first that is there counts: libraries rename metrics and change
//! units between versions. Sources of every row: `field/pool-and-broker-metrics.md` §1. Dots in names count as underscores.

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
}

/// How the metric is to be read, whatever its `# TYPE` says.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// A gauge, of the series with this label if one is given.
    Gauge(&'static str, Option<(&'static str, &'static str)>),
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
    /// The base name of a histogram, or of a summary of which only sum and count are read.
    Histogram(&'static str),
}

const SECONDS: f64 = 1e6;
const MILLISECONDS: f64 = 1e3;
const NANOSECONDS: f64 = 1e-3;

/// The data of a preset.
#[must_use]
pub fn named(name: &str) -> Option<&'static Preset> {
    ALL.iter().find(|preset| preset.name == name)
}

/// Every preset; the names are those of `plan::signal::PRESETS`.
pub const ALL: [Preset; 6] = [
    Preset {
        name: "otel-db",
        rows: OTEL_DB,
    },
    Preset {
        name: "hikaricp",
        rows: HIKARICP,
    },
    Preset {
        name: "hikaricp-prometheus",
        rows: HIKARICP_PROMETHEUS,
    },
    Preset {
        name: "go-sql",
        rows: GO_SQL,
    },
    Preset {
        name: "pgxpool",
        rows: PGXPOOL,
    },
    Preset {
        name: "pgbouncer-exporter",
        rows: PGBOUNCER_EXPORTER,
    },
];

const fn wait(metric: &'static str, scale: f64) -> Row {
    Row {
        signal: Signal::Wait,
        form: Form::Histogram(metric),
        scale,
    }
}

const fn gauge(signal: Signal, metric: &'static str) -> Row {
    Row {
        signal,
        form: Form::Gauge(metric, None),
        scale: 1.0,
    }
}

const fn gauge_where(
    signal: Signal,
    metric: &'static str,
    label: &'static str,
    value: &'static str,
) -> Row {
    Row {
        signal,
        form: Form::Gauge(metric, Some((label, value))),
        scale: 1.0,
    }
}

const fn counter(signal: Signal, metric: &'static str) -> Row {
    Row {
        signal,
        form: Form::Counter(metric),
        scale: 1.0,
    }
}

/// OpenTelemetry's database client metrics: the current names (seconds), and those up to semantic conventions 1.24
/// (`connections`, milliseconds). Exporters may leave the unit and `_total` out. Npgsql 10 puts its own name in between.
const OTEL_DB: &[Row] = &[
    wait("db_client_connection_wait_time_seconds", SECONDS),
    wait("db_client_connection_wait_time", SECONDS),
    wait("db_client_connections_wait_time_milliseconds", MILLISECONDS),
    wait("db_client_connections_wait_time_seconds", SECONDS),
    wait("db_client_connections_wait_time", MILLISECONDS),
    gauge(Signal::Waiting, "db_client_connection_pending_requests"),
    gauge(Signal::Waiting, "db_client_connections_pending_requests"),
    gauge(
        Signal::Waiting,
        "db_client_connection_npgsql_pending_requests",
    ),
    gauge_where(
        Signal::InUse,
        "db_client_connection_count",
        "db_client_connection_state",
        "used",
    ),
    gauge_where(Signal::InUse, "db_client_connection_count", "state", "used"),
    gauge_where(
        Signal::InUse,
        "db_client_connections_usage",
        "state",
        "used",
    ),
    gauge_where(
        Signal::InUse,
        "db_client_connections_usage",
        "db_client_connections_state",
        "used",
    ),
    gauge(Signal::Max, "db_client_connection_max"),
    gauge(Signal::Max, "db_client_connections_max"),
    counter(Signal::Timeouts, "db_client_connection_timeouts_total"),
    counter(Signal::Timeouts, "db_client_connection_timeouts"),
    counter(Signal::Timeouts, "db_client_connections_timeouts_total"),
    counter(Signal::Timeouts, "db_client_connections_timeouts"),
    counter(
        Signal::Timeouts,
        "db_client_connection_npgsql_timeouts_total",
    ),
    counter(Signal::Timeouts, "db_client_connection_npgsql_timeouts"),
];

/// HikariCP through Micrometer. Waits of requests that gave up are in the sum.
const HIKARICP: &[Row] = &[
    wait("hikaricp_connections_acquire_seconds", SECONDS),
    gauge(Signal::Waiting, "hikaricp_connections_pending"),
    gauge(Signal::InUse, "hikaricp_connections_active"),
    gauge(Signal::Max, "hikaricp_connections_max"),
    counter(Signal::Timeouts, "hikaricp_connections_timeout_total"),
];

/// HikariCP's own Prometheus trackers. As a histogram it ends at 1.024 ms, so a p99 of any real wait is "at least".
const HIKARICP_PROMETHEUS: &[Row] = &[
    wait("hikaricp_connection_acquired_nanos", NANOSECONDS),
    gauge(Signal::Waiting, "hikaricp_pending_threads"),
    gauge(Signal::InUse, "hikaricp_active_connections"),
    gauge(Signal::Max, "hikaricp_max_connections"),
    counter(Signal::Timeouts, "hikaricp_connection_timeout_total"),
];

/// Go's `database/sql`, by client_golang or by sqlstats. The mean is of those who waited; nothing says how many wait, nor how
/// many gave up.
const GO_SQL: &[Row] = &[
    Row {
        signal: Signal::Wait,
        form: Form::WaitersOnly {
            sum: "go_sql_wait_duration_seconds_total",
            count: "go_sql_wait_count_total",
        },
        scale: SECONDS,
    },
    Row {
        signal: Signal::Wait,
        form: Form::WaitersOnly {
            sum: "go_sql_stats_connections_blocked_seconds",
            count: "go_sql_stats_connections_waited_for",
        },
        scale: SECONDS,
    },
    gauge(Signal::InUse, "go_sql_in_use_connections"),
    gauge(Signal::InUse, "go_sql_stats_connections_in_use"),
    gauge(Signal::Max, "go_sql_max_open_connections"),
    gauge(Signal::Max, "go_sql_stats_connections_max_open"),
];

/// pgxpool by IBM/pgxpoolprometheus. Only requests that got a connection are counted.
const PGXPOOL: &[Row] = &[
    Row {
        signal: Signal::Wait,
        form: Form::Ratio {
            sum: "pgxpool_acquire_duration_ns",
            count: "pgxpool_acquire_count",
        },
        scale: NANOSECONDS,
    },
    gauge(Signal::InUse, "pgxpool_acquired_conns"),
    gauge(Signal::Max, "pgxpool_max_conns"),
    counter(Signal::Timeouts, "pgxpool_canceled_acquire_count"),
    counter(Signal::Acquires, "pgxpool_acquire_count"),
];

/// prometheus-community's pgbouncer_exporter. PgBouncer counts assignments from 1.23 on; before, transactions, which count when
/// a query arrives and so under-read the mean. `max` is left out: the exporter labels pool sizes by another database name and
/// counts the console's own pool among them.
const PGBOUNCER_EXPORTER: &[Row] = &[
    Row {
        signal: Signal::Wait,
        form: Form::Ratio {
            sum: "pgbouncer_stats_client_wait_seconds_total",
            count: "pgbouncer_stats_server_assignments_total",
        },
        scale: SECONDS,
    },
    Row {
        signal: Signal::Wait,
        form: Form::Ratio {
            sum: "pgbouncer_stats_client_wait_seconds_total",
            count: "pgbouncer_stats_sql_transactions_pooled_total",
        },
        scale: SECONDS,
    },
    gauge(
        Signal::Waiting,
        "pgbouncer_pools_client_waiting_connections",
    ),
    gauge(Signal::InUse, "pgbouncer_pools_server_active_connections"),
];

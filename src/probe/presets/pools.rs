//! Connection pools, poolers, and PostgreSQL itself.

use super::{
    Form, MICROSECONDS, MILLISECONDS, NANOSECONDS, Row, SECONDS, counter, gauge, ratio, wait,
};
use crate::plan::signal::Signal;

/// OpenTelemetry's database client metrics: the current names (seconds), and those up to semantic conventions 1.24
/// (`connections`, milliseconds). Exporters may leave the unit and `_total` out. Npgsql 10 puts its own name in between.
pub(super) const OTEL_DB: &[Row] = &[
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
    gauge(Signal::InUse, "db_client_connection_count").only("db_client_connection_state", "used"),
    gauge(Signal::InUse, "db_client_connection_count").only("state", "used"),
    gauge(Signal::InUse, "db_client_connections_usage").only("state", "used"),
    gauge(Signal::InUse, "db_client_connections_usage").only("db_client_connections_state", "used"),
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
    counter(
        Signal::Connects,
        "db_client_connection_create_time_seconds_count",
    ),
    counter(
        Signal::Connects,
        "db_client_connections_create_time_milliseconds_count",
    ),
];

/// HikariCP through Micrometer. Waits of requests that gave up are in the sum.
pub(super) const HIKARICP: &[Row] = &[
    wait("hikaricp_connections_acquire_seconds", SECONDS),
    gauge(Signal::Waiting, "hikaricp_connections_pending"),
    gauge(Signal::InUse, "hikaricp_connections_active"),
    gauge(Signal::Max, "hikaricp_connections_max"),
    counter(Signal::Timeouts, "hikaricp_connections_timeout_total"),
    counter(
        Signal::Connects,
        "hikaricp_connections_creation_seconds_count",
    ),
];

/// HikariCP's own Prometheus trackers. As a histogram it ends at 1.024 ms, so a p99 of any real wait is "at least".
pub(super) const HIKARICP_PROMETHEUS: &[Row] = &[
    wait("hikaricp_connection_acquired_nanos", NANOSECONDS),
    gauge(Signal::Waiting, "hikaricp_pending_threads"),
    gauge(Signal::InUse, "hikaricp_active_connections"),
    gauge(Signal::Max, "hikaricp_max_connections"),
    counter(Signal::Timeouts, "hikaricp_connection_timeout_total"),
    counter(
        Signal::Connects,
        "hikaricp_connection_creation_millis_count",
    ),
];

/// Go's `database/sql`, by client_golang, by sqlstats, or by otelsql (milliseconds). The mean is of those who waited; nothing says
/// how many wait, nor how many gave up.
pub(super) const GO_SQL: &[Row] = &[
    waiters(
        "go_sql_wait_duration_seconds_total",
        "go_sql_wait_count_total",
        SECONDS,
    ),
    waiters(
        "go_sql_stats_connections_blocked_seconds",
        "go_sql_stats_connections_waited_for",
        SECONDS,
    ),
    waiters(
        "db_sql_connection_wait_duration_milliseconds_total",
        "db_sql_connection_wait_total",
        MILLISECONDS,
    ),
    gauge(Signal::InUse, "go_sql_in_use_connections"),
    gauge(Signal::InUse, "go_sql_stats_connections_in_use"),
    gauge(Signal::InUse, "db_sql_connection_open").only("status", "inuse"),
    gauge(Signal::Max, "go_sql_max_open_connections"),
    gauge(Signal::Max, "go_sql_stats_connections_max_open"),
    gauge(Signal::Max, "db_sql_connection_max_open"),
];

const fn waiters(sum: &'static str, count: &'static str, scale: f64) -> Row {
    Row::new(Signal::Wait, Form::WaitersOnly { sum, count }, scale)
}

/// pgxpool by IBM/pgxpoolprometheus, or by cmackenzie1/pgxpool-prometheus, which exports no durations. Only requests that got a
/// connection are counted.
pub(super) const PGXPOOL: &[Row] = &[
    ratio(
        "pgxpool_acquire_duration_ns",
        "pgxpool_acquire_count",
        NANOSECONDS,
    ),
    gauge(Signal::InUse, "pgxpool_acquired_conns"),
    gauge(Signal::InUse, "pgx_pool_acquire_connections"),
    gauge(Signal::Max, "pgxpool_max_conns"),
    gauge(Signal::Max, "pgx_pool_max_connections"),
    counter(Signal::Timeouts, "pgxpool_canceled_acquire_count"),
    counter(Signal::Timeouts, "pgx_pool_canceled_acquire_count"),
    counter(Signal::Acquires, "pgxpool_acquire_count"),
];

/// PgBouncer's console, by column name; `avg_*` is never read: its meaning changed in 1.23. Assignments are counted from 1.23 on;
/// before, transactions, which count when a query arrives, so that in a stall they grow and waits of those who gave up are missing.
pub(super) const PGBOUNCER: &[Row] = &[
    ratio(
        "stats_total_wait_time",
        "stats_total_server_assignment_count",
        MICROSECONDS,
    )
    .except("database", "pgbouncer"),
    arrived(
        "stats_total_wait_time",
        "stats_total_xact_count",
        MICROSECONDS,
    )
    .except("database", "pgbouncer"),
    counter(Signal::Arrivals, "stats_total_xact_count").except("database", "pgbouncer"),
    Row::new(Signal::WaitMax, Form::Gauge("pools_wait_us"), MICROSECONDS)
        .except("database", "pgbouncer"),
    gauge(Signal::Waiting, "pools_cl_waiting").except("database", "pgbouncer"),
    gauge(Signal::InUse, "pools_sv_active").except("database", "pgbouncer"),
    gauge(Signal::Max, "pools_size").except("database", "pgbouncer"),
    counter(Signal::Connects, "stats_total_client_login_count").except("database", "pgbouncer"),
];

const fn arrived(sum: &'static str, count: &'static str, scale: f64) -> Row {
    Row::new(Signal::Wait, Form::Arrived { sum, count }, scale)
}

/// prometheus-community's pgbouncer_exporter: the same counters in seconds. It maps only the whole seconds of maxwait, which is
/// therefore not read, and calls the pool's database `name` where it tells pool sizes. A size is of one user's pool.
pub(super) const PGBOUNCER_EXPORTER: &[Row] = &[
    ratio(
        "pgbouncer_stats_client_wait_seconds_total",
        "pgbouncer_stats_server_assignments_total",
        SECONDS,
    )
    .except("database", "pgbouncer"),
    arrived(
        "pgbouncer_stats_client_wait_seconds_total",
        "pgbouncer_stats_sql_transactions_pooled_total",
        SECONDS,
    )
    .except("database", "pgbouncer"),
    counter(
        Signal::Arrivals,
        "pgbouncer_stats_sql_transactions_pooled_total",
    )
    .except("database", "pgbouncer"),
    gauge(
        Signal::Waiting,
        "pgbouncer_pools_client_waiting_connections",
    )
    .except("database", "pgbouncer"),
    gauge(Signal::InUse, "pgbouncer_pools_server_active_connections")
        .except("database", "pgbouncer"),
    gauge(Signal::Max, "pgbouncer_databases_pool_size")
        .renamed("name", "database")
        .except("database", "pgbouncer"),
];

/// PgCat. Only checkouts that succeeded are in the time; `avg_*` is per 15 s and not per client.
pub(super) const PGCAT: &[Row] = &[
    ratio(
        "pgcat_stats_total_wait_time",
        "pgcat_stats_total_xact_count",
        MICROSECONDS,
    ),
    gauge(Signal::Waiting, "pgcat_pools_cl_waiting"),
    gauge(Signal::InUse, "pgcat_pools_sv_active"),
    gauge(Signal::Max, "pgcat_databases_pool_size"),
];

/// Odyssey, by its exporter or by its console. Waits of those who gave up are in the time; the console always says that nobody
/// waited for any time (`maxwait` is 0), and a capacity of 0 is none.
pub(super) const ODYSSEY: &[Row] = &[
    ratio(
        "stats_total_wait_time",
        "stats_total_xact_count",
        MICROSECONDS,
    ),
    gauge(Signal::Waiting, "odyssey_client_pool_waiting_route"),
    gauge(Signal::Waiting, "pools_cl_waiting"),
    Row::new(
        Signal::WaitMax,
        Form::Gauge("odyssey_client_pool_maxwait_seconds_route"),
        SECONDS,
    ),
    gauge(Signal::InUse, "odyssey_server_pool_state_route").only("state", "active"),
    gauge(Signal::InUse, "pools_sv_active"),
    gauge(Signal::Max, "odyssey_server_pool_capacity_configured_route"),
    gauge(Signal::Max, "pools_size"),
];

/// Vert.x' SQL pools by Micrometer. The ratio is not a number where the size is not known.
pub(super) const VERTX: &[Row] = &[
    wait("vertx_pool_queue_time_seconds", SECONDS).only("pool_type", "sql"),
    wait("vertx_pool_queue_time_seconds", SECONDS),
    gauge(Signal::Waiting, "vertx_pool_queue_pending").only("pool_type", "sql"),
    gauge(Signal::Waiting, "vertx_pool_queue_pending"),
    gauge(Signal::InUse, "vertx_pool_in_use").only("pool_type", "sql"),
    gauge(Signal::InUse, "vertx_pool_in_use"),
    gauge(Signal::Saturation, "vertx_pool_ratio").only("pool_type", "sql"),
    gauge(Signal::Saturation, "vertx_pool_ratio"),
];

/// Spring's R2DBC pool; waits only where the application wires reactor-pool's own metrics.
pub(super) const R2DBC: &[Row] = &[
    wait("reactor_pool_pending_seconds", SECONDS),
    gauge(Signal::Waiting, "r2dbc_pool_pending_connections"),
    gauge(Signal::InUse, "r2dbc_pool_acquired_connections"),
    gauge(Signal::Max, "r2dbc_pool_max_allocated_connections"),
];

/// Npgsql 8 to 10. No version says how long anybody waited.
pub(super) const NPGSQL: &[Row] = &[
    gauge(
        Signal::Waiting,
        "db_client_connection_npgsql_pending_requests",
    ),
    gauge(Signal::Waiting, "db_client_connections_pending_requests"),
    gauge(Signal::InUse, "db_client_connection_count").only("db_client_connection_state", "used"),
    gauge(Signal::InUse, "db_client_connection_count").only("state", "used"),
    gauge(Signal::InUse, "db_client_connections_usage").only("state", "used"),
    gauge(Signal::Max, "db_client_connection_max"),
    gauge(Signal::Max, "db_client_connections_max"),
    counter(
        Signal::Timeouts,
        "db_client_connection_npgsql_timeouts_total",
    ),
    counter(Signal::Timeouts, "db_client_connection_npgsql_timeouts"),
    counter(Signal::Timeouts, "db_client_connections_timeouts_total"),
    counter(Signal::Timeouts, "db_client_connections_timeouts"),
    counter(
        Signal::Connects,
        "db_client_connection_npgsql_create_time_seconds_count",
    ),
    counter(
        Signal::Connects,
        "db_client_connections_create_time_seconds_count",
    ),
];

/// ActiveRecord by discourse/prometheus_exporter. Clients push, and the exporter keeps what they said for up to 60 s.
pub(super) const ACTIVE_RECORD: &[Row] = &[
    gauge(
        Signal::Waiting,
        "ruby_active_record_connection_pool_waiting",
    ),
    gauge(Signal::InUse, "ruby_active_record_connection_pool_busy"),
    gauge(Signal::Max, "ruby_active_record_connection_pool_size"),
];

/// node-postgres by christiangalsterer/node-postgres-prometheus-exporter.
pub(super) const NODE_PG: &[Row] = &[
    gauge(Signal::Waiting, "pg_pool_waiting_connections"),
    gauge(Signal::InUse, "pg_pool_active_connections"),
    gauge(Signal::Max, "pg_pool_max"),
    counter(Signal::Connects, "pg_pool_connections_created_total"),
    counter(Signal::Disconnects, "pg_pool_connections_removed_total"),
];

/// PostgreSQL itself, by the queries of `probe::postgres`. Sessions are counted from version 14 on, and refused ones nowhere.
pub(super) const POSTGRES: &[Row] = &[
    gauge(Signal::InUse, "in_use"),
    gauge(Signal::Max, "max"),
    counter(Signal::Connects, "sessions"),
];

/// Envoy's upstream connection pools. Nothing says how long a request was pending: Little's law does.
pub(super) const ENVOY: &[Row] = &[
    gauge(Signal::Waiting, "envoy_cluster_upstream_rq_pending_active"),
    gauge(Signal::InUse, "envoy_cluster_upstream_cx_active"),
    counter(Signal::Arrivals, "envoy_cluster_upstream_rq_pending_total"),
    counter(
        Signal::Timeouts,
        "envoy_cluster_upstream_rq_pending_overflow",
    ),
    counter(Signal::Connects, "envoy_cluster_upstream_cx_total"),
    counter(Signal::Disconnects, "envoy_cluster_upstream_cx_destroy"),
];

//! Presets against texts as the libraries write them, and the readings that a target file spells out itself.

use rushhour::measure::pool::{Counter, Value};
use rushhour::plan::Template;
use rushhour::plan::probe::{Origin, Plays, ProbeSource, Reading, SeriesSelector, Signals};
use rushhour::plan::signal::{PRESETS, Signal};
use rushhour::probe::extract::{Extracted, Extractor};
use rushhour::probe::presets;

fn source(signals: Signals) -> ProbeSource {
    let scrape = vec![Template::literal("http://127.0.0.1:1/metrics")];
    ProbeSource {
        name: "pool".to_owned(),
        plays: Plays::Pool,
        origin: Origin::Scrape(scrape),
        labels: Vec::new(),
        signals,
    }
}

fn read(preset: &str, text: &str) -> Extracted {
    Extractor::of(&source(Signals::Preset(preset.to_owned())))
        .unwrap()
        .read(text.as_bytes())
}

fn gauge(extracted: &Extracted, wanted: Signal) -> Option<f64> {
    extracted.values.iter().find_map(|value| match value {
        Value::Gauge { signal, value } if *signal == wanted => Some(*value),
        _ => None,
    })
}

fn counter(extracted: &Extracted, wanted: Counter) -> Option<f64> {
    extracted.values.iter().find_map(|value| match value {
        Value::Counter { counter, value, .. } if *counter == wanted => Some(*value),
        _ => None,
    })
}

#[test]
fn the_presets_of_the_plan_and_of_the_probe_are_the_same() {
    let planned: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
    let known: Vec<_> = presets::ALL.iter().map(|preset| preset.name).collect();
    assert_eq!(planned, known);
    for preset in PRESETS {
        let rows = presets::named(preset.name).unwrap().rows;
        let histogram = rows
            .iter()
            .any(|row| matches!(row.form, presets::Form::Histogram(_)));
        assert_eq!(preset.has_wait_histogram, histogram, "{}", preset.name);
        assert!(
            rows.iter().all(|row| row.signal.belongs_to(preset.plays)),
            "{}",
            preset.name
        );
    }
}

/// The names that the Python SDK 1.45 exports for the current conventions.
#[test]
fn otel_db_reads_the_current_names_in_seconds() {
    let text = r#"process_start_time_seconds 1.7e9
# TYPE db_client_connection_wait_time_seconds histogram
db_client_connection_wait_time_seconds_bucket{db_client_connection_pool_name="main",le="0.005"} 90
db_client_connection_wait_time_seconds_bucket{db_client_connection_pool_name="main",le="+Inf"} 100
db_client_connection_wait_time_seconds_sum{db_client_connection_pool_name="main"} 2.5
db_client_connection_wait_time_seconds_count{db_client_connection_pool_name="main"} 100
db_client_connection_count{db_client_connection_pool_name="main",db_client_connection_state="used"} 7
db_client_connection_count{db_client_connection_pool_name="main",db_client_connection_state="idle"} 3
db_client_connection_max{db_client_connection_pool_name="main"} 10
db_client_connection_pending_requests{db_client_connection_pool_name="main"} 4
db_client_connection_timeouts_total{db_client_connection_pool_name="main"} 2
"#;
    let read = read("otel-db", text);
    assert_eq!(counter(&read, Counter::WaitSum), Some(2_500_000.0));
    assert_eq!(counter(&read, Counter::WaitCount), Some(100.0));
    assert_eq!(
        counter(&read, Counter::WaitBucket { at_most_us: 5000.0 }),
        Some(90.0)
    );
    assert_eq!(
        counter(
            &read,
            Counter::WaitBucket {
                at_most_us: f64::INFINITY
            }
        ),
        Some(100.0)
    );
    assert_eq!(
        gauge(&read, Signal::InUse),
        Some(7.0),
        "idle connections are not in use"
    );
    assert_eq!(gauge(&read, Signal::Max), Some(10.0));
    assert_eq!(gauge(&read, Signal::Waiting), Some(4.0));
    assert_eq!(counter(&read, Counter::Of(Signal::Timeouts)), Some(2.0));
    assert_eq!(read.started, Some(1.7e9));
}

/// Before conventions 1.25: other names, and milliseconds.
#[test]
fn otel_db_reads_the_old_names_in_milliseconds() {
    let text = r#"db_client_connections_wait_time_milliseconds_bucket{pool_name="p",le="10.0"} 5
db_client_connections_wait_time_milliseconds_bucket{pool_name="p",le="+Inf"} 5
db_client_connections_wait_time_milliseconds_sum{pool_name="p"} 20
db_client_connections_wait_time_milliseconds_count{pool_name="p"} 5
db_client_connections_usage{pool_name="p",state="used"} 2
db_client_connections_usage{pool_name="p",state="idle"} 8
db_client_connections_max{pool_name="p"} 10
db_client_connections_pending_requests{pool_name="p"} 1
db_client_connections_timeouts_total{pool_name="p"} 3
"#;
    let read = read("otel-db", text);
    assert_eq!(counter(&read, Counter::WaitSum), Some(20_000.0));
    assert_eq!(
        counter(
            &read,
            Counter::WaitBucket {
                at_most_us: 10_000.0
            }
        ),
        Some(5.0)
    );
    assert_eq!(gauge(&read, Signal::InUse), Some(2.0));
    assert_eq!(gauge(&read, Signal::Max), Some(10.0));
    assert_eq!(gauge(&read, Signal::Waiting), Some(1.0));
    assert_eq!(counter(&read, Counter::Of(Signal::Timeouts)), Some(3.0));
}

/// `OTEL_SEMCONV_STABILITY_OPT_IN=database/dup` exports both generations: no wait may count twice.
#[test]
fn of_two_spellings_at_once_only_one_counts() {
    let text = "db_client_connection_wait_time_seconds_sum 1\ndb_client_connection_wait_time_seconds_count 10\n\
                db_client_connections_wait_time_milliseconds_sum 1000\ndb_client_connections_wait_time_milliseconds_count 10\n\
                db_client_connection_max 5\ndb_client_connections_max 5\n";
    let read = read("otel-db", text);
    let sums = read.values.iter().filter(|value| {
        matches!(
            value,
            Value::Counter {
                counter: Counter::WaitSum,
                ..
            }
        )
    });
    assert_eq!(sums.count(), 1);
    assert!(
        read.found
            .contains(&(Signal::Max, "db_client_connection_max".to_owned()))
    );
}

/// Prometheus 3 may be given names with dots.
#[test]
fn dots_in_names_count_as_underscores() {
    let text = r#"{"db.client.connection.pending_requests","db.client.connection.pool.name"="x"} 3
{"db.client.connection.count","db.client.connection.state"="used"} 2
"#;
    let read = read("otel-db", text);
    assert_eq!(gauge(&read, Signal::Waiting), Some(3.0));
    assert_eq!(gauge(&read, Signal::InUse), Some(2.0));
}

/// Micrometer's exposition with the trailing comma of the old client.
#[test]
fn hikaricp_reads_micrometer() {
    let text = "hikaricp_connections_acquire_seconds_count{pool=\"main\",} 40\n\
                hikaricp_connections_acquire_seconds_sum{pool=\"main\",} 0.8\nhikaricp_connections_pending{pool=\"main\",} 6\n\
                hikaricp_connections_active{pool=\"main\",} 10\nhikaricp_connections_max{pool=\"main\",} 10\n\
                hikaricp_connections_timeout_total{pool=\"main\",} 1\n";
    let read = read("hikaricp", text);
    assert_eq!(counter(&read, Counter::WaitSum), Some(800_000.0));
    assert_eq!(gauge(&read, Signal::Waiting), Some(6.0));
    assert_eq!(read.found.len(), 5);
}

/// A summary's empty quantiles are NaN: they say nothing, and sum and count are read all the same.
#[test]
fn hikaricp_prometheus_reads_a_summary_in_nanoseconds() {
    let text = "hikaricp_connection_acquired_nanos{pool=\"p\",quantile=\"0.99\"} NaN\n\
                hikaricp_connection_acquired_nanos_sum{pool=\"p\"} 3.0E9\nhikaricp_connection_acquired_nanos_count{pool=\"p\"} 30\n\
                hikaricp_pending_threads{pool=\"p\"} NaN\n";
    let read = read("hikaricp-prometheus", text);
    assert_eq!(counter(&read, Counter::WaitSum), Some(3_000_000.0));
    assert_eq!(
        gauge(&read, Signal::Waiting),
        None,
        "what is not a number is not zero"
    );
}

#[test]
fn go_sql_counts_only_who_waited() {
    let read = read(
        "go-sql",
        "go_sql_wait_duration_seconds_total{db_name=\"a\"} 2\ngo_sql_wait_count_total{db_name=\"a\"} 4\n",
    );
    assert_eq!(counter(&read, Counter::WaitSum), Some(2_000_000.0));
    assert_eq!(
        (
            counter(&read, Counter::Waiters),
            counter(&read, Counter::WaitCount)
        ),
        (Some(4.0), None)
    );
}

/// PgBouncer before 1.23 has no assignments: transactions stand in.
#[test]
fn pgbouncer_falls_back_to_transactions() {
    let old = "pgbouncer_stats_client_wait_seconds_total{database=\"a\"} 1\npgbouncer_stats_sql_transactions_pooled_total{database=\"a\"} 9\n";
    let new = format!("{old}pgbouncer_stats_server_assignments_total{{database=\"a\"}} 5\n");
    assert_eq!(
        counter(
            &read("pgbouncer-exporter", old),
            Counter::Of(Signal::Arrivals)
        ),
        Some(9.0)
    );
    assert_eq!(
        counter(&read("pgbouncer-exporter", &new), Counter::WaitCount),
        Some(5.0)
    );
}

#[test]
fn a_target_file_may_spell_its_readings_out() {
    let pick = |metric: &str, labels: &[(&str, &str)], scale| SeriesSelector {
        metric: metric.to_owned(),
        labels: labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        scale,
    };
    let own = vec![
        (
            "wait".to_owned(),
            Reading::Ratio {
                sum: pick("legacy_wait_ms_total", &[], 1e3),
                count: pick("legacy_acquires_total", &[], 1.0),
            },
        ),
        (
            "in_use".to_owned(),
            Reading::Gauge(pick("legacy_busy", &[("pool", "orders")], 1.0)),
        ),
        (
            "acquires".to_owned(),
            Reading::Counter(pick("legacy_acquires_total", &[], 1.0)),
        ),
    ];
    let text = "legacy_wait_ms_total 50\nlegacy_acquires_total 10\nlegacy_busy{pool=\"orders\"} 3\nlegacy_busy{pool=\"other\"} 9\n";
    let read = Extractor::of(&source(Signals::Own(own)))
        .unwrap()
        .read(text.as_bytes());
    assert_eq!(counter(&read, Counter::WaitSum), Some(50_000.0));
    assert_eq!(counter(&read, Counter::Of(Signal::Acquires)), Some(10.0));
    assert_eq!(
        gauge(&read, Signal::InUse),
        Some(3.0),
        "only the pool that is asked for"
    );
}

#[test]
fn what_is_unknown_is_named_with_what_there_is() {
    let error = Extractor::of(&source(Signals::Preset("hikari".to_owned())))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(
            "probes.sources.pool: there is no preset `hikari`; there are otel-db, hikaricp"
        ),
        "{error}"
    );
    let pick = SeriesSelector {
        metric: "x".to_owned(),
        labels: Vec::new(),
        scale: 1.0,
    };
    let own = Signals::Own(vec![("waits".to_owned(), Reading::Gauge(pick))]);
    let error = Extractor::of(&source(own)).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "probes.sources.pool: there is no signal `waits`; there are wait, wait_p99"
        ),
        "{error}"
    );
}

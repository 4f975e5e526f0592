//! `/metrics` in Prometheus' text form, on a thread and a port of its own: it answers when nothing else does.
//!
//! The pool's metrics have the names of OpenTelemetry's database conventions in Prometheus' spelling.

use super::Gateway;
use super::counts::Count;
use super::pool::{Endpoint, Pool};
use crate::lab::PartError;
use crate::lab::listen;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The pool's name in its metrics.
const POOL: &str = "db_client_connection_pool_name=\"lab\"";

/// Serves `/metrics` on a thread of its own until the process ends.
///
/// # Errors
/// If the port can't be listened on.
pub fn start(gateway: Arc<Gateway>, port: u16) -> Result<(), PartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _inside = runtime.enter();
        listen::listen(port)?
    };
    std::thread::spawn(move || {
        let routes = Router::new()
            .route("/metrics", routing::get(metrics))
            .route("/metrics/status", routing::get(status_metrics))
            .with_state(gateway);
        // It serves until the process ends.
        let _ = runtime.block_on(async { axum::serve(listener, routes).await });
    });
    Ok(())
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text(&gateway),
    )
        .into_response()
}

/// The pool of status refreshes by itself, so that its figures are not added to those of the other one.
async fn status_metrics(State(gateway): State<Arc<Gateway>>) -> Response {
    let mut page = Page(String::new());
    pool(&gateway.status_pool, &mut page);
    process(&gateway, &mut page);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, kind)], page.0).into_response()
}

fn text(gateway: &Gateway) -> String {
    let mut page = Page(String::new());
    pool(&gateway.pool, &mut page);
    layers(gateway, &mut page);
    shards(gateway, &mut page);
    handshakes(gateway, &mut page);
    dispatch(gateway, &mut page);
    commands(gateway, &mut page);
    trips(gateway, &mut page);
    process(gateway, &mut page);
    page.0
}

fn process(gateway: &Gateway, page: &mut Page) {
    // By this, readers of counters know that they began anew.
    page.family(
        "process_start_time_seconds",
        "gauge",
        "When the gateway started, in Unix time.",
    );
    page.line(format_args!(
        "process_start_time_seconds {}",
        gateway.started_unix
    ));
}

/// A text that grows family by family.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, about: &str) {
        self.line(format_args!("# HELP {name} {about}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: impl Display, value: impl Display) {
        self.line(format_args!("{name}{{{labels}}} {value}"));
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.0, "{line}").expect("a string takes any text");
    }
}

fn pool(pool: &Pool, page: &mut Page) {
    let counts = &pool.counts;
    let name = "db_client_connection_wait_time_seconds";
    page.family(
        name,
        "histogram",
        "Time that requests waited for a connection, those without success included.",
    );
    // Read first: a wait that ends meanwhile may be in the buckets and not in the count, never the other way round.
    let seen = pool.waits.seen();
    for (bound, count) in pool.waits.cumulative() {
        let bound = if bound.is_finite() {
            bound.to_string()
        } else {
            "+Inf".to_owned()
        };
        page.sample(
            &format!("{name}_bucket"),
            format_args!("{POOL},le=\"{bound}\""),
            count,
        );
    }
    page.sample(&format!("{name}_sum"), POOL, seen.sum_us as f64 / 1e6);
    page.sample(&format!("{name}_count"), POOL, seen.count);
    let name = "db_client_connection_pending_requests";
    page.family(name, "gauge", "Requests that wait for a connection now.");
    page.sample(name, POOL, counts.waiting.load(Ordering::Relaxed));
    let name = "db_client_connection_count";
    page.family(name, "gauge", "Connections by state.");
    for (state, count) in [("used", pool.in_use()), ("idle", pool.idle_count())] {
        page.sample(
            name,
            format_args!("{POOL},state=\"{state}\",db_client_connection_state=\"{state}\""),
            count,
        );
    }
    let name = "db_client_connection_max";
    page.family(name, "gauge", "Connections that the pool may have.");
    page.sample(name, POOL, pool.size());
    pool_counters(pool, page);
}

fn pool_counters(pool: &Pool, page: &mut Page) {
    let counts = &pool.counts;
    for (name, about, count) in [
        (
            "db_client_connection_timeouts_total",
            "Waits that ended by the acquire timeout.",
            &counts.timeouts,
        ),
        (
            "lab_pool_refused_total",
            "Requests refused at once because the queue was full.",
            &counts.refused,
        ),
        (
            "lab_pool_opened_total",
            "Connections opened.",
            &counts.opened,
        ),
        (
            "lab_pool_failed_opens_total",
            "Connections that could not be opened.",
            &counts.failed_opens,
        ),
        ("lab_pool_lost_total", "Connections lost.", &counts.lost),
    ] {
        page.family(name, "counter", about);
        page.sample(name, POOL, count.load(Ordering::Relaxed));
    }
    let name = "lab_pool_acquires_total";
    page.family(name, "counter", "Connections acquired, by what for.");
    for endpoint in Endpoint::ALL {
        let count = counts.acquires[endpoint as usize].load(Ordering::Relaxed);
        page.sample(
            name,
            format_args!("{POOL},endpoint=\"{}\"", endpoint.name()),
            count,
        );
    }
}

/// Tries by layer, connections for each unlock, and returns that wait to be booked.
fn layers(gateway: &Gateway, page: &mut Page) {
    let tries = gateway.layers.tries();
    let name = "lab_layer_tries_total";
    page.family(name, "counter", "Requests at the gateway, its calls of the station service, and that one's attempts at the database.");
    for (layer, count) in [
        ("gateway", tries.requests),
        ("service", tries.calls),
        ("database", tries.attempts),
    ] {
        page.sample(name, format_args!("layer=\"{layer}\""), count);
    }
    let name = "lab_database_attempts_per_request";
    page.family(
        name,
        "gauge",
        "Attempts at the database for each request at the gateway, in the last ten seconds.",
    );
    let recent = gateway.layers.recent(Instant::now());
    page.line(format_args!("{name} {}", recent.product()));
    let acquired = |endpoint: Endpoint| {
        gateway.pool.counts.acquires[endpoint as usize].load(Ordering::Relaxed)
    };
    let unlocks = acquired(Endpoint::Unlock);
    let name = "lab_connections_per_unlock";
    page.family(
        name,
        "gauge",
        "Connections acquired for each unlock, since the start.",
    );
    let per_unlock = match unlocks {
        0 => 1.0,
        unlocks => (unlocks + acquired(Endpoint::Candidate)) as f64 / unlocks as f64,
    };
    page.line(format_args!("{name} {per_unlock}"));
    let name = "lab_returns_queued";
    page.family(
        name,
        "gauge",
        "Returns that were taken and are not booked yet.",
    );
    page.line(format_args!("{name} {}", gateway.returns.queued()));
}

fn shards(gateway: &Gateway, page: &mut Page) {
    let sessions = gateway.presence.sessions();
    let counted = gateway.counts.shards();
    page.family("lab_sessions", "gauge", "Hubs connected, by shard.");
    for number in 1..=gateway.shards {
        let count = sessions.get(&number).copied().unwrap_or(0);
        page.sample(
            "lab_sessions",
            format_args!("shard=\"shard-{number}\""),
            count,
        );
    }
    page.family("lab_connects_total", "counter", "Sessions begun, by shard.");
    for number in 1..=gateway.shards {
        let count = counted.get(&number).map_or(0, |counts| counts.connects);
        page.sample(
            "lab_connects_total",
            format_args!("shard=\"shard-{number}\""),
            count,
        );
    }
    for (name, about) in [
        (
            "lab_disconnects_total",
            "Sessions ended, by shard and cause.",
        ),
        (
            "lab_refused_connects_total",
            "Connects turned away, by shard and cause.",
        ),
    ] {
        page.family(name, "counter", about);
        for (number, counts) in &counted {
            let causes = if name == "lab_disconnects_total" {
                &counts.disconnects
            } else {
                &counts.refused
            };
            for (cause, count) in causes {
                let cause = serde_json::to_value(cause).unwrap_or_default();
                page.sample(
                    name,
                    format_args!("shard=\"shard-{number}\",cause={cause}"),
                    count,
                );
            }
        }
    }
}

fn handshakes(gateway: &Gateway, page: &mut Page) {
    let counted = gateway.counts.shards();
    let name = "lab_tls_handshakes_total";
    page.family(name, "counter", "TLS handshakes made, by shard and kind.");
    for (number, counts) in &counted {
        for (kind, count) in [
            ("full", counts.full_handshakes),
            ("resumed", counts.resumed_handshakes),
        ] {
            page.sample(
                name,
                format_args!("shard=\"shard-{number}\",kind=\"{kind}\""),
                count,
            );
        }
    }
    let name = "lab_tls_failed_handshakes_total";
    page.family(
        name,
        "counter",
        "TLS handshakes that failed, by shard and reason.",
    );
    for (number, counts) in &counted {
        for (trouble, count) in &counts.failed_handshakes {
            let reason = serde_json::to_value(trouble).unwrap_or_default();
            page.sample(
                name,
                format_args!("shard=\"shard-{number}\",reason={reason}"),
                count,
            );
        }
    }
    let name = "lab_client_certificates";
    page.family(
        name,
        "gauge",
        "Different client certificates on live sessions.",
    );
    page.line(format_args!("{name} {}", gateway.presence.certificates()));
}

fn dispatch(gateway: &Gateway, page: &mut Page) {
    let counted = gateway.counts.shards();
    for (name, about) in [
        ("lab_shard_dispatches_total", "Commands handed to a shard."),
        (
            "lab_stale_dispatches_total",
            "Commands handed to a shard by an earlier shard map, while the hub is somewhere else.",
        ),
    ] {
        page.family(name, "counter", about);
        for number in 1..=gateway.shards {
            let count = counted.get(&number).map_or(0, |counts| {
                if name == "lab_stale_dispatches_total" {
                    counts.stale_dispatches
                } else {
                    counts.dispatches
                }
            });
            page.sample(name, format_args!("shard=\"shard-{number}\""), count);
        }
    }
    let name = "lab_worker_generation";
    page.family(
        name,
        "gauge",
        "Generation of the shard map by which each dispatch worker last handed over a command.",
    );
    for (index, generation) in gateway.workers.generations().iter().enumerate() {
        page.sample(name, format_args!("worker=\"{}\"", index + 1), generation);
    }
    for (name, about, value) in [
        (
            "lab_shard_map_generation",
            "Generation of the shard map.",
            gateway.map.generation() as f64,
        ),
        (
            "lab_shard_map_moved_hubs",
            "Hubs that are not where they were under the first shard map.",
            gateway.map.moved() as f64,
        ),
        (
            "lab_dispatch_queue_age_seconds",
            "Age of the oldest command that waits for dispatch.",
            gateway.book.oldest().as_secs_f64(),
        ),
    ] {
        page.family(name, "gauge", about);
        page.line(format_args!("{name} {value}"));
    }
}

fn trips(gateway: &Gateway, page: &mut Page) {
    page.family("lab_trips_open", "gauge", "Trips begun and not ended.");
    page.line(format_args!("lab_trips_open {}", gateway.trips.open()));
}

fn commands(gateway: &Gateway, page: &mut Page) {
    let stages = gateway.book.stages();
    page.family(
        "lab_dispatch_queue_depth",
        "gauge",
        "Commands that stand in the dispatch queue.",
    );
    page.line(format_args!(
        "lab_dispatch_queue_depth {}",
        stages.queued + stages.parked
    ));
    page.family("lab_commands", "gauge", "Commands on their way, by state.");
    for (state, count) in [
        ("storing", stages.storing),
        ("queued", stages.queued),
        ("waiting", stages.waiting),
        ("parked", stages.parked),
        ("sent", stages.sent),
        ("delivered", stages.delivered),
    ] {
        page.sample("lab_commands", format_args!("state=\"{state}\""), count);
    }
    for count in Count::ALL {
        let name = format!("lab_{}_total", count.name());
        page.family(&name, "counter", "Counted from the gateway's start.");
        page.line(format_args!("{name} {}", gateway.counts.get(count)));
    }
}

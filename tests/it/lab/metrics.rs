//! What `/metrics` says, against the exact statistics, and when nothing else answers.

use super::hub::{Hub, LIMIT, until};
use crate::support::lab::Lab;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

/// The value of the sample of that name whose labels contain `label`.
fn sample(text: &str, name: &str, label: &str) -> f64 {
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name}{{")) && line.contains(label))
        .unwrap_or_else(|| panic!("no {name}{{{label}}} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Every figure that stands in both is the same in both.
fn agree(text: &str, stats: &Value) {
    let pool = &stats["pool"];
    for (name, label, value) in [
        ("db_client_connection_max", "lab", &pool["max"]),
        (
            "db_client_connection_count",
            "state=\"used\"",
            &pool["in_use"],
        ),
        (
            "db_client_connection_count",
            "state=\"idle\"",
            &pool["idle"],
        ),
        (
            "db_client_connection_pending_requests",
            "lab",
            &pool["waiting"],
        ),
        (
            "db_client_connection_timeouts_total",
            "lab",
            &pool["timeouts"],
        ),
        (
            "lab_pool_acquires_total",
            "endpoint=\"near\"",
            &pool["acquires"]["near"],
        ),
        (
            "lab_sessions",
            "shard-1",
            &stats["shards"]["shard-1"]["sessions"],
        ),
        (
            "lab_connects_total",
            "shard-1",
            &stats["shards"]["shard-1"]["connects"],
        ),
    ] {
        assert_eq!(
            sample(text, name, label),
            number(value),
            "{name}{{{label}}}"
        );
    }
}

#[tokio::test]
async fn the_metrics_say_what_the_exact_statistics_say() {
    let lab = Lab::start(&["--set", "pool_size=2", "--set", "service_ms=20"]);
    let hub = Hub::connect(&lab, "shard-1", "h").await;
    let asked = (0..30).map(|number| {
        let path = format!("/v1/bikes/near?rider={number}");
        let lab = &lab;
        async move { lab.get(&path).await.0 }
    });
    futures::future::join_all(asked).await;
    let stats = until(
        async || lab.stats().await,
        |stats| stats["pool"]["idle"] == 2,
    )
    .await;
    let text = lab.metrics().await;
    let pool = &stats["pool"];
    let wait = "db_client_connection_wait_time_seconds";
    assert_eq!(
        sample(&text, &format!("{wait}_count"), "lab"),
        number(&pool["wait_count"])
    );
    let sum = sample(&text, &format!("{wait}_sum"), "lab");
    assert!((sum - number(&pool["wait_sum_us"]) / 1e6).abs() < 1e-6);
    // Thirty requests of 20 ms on two connections: the mean wait is near seven service times.
    assert!(sum > 30.0 * 0.08, "{sum} s in all");
    assert_eq!(
        sample(&text, &format!("{wait}_bucket"), "le=\"+Inf\""),
        number(&pool["wait_count"])
    );
    assert!(
        sample(&text, &format!("{wait}_bucket"), "le=\"10\"") > 0.0,
        "buckets reach 10 s"
    );
    agree(&text, &stats);
    hub.vanish();
}

#[tokio::test]
async fn metrics_answer_while_nothing_else_does() {
    let lab = Lab::start(&["--set", "pool_size=1", "--set", "pool_queue=500"]);
    let database = lab.pid_of("database").unwrap();
    kill(database, Signal::SIGSTOP).unwrap();
    let asked = (0..200).map(|number| {
        let path = format!("/v1/bikes/near?rider={number}");
        let lab = &lab;
        async move { lab.get(&path).await.0 }
    });
    let waiting = async {
        let text = until(
            async || lab.metrics().await,
            |text| sample(text, "db_client_connection_pending_requests", "lab") >= 199.0,
        );
        let text = tokio::time::timeout(LIMIT, text).await.unwrap();
        kill(database, Signal::SIGCONT).unwrap();
        text
    };
    let (text, answers) = tokio::join!(waiting, futures::future::join_all(asked));
    assert_eq!(
        sample(&text, "db_client_connection_count", "state=\"used\""),
        1.0
    );
    assert!(
        answers.iter().all(|status| *status == 200),
        "all were served in the end"
    );
}

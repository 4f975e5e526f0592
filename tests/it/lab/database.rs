//! The lab's database and the pool in front of it.

use super::hub::{Hub, until};
use crate::support::lab::Lab;
use crate::support::postgres::postgres;
use nix::sys::signal::{Signal, kill};
use serde_json::json;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Carries bytes between the link's port and the database, for ever.
async fn carry(lab: &Lab) {
    let listener = TcpListener::bind(lab.address("db-link")).await.unwrap();
    let database = lab.address("database");
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(database).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
}

/// One command and one trip, which between them use every kind of statement.
async fn commands_and_trips_work(lab: &Lab) {
    let mut hub = Hub::connect(lab, "shard-1", "h").await;
    assert_eq!(lab.command("h", "c", 30_000).await, 202);
    assert_eq!(lab.command("h", "c", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "c");
    hub.answer("c").await;
    until(
        async || lab.get("/v1/commands/c").await.1["state"].clone(),
        |state| state == "acknowledged",
    )
    .await;
    let (_, near) = lab.get("/v1/bikes/near?rider=1").await;
    let bike = near["bikes"][0]["id"].as_str().unwrap();
    let unlock = format!("/v1/bikes/{bike}/unlock");
    let (status, trip) = lab.post_once(&unlock, "a").await;
    assert_eq!(status, 202);
    assert_eq!(lab.post_once(&unlock, "a").await.0, 202);
    assert_eq!(lab.post_once(&unlock, "b").await.0, 409);
    let trip = format!("/v1/trips/{}", trip["trip_id"].as_str().unwrap());
    // The lock takes a moment to open.
    let read = async || lab.get(&trip).await.1["state"].clone();
    until(read, |state| state == "started").await;
    assert_eq!(lab.post_once(&format!("{trip}/end"), "e").await.0, 200);
    assert_eq!(lab.get(&trip).await.1["state"], "ended");
}

async fn client(address: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn the_same_lab_runs_on_a_real_postgresql() {
    let Some(postgres) = postgres() else { return };
    let lab = Lab::start(&["--database", &postgres.url()]);
    assert_eq!(lab.says("database"), format!("127.0.0.1:{}", postgres.port));
    assert!(
        lab.pid_of("database").is_none(),
        "it has no database of its own then"
    );
    commands_and_trips_work(&lab).await;
    let client = client(&postgres.url()).await;
    let row = client
        .query_one("SELECT serial, state FROM commands WHERE id = 'c'", &[])
        .await
        .unwrap();
    assert_eq!(
        (row.get::<_, &str>(0), row.get::<_, &str>(1)),
        ("h", "acknowledged"),
        "what the lab did stands in that PostgreSQL"
    );
}

#[tokio::test]
async fn a_real_postgresql_takes_the_stated_time_too() {
    let Some(postgres) = postgres() else { return };
    let url = postgres.url();
    let lab = Lab::start(&[
        "--database",
        &url,
        "--set",
        "service_ms=150",
        "--set",
        "pool_size=1",
    ]);
    // Five requests of one query each, one connection: the last waits for four service times.
    let asked = (0..5).map(|number| {
        let path = format!("/v1/bikes/near?rider={number}");
        let lab = &lab;
        async move { lab.get(&path).await.0 }
    });
    let answers = futures::future::join_all(asked).await;
    assert!(answers.iter().all(|status| *status == 200), "{answers:?}");
    let waited = lab.stats().await["pool"]["wait_max_us"].as_u64().unwrap();
    // Requests reach the pool by way of the gateway, the last one a little after the first is served: less than one service time.
    assert!(waited >= 3 * 150_000, "{waited} µs");
}

#[tokio::test]
async fn the_embedded_database_speaks_to_any_client_and_takes_the_stated_time() {
    let lab = Lab::start(&["--set", "service_ms=100"]);
    let url = format!("postgres://any@{}/lab", lab.says("database"));
    let client = client(&url).await;
    let begun = std::time::Instant::now();
    let rows = client
        .query(
            "SELECT id, trip FROM bikes WHERE id = $1",
            &[&"bike-000001"],
        )
        .await
        .unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert_eq!(rows[0].get::<_, &str>(0), "bike-000001");
    let error = client.simple_query("SELECT nonsense").await.unwrap_err();
    assert!(
        error.as_db_error().is_some(),
        "a wrong query is answered, not cut off: {error}"
    );
    assert!(
        client
            .simple_query("SELECT id FROM bikes LIMIT 1")
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn through_a_link_the_lab_is_ready_before_its_database_and_waits_for_somebody_there() {
    let lab = Lab::start(&["--through-link"]);
    let (status, state) = lab.get("/ready").await;
    assert_eq!((status, &state["database"]), (503, &json!(false)));
    // Hubs may come in: they are authenticated from the cache.
    let hub = Hub::connect(&lab, "shard-1", "early").await;
    assert_eq!(lab.command("early", "c", 30_000).await, 503);
    carry(&lab).await;
    until(async || lab.get("/ready").await.0, |status| *status == 200).await;
    assert!(hub.is_connected());
    commands_and_trips_work(&lab).await;
}

#[tokio::test]
async fn connections_that_were_lost_are_replaced() {
    let Some(postgres) = postgres() else { return };
    let lab = Lab::start(&[
        "--database",
        &postgres.url(),
        "--set",
        "pool_size=4",
        "--set",
        "status_pool_size=1",
    ]);
    until(
        async || lab.stats().await,
        |stats| stats["pool"]["idle"] == 4 && stats["status_pool"]["idle"] == 1,
    )
    .await;
    let client = client(&postgres.url()).await;
    let ended = client
        .query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rushhour lab'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(
        ended.len(),
        5,
        "the pool has four real connections, that of status refreshes one"
    );
    until(
        async || lab.stats().await,
        |stats| stats["pool"]["opened"] == 8 && stats["pool"]["idle"] == 4,
    )
    .await;
    assert_eq!(lab.get("/v1/bikes/near?rider=1").await.0, 200);
}

#[tokio::test]
async fn without_its_database_the_lab_answers_with_the_place_and_the_remedy() {
    let lab = Lab::start(&[]);
    let database = lab.kill("database");
    until(
        async || crate::support::lab::is_alive(database),
        |alive| !alive,
    )
    .await;
    let (status, answer) = until(
        async || lab.get("/v1/bikes/near?rider=1").await,
        |(status, _)| *status == 503,
    )
    .await;
    assert_eq!(status, 503);
    let text = answer["error"].as_str().unwrap();
    assert!(text.contains(lab.says("database")), "{text}");
    assert!(text.contains("start it"), "{text}");
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_a_long_wait_ends_in_time() {
    let lab = Lab::start(&[
        "--set",
        "pool_size=1",
        "--set",
        "pool_queue=2",
        "--set",
        "acquire_timeout_ms=300",
        "--set",
        "gateway_attempts=1",
    ]);
    // The only connection is busy for ten seconds from here on.
    let database = lab.pid_of("database").unwrap();
    kill(database, Signal::SIGSTOP).unwrap();
    let asked = (0..5).map(|number| {
        let path = format!("/v1/bikes/near?rider={number}");
        let lab = &lab;
        async move {
            tokio::time::timeout(Duration::from_secs(2), lab.get(&path))
                .await
                .ok()
        }
    });
    let mut outcomes: Vec<&str> = Vec::new();
    for answer in futures::future::join_all(asked).await {
        outcomes.push(match answer {
            None => "stuck",
            Some((503, answer)) if answer["error"].as_str().unwrap().contains("queue is full") => {
                "refused"
            }
            Some((503, answer)) if answer["error"].as_str().unwrap().contains("within 300 ms") => {
                "timed out"
            }
            Some(other) => panic!("{other:?}"),
        });
    }
    kill(database, Signal::SIGCONT).unwrap();
    outcomes.sort_unstable();
    assert_eq!(
        outcomes,
        ["refused", "refused", "stuck", "timed out", "timed out"]
    );
    let pool = lab.stats().await["pool"].clone();
    assert_eq!(
        (&pool["refused"], &pool["timeouts"]),
        (&json!(2), &json!(2))
    );
    assert!(
        pool["wait_max_us"].as_u64().unwrap() >= 300_000,
        "waits in vain count: {pool}"
    );
}

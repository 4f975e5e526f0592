//! The certificate refresh, healthy and with the defects of 2026-07-24.

use super::hub::{Hub, until};
use crate::support::lab::Lab;
use rumqttc::ConnectReturnCode;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const HUBS: usize = 40;

/// One connection at 20 ms a query: a refresh of forty hubs takes 0.8 s of its time, eight times the limit of the
/// defect that takes slowness for expiry.
const SMALL_POOL: [&str; 4] = ["--set", "pool_size=1", "--set", "service_ms=20"];

async fn fleet(lab: &Lab) -> Vec<Hub> {
    let connects = (0..HUBS).map(|number| {
        let shard = if number % 2 == 0 {
            "shard-1"
        } else {
            "shard-2"
        };
        async move { Hub::connect(lab, shard, &format!("h-{number:03}")).await }
    });
    futures::future::join_all(connects).await
}

async fn switch(lab: &Lab, defect: &str) {
    let (status, answer) = lab
        .post(&format!("/admin/defects/{defect}"), json!({ "on": true }))
        .await;
    assert_eq!((status, &answer["on"]), (200, &json!(true)));
}

async fn refresh(lab: &Lab) {
    let (status, answer) = lab
        .post("/admin/operations/refresh-certificates", json!({}))
        .await;
    assert_eq!((status, &answer["connections"]), (200, &json!(HUBS)));
}

fn ended(stats: &Value, cause: &str) -> u64 {
    ["shard-1", "shard-2"]
        .iter()
        .map(|shard| {
            stats["shards"][shard]["disconnects"][cause]
                .as_u64()
                .unwrap_or(0)
        })
        .sum()
}

#[tokio::test]
async fn healthy_a_refresh_is_noticed_by_nobody() {
    let lab = Lab::start(&SMALL_POOL);
    let hubs = fleet(&lab).await;
    refresh(&lab).await;
    let stats = until(
        async || lab.stats().await,
        |stats| stats["counts"]["checks_from_cache"] == 2 * HUBS,
    )
    .await;
    assert!(hubs.iter().all(Hub::is_connected));
    assert_eq!(stats["pool"]["acquires"]["authentication"], 0);
    assert!(
        stats["pool"]["wait_max_us"].as_u64().unwrap() < 100_000,
        "{stats}"
    );
}

#[tokio::test]
async fn with_authentication_from_the_database_a_refresh_makes_everybody_wait() {
    let lab = Lab::start(&SMALL_POOL);
    let hubs = fleet(&lab).await;
    switch(&lab, "auth-from-database").await;
    refresh(&lab).await;
    // Riders who ask one after the other: one of them stands behind the whole fleet.
    let mut slowest = Duration::ZERO;
    let stats = until(
        async || {
            let asked = Instant::now();
            assert_eq!(lab.get("/v1/bikes/near?rider=1").await.0, 200);
            slowest = slowest.max(asked.elapsed());
            lab.stats().await
        },
        |stats| stats["pool"]["acquires"]["authentication"] == HUBS,
    )
    .await;
    assert!(slowest >= Duration::from_millis(200), "{slowest:?}");
    let waited = stats["pool"]["wait_max_us"].as_u64().unwrap();
    assert!(waited >= 20_000 * (HUBS as u64 - 10), "{waited} µs");
    assert!(
        hubs.iter().all(Hub::is_connected),
        "slow alone ends no session"
    );
}

#[tokio::test]
async fn with_slowness_taken_for_expiry_too_hubs_are_thrown_out() {
    let lab = Lab::start(&SMALL_POOL);
    let mut hubs = fleet(&lab).await;
    switch(&lab, "auth-from-database").await;
    switch(&lab, "slow-auth-expires-session").await;
    refresh(&lab).await;
    // 100 ms of patience at 20 ms a check: about five are in time. Half the fleet is a bound that a slow machine keeps.
    let stats = until(
        async || lab.stats().await,
        |stats| ended(stats, "expired") >= HUBS as u64 / 2,
    )
    .await;
    let expired = usize::try_from(ended(&stats, "expired")).unwrap();
    let mut closed = 0;
    for hub in &mut hubs {
        closed += usize::from(!hub.is_connected());
    }
    assert!(
        closed >= HUBS / 4 && expired <= HUBS,
        "{closed} of {expired}"
    );
    // Who comes back at once meets the same slow check, and is thrown out before its session stands.
    let again = Hub::try_connect(&lab, "shard-1", "h-000").await;
    assert!(again.is_err());
}

#[tokio::test]
async fn a_hub_that_was_revoked_is_closed_at_the_refresh_and_turned_away_after() {
    let lab = Lab::start(&[]);
    let mut bad = Hub::connect(&lab, "shard-1", "bad").await;
    let good = Hub::connect(&lab, "shard-1", "good").await;
    let url = format!("postgres://any@{}/lab", lab.says("database"));
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("INSERT INTO revoked (serial) VALUES ('bad')")
        .await
        .unwrap();
    lab.post("/admin/operations/refresh-certificates", json!({}))
        .await;
    bad.closed().await;
    assert!(good.is_connected());
    let again = Hub::try_connect(&lab, "shard-1", "bad").await;
    assert_eq!(again.err(), Some(Some(ConnectReturnCode::NotAuthorized)));
}

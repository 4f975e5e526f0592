//! The defect of 2026-07-18 and the cures: what each of them does to those who wait for a connection.

use super::hub::{Hub, until};
use crate::support::lab::Lab;
use futures::future::join_all;
use serde_json::{Value, json};

/// Nobody who finds a free connection waits so long for it, on the slowest machine.
const NO_WAIT_US: u64 = 200_000;

async fn switch(lab: &Lab, name: &str, on: bool) {
    let (status, answer) = lab
        .post(&format!("/admin/defects/{name}"), json!({ "on": on }))
        .await;
    assert_eq!((status, &answer["on"]), (200, &json!(on)));
}

async fn longest_wait_us(lab: &Lab) -> u64 {
    lab.stats().await["pool"]["wait_max_us"].as_u64().unwrap()
}

/// Stations refresh their status all at once, and one rider asks; gives the statuses of the refreshes.
async fn refreshes(lab: &Lab) -> Vec<u16> {
    let refreshes = (0..100).map(|number| async move {
        let path = format!("/v1/stations/station-{number}/status");
        lab.post(&path, json!({ "docked": 12 })).await.0
    });
    let rider = async { lab.get("/v1/bikes/near?rider=1").await.0 };
    let (statuses, rider) = tokio::join!(join_all(refreshes), rider);
    assert_eq!(rider, 200);
    statuses
}

#[tokio::test]
async fn refreshes_keep_unlocks_waiting_only_in_a_shared_pool_and_not_when_they_are_shed() {
    // A hundred refreshes at 20 ms on two connections: a second.
    let lab = Lab::start(&[
        "--set",
        "pool_size=2",
        "--set",
        "status_pool_size=2",
        "--set",
        "service_ms=20",
    ]);
    assert!(refreshes(&lab).await.iter().all(|status| *status == 204));
    assert!(
        longest_wait_us(&lab).await < NO_WAIT_US,
        "a pool of their own"
    );
    switch(&lab, "shared-pool", true).await;
    switch(&lab, "shed-status", true).await;
    assert!(refreshes(&lab).await.iter().all(|status| *status == 429));
    assert!(
        longest_wait_us(&lab).await < NO_WAIT_US,
        "turned away before"
    );
    switch(&lab, "shed-status", false).await;
    assert!(refreshes(&lab).await.iter().all(|status| *status == 204));
    assert!(longest_wait_us(&lab).await >= 500_000, "half of the second");
}

#[tokio::test]
async fn a_bounded_queue_refuses_at_once_what_would_wait_for_too_long() {
    let lab = Lab::start(&[
        "--set",
        "pool_size=1",
        "--set",
        "service_ms=50",
        "--set",
        "gateway_attempts=1",
    ]);
    let ask = || async {
        let riders = (0..40).map(|number| {
            let (lab, path) = (&lab, format!("/v1/bikes/near?rider={number}"));
            async move { lab.get(&path).await.0 }
        });
        let statuses = join_all(riders).await;
        let served = statuses.iter().filter(|status| **status == 200).count();
        let refused = statuses.iter().filter(|status| **status == 503).count();
        assert_eq!(served + refused, 40, "{statuses:?}");
        served
    };
    switch(&lab, "bounded-pool-queue", true).await;
    let served = ask().await;
    let bounded = longest_wait_us(&lab).await;
    assert!((1..40).contains(&served), "{served} served");
    switch(&lab, "bounded-pool-queue", false).await;
    assert_eq!(ask().await, 40, "everybody is served in the end");
    let unbounded = longest_wait_us(&lab).await;
    // Two may wait, or 39: each behind those before it, at 50 ms.
    assert!(unbounded >= 1_000_000, "{unbounded} µs");
    assert!(bounded * 2 < unbounded, "{bounded} µs, {unbounded} µs");
}

#[tokio::test]
async fn admission_of_checks_leaves_half_of_the_pool_to_everybody_else() {
    const HUBS: usize = 60;
    let refresh = async |cured: bool| -> Value {
        let lab = Lab::start(&["--set", "pool_size=4", "--set", "service_ms=20"]);
        let hubs = (0..HUBS).map(|number| {
            let lab = &lab;
            async move { Hub::connect(lab, "shard-1", &format!("h-{number:03}")).await }
        });
        let _hubs = join_all(hubs).await;
        switch(&lab, "auth-from-database", true).await;
        switch(&lab, "authentication-admission", cured).await;
        lab.post("/admin/operations/refresh-certificates", json!({}))
            .await;
        until(
            async || {
                assert_eq!(lab.get("/v1/bikes/near?rider=1").await.0, 200);
                lab.stats().await
            },
            |stats| stats["pool"]["acquires"]["authentication"] == HUBS,
        )
        .await
    };
    let wait = |stats: &Value| stats["pool"]["wait_max_us"].as_u64().unwrap();
    // Fifteen in a row on each of four connections.
    let slow = refresh(false).await;
    assert!(wait(&slow) >= 220_000, "{slow}");
    let cured = refresh(true).await;
    assert!(wait(&cured) < NO_WAIT_US, "{cured}");
}

#[tokio::test]
async fn a_connection_for_each_candidate_is_harmless_one_by_one_and_locks_up_in_a_burst() {
    let lab = Lab::start(&[
        "--set",
        "pool_size=6",
        "--set",
        "acquire_timeout_ms=700",
        "--set",
        "gateway_attempts=1",
    ]);
    switch(&lab, "connection-per-candidate", true).await;
    let (_, near) = lab.get("/v1/bikes/near?rider=1").await;
    let bike = near["bikes"][0]["id"].as_str().unwrap().to_owned();
    let unlock = |name: String| {
        let (lab, path) = (&lab, format!("/v1/bikes/{bike}/unlock"));
        async move { lab.post_once(&path, &name).await.0 }
    };
    // The bike is taken after the first, and each one looks at three candidates all the same.
    for number in 0..5 {
        let status = unlock(format!("one-{number}")).await;
        assert!([202, 409].contains(&status), "{status}");
    }
    assert_eq!(
        lab.stats().await["pool"]["timeouts"],
        0,
        "nobody had to wait"
    );
    let burst = join_all((0..40).map(|number| unlock(format!("many-{number}")))).await;
    let failed = burst.iter().filter(|status| **status == 503).count();
    assert!(failed >= 10, "{burst:?}");
    assert!(lab.stats().await["pool"]["timeouts"].as_u64().unwrap() >= 10);
    switch(&lab, "connection-per-candidate", false).await;
    let cured = join_all((0..40).map(|number| unlock(format!("cured-{number}")))).await;
    assert!(cured.iter().all(|status| *status == 409), "{cured:?}");
}

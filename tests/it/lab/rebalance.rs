//! Moving hubs to other shards: how they are told, where they are sent, and where dispatch believes them to be.

use super::hub::{Hub, until};
use super::raw::{Raw, connect, connect_v4, holds, subscribe};
use crate::support::lab::Lab;
use serde_json::{Value, json};
use std::time::Duration;

/// Does an operation; gives its answer.
async fn operate(lab: &Lab, operation: &str) -> Value {
    let path = format!("/admin/operations/{operation}");
    let (status, answer) = lab.post(&path, json!({})).await;
    assert_eq!(status, 200, "{operation}: {answer}");
    answer
}

async fn switch(lab: &Lab, defect: &str, on: bool) {
    let path = format!("/admin/defects/{defect}");
    assert_eq!(lab.post(&path, json!({ "on": on })).await.0, 200);
}

/// Connects a hub of MQTT 5 to the shard; gives the connection and the CONNACK.
async fn arrive(lab: &Lab, shard: &str) -> (Raw, Vec<u8>) {
    let mut raw = Raw::plain(lab, shard).await;
    raw.send(&connect("h", 2, 30, b"", b"")).await;
    let answer = raw.packet().await.expect("a CONNACK");
    if answer[3] == 0 {
        // Only who takes commands is a hub, and can be moved.
        raw.send(&subscribe("d/h/cmd", 0)).await;
        raw.packet().await.expect("a SUBACK");
    }
    (raw, answer)
}

/// A hub of MQTT 3.1.1 that takes commands.
async fn listens(lab: &Lab, shard: &str) -> Raw {
    let mut raw = Raw::plain(lab, shard).await;
    raw.send(&connect_v4("h")).await;
    assert_eq!(raw.packet().await.unwrap(), b"\x20\x02\x00\x00");
    raw.send(b"\x82\x0c\x00\x01\x00\x07d/h/cmd\x00").await;
    assert_eq!(raw.packet().await.unwrap(), b"\x90\x03\x00\x01\x00");
    raw
}

/// Waits until so many hubs are on the shard.
async fn stand(lab: &Lab, shard: &str, count: u64) {
    let read = async || lab.stats().await["shards"][shard]["sessions"].clone();
    until(read, |sessions| *sessions == count).await;
}

#[tokio::test]
async fn hubs_are_told_in_each_way_and_turned_away_from_the_wrong_shard() {
    let lab = Lab::start(&[]);
    let (mut here, mut there) = ("shard-1", "shard-2");
    let (mut hub, _) = arrive(&lab, here).await;
    for (round, (moves, code)) in [
        ("disconnect-9c", Some(0x9c)),
        ("disconnect-9d", Some(0x9d)),
        ("8b", Some(0x8b)),
        ("fin", None),
        ("rst", None),
    ]
    .into_iter()
    .enumerate()
    {
        stand(&lab, here, 1).await;
        let answer = operate(&lab, &format!("rebalance?share=100&moves={moves}")).await;
        assert_eq!(
            (&answer["moved"], &answer["generation"]),
            (&json!(1), &json!(round + 2)),
            "{moves}"
        );
        let reference = lab.address(there).to_string();
        if moves == "rst" {
            assert!(hub.is_reset().await);
        } else {
            let farewell = hub.packet().await;
            assert_eq!(farewell.as_ref().map(|told| told[2]), code, "{moves}");
            let names_it = farewell.is_some_and(|told| holds(&told, reference.as_bytes()));
            assert_eq!(names_it, moves.starts_with("disconnect"), "{moves}");
        }
        let (_, refusal) = arrive(&lab, here).await;
        let expected = if code == Some(0x9d) { 0x9d } else { 0x9c };
        assert_eq!(refusal[3], expected, "{moves}");
        assert!(holds(&refusal, reference.as_bytes()), "{refusal:02x?}");
        let welcome;
        (hub, welcome) = arrive(&lab, there).await;
        assert_eq!(welcome[3], 0, "{moves}");
        (here, there) = (there, here);
    }
    let read = async || lab.stats().await["shards"].clone();
    let shards = until(read, |shards| {
        shards["shard-2"]["refused"]["elsewhere"] == 2
    })
    .await;
    assert_eq!(shards["shard-1"]["refused"]["elsewhere"], 3);
    assert_eq!(shards["shard-1"]["disconnects"]["rebalance"], 3);
}

#[tokio::test]
async fn mqtt_3_1_1_loses_its_connection_and_finds_its_shard_by_asking_until_the_undo() {
    let lab = Lab::start(&[]);
    let mut hub = listens(&lab, "shard-1").await;
    let asked = async || lab.get("/v1/hubs/h/shard").await.1;
    until(asked, |answer| {
        answer["shard"] == "shard-1" && answer["generation"] == 1
    })
    .await;
    operate(&lab, "rebalance?share=100").await;
    assert_eq!(hub.packet().await, None, "the end without a word");
    let answer = asked().await;
    assert_eq!(
        (&answer["shard"], &answer["generation"]),
        (&json!("shard-2"), &json!(2))
    );
    assert_eq!(answer["host"], "127.0.0.1");
    assert_eq!(answer["port"], lab.address("shard-2").port());
    assert_eq!(answer["address"], lab.says("shard-2"));

    let mut hub = listens(&lab, "shard-2").await;
    stand(&lab, "shard-2", 1).await;
    let answer = operate(&lab, "undo-rebalance").await;
    assert_eq!(
        (&answer["moved"], &answer["generation"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(hub.packet().await, None);
    assert_eq!(asked().await["shard"], "shard-1");
    let (_, stranger) = lab.get("/v1/hubs/never-seen/shard").await;
    assert_eq!(lab.get("/v1/hubs/never-seen/shard").await.1, stranger);
}

#[tokio::test]
async fn a_share_moves_and_options_that_make_no_sense_are_refused() {
    let lab = Lab::start(&[]);
    let mut hubs = Vec::new();
    for number in 0..10 {
        hubs.push(Hub::connect(&lab, "shard-1", &format!("h-{number}")).await);
    }
    for (options, complaint) in [
        ("share=101", "write a percentage from 0 to 100"),
        ("moves=9c", "write one of disconnect-9c"),
        (
            "shares=3",
            "there is no option `shares`; known are share, moves",
        ),
    ] {
        let path = format!("/admin/operations/rebalance?{options}");
        let (status, answer) = lab.post(&path, json!({})).await;
        assert_eq!(status, 400, "{options}");
        assert!(
            answer["error"].as_str().unwrap().contains(complaint),
            "{answer}"
        );
    }
    let answer = operate(&lab, "rebalance").await;
    assert_eq!(
        (&answer["connected"], &answer["moved"]),
        (&json!(10), &json!(3))
    );
    stand(&lab, "shard-1", 7).await;
    let metrics = lab.metrics().await;
    for line in ["lab_shard_map_generation 2", "lab_shard_map_moved_hubs 3"] {
        assert!(metrics.contains(line), "no {line} in\n{metrics}");
    }
    let body = json!({ "share": 0, "moves": "rst" });
    let (_, answer) = lab.post("/admin/operations/rebalance", body).await;
    assert_eq!(answer["moved"], 0);
    let alone = Lab::start(&["--shards", "1"]);
    let (status, _) = alone.post("/admin/operations/rebalance", json!({})).await;
    assert_eq!(status, 400);
}

/// A hub that has had a command on shard 1, was moved to shard 2, and stands there.
async fn moved(lab: &Lab) -> Hub {
    let mut hub = Hub::connect(lab, "shard-1", "h").await;
    assert_eq!(lab.command("h", "first", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "first");
    hub.answer("first").await;
    operate(lab, "rebalance?share=100").await;
    hub.closed().await;
    Hub::connect(lab, "shard-2", "h").await
}

fn stale(stats: &Value) -> u64 {
    stats["shards"]["shard-1"]["stale_dispatches"]
        .as_u64()
        .unwrap()
}

#[tokio::test]
async fn healthy_dispatch_follows_the_hubs_to_their_new_shard() {
    let lab = Lab::start(&["--on", "immediate-dispatch-retry"]);
    let mut hub = moved(&lab).await;
    assert_eq!(lab.command("h", "second", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "second");
    let stats = lab.stats().await;
    assert_eq!(stale(&stats), 0);
    assert_eq!(stats["counts"]["dispatch_retries"], 0);
    assert_eq!(stats["shards"]["shard-2"]["dispatches"], 1);
    assert!(
        stats["shard_map"]["workers"]
            .as_array()
            .unwrap()
            .contains(&json!(2))
    );
}

#[tokio::test]
async fn with_a_cache_that_ignores_the_generation_commands_go_to_the_old_shard_until_it_is_switched_off()
 {
    let lab = Lab::start(&["--on", "shard-map-ignores-generation"]);
    let mut ghost = Raw::plain(&lab, "shard-1").await;
    ghost.send(&connect("ghost", 2, 30, b"", b"")).await;
    ghost.packet().await.unwrap();
    let mut hub = moved(&lab).await;
    // Whoever takes no commands is no hub, and was not moved.
    ghost.send(&subscribe("d/+/cmd", 0)).await;
    ghost.packet().await.unwrap();
    assert_eq!(lab.command("h", "second", 30_000).await, 202);
    let heard = ghost.packet().await.unwrap();
    assert!(
        holds(&heard, b"\"id\":\"second\""),
        "published where the hub was"
    );
    let stats = until(async || lab.stats().await, |stats| stale(stats) >= 2).await;
    assert!(stats["counts"]["dispatch_retries"].as_u64().unwrap() >= 1);
    assert!(
        hub.is_quiet(Duration::from_millis(300)).await,
        "rejected there, and not delivered here"
    );
    let metrics = lab.metrics().await;
    assert!(metrics.contains("lab_stale_dispatches_total{shard=\"shard-1\"}"));
    assert!(!metrics.contains("lab_worker_generation{worker=\"1\"} 2"));

    switch(&lab, "shard-map-ignores-generation", false).await;
    assert_eq!(hub.command().await["id"], "second");
    let after = lab.stats().await["shard_map"]["workers"].clone();
    assert!(after.as_array().unwrap().contains(&json!(2)), "{after}");
}

#[tokio::test]
async fn immediate_retries_of_stale_commands_keep_the_workers_busy_and_others_waiting() {
    let lab = Lab::start(&[
        "--on",
        "shard-map-ignores-generation",
        "--set",
        "dispatch_workers=1",
        "--set",
        "dispatch_reconnect_ms=100",
    ]);
    let _hub = moved(&lab).await;
    let mut other = Hub::connect(&lab, "shard-1", "other").await;
    switch(&lab, "immediate-dispatch-retry", true).await;
    for number in 0..10 {
        assert_eq!(
            lab.command("h", &format!("stale-{number}"), 30_000).await,
            202
        );
    }
    // Twice as many as there are commands: each is back in the queue as soon as it was rejected.
    until(async || lab.stats().await, |stats| stale(stats) >= 20).await;
    let asked = std::time::Instant::now();
    assert_eq!(lab.command("other", "healthy", 30_000).await, 202);
    assert_eq!(other.command().await["id"], "healthy");
    // Behind ten poisoned commands of 100 ms each; half of them is a bound that holds on any machine.
    assert!(
        asked.elapsed() >= Duration::from_millis(500),
        "{:?}",
        asked.elapsed()
    );
    let metrics = lab.metrics().await;
    let age = metrics
        .lines()
        .find_map(|line| line.strip_prefix("lab_dispatch_queue_age_seconds "))
        .unwrap();
    assert!(age.parse::<f64>().unwrap() > 1.0, "{age}");
}

#[tokio::test]
async fn an_unused_entry_of_the_cache_is_forgotten_after_its_time() {
    let lab = Lab::start(&[
        "--on",
        "shard-map-ignores-generation",
        "--set",
        "shard_cache_s=1",
    ]);
    let mut hub = moved(&lab).await;
    assert_eq!(lab.command("h", "too-late", 200).await, 202);
    let read = async || lab.stats().await["counts"]["commands_expired"].clone();
    until(read, |expired| *expired == 1).await;
    assert!(hub.is_quiet(Duration::from_millis(1500)).await);
    assert_eq!(lab.command("h", "second", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "second");
}

#[tokio::test]
async fn a_restarted_shard_is_another_one_for_the_cache_too() {
    let lab = Lab::start(&["--on", "shard-map-ignores-generation"]);
    let mut hub = Hub::connect(&lab, "shard-1", "h").await;
    assert_eq!(lab.command("h", "first", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "first");
    hub.answer("first").await;
    operate(&lab, "restart-shard-1").await;
    assert_eq!(lab.stats().await["shard_map"]["generation"], 2);
    let mut hub = Hub::connect(&lab, "shard-1", "h").await;
    assert_eq!(lab.command("h", "second", 30_000).await, 202);
    until(async || lab.stats().await, |stats| stale(stats) >= 1).await;
    assert!(hub.is_quiet(Duration::from_millis(300)).await);
    switch(&lab, "shard-map-ignores-generation", false).await;
    assert_eq!(hub.command().await["id"], "second");
}

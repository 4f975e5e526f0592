//! A command's way through the lab: to the hub once, whatever happens on the way, or reported as expired.

use super::hub::{Hub, until};
use crate::support::lab::Lab;
use serde_json::json;
use std::time::Duration;

async fn state(lab: &Lab, id: &str, wanted: &str) {
    until(
        async || lab.get(&format!("/v1/commands/{id}")).await.1["state"].clone(),
        |state| state == wanted,
    )
    .await;
}

#[tokio::test]
async fn a_command_reaches_its_hub_once_and_is_acknowledged() {
    let lab = Lab::start(&[]);
    let mut hub = Hub::connect(&lab, "shard-1", "homes-000001").await;
    let mut other = Hub::connect(&lab, "shard-2", "homes-000002").await;
    assert_eq!(lab.command("homes-000001", "c-1", 30_000).await, 202);
    assert_eq!(
        hub.command().await,
        json!({ "id": "c-1", "action": "switch" })
    );
    state(&lab, "c-1", "delivered").await;
    // The same id again, before and after the answer: accepted, and nothing else.
    assert_eq!(lab.command("homes-000001", "c-1", 30_000).await, 202);
    hub.answer("c-1").await;
    state(&lab, "c-1", "acknowledged").await;
    assert_eq!(lab.command("homes-000001", "c-1", 30_000).await, 202);
    // What comes next is the next command: no second delivery stood before it.
    assert_eq!(lab.command("homes-000001", "c-2", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "c-2");
    assert!(other.is_quiet(Duration::from_millis(100)).await);
    let counts = lab.stats().await["counts"].clone();
    assert_eq!(
        (
            &counts["commands_dispatched"],
            &counts["commands_acknowledged"]
        ),
        (&json!(2), &json!(1))
    );
}

#[tokio::test]
async fn the_same_id_sent_many_times_at_once_is_delivered_once() {
    let lab = Lab::start(&[]);
    let mut hub = Hub::connect(&lab, "shard-1", "h").await;
    let attempts = (0..20).map(|_| lab.command("h", "same", 30_000));
    let answers = futures::future::join_all(attempts).await;
    assert!(answers.iter().all(|status| *status == 202), "{answers:?}");
    assert_eq!(hub.command().await["id"], "same");
    assert_eq!(lab.command("h", "next", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "next");
}

#[tokio::test]
async fn a_command_for_a_hub_that_is_away_waits_for_its_return_on_any_shard() {
    let lab = Lab::start(&[]);
    assert_eq!(lab.command("h", "early", 30_000).await, 202);
    state(&lab, "early", "waiting").await;
    let mut hub = Hub::connect(&lab, "shard-1", "h").await;
    assert_eq!(hub.command().await["id"], "early");
    hub.answer("early").await;
    state(&lab, "early", "acknowledged").await;
    hub.vanish();
    until(
        async || lab.get("/v1/hubs/h").await.1,
        |hub| hub["online"] == false,
    )
    .await;
    assert_eq!(lab.command("h", "later", 30_000).await, 202);
    state(&lab, "later", "waiting").await;
    let mut hub = Hub::connect(&lab, "shard-2", "h").await;
    assert_eq!(hub.command().await["id"], "later");
}

#[tokio::test]
async fn a_command_whose_hub_stays_away_expires_and_is_never_delivered() {
    let lab = Lab::start(&[]);
    assert_eq!(lab.command("h", "short", 200).await, 202);
    state(&lab, "short", "expired").await;
    let mut hub = Hub::connect(&lab, "shard-1", "h").await;
    assert_eq!(lab.command("h", "next", 30_000).await, 202);
    assert_eq!(
        hub.command().await["id"],
        "next",
        "the expired one did not come first"
    );
    assert_eq!(lab.stats().await["counts"]["commands_expired"], 1);
}

#[tokio::test]
async fn what_a_lost_session_had_not_taken_is_sent_on_the_next_one() {
    let lab = Lab::start(&[]);
    let hub = Hub::connect(&lab, "shard-1", "h").await;
    lab.kill("shard-1");
    // Whether it goes to the dying shard or finds the hub away: it must come out at the other shard.
    assert_eq!(lab.command("h", "caught", 30_000).await, 202);
    drop(hub);
    let mut hub = Hub::connect(&lab, "shard-2", "h").await;
    assert_eq!(hub.command().await["id"], "caught");
}

#[tokio::test]
async fn a_lab_that_accepts_and_forgets_delivers_nothing() {
    let lab = Lab::start(&["--on", "accepts-and-forgets"]);
    let mut hub = Hub::connect(&lab, "shard-1", "h").await;
    assert_eq!(lab.command("h", "forgotten", 30_000).await, 202);
    let (status, _) = lab
        .post("/admin/defects/accepts-and-forgets", json!({ "on": false }))
        .await;
    assert_eq!(status, 200);
    assert_eq!(lab.command("h", "next", 30_000).await, 202);
    assert_eq!(hub.command().await["id"], "next");
    assert_eq!(lab.stats().await["counts"]["commands_forgotten"], 1);
}

#[tokio::test]
async fn commands_that_make_no_sense_are_refused_with_the_reason() {
    let lab = Lab::start(&["--set", "dispatch_queue=1"]);
    for (serial, body) in [
        ("h", json!({ "id": "", "action": "switch" })),
        ("h", json!({ "id": "x", "action": "switch", "ttl_ms": 0 })),
        ("a+b", json!({ "id": "x", "action": "switch" })),
    ] {
        let (status, answer) = lab.post(&format!("/v1/hubs/{serial}/commands"), body).await;
        assert_eq!(status, 400, "{answer}");
    }
    assert_eq!(lab.command("h", "first", 30_000).await, 202);
    let (status, answer) = lab
        .post(
            "/v1/hubs/h/commands",
            json!({ "id": "second", "action": "switch" }),
        )
        .await;
    assert_eq!(status, 503);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .starts_with("1 commands are on their way")
    );
}

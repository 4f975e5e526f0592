//! Hubs that the lab's shards send elsewhere, in each of the ways in which a target can do it.

use super::fleet::{Told, plan, start};
use crate::support::lab::Lab;
use rushhour::event::{Cause, Event, HubChange, Outcome, ReferenceVerdict};
use rushhour::live::hubs::HubFleet;
use rushhour::plan::fault::{Disconnect, How, TriggerKind};
use rushhour::plan::session::MqttVersion;
use rushhour::plan::target::Find;
use serde_json::{Value, json};
use std::time::Duration;

const HUBS: u32 = 20;
const LIMIT: Duration = Duration::from_secs(20);
/// The lab's shards; the hubs begin with the first.
const SHARDS: [&str; 2] = ["shard-1", "shard-2"];

/// Hubs on the lab's first shard that go where they are sent.
async fn settle(lab: &Lab) -> (HubFleet, Told) {
    let ports = SHARDS.map(|shard| lab.address(shard).port());
    let mut plan = plan(&ports, HUBS);
    let device = &mut plan.target.devices[0];
    device.version = MqttVersion::V5;
    device.find = Find::Redirect;
    plan.hubs[0].reconnect.healthy_after = Duration::ZERO;
    let (fleet, told) = start(plan).await;
    stand(lab, [HUBS, 0]).await;
    assert!(fleet.all_stand(LIMIT).await);
    (fleet, told)
}

/// Waits until so many hubs are on each shard.
async fn stand(lab: &Lab, wanted: [u32; 2]) {
    let end = tokio::time::Instant::now() + LIMIT;
    loop {
        let stats = lab.stats().await;
        let there = SHARDS.map(|shard| stats["shards"][shard]["sessions"].clone());
        if there == wanted.map(Value::from) {
            return;
        }
        assert!(
            tokio::time::Instant::now() < end,
            "{there:?}, not {wanted:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn rebalance(lab: &Lab, moves: &str) {
    let path = format!("/admin/operations/rebalance?share=100&moves={moves}");
    let (status, answer) = lab.post(&path, json!({})).await;
    assert_eq!((status, &answer["moved"]), (200, &json!(HUBS)), "{answer}");
}

/// Hubs that the first shard has turned away so far.
async fn turned_away(lab: &Lab) -> u64 {
    let stats = lab.stats().await;
    let refused = &stats["shards"][SHARDS[0]]["refused"]["elsewhere"];
    refused.as_u64().unwrap_or_default()
}

fn followed(told: &Told) -> usize {
    told.count(|event| {
        matches!(
            event,
            Event::Reference {
                verdict: ReferenceVerdict::Followed,
                ..
            }
        )
    })
}

/// Ends every session from our side, and waits until everybody is back on the second shard.
async fn come_back(lab: &Lab, fleet: &HubFleet, told: &Told) {
    let left = told.hubs(HubChange::Left);
    let everybody = Disconnect {
        group: 0,
        share: 1.0,
        within: Duration::ZERO,
        by: How::Disconnect,
        away: Duration::ZERO,
        readmit: None,
    };
    fleet.order(&TriggerKind::Disconnect(everybody), 1);
    told.until(LIMIT, "everybody has left", |told| {
        told.hubs(HubChange::Left) == left + HUBS as usize
    })
    .await;
    assert!(fleet.all_stand(LIMIT).await);
    stand(lab, [0, HUBS]).await;
}

/// However they are told, all of them end up where they belong, each loss has its cause, and each reference is told once.
/// `turned_away`: hubs that had to ask the first shard again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hubs_go_where_they_are_sent_in_whatever_way_they_are_told() {
    let hubs = HUBS as usize;
    for (moves, cause, asked_again) in [
        ("disconnect-9c", Cause::Disconnected(0x9c), false),
        ("disconnect-9d", Cause::Disconnected(0x9d), false),
        ("8b", Cause::Disconnected(0x8b), true),
        ("fin", Cause::Closed, true),
        ("rst", Cause::Reset, true),
    ] {
        let lab = Lab::start(&[]);
        let (fleet, told) = settle(&lab).await;
        rebalance(&lab, moves).await;
        told.until(LIMIT, "every session was ended", |told| told.lost() == hubs)
            .await;
        stand(&lab, [0, HUBS]).await;
        assert!(fleet.all_stand(LIMIT).await, "{moves}");
        assert_eq!(told.hubs(HubChange::Lost(cause)), hubs, "{moves}");
        assert_eq!(followed(&told), hubs, "{moves}");
        let again = if asked_again { hubs } else { 0 };
        assert_eq!(turned_away(&lab).await, again as u64, "{moves}");
        assert_eq!(told.answered(Outcome::Refused(0x9c)), again, "{moves}");

        // Sent there for good they go back there by themselves; for the time being they ask where they belong.
        come_back(&lab, &fleet, &told).await;
        let for_good = moves == "disconnect-9d";
        let asked = again + if for_good { 0 } else { hubs };
        assert_eq!(turned_away(&lab).await, asked as u64, "{moves}");
        assert_eq!(fleet.stop(LIMIT).await, 0);
    }
}

/// The lab turns hubs away for good: from the first refusal on they know their place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connack_that_sends_for_good_is_remembered() {
    let lab = Lab::start(&[]);
    let (fleet, told) = settle(&lab).await;
    rebalance(&lab, "disconnect-9c").await;
    stand(&lab, [0, HUBS]).await;
    // The map stays as it is, but its refusals now say 0x9D.
    let (status, _) = lab
        .post(
            "/admin/operations/rebalance?share=0&moves=disconnect-9d",
            json!({}),
        )
        .await;
    assert_eq!(status, 200);
    assert!(fleet.all_stand(LIMIT).await);
    for _ in 0..2 {
        come_back(&lab, &fleet, &told).await;
        assert_eq!(turned_away(&lab).await, u64::from(HUBS));
    }
    assert_eq!(
        told.answered(Outcome::Refused(0x9d)),
        HUBS as usize,
        "once each"
    );
    assert_eq!(fleet.stop(LIMIT).await, 0);
}

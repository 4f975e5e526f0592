//! Against a broker that nobody here wrote: what it counted equals what was told.

use super::fleet::{self, RUN, Told, plan, start};
use crate::support::service::{Mosquitto, mosquitto, mosquitto_with};
use rumqttc::{AsyncClient, Incoming, MqttOptions, QoS};
use rushhour::event::{Event, HubChange, Outcome, PacketKind};
use rushhour::plan::Plan;
use rushhour::plan::fault::{Disconnect, How, TriggerKind};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

fn half(by: How) -> Disconnect {
    Disconnect {
        group: 0,
        share: 0.5,
        within: Duration::from_millis(200),
        by,
        away: Duration::ZERO,
        readmit: None,
    }
}

/// Waits until the broker has logged so many lines with `text`.
async fn logged(broker: &Mosquitto, text: &str, wanted: usize) {
    let end = tokio::time::Instant::now() + LIMIT;
    while broker.logged(text) < wanted && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(broker.logged(text), wanted, "lines with `{text}`");
}

/// Half of 2,000 hubs are dropped in each way there is and return; the broker counts what we count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hub_returns_however_it_was_dropped_and_the_broker_counts_the_same() {
    let Some(broker) = mosquitto() else { return };
    let (fleet, told) = start(plan(&[broker.port], 2_000)).await;
    assert!(fleet.all_stand(LIMIT).await, "{:?}", fleet.standing());
    for (round, by) in [How::Disconnect, How::Close, How::Reset]
        .into_iter()
        .enumerate()
    {
        let connected = 2_000 + 1_000 * round;
        fleet.order(&TriggerKind::Disconnect(half(by)), round as u64);
        told.until(LIMIT, "half of the hubs have left", |told| {
            told.hubs(HubChange::Left) == 1_000 * (round + 1)
        })
        .await;
        told.until(LIMIT, "all have returned", |told| {
            told.hubs(HubChange::Connected) == connected + 1_000
        })
        .await;
        assert!(fleet.all_stand(LIMIT).await);
    }
    assert_eq!(told.lost(), 0, "nobody but us ended a session");
    assert_eq!(fleet.stop(LIMIT).await, 0);

    logged(&broker, "New client connected from", 5_000).await;
    // The test's own look whether the broker listens is one connection.
    logged(&broker, "New connection from", 5_001).await;
    logged(&broker, "Sending SUBACK to", 5_000).await;
    // Dropped by DISCONNECT in the first round, and everybody at the end.
    logged(&broker, "Received DISCONNECT from", 1_000 + 2_000).await;
    assert_eq!(told.hubs(HubChange::Opened), 5_000);
    assert_eq!(told.hubs(HubChange::Accepted), 5_000);
    for (kind, sent) in [
        (PacketKind::Connect, true),
        (PacketKind::ConnAck, false),
        (PacketKind::SubAck, false),
    ] {
        assert_eq!(told.packets(kind, sent), 5_000, "{kind:?}");
    }
    assert_eq!(told.packets(PacketKind::Disconnect, true), 3_000);
    let started = told.count(|event| matches!(event, Event::Started { .. }));
    let finished = told.count(|event| {
        matches!(
            event,
            Event::Finished {
                outcome: Outcome::Ok,
                attempts: 1,
                ..
            }
        )
    });
    assert_eq!(
        (started, finished),
        (5_000, 5_000),
        "one connect each time, at the first attempt"
    );
}

/// The same seed drops the same hubs, exactly the share of them.
#[test]
fn a_seed_drops_the_same_hubs_evenly_within_the_time() {
    let order = half(How::Reset);
    let drops = order.drops(7, 2_000);
    assert_eq!(drops, order.drops(7, 2_000));
    assert_ne!(drops, order.drops(8, 2_000));
    assert_eq!(drops.len(), 1_000);
    assert!(
        drops
            .windows(2)
            .all(|pair| pair[1].1 - pair[0].1 == Duration::from_micros(200))
    );
    let mut hubs: Vec<u32> = drops.iter().map(|(hub, _)| *hub).collect();
    hubs.sort_unstable();
    hubs.dedup();
    assert_eq!(hubs.len(), 1_000, "no hub twice");
    // 1,000 of 2,000: the lower half has 500 ± 5σ (σ of the hypergeometric choice is 11).
    let lower = hubs.iter().filter(|hub| **hub < 1_000).count();
    assert!((445..=555).contains(&lower), "{lower} of the lower half");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_login_is_counted_with_its_code_as_often_as_the_broker_refuses() {
    let passwords = |folder: &std::path::Path| {
        let file = folder.join("passwords");
        std::fs::write(&file, "").unwrap();
        format!("allow_anonymous false\npassword_file {}\n", file.display())
    };
    let Some(broker) = mosquitto_with(passwords) else {
        return;
    };
    let mut plan = plan(&[broker.port], 50);
    plan.target.devices[0].username = Some(fleet::template("<serial>"));
    plan.target.devices[0].password = Some(fleet::template("wrong"));
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "everybody was refused twice", |told| {
        told.answered(Outcome::Refused(5)) >= 100
    })
    .await;
    assert_eq!(fleet.stop(LIMIT).await, 0);
    let refused = told.answered(Outcome::Refused(5));
    assert_eq!(told.hubs(HubChange::Accepted), 0);
    assert_eq!(told.packets(PacketKind::ConnAck, false), refused);
    // An attempt that the end cut off may have been refused there and not have been read here.
    let unread = told.packets(PacketKind::Connect, true) - refused;
    let there = broker.logged("not authorised");
    assert!(
        (refused..=refused + unread).contains(&there),
        "{there} there, {refused} here, {unread} unread"
    );
}

/// Publishes `payload` to a hub as somebody who has nothing to do with the run.
async fn publish(broker: &Mosquitto, messages: &[(String, bool, &str)]) {
    let (client, mut events) =
        AsyncClient::new(MqttOptions::new("stranger", "127.0.0.1", broker.port), 100);
    for (topic, retain, payload) in messages {
        client
            .publish(topic, QoS::AtLeastOnce, *retain, *payload)
            .await
            .unwrap();
    }
    let mut acknowledged = 0;
    while acknowledged < messages.len() {
        if let rumqttc::Event::Incoming(Incoming::PubAck(_)) = events.poll().await.unwrap() {
            acknowledged += 1;
        }
    }
}

fn retained(told: &Told) -> usize {
    told.count(|event| matches!(event, Event::Retained { .. }))
}

fn foreign(told: &Told) -> usize {
    told.count(|event| matches!(event, Event::Foreign { .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retained_messages_are_counted_apart_and_strange_ones_are_foreign() {
    let Some(broker) = mosquitto() else { return };
    publish(
        &broker,
        &[(
            "d/homes-000001/cmd".to_owned(),
            true,
            r#"{"id":"rother-0-1"}"#,
        )],
    )
    .await;
    let (fleet, told) = start(plan(&[broker.port], 3)).await;
    assert!(fleet.all_stand(LIMIT).await);
    told.until(LIMIT, "the retained message arrived", |told| {
        retained(told) == 1
    })
    .await;
    assert_eq!(foreign(&told), 0);
    let own_form_without_issuer = format!(r#"{{"id":"{RUN}-7-1"}}"#);
    let strange = [
        "",
        "no json",
        "{}",
        r#"{"id":null}"#,
        "[1]",
        own_form_without_issuer.as_str(),
    ];
    let messages: Vec<_> = strange
        .iter()
        .map(|text| ("d/homes-000002/cmd".to_owned(), false, *text))
        .collect();
    publish(&broker, &messages).await;
    told.until(LIMIT, "the strange messages arrived", |told| {
        foreign(told) == 6
    })
    .await;
    assert!(fleet.all_stand(LIMIT).await, "nobody minds");
    assert_eq!(fleet.stop(LIMIT).await, 0);
    assert_eq!(told.packets(PacketKind::Publish, false), 7);
    assert_eq!(told.packets(PacketKind::PubAck, true), 7);
    logged(&broker, "Received PUBACK from homes-", 7).await;
}

fn chatty(broker: &Mosquitto) -> Plan {
    let mut plan = fleet::with_telemetry(plan(&[broker.port], 20), Duration::from_millis(100), 120);
    plan.target.devices[0].telemetry.as_mut().unwrap().qos = 1;
    plan
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telemetry_has_the_stated_size_and_is_acknowledged() {
    let Some(broker) = mosquitto() else { return };
    let (fleet, told) = start(chatty(&broker)).await;
    assert!(fleet.all_stand(LIMIT).await);
    told.until(LIMIT, "100 publishes acknowledged", |told| {
        told.packets(PacketKind::PubAck, false) >= 100
    })
    .await;
    assert_eq!(fleet.stop(LIMIT).await, 0);
    let sent = told.packets(PacketKind::Publish, true);
    logged(&broker, "Received PUBLISH from homes-", sent).await;
    logged(&broker, "... (120 bytes))", sent).await;
}

/// A keep-alive of a second: the broker closes a client that is silent for 1.5 s, so who is there after 3 s has pinged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_keep_idle_sessions_alive() {
    let Some(broker) = mosquitto() else { return };
    let mut plan = plan(&[broker.port], 20);
    plan.hubs[0].keep_alive = Duration::from_secs(1);
    let (fleet, told) = start(plan).await;
    assert!(fleet.all_stand(LIMIT).await);
    told.until(LIMIT, "three pings each", |told| {
        told.packets(PacketKind::PingResp, false) >= 60
    })
    .await;
    assert_eq!(told.lost(), 0);
    assert_eq!(fleet.stop(LIMIT).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hubs_find_their_shard_and_lose_only_theirs() {
    let (Some(one), Some(two)) = (mosquitto(), mosquitto()) else {
        return;
    };
    let (fleet, told) = start(plan(&[one.port, two.port], 200)).await;
    assert!(fleet.all_stand(LIMIT).await);
    let on_one = one.logged("New client connected from");
    let on_two = two.logged("New client connected from");
    assert_eq!(on_one + on_two, 200);
    // A fair split of 200 is 100 ± 5σ (σ = 7).
    assert!((65..=135).contains(&on_one), "{on_one} on the first shard");
    drop(two);
    told.until(LIMIT, "the second shard's hubs are lost", |told| {
        told.lost() == on_two
    })
    .await;
    told.until(LIMIT, "they find nobody", |told| {
        told.answered(Outcome::Unreachable) >= on_two
    })
    .await;
    assert_eq!(fleet.standing()[0].connected as usize, on_one);
    assert_eq!(fleet.stop(LIMIT).await, 0);
}

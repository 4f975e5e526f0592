//! Sessions of both versions of MQTT against mosquitto: killed and started again, silent, taken over.

use super::fleet::{self, Told, plan, start};
use crate::support::service::{Mosquitto, mosquitto, mosquitto_with};
use nix::sys::signal::Signal;
use rushhour::event::{Cause, Event, HubChange, Outcome, PacketKind};
use rushhour::plan::session::{MqttVersion, Session};
use rushhour::plan::{OperationKind, Plan};
use std::collections::BTreeSet;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Hubs of the restart: fewer than the 2 000 that the product is held to, so that the test is quick. `RUSHHOUR_HUBS=2000` asks for all.
fn hubs() -> u32 {
    std::env::var("RUSHHOUR_HUBS").map_or(200, |text| text.parse().unwrap())
}

/// Hubs that publish with QoS 1 every second.
fn publishing(broker: &Mosquitto, count: u32, version: MqttVersion, clean_start: bool) -> Plan {
    let plan = plan(&[broker.port], count);
    let mut plan = fleet::with_telemetry(plan, Duration::from_secs(1), 60);
    let device = &mut plan.target.devices[0];
    device.telemetry.as_mut().unwrap().qos = 1;
    device.version = version;
    device.session = Session {
        clean_start,
        expiry: match version {
            MqttVersion::V5 => Duration::from_secs(3600),
            MqttVersion::V311 => Duration::ZERO,
        },
        ..Session::default()
    };
    plan
}

fn persistent() -> Option<Mosquitto> {
    mosquitto_with(|folder| {
        format!(
            "allow_anonymous true\npersistence true\npersistence_location {}/\n",
            folder.display()
        )
    })
}

/// Clients whose publishes are in the broker's log.
fn published(broker: &Mosquitto) -> usize {
    let log = broker.log();
    let clients: BTreeSet<&str> = log
        .lines()
        .filter_map(|line| line.strip_prefix("Received PUBLISH from "))
        .filter_map(|rest| rest.split(' ').next())
        .collect();
    clients.len()
}

/// Every publish that left was acknowledged, lost, or under way at the end.
fn check_account(told: &Told, plan: &Plan, what: &str) {
    let telemetry = plan
        .operation(OperationKind::Telemetry { hubs: 0 })
        .unwrap();
    let of = |wanted: &dyn Fn(&Event) -> bool| told.count(wanted);
    let left =
        of(&|event| matches!(event, Event::Attempted { operation, .. } if *operation == telemetry));
    let answered = |ok: bool| {
        of(&|event| {
            matches!(event, Event::Answered { operation, outcome, .. }
                if *operation == telemetry && (*outcome == Outcome::Ok) == ok)
        })
    };
    let started =
        of(&|event| matches!(event, Event::Started { operation, .. } if *operation == telemetry));
    let finished =
        of(&|event| matches!(event, Event::Finished { operation, .. } if *operation == telemetry));
    let unfinished = of(
        &|event| matches!(event, Event::Unfinished { operation, .. } if *operation == telemetry),
    );
    let (acknowledged, lost) = (answered(true), answered(false));
    assert_eq!(
        started,
        finished + unfinished,
        "{what}: every action has an end"
    );
    assert!(acknowledged <= left, "{what}");
    let under_way = left - acknowledged - lost;
    assert!(
        under_way <= unfinished,
        "{what}: {under_way} under way, {unfinished} unfinished"
    );
    assert_eq!(
        told.packets(PacketKind::Publish, true),
        left,
        "{what}: each attempt is one PUBLISH"
    );
    assert_eq!(
        told.packets(PacketKind::PubAck, false),
        acknowledged,
        "{what}: each PUBACK ends one"
    );
}

async fn restarted(version: MqttVersion, clean_start: bool, signal: Signal) {
    let what = format!("{version:?}, clean start {clean_start}, {signal}");
    let Some(mut broker) = persistent() else {
        return;
    };
    let count = hubs();
    let plan = publishing(&broker, count, version, clean_start);
    let (fleet, told) = start(plan.clone()).await;
    assert!(
        fleet.all_stand(LIMIT).await,
        "{what}: {:?}",
        fleet.standing()
    );
    let acknowledged = |told: &Told| told.packets(PacketKind::PubAck, false);
    told.until(LIMIT, "everybody has published", |told| {
        acknowledged(told) >= 2 * count as usize
    })
    .await;
    broker.restart(signal);
    let back = std::time::Instant::now();
    while published(&broker) < count as usize {
        // Backoff of at most 1 s, a second to the next telemetry; the rest is room for a loaded machine.
        assert!(
            back.elapsed() < Duration::from_secs(20),
            "{what}: {} of {count}",
            published(&broker)
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    told.until(LIMIT, "everybody is back", |told| {
        told.hubs(HubChange::Connected) >= 2 * count as usize
    })
    .await;
    assert_eq!(fleet.stop(LIMIT).await, 0);
    assert_eq!(
        told.lost(),
        count as usize,
        "{what}: each lost its session once"
    );
    check_account(&told, &plan, &what);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hub_publishes_again_after_a_broker_was_killed() {
    restarted(MqttVersion::V5, false, Signal::SIGKILL).await;
    restarted(MqttVersion::V311, true, Signal::SIGKILL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hub_publishes_again_in_the_session_that_a_broker_kept() {
    restarted(MqttVersion::V5, false, Signal::SIGTERM).await;
    restarted(MqttVersion::V311, false, Signal::SIGTERM).await;
}

/// Keep-alive 5 s: a broker that says nothing any more is noticed before ten seconds are over, and as what it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_falls_silent_is_noticed_within_two_keep_alives() {
    for version in [MqttVersion::V311, MqttVersion::V5] {
        let Some(broker) = mosquitto() else { return };
        let mut plan = plan(&[broker.port], 20);
        plan.hubs[0].keep_alive = Duration::from_secs(5);
        plan.target.devices[0].version = version;
        let (fleet, told) = start(plan).await;
        assert!(fleet.all_stand(LIMIT).await);
        let silent = std::time::Instant::now();
        broker.signal(Signal::SIGSTOP);
        told.until(LIMIT, "all are lost", |told| told.lost() == 20)
            .await;
        let took = silent.elapsed();
        broker.signal(Signal::SIGCONT);
        assert_eq!(
            told.hubs(HubChange::Lost(Cause::KeepAlive)),
            20,
            "{version:?}"
        );
        // By plan at most 5 s to the next ping and 3.75 s without an answer.
        assert!(took < Duration::from_secs(10), "{version:?}: {took:?}");
        assert_eq!(fleet.stop(LIMIT).await, 0);
    }
}

/// mosquitto counts the packets of MQTT 5 as we do: connect, subscribe, publish, acknowledge, disconnect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mosquitto_counts_the_packets_of_mqtt_5_as_we_do() {
    let Some(broker) = mosquitto() else { return };
    let plan = publishing(&broker, 30, MqttVersion::V5, true);
    let (fleet, told) = start(plan.clone()).await;
    assert!(fleet.all_stand(LIMIT).await);
    told.until(LIMIT, "60 are acknowledged", |told| {
        told.packets(PacketKind::PubAck, false) >= 60
    })
    .await;
    assert_eq!(fleet.stop(LIMIT).await, 0);
    let end = std::time::Instant::now() + LIMIT;
    while broker.logged("Received DISCONNECT from homes-") < 30 && std::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(broker.logged("Received DISCONNECT from homes-"), 30);
    assert_eq!(broker.logged("(p5, c1,"), 30, "version 5, clean start");
    assert_eq!(
        broker.logged("Received PUBLISH from homes-"),
        told.packets(PacketKind::Publish, true)
    );
    assert_eq!(told.lost(), 0);
    check_account(&told, &plan, "MQTT 5");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_will_is_published_when_a_session_ends_without_disconnect() {
    use rushhour::plan::fault::{Disconnect, How, TriggerKind};
    use rushhour::plan::session::{Will, WillBody};
    for version in [MqttVersion::V311, MqttVersion::V5] {
        let Some(broker) = mosquitto() else { return };
        let mut plan = plan(&[broker.port], 4);
        plan.target.devices[0].version = version;
        plan.target.devices[0].will = Some(Will {
            topic: fleet::template("d/<serial>/gone"),
            qos: 1,
            retain: true,
            body: WillBody::Text(fleet::template("gone <serial>")),
            delay: Duration::ZERO,
        });
        let (fleet, _told) = start(plan).await;
        assert!(fleet.all_stand(LIMIT).await);
        let options = rumqttc::MqttOptions::new("watcher", "127.0.0.1", broker.port);
        let (client, mut events) = rumqttc::AsyncClient::new(options, 10);
        client
            .subscribe("d/+/gone", rumqttc::QoS::AtLeastOnce)
            .await
            .unwrap();
        let all = TriggerKind::Disconnect(Disconnect {
            group: 0,
            share: 1.0,
            within: Duration::ZERO,
            by: How::Reset,
            away: Duration::ZERO,
            readmit: None,
        });
        let mut gone = BTreeSet::new();
        let seen = async {
            while gone.len() < 4 {
                match events.poll().await.unwrap() {
                    rumqttc::Event::Incoming(rumqttc::Incoming::SubAck(_)) => fleet.order(&all, 1),
                    rumqttc::Event::Incoming(rumqttc::Incoming::Publish(publish)) => {
                        gone.insert((publish.topic.clone(), publish.payload.to_vec()));
                    }
                    _ => {}
                }
            }
        };
        tokio::time::timeout(LIMIT, seen).await.unwrap();
        assert!(
            gone.contains(&(
                "d/homes-000002/gone".to_owned(),
                b"gone homes-000002".to_vec()
            )),
            "{version:?}: {gone:?}"
        );
        assert_eq!(fleet.stop(LIMIT).await, 0);
    }
}

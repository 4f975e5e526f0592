//! Sessions of both versions of MQTT against mosquitto: killed and started again, silent, taken over.

use super::fleet::{self, Told, plan, start};
use crate::support::service::{Mosquitto, mosquitto, mosquitto_with};
use nix::sys::signal::Signal;
use rushhour::event::{Cause, Event, HubChange, Outcome, PacketKind};
use rushhour::plan::session::{MqttVersion, Session};
use rushhour::plan::{OperationKind, Plan};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

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

/// Every publish that left was acknowledged, lost, or under way at the end.
fn check_account(hubs: &[Told], plan: &Plan, what: &str) {
    let telemetry = plan
        .operation(OperationKind::Telemetry { hubs: 0 })
        .unwrap();
    let of = |wanted: &dyn Fn(&Event) -> bool| hubs.iter().map(|told| told.count(wanted)).sum();
    let left: usize =
        of(&|event| matches!(event, Event::Attempted { operation, .. } if *operation == telemetry));
    let answered = |ok: bool| -> usize {
        of(&|event| {
            matches!(event, Event::Answered { operation, outcome, .. }
                if *operation == telemetry && (*outcome == Outcome::Ok) == ok)
        })
    };
    let started: usize =
        of(&|event| matches!(event, Event::Started { operation, .. } if *operation == telemetry));
    let finished: usize =
        of(&|event| matches!(event, Event::Finished { operation, .. } if *operation == telemetry));
    let unfinished: usize = of(
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
    // Where the connection was gone already, nothing was written, and that ended it: at most once for each hub that lost its session.
    let (written, losses) = (packets(hubs, PacketKind::Publish, true), losses(hubs));
    assert!(
        written <= left && left - written <= losses,
        "{what}: each of {left} attempts is one PUBLISH, but for {losses} that found no connection: {written}"
    );
    assert_eq!(
        packets(hubs, PacketKind::PubAck, false),
        acknowledged,
        "{what}: each PUBACK ends one"
    );
}

fn losses(hubs: &[Told]) -> usize {
    hubs.iter().map(Told::lost).sum()
}

fn packets(hubs: &[Told], kind: PacketKind, was_sent: bool) -> usize {
    hubs.iter().map(|told| told.packets(kind, was_sent)).sum()
}

/// The way of one hub back to its broker: every wait and every attempt in between.
#[derive(Debug, Default)]
struct Return {
    /// From the loss, or from the end of an attempt, to the next attempt.
    longest_wait: Duration,
    /// Of one attempt.
    longest_attempt: Duration,
    timed_out: usize,
    /// From the new session to the PUBACK of a publish.
    publishing: Option<Duration>,
}

impl Return {
    fn of(told: &Told, plan: &Plan) -> Return {
        let connect = plan.operation(OperationKind::Connect { hubs: 0 });
        let telemetry = plan.operation(OperationKind::Telemetry { hubs: 0 });
        let mut way = Return::default();
        // Since when it waits, while it does; since when it is back.
        let (mut waits, mut back, mut lost) = (None, None, false);
        for event in told.all() {
            match event {
                Event::Hub { change, at, .. } if change.is_lost() => {
                    (waits, back) = (Some(at), None);
                    way = Return::default();
                    lost = true;
                }
                Event::Attempted { operation, at } if Some(operation) == connect => {
                    let wait = waits.take().map(|since| at.since(since));
                    way.longest_wait = way.longest_wait.max(wait.unwrap_or_default());
                }
                Event::Answered {
                    operation,
                    sent,
                    at,
                    outcome,
                } if Some(operation) == connect => {
                    way.longest_attempt = way.longest_attempt.max(at.since(sent));
                    way.timed_out += usize::from(outcome == Outcome::TimedOut);
                    match outcome {
                        Outcome::Ok => back = Some(at),
                        _ => waits = Some(at),
                    }
                }
                Event::Answered {
                    operation,
                    sent,
                    at,
                    outcome: Outcome::Ok,
                } if Some(operation) == telemetry => {
                    let session = back.filter(|back| lost && *back <= sent);
                    way.publishing = way
                        .publishing
                        .or_else(|| session.map(|back| at.since(back)));
                }
                _ => {}
            }
        }
        way
    }
}

/// Connects whose SYN this machine has dropped, since it started, because a listener's queue was full.
fn dropped_syns() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let mut pairs = names.split(' ').zip(values.split(' '));
    let found = pairs.find(|(name, _)| *name == "ListenOverflows");
    found.map_or(0, |(_, value)| value.parse().unwrap_or_default())
}

async fn restarted(version: MqttVersion, clean_start: bool, signal: Signal) {
    let what = format!("{version:?}, clean start {clean_start}, {signal}");
    let Some(mut broker) = persistent() else {
        return;
    };
    let plan = publishing(&broker, hubs(), version, clean_start);
    let (fleet, hubs) = fleet::start_each(plan.clone()).await;
    assert!(
        fleet.all_stand(LIMIT).await,
        "{what}: {:?}",
        fleet.standing()
    );
    let end = Instant::now() + LIMIT;
    while !hubs
        .iter()
        .all(|told| told.packets(PacketKind::PubAck, false) >= 2)
    {
        assert!(Instant::now() < end, "{what}: not everybody has published");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let dropped = dropped_syns();
    broker.restart(signal);
    let back = Instant::now();
    let ways = loop {
        let ways: Vec<Return> = hubs.iter().map(|told| Return::of(told, &plan)).collect();
        let missing = ways.iter().filter(|way| way.publishing.is_none()).count();
        if missing == 0 {
            break ways;
        }
        assert!(
            back.elapsed() < LIMIT,
            "{what}: {missing} do not publish; SYNs dropped {}, attempts timed out {}",
            dropped_syns() - dropped,
            ways.iter().map(|way| way.timed_out).sum::<usize>(),
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let longest = |of: fn(&Return) -> Duration| ways.iter().map(of).max().unwrap_or_default();
    println!(
        "{what}: {} hubs publish {:?} after the restart; longest wait {:?}, longest attempt {:?}, longest to the PUBACK {:?}; \
         SYNs dropped {}, attempts timed out {}",
        hubs.len(),
        back.elapsed(),
        longest(|way| way.longest_wait),
        longest(|way| way.longest_attempt),
        longest(|way| way.publishing.unwrap_or_default()),
        dropped_syns() - dropped,
        ways.iter().map(|way| way.timed_out).sum::<usize>(),
    );
    // Backoff of at most 1 s, and a second to the next telemetry; the rest of the time is that of the attempts, in which the kernel
    // repeats a dropped SYN after 1, 3 and 7 s. A loaded machine may add some seconds of lag.
    let lag = Duration::from_secs(3);
    assert!(
        longest(|way| way.longest_wait) < Duration::from_secs(1) + lag,
        "{what}"
    );
    assert!(
        longest(|way| way.publishing.unwrap_or_default()) < Duration::from_secs(1) + lag,
        "{what}"
    );
    assert_eq!(fleet.stop(LIMIT).await, 0);
    assert!(
        hubs.iter().all(|told| told.lost() == 1),
        "{what}: each lost its session once"
    );
    check_account(&hubs, &plan, &what);
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
        let silent = Instant::now();
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
    let end = Instant::now() + LIMIT;
    while broker.logged("Received DISCONNECT from homes-") < 30 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(broker.logged("Received DISCONNECT from homes-"), 30);
    assert_eq!(broker.logged("(p5, c1,"), 30, "version 5, clean start");
    assert_eq!(
        broker.logged("Received PUBLISH from homes-"),
        told.packets(PacketKind::Publish, true)
    );
    assert_eq!(told.lost(), 0);
    check_account(&[told], &plan, "MQTT 5");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_will_is_published_when_a_session_ends_without_disconnect() {
    use rushhour::plan::fault::{Disconnect, How, TriggerKind};
    use rushhour::plan::payload::Payload;
    use rushhour::plan::session::Will;
    for version in [MqttVersion::V311, MqttVersion::V5] {
        let Some(broker) = mosquitto() else { return };
        let mut plan = plan(&[broker.port], 4);
        plan.target.devices[0].version = version;
        plan.target.devices[0].will = Some(Will {
            topic: fleet::template("d/<serial>/gone"),
            qos: 1,
            retain: true,
            body: Payload::Text(fleet::template("gone <serial>")),
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

//! Brokers of MQTT 5 that say what a fleet meets on a bad day, scripted byte by byte.

use super::fleet::{self, plan, start};
use rushhour::event::{Cause, Event, HubChange, Outcome, PacketKind};
use rushhour::plan::fault::TriggerKind;
use rushhour::plan::fleet::Reconnect;
use rushhour::plan::session::{Authentication, MqttVersion};
use rushhour::plan::wave::{Jitter, Wave};
use rushhour::plan::{OperationKind, Plan};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(20);
const CONNACK: &[u8] = &[0x20, 3, 0, 0, 0];

/// What arrived at a server, packet by packet, and when.
type Log = Arc<Mutex<Vec<(Instant, Vec<u8>)>>>;

/// A server that answers each packet of a client by what `answer` makes of it and of how many have come.
async fn server(answer: impl Fn(usize, &[u8]) -> Vec<u8> + Clone + Send + 'static) -> (u16, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = Log::default();
    let kept = Arc::clone(&log);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answer, log) = (answer.clone(), Arc::clone(&kept));
            tokio::spawn(async move {
                let (mut unread, mut nth) = (Vec::new(), 0);
                let mut space = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut space).await {
                    unread.extend_from_slice(&space[..count]);
                    // The packets of these tests are shorter than 128 bytes.
                    while unread.len() >= 2 && unread.len() >= 2 + usize::from(unread[1]) {
                        let packet: Vec<u8> = unread.drain(..2 + usize::from(unread[1])).collect();
                        log.lock().unwrap().push((Instant::now(), packet.clone()));
                        let said = answer(nth, &packet);
                        nth += 1;
                        if stream.write_all(&said).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (port, log)
}

/// SUBACK for the packet id of a SUBSCRIBE.
fn suback(packet: &[u8], reason: u8) -> Vec<u8> {
    vec![0x90, 4, packet[2], packet[3], 0, reason]
}

/// Where the packet id of a PUBLISH with QoS 1 stands.
fn packet_id(publish: &[u8]) -> [u8; 2] {
    let topic = usize::from(publish[3]);
    [publish[4 + topic], publish[5 + topic]]
}

/// Accepts everybody with `connack`; everything else is up to `other`.
fn accepting(
    connack: &'static [u8],
    other: impl Fn(&[u8]) -> Vec<u8> + Clone + Send + 'static,
) -> impl Fn(usize, &[u8]) -> Vec<u8> + Clone + Send + 'static {
    move |_, packet| match packet[0] {
        0x10 => connack.to_vec(),
        0x82 => suback(packet, 1),
        0xc0 => vec![0xd0, 0],
        _ => other(packet),
    }
}

fn one(port: u16) -> Plan {
    let mut plan = plan(&[port], 1);
    plan.target.devices[0].version = MqttVersion::V5;
    plan.hubs[0].timeout = Duration::from_secs(2);
    plan
}

fn count(log: &Log, first: u8) -> usize {
    log.lock()
        .unwrap()
        .iter()
        .filter(|(_, packet)| packet[0] & 0xf0 == first)
        .count()
}

/// A takeover is no reason to come back at once: the two would throw each other out for ever.
#[tokio::test]
async fn a_hub_whose_session_was_taken_over_stays_away_for_the_longest_backoff() {
    let (port, log) = server(|_, packet| match packet[0] {
        0x10 => CONNACK.to_vec(),
        0x82 => [suback(packet, 1), vec![0xe0, 1, 0x8e]].concat(),
        _ => Vec::new(),
    })
    .await;
    let mut plan = one(port);
    let longest = plan.hubs[0].reconnect.retry.backoff.longest();
    plan.hubs[0].reconnect = Reconnect {
        first: Duration::ZERO,
        healthy_after: Duration::ZERO,
        ..plan.hubs[0].reconnect
    };
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "it came back twice", |_| count(&log, 0x10) >= 3)
        .await;
    fleet.stop(LIMIT).await;
    assert!(told.hubs(HubChange::Lost(Cause::TAKEN_OVER)) >= 2);
    let connects: Vec<Instant> = log
        .lock()
        .unwrap()
        .iter()
        .filter(|(_, packet)| packet[0] == 0x10)
        .map(|(at, _)| *at)
        .collect();
    for pair in connects.windows(2) {
        assert!(
            pair[1] - pair[0] >= longest,
            "{:?} of {longest:?}",
            pair[1] - pair[0]
        );
    }
}

/// With a receive maximum of 1 the second publish leaves only after the first one's PUBACK.
#[tokio::test]
async fn the_receive_maximum_of_the_broker_holds_publishes_back() {
    let connack: &[u8] = &[0x20, 6, 0, 0, 3, 0x21, 0, 1];
    let (port, log) = server(accepting(connack, |_| Vec::new())).await;
    let mut plan = fleet::with_telemetry(one(port), Duration::from_millis(50), 8);
    plan.target.devices[0].telemetry.as_mut().unwrap().qos = 1;
    plan.hubs[0].timeout = Duration::from_secs(1);
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "it is stuck", |told| {
        told.hubs(HubChange::Stuck) == 1
    })
    .await;
    assert_eq!(
        fleet.standing()[0].connected,
        0,
        "a stuck hub does not count as connected"
    );
    assert_eq!(count(&log, 0x30), 1);
    fleet.stop(LIMIT).await;
    assert_eq!(told.answered(Outcome::TimedOut), 1);
    assert!(
        told.count(|event| matches!(event, Event::Unfinished { .. })) > 0,
        "the others waited"
    );
    assert_eq!(told.packets(PacketKind::Publish, true), 1);
}

/// The first connection ends with a publish under way; the broker has kept the session, and gets it again with DUP and the same id.
#[tokio::test]
async fn an_unacknowledged_publish_goes_out_again_in_a_resumed_session_only() {
    for (present, resent) in [(1, true), (0, false)] {
        let connects = Arc::new(Mutex::new(0));
        let (port, log) = server(move |_, packet| match packet[0] & 0xf0 {
            0x10 => {
                let mut connects = connects.lock().unwrap();
                *connects += 1;
                vec![0x20, 3, if *connects > 1 { present } else { 0 }, 0, 0]
            }
            0x80 => suback(packet, 1),
            // Whoever publishes for the first time is thrown out without PUBACK.
            0x30 if packet[0] & 0x08 == 0 && *connects.lock().unwrap() == 1 => vec![0xe0, 1, 0x8b],
            0x30 => {
                let [high, low] = packet_id(packet);
                // Twice, and one of nobody: neither does harm.
                vec![0x40, 2, high, low, 0x40, 2, high, low, 0x40, 2, 0x7f, 0xff]
            }
            _ => Vec::new(),
        })
        .await;
        let mut plan = fleet::with_telemetry(one(port), Duration::from_millis(300), 8);
        let device = &mut plan.target.devices[0];
        device.telemetry.as_mut().unwrap().qos = 1;
        device.session.clean_start = false;
        device.session.expiry = Duration::from_secs(60);
        let telemetry = plan.operation(OperationKind::Telemetry { hubs: 0 });
        let (fleet, told) = start(plan).await;
        told.until(LIMIT, "a publish is acknowledged", |told| {
            told.packets(PacketKind::PubAck, false) >= 3
        })
        .await;
        fleet.stop(LIMIT).await;
        assert_eq!(told.hubs(HubChange::Lost(Cause::Disconnected(0x8b))), 1);
        let publishes: Vec<Vec<u8>> = log
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, packet)| packet[0] & 0xf0 == 0x30)
            .map(|(_, packet)| packet.clone())
            .collect();
        let twice = publishes.iter().find(|packet| packet[0] == 0x3a);
        assert_eq!(twice.is_some(), resent, "session present: {present}");
        if let Some(packet) = twice {
            assert_eq!(packet_id(packet), packet_id(&publishes[0]));
        }
        let ends: Vec<(Outcome, u32)> = told
            .all()
            .iter()
            .filter_map(|event| match event {
                Event::Finished {
                    operation,
                    outcome,
                    attempts,
                    ..
                } if Some(*operation) == telemetry => Some((*outcome, *attempts)),
                _ => None,
            })
            .collect();
        let first = if resent {
            (Outcome::Ok, 2)
        } else {
            (Outcome::Reset, 1)
        };
        assert!(ends.contains(&first), "{ends:?}");
    }
}

/// A message twice, the second time with DUP: acknowledged twice; by an alias: understood.
#[tokio::test]
async fn duplicates_are_acknowledged_and_topic_aliases_are_understood() {
    let (port, log) = server(|_, packet| match packet[0] {
        0x10 => CONNACK.to_vec(),
        0x82 => {
            let mut said = suback(packet, 1);
            // Alias 1 becomes `a`; then the alias alone, twice, the second time with DUP.
            said.extend_from_slice(b"\x32\x0b\x00\x01a\x00\x07\x03\x23\x00\x01{}");
            said.extend_from_slice(b"\x32\x0a\x00\x00\x00\x08\x03\x23\x00\x01{}");
            said.extend_from_slice(b"\x3a\x0a\x00\x00\x00\x08\x03\x23\x00\x01{}");
            said
        }
        _ => Vec::new(),
    })
    .await;
    let mut plan = one(port);
    plan.target.devices[0].session.topic_alias_maximum = 1;
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "all three arrived", |_| count(&log, 0x40) == 3)
        .await;
    assert_eq!(told.lost(), 0);
    fleet.stop(LIMIT).await;
}

/// CONNECT names the method, a challenge is answered before CONNACK, and at the end the broker is told to forget the session.
#[tokio::test]
async fn enhanced_authentication_is_answered_and_a_kept_session_given_up_at_the_end() {
    let (port, log) = server(|_, packet| match packet[0] {
        0x10 => b"\xf0\x06\x18\x04\x15\x00\x01m".to_vec(),
        0xf0 => CONNACK.to_vec(),
        0x82 => suback(packet, 1),
        _ => Vec::new(),
    })
    .await;
    let mut plan = one(port);
    let device = &mut plan.target.devices[0];
    device.session.expiry = Duration::from_secs(60);
    device.authentication = Some(Authentication {
        method: "m".to_owned(),
        data: fleet::template("<serial>"),
        answer: fleet::template("yes"),
    });
    plan.operations = rushhour::plan::operation::table(&plan.hubs, &[], &[], &plan.target);
    let (fleet, told) = start(plan).await;
    assert!(fleet.all_stand(LIMIT).await);
    fleet.stop(LIMIT).await;
    told.until(LIMIT, "it said goodbye", |_| count(&log, 0xe0) == 1)
        .await;
    let log = log.lock().unwrap();
    let packet = |first: u8| {
        log.iter()
            .map(|(_, packet)| packet.as_slice())
            .find(|packet| packet[0] == first)
            .unwrap()
    };
    let has =
        |packet: &[u8], wanted: &[u8]| packet.windows(wanted.len()).any(|part| part == wanted);
    assert!(has(packet(0x10), b"\x15\x00\x01m\x16\x00\x0chomes-000000"));
    assert_eq!(
        packet(0xf0),
        b"\xf0\x0c\x18\x0a\x15\x00\x01m\x16\x00\x03yes"
    );
    assert_eq!(packet(0xe0), b"\xe0\x07\x00\x05\x11\x00\x00\x00\x00");
    assert_eq!(told.packets(PacketKind::Auth, true), 1);
}

/// Ordered by the timeline: one broker lets it pass, the other ends the session with its reason.
#[tokio::test]
async fn a_re_authentication_is_an_operation_of_its_own() {
    for (answer, outcome) in [
        (vec![0xf0, 0], Outcome::Ok),
        (vec![0xe0, 1, 0x87], Outcome::Refused(0x87)),
    ] {
        let (port, log) = server(accepting(CONNACK, move |packet| match packet[0] {
            0xf0 => answer.clone(),
            _ => Vec::new(),
        }))
        .await;
        let mut plan = one(port);
        plan.target.devices[0].authentication = Some(Authentication {
            method: "m".to_owned(),
            data: fleet::template("new"),
            answer: fleet::template("yes"),
        });
        plan.operations = rushhour::plan::operation::table(&plan.hubs, &[], &[], &plan.target);
        let operation = plan.operation(OperationKind::Reauthenticate { hubs: 0 });
        let (fleet, told) = start(plan).await;
        assert!(fleet.all_stand(LIMIT).await);
        let wave = Wave {
            group: 0,
            share: 1.0,
            within: Duration::ZERO,
            jitter: Jitter::None,
        };
        fleet.order(&TriggerKind::Reauthenticate(wave), 1);
        told.until(LIMIT, "it has ended", |told| {
            told.count(|event| {
                matches!(event, Event::Finished { operation: ended, outcome: how, attempts: 1, .. }
                    if Some(*ended) == operation && *how == outcome)
            }) == 1
        })
        .await;
        fleet.stop(LIMIT).await;
        let lost = told.hubs(HubChange::Lost(Cause::Disconnected(0x87)));
        assert_eq!(lost, usize::from(outcome != Outcome::Ok));
        let said = log
            .lock()
            .unwrap()
            .iter()
            .any(|(_, packet)| packet[..] == *b"\xf0\x0c\x19\x0a\x15\x00\x01m\x16\x00\x03new");
        assert!(said, "AUTH 0x19 with method and data");
    }
}

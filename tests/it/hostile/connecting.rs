//! Brokers that no hub gets a session from.

use super::broker::{Broker, CONNACK, CONNECT, SUBSCRIBE, arrived, says, suback, then};
use super::hubs::{HUBS, Row, TIMEOUT, changes, outcomes, packets, stage_as};
use super::peer::{Move, Peer, Seen};
use super::stage::{LIMIT, ended_after, plan};
use crate::live_hubs::fleet::start;
use crate::support::service::free_port;
use rushhour::event::{Event, HubChange, Outcome, PacketKind};
use rushhour::plan::OperationKind;
use std::time::Duration;

/// Brokers that say too little, or too late.
fn silent() -> Vec<Row<Outcome>> {
    let late = |wait: Duration, bytes: &[u8]| vec![Move::Wait(wait), Move::Write(bytes.to_vec())];
    let just_after = TIMEOUT + Duration::from_millis(20);
    [
        ("no-connack", Broker::connect(Vec::new())),
        ("half-a-connack", Broker::connect(says(&CONNACK[..2]))),
        (
            "connack-later",
            Broker::connect(late(TIMEOUT * 2, &CONNACK)),
        ),
        (
            "connack-just-after",
            Broker::connect(late(just_after, &CONNACK)),
        ),
        ("no-suback", Broker::subscribe(|_| Vec::new())),
        (
            "suback-later",
            Broker::subscribe(move |said| late(TIMEOUT * 2, &suback(said))),
        ),
    ]
    .map(|(name, broker)| (name, broker, Outcome::TimedOut))
    .into()
}

/// Brokers that end the connection.
fn ending() -> Vec<Row<Outcome>> {
    [
        ("closes-at-connect", Broker::connect(vec![Move::Close])),
        ("resets-at-connect", Broker::connect(vec![Move::Reset])),
        (
            "closes-in-connack",
            Broker::connect(then(&CONNACK[..3], Move::Close)),
        ),
        (
            "closes-after-connack",
            Broker::connect(then(&CONNACK, Move::Close)),
        ),
        (
            "resets-after-connack",
            Broker::connect(then(&CONNACK, Move::Reset)),
        ),
        (
            "closes-at-subscribe",
            Broker::subscribe(|_| vec![Move::Close]),
        ),
    ]
    .map(|(name, broker)| (name, broker, Outcome::Reset))
    .into()
}

/// Brokers that say what is no MQTT, or not now.
fn malformed() -> Vec<Row<Outcome>> {
    let about_connect: [(&str, &[u8]); 12] = [
        ("connack-a-byte-short", &[0x20, 1, 0]),
        ("connack-a-byte-long", &[0x20, 3, 0, 0, 0]),
        ("connack-twice", &[0x20, 2, 0, 0, 0x20, 2, 0, 0]),
        ("connack-with-flags", &[0x21, 2, 0, 0]),
        ("endless-length", &[0x20, 0xff, 0xff, 0xff, 0xff, 1]),
        ("type-0", &[0, 0]),
        ("type-15", &[0xf0, 0]),
        ("speaks-http", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("suback-before-connack", &[0x90, 3, 0, 1, 1]),
        ("publish-before-connack", &[0x30, 3, 0, 1, b'a']),
        ("pingresp-before-connack", &[0xd0, 0]),
        ("says-connect", &[0x10, 0]),
    ];
    let about_subscribe: [(&str, &[u8]); 3] = [
        ("suback-of-another", &[0x90, 3, 0, 9, 1]),
        ("suback-of-two", &[0x90, 4, 0, 1, 1, 1]),
        ("suback-with-code-3", &[0x90, 3, 0, 1, 3]),
    ];
    let connect = about_connect.map(|(name, bytes)| (name, Broker::connect(says(bytes))));
    let subscribe =
        about_subscribe.map(|(name, bytes)| (name, Broker::subscribe(move |_| says(bytes))));
    let both = connect.into_iter().chain(subscribe);
    both.map(|(name, broker)| (name, broker, Outcome::Protocol))
        .collect()
}

/// Every return code of CONNACK, one that nobody knows, and a subscription that is not granted.
fn refusals() -> Vec<Row<Outcome>> {
    let codes: [(&str, u8); 6] = [
        ("refuses-1", 1),
        ("refuses-2", 2),
        ("refuses-3", 3),
        ("refuses-4", 4),
        ("refuses-5", 5),
        ("refuses-77", 77),
    ];
    let mut rows: Vec<Row<Outcome>> = codes
        .iter()
        .map(|(name, code)| {
            let broker = Broker::connect(says(&[0x20, 2, 0, *code]));
            (*name, broker, Outcome::Refused(u16::from(*code)))
        })
        .collect();
    let not_granted = Broker::subscribe(|_| says(&[0x90, 3, 0, 1, 0x80]));
    rows.push(("suback-refuses", not_granted, Outcome::Refused(0x80)));
    rows
}

/// Hubs of a device with these keys try each broker twice; what they tell is what it saw. Gives the brokers.
pub async fn in_vain(device: &str, rows: Vec<Row<Outcome>>) -> Vec<(&'static str, Peer, Outcome)> {
    let hubs = "reconnect: { fixed: { every: 50ms, attempts: 2 } }";
    let (plan, rows) = stage_as(device, rows, hubs).await;
    let (fleet, told) = start(plan.clone()).await;
    told.until(LIMIT, "every hub has given up", |told| {
        told.count(|event| matches!(event, Event::Finished { .. })) == HUBS * rows.len()
    })
    .await;
    fleet.stop(LIMIT).await;
    for (row, (name, peer, expected)) in rows.iter().enumerate() {
        let ends = outcomes(&told, &plan, OperationKind::Connect { hubs: row });
        assert_eq!(ends, vec![*expected; 2 * HUBS], "{name}");
        assert_eq!(peer.accepted(), 2 * HUBS, "{name}: connections");
        assert_eq!(changes(&told, row, HubChange::Opened), 2 * HUBS, "{name}");
        assert_eq!(changes(&told, row, HubChange::Connected), 0, "{name}");
        assert_eq!(arrived(peer, CONNECT), 2 * HUBS, "{name}: CONNECT");
        let (came, sent) = (
            arrived(peer, SUBSCRIBE),
            packets(&told, row, PacketKind::Subscribe, true),
        );
        // What is on its way when the broker ends the connection, nobody reads.
        let cut = peer.count(|seen| *seen == Seen::Ended) > 0;
        assert!(
            came == sent || (cut && came < sent),
            "{name}: {came} of {sent} SUBSCRIBE"
        );
        if *expected == Outcome::TimedOut {
            ended_after(peer, TIMEOUT, 2 * HUBS, name);
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_to_get_no_session_has_its_outcome_and_the_brokers_count() {
    let rows = [silent(), ending(), malformed(), refusals()].concat();
    in_vain("mqtt: 3.1.1", rows).await;
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let target = format!(
        "environment: test\ndevices: {{ hub: {{ shards: {{ only: \"mqtt://127.0.0.1:{}\" }} }} }}\n",
        free_port()
    );
    let profile = "target: target.yaml\nduration: 60s\nexpect: [ hubs connected >= 0% ]\nhubs:\n  homes: { device: hub, count: 3, \
                   connect: { over: 0s }, reconnect: { fixed: { every: 10ms, attempts: 4 } } }\n";
    let plan = plan(profile, &target);
    let (fleet, told) = start(plan.clone()).await;
    told.until(LIMIT, "every hub has given up", |told| {
        told.count(|event| matches!(event, Event::Finished { .. })) == 3
    })
    .await;
    fleet.stop(LIMIT).await;
    let ends = outcomes(&told, &plan, OperationKind::Connect { hubs: 0 });
    assert_eq!(ends, vec![Outcome::Unreachable; 12]);
    assert_eq!(told.hubs(HubChange::Opened), 0);
}

/// A listener whose queue is full drops SYNs: the hub waits for its timeout, and nobody ever hears of it.
#[tokio::test]
async fn a_full_listen_queue_is_waited_for_until_the_timeout() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap().into_std().unwrap();
    let address = listener.local_addr().unwrap();
    let mut fillers = Vec::new();
    while let Ok(filler) =
        std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200))
    {
        fillers.push(filler);
    }
    let target = format!(
        "environment: test\ndevices: {{ hub: {{ shards: {{ only: \"mqtt://{address}\" }} }} }}\n"
    );
    let profile = format!(
        "target: target.yaml\nduration: 60s\nexpect: [ hubs connected >= 0% ]\nhubs:\n  homes: {{ device: hub, count: {HUBS}, \
         connect: {{ over: 0s }}, timeout: {}ms, reconnect: {{ fixed: {{ every: 10ms, attempts: 2 }} }} }}\n",
        TIMEOUT.as_millis()
    );
    let plan = plan(&profile, &target);
    let (fleet, told) = start(plan.clone()).await;
    told.until(LIMIT, "every hub has given up", |told| {
        told.count(|event| matches!(event, Event::Finished { .. })) == HUBS
    })
    .await;
    fleet.stop(LIMIT).await;
    let ends = outcomes(&told, &plan, OperationKind::Connect { hubs: 0 });
    assert_eq!(ends, vec![Outcome::TimedOut; 2 * HUBS]);
    assert_eq!(told.hubs(HubChange::Opened), 0);
    listener.set_nonblocking(true).unwrap();
    let heard_of = std::iter::from_fn(|| listener.accept().ok()).count();
    assert_eq!(heard_of, fillers.len(), "the hubs are not among them");
}

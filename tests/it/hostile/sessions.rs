//! Brokers that misbehave in a session.

use super::broker::{Broker, PINGREQ, PUBLISH, SUBSCRIBE, arrived, packet_id, puback, says, then};
use super::hubs::{HUBS, Row, TIMEOUT, changes, lost, outcomes, packets, stage};
use super::peer::Move;
use super::stage::{LIMIT, ended_after};
use crate::live_hubs::fleet::start;
use rushhour::event::{Event, HubChange, Outcome, PacketKind};
use rushhour::plan::OperationKind;
use std::time::Duration;

/// Who ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Peer,
    Hub,
    /// By the hub, when its ping has waited for the timeout.
    Deadline,
}

/// Brokers that end the session.
fn ending() -> Vec<Row<Ends>> {
    let soon = Move::Wait(Duration::from_millis(50));
    [
        ("closes", vec![soon.clone(), Move::Close]),
        ("resets", vec![soon, Move::Reset]),
        (
            "closes-in-a-packet",
            then(b"\x32\x0c\x00\x01a", Move::Close),
        ),
    ]
    .map(|(name, moves)| (name, Broker::session(moves), Ends::Peer))
    .into()
}

/// Brokers in whose session the hub ends the connection: it is silent, or says what is no MQTT or not now.
fn unbearable() -> Vec<Row<Ends>> {
    let said: [(&str, &[u8]); 13] = [
        ("connack-again", &[0x20, 2, 0, 0]),
        ("suback-again", &[0x90, 3, 0, 1, 1]),
        ("says-disconnect", &[0xe0, 0]),
        ("says-pingreq", &[0xc0, 0]),
        ("says-pubrec", &[0x50, 2, 0, 1]),
        ("type-0", &[0, 0]),
        ("endless-length", &[0x30, 0xff, 0xff, 0xff, 0xff, 1]),
        // 2 MiB are announced: nobody waits for them.
        ("oversized", &[0x30, 0x80, 0x80, 0x80, 0x01, 0, 1, b'a']),
        ("topic-beyond-the-packet", &[0x30, 3, 0, 5, b'a']),
        ("qos-3", &[0x36, 5, 0, 1, b'a', 0, 1]),
        ("qos-2", &[0x34, 5, 0, 1, b'a', 0, 1]),
        ("wildcard-as-topic", &[0x30, 3, 0, 1, b'#']),
        ("puback-of-0", &[0x40, 2, 0, 0]),
    ];
    let mut rows: Vec<Row<Ends>> = vec![
        (
            "never-answers-pings",
            Broker::ping(Vec::new()),
            Ends::Deadline,
        ),
        (
            "half-a-pingresp",
            Broker::ping(says(&[0xd0])),
            Ends::Deadline,
        ),
    ];
    rows.extend(said.map(|(name, bytes)| (name, Broker::session(says(bytes)), Ends::Hub)));
    rows
}

/// A session that breaks the protocol or is broken is lost once, and the hub waits its backoff (here: longer than the test).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_to_lose_a_session_is_told_once_and_the_broker_counts_the_same() {
    let rows = [ending(), unbearable()].concat();
    let hubs =
        "keep_alive: 1s, reconnect: { fixed: { every: 60s }, first: 0s, healthy_after: 30s }";
    let (plan, rows) = stage(rows, hubs).await;
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "every session is lost", |told| {
        told.lost() == HUBS * rows.len()
    })
    .await;
    fleet.stop(LIMIT).await;
    for (row, (name, peer, ends)) in rows.iter().enumerate() {
        for change in [HubChange::Opened, HubChange::Accepted, HubChange::Connected] {
            assert_eq!(changes(&told, row, change), HUBS, "{name}: {change:?}");
        }
        assert_eq!(lost(&told, row), HUBS, "{name}");
        assert_eq!(changes(&told, row, HubChange::Left), 0, "{name}");
        assert_eq!(peer.accepted(), HUBS, "{name}: nobody is back yet");
        assert_eq!(arrived(peer, SUBSCRIBE), HUBS, "{name}");
        let ended_by_hubs = peer.patience().len();
        assert_eq!(
            ended_by_hubs,
            if *ends == Ends::Peer { 0 } else { HUBS },
            "{name}"
        );
        if *ends == Ends::Deadline {
            assert_eq!(
                arrived(peer, PINGREQ),
                HUBS,
                "{name}: the deadline is the timeout, not the next ping"
            );
            ended_after(peer, TIMEOUT, HUBS, name);
        }
    }
}

/// What a broker does about publishes with QoS 1, none of which ends a session.
fn acknowledging() -> Vec<Row<Outcome>> {
    let answer = |reply: fn(u16) -> Vec<u8>| {
        Broker::publish(move |said| says(&reply(packet_id(&said.bytes).unwrap())))
    };
    vec![
        ("never", Broker::publish(|_| Vec::new()), Outcome::TimedOut),
        (
            "of-unknown-ids",
            answer(|id| puback(id.wrapping_add(1_000)).to_vec()),
            Outcome::TimedOut,
        ),
        ("once", answer(|id| puback(id).to_vec()), Outcome::Ok),
        (
            "twice",
            answer(|id| [puback(id), puback(id)].concat()),
            Outcome::Ok,
        ),
        (
            "with-others",
            answer(|id| [puback(9_999), puback(id)].concat()),
            Outcome::Ok,
        ),
        (
            "a-byte-at-a-time",
            Broker::dripping(Duration::from_millis(2)),
            Outcome::Ok,
        ),
        // Of two publishes the later one first.
        (
            "in-reverse",
            Broker::publish(|said| {
                let id = packet_id(&said.bytes).unwrap();
                let is_second = said.nth % 2 == 0;
                if is_second {
                    says(&[puback(id), puback(id - 1)].concat())
                } else {
                    Vec::new()
                }
            }),
            Outcome::Ok,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_that_are_late_doubled_or_out_of_order_end_each_publish_once() {
    let hubs = "telemetry: { every: 40ms, bytes: 8 }, reconnect: { fixed: { every: 60s } }";
    let (plan, rows) = stage(acknowledging(), hubs).await;
    let (fleet, told) = start(plan.clone()).await;
    told.until(LIMIT, "twenty publishes of each group have ended", |told| {
        (0..rows.len())
            .all(|row| outcomes(told, &plan, OperationKind::Telemetry { hubs: row }).len() >= 20)
    })
    .await;
    fleet.stop(LIMIT).await;
    for (row, (name, peer, expected)) in rows.iter().enumerate() {
        let ends = outcomes(&told, &plan, OperationKind::Telemetry { hubs: row });
        assert!(ends.iter().all(|end| end == expected), "{name}: {ends:?}");
        assert_eq!(lost(&told, row), 0, "{name}: the session stands");
        let wanted = plan.operation(OperationKind::Telemetry { hubs: row });
        let unfinished = told.count(|event| matches!(event, Event::Unfinished { operation, .. } if Some(*operation) == wanted));
        let sent = packets(&told, row, PacketKind::Publish, true);
        assert_eq!(ends.len() + unfinished, sent, "{name}: each ends once");
        assert_eq!(
            arrived(peer, PUBLISH),
            sent,
            "{name}: publishes that arrived"
        );
    }
}

//! Brokers that misbehave while hubs connect, and in their sessions: a group of hubs for each, and its broker's log beside what
//! is told.

use super::broker::{
    Broker, CONNACK, CONNECT, PINGREQ, PUBLISH, SUBSCRIBE, arrived, packet_id, puback, says,
    suback, then,
};
use super::peer::{Move, Peer, Seen};
use super::stage::{LIMIT, ended_after, plan};
use crate::live_hubs::fleet::{Told, start};
use crate::support::service::free_port;
use rushhour::event::{Event, HubChange, Outcome, PacketKind};
use rushhour::plan::{OperationKind, Plan};
use std::time::Duration;

/// Hubs of each group.
const HUBS: usize = 3;
const TIMEOUT: Duration = Duration::from_millis(400);

/// What a broker does, by name.
type Row<E> = (&'static str, Broker, E);

/// The brokers of these rows, and a plan with a group of hubs for each. `hubs` are more keys of each group.
async fn stage<E>(rows: Vec<Row<E>>, hubs: &str) -> (Plan, Vec<(&'static str, Peer, E)>) {
    let mut served = Vec::new();
    let mut target = "environment: test\ndevices:\n".to_owned();
    let mut profile =
        "target: target.yaml\nduration: 60s\nexpect: [ hubs connected >= 0% ]\nhubs:\n".to_owned();
    for (name, broker, expected) in rows {
        let peer = broker.serve().await;
        target += &format!(
            "  d-{name}: {{ shards: {{ only: \"mqtt://{}\" }}, telemetry: {{ topic: d/<serial>/state, qos: 1 }}, \
             command: {{ topic: d/<serial>/cmd, qos: 1, id: {{ json: $.id }} }} }}\n",
            peer.address
        );
        profile += &format!(
            "  g-{name}: {{ device: d-{name}, count: {HUBS}, connect: {{ over: 0s }}, timeout: {}ms, {hubs} }}\n",
            TIMEOUT.as_millis()
        );
        served.push((name, peer, expected));
    }
    (plan(&profile, &target), served)
}

/// What a group told of its session.
fn changes(told: &Told, row: usize, wanted: HubChange) -> usize {
    told.count(|event| matches!(event, Event::Hub { group, change, .. } if usize::from(*group) == row && *change == wanted))
}

fn packets(told: &Told, row: usize, wanted: PacketKind, was_sent: bool) -> usize {
    told.count(|event| {
        matches!(event, Event::Packet { group, kind, sent, .. }
            if usize::from(*group) == row && *kind == wanted && *sent == was_sent)
    })
}

/// How the attempts of an operation ended.
fn outcomes(told: &Told, plan: &Plan, kind: OperationKind) -> Vec<Outcome> {
    let wanted = plan.operation(kind).unwrap();
    let events = told.all();
    let outcomes = events.iter().filter_map(|event| match event {
        Event::Answered {
            operation, outcome, ..
        } if *operation == wanted => Some(*outcome),
        _ => None,
    });
    outcomes.collect()
}

/// Servers that a hub never gets a session from; each hub tries twice.
fn while_connecting() -> Vec<Row<Outcome>> {
    let (reset, protocol, timed_out) = (Outcome::Reset, Outcome::Protocol, Outcome::TimedOut);
    let connect = |moves: Vec<Move>| Broker::connect(moves);
    let granted_late = |wait| {
        Broker::subscribe(move |said| vec![Move::Wait(wait), Move::Write(suback(said).to_vec())])
    };
    vec![
        ("no-connack", connect(Vec::new()), timed_out),
        ("half-a-connack", connect(says(&CONNACK[..2])), timed_out),
        (
            "connack-later",
            connect(vec![Move::Wait(TIMEOUT * 2), Move::Write(CONNACK.to_vec())]),
            timed_out,
        ),
        (
            "connack-just-after",
            connect(vec![
                Move::Wait(TIMEOUT + Duration::from_millis(20)),
                Move::Write(CONNACK.to_vec()),
            ]),
            timed_out,
        ),
        ("no-suback", Broker::subscribe(|_| Vec::new()), timed_out),
        ("suback-later", granted_late(TIMEOUT * 2), timed_out),
        ("closes-at-connect", connect(vec![Move::Close]), reset),
        ("resets-at-connect", connect(vec![Move::Reset]), reset),
        (
            "closes-in-connack",
            connect(then(&CONNACK[..3], Move::Close)),
            reset,
        ),
        (
            "closes-after-connack",
            connect(then(&CONNACK, Move::Close)),
            reset,
        ),
        (
            "resets-after-connack",
            connect(then(&CONNACK, Move::Reset)),
            reset,
        ),
        (
            "closes-at-subscribe",
            Broker::subscribe(|_| vec![Move::Close]),
            reset,
        ),
        (
            "connack-a-byte-short",
            connect(says(&[0x20, 1, 0])),
            protocol,
        ),
        (
            "connack-twice",
            connect(says(&[CONNACK, CONNACK].concat())),
            protocol,
        ),
        (
            "connack-with-flags",
            connect(says(&[0x21, 2, 0, 0])),
            protocol,
        ),
        (
            "endless-length",
            connect(says(&[0x20, 0xff, 0xff, 0xff, 0xff, 1])),
            protocol,
        ),
        ("type-0", connect(says(&[0, 0])), protocol),
        ("type-15", connect(says(&[0xf0, 0])), protocol),
        (
            "speaks-http",
            connect(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
            protocol,
        ),
        (
            "suback-before-connack",
            connect(says(&[0x90, 3, 0, 1, 1])),
            protocol,
        ),
        (
            "publish-before-connack",
            connect(says(&[0x30, 3, 0, 1, b'a'])),
            protocol,
        ),
        (
            "pingresp-before-connack",
            connect(says(&[0xd0, 0])),
            protocol,
        ),
        ("says-connect", connect(says(&[0x10, 0])), protocol),
        (
            "suback-of-another",
            Broker::subscribe(|_| says(&[0x90, 3, 0, 9, 1])),
            protocol,
        ),
        (
            "suback-of-two",
            Broker::subscribe(|_| says(&[0x90, 4, 0, 1, 1, 1])),
            protocol,
        ),
        (
            "suback-refuses",
            Broker::subscribe(|_| says(&[0x90, 3, 0, 1, 0x80])),
            Outcome::Refused(0x80),
        ),
    ]
}

/// Every return code of CONNACK, and one that nobody knows.
fn refusals() -> Vec<Row<Outcome>> {
    const CODES: [(&str, u8); 6] = [
        ("refuses-1", 1),
        ("refuses-2", 2),
        ("refuses-3", 3),
        ("refuses-4", 4),
        ("refuses-5", 5),
        ("refuses-77", 77),
    ];
    CODES
        .iter()
        .map(|(name, code)| {
            let broker = Broker::connect(says(&[0x20, 2, 0, *code]));
            (*name, broker, Outcome::Refused(u16::from(*code)))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_to_get_no_session_has_its_outcome_and_the_brokers_count() {
    let rows = while_connecting().into_iter().chain(refusals()).collect();
    let hubs = "reconnect: { fixed: { every: 50ms, attempts: 2 } }";
    let (plan, rows) = stage(rows, hubs).await;
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

/// A session that breaks the protocol or is broken is lost once, and the hub waits its backoff (here: longer than the test).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_to_lose_a_session_is_told_once_and_the_broker_counts_the_same() {
    let session = |bytes: &[u8]| Broker::session(says(bytes));
    let soon = Duration::from_millis(50);
    // Whether it is the hub that ends the connection.
    let rows: Vec<Row<bool>> = vec![
        ("never-answers-pings", Broker::ping(Vec::new()), true),
        ("half-a-pingresp", Broker::ping(says(&[0xd0])), true),
        (
            "closes",
            Broker::session(vec![Move::Wait(soon), Move::Close]),
            false,
        ),
        (
            "resets",
            Broker::session(vec![Move::Wait(soon), Move::Reset]),
            false,
        ),
        (
            "closes-in-a-packet",
            Broker::session(then(b"\x32\x0c\x00\x01a", Move::Close)),
            false,
        ),
        ("connack-again", session(&CONNACK), true),
        ("suback-again", session(&[0x90, 3, 0, 1, 1]), true),
        ("says-disconnect", session(&[0xe0, 0]), true),
        ("says-pingreq", session(&[0xc0, 0]), true),
        ("type-0", session(&[0, 0]), true),
        (
            "endless-length",
            session(&[0x30, 0xff, 0xff, 0xff, 0xff, 1]),
            true,
        ),
        // 2 MiB are announced: nobody waits for them.
        (
            "oversized",
            session(&[0x30, 0x80, 0x80, 0x80, 0x01, 0, 1, b'a']),
            true,
        ),
        (
            "topic-beyond-the-packet",
            session(&[0x30, 3, 0, 5, b'a']),
            true,
        ),
        ("qos-3", session(&[0x36, 5, 0, 1, b'a', 0, 1]), true),
        ("qos-2", session(&[0x34, 5, 0, 1, b'a', 0, 1]), true),
        ("wildcard-as-topic", session(&[0x30, 3, 0, 1, b'#']), true),
        ("puback-of-0", session(&[0x40, 2, 0, 0]), true),
    ];
    let hubs =
        "keep_alive: 1s, reconnect: { fixed: { every: 60s }, first: 0s, healthy_after: 30s }";
    let (plan, rows) = stage(rows, hubs).await;
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "every session is lost", |told| {
        told.hubs(HubChange::Lost) == HUBS * rows.len()
    })
    .await;
    fleet.stop(LIMIT).await;
    for (row, (name, peer, by_the_hub)) in rows.iter().enumerate() {
        for change in [
            HubChange::Opened,
            HubChange::Accepted,
            HubChange::Connected,
            HubChange::Lost,
        ] {
            assert_eq!(changes(&told, row, change), HUBS, "{name}: {change:?}");
        }
        assert_eq!(changes(&told, row, HubChange::Left), 0, "{name}");
        assert_eq!(peer.accepted(), HUBS, "{name}: nobody is back yet");
        assert_eq!(arrived(peer, SUBSCRIBE), HUBS, "{name}");
        let ended_by_hubs = peer.patience().len();
        assert_eq!(ended_by_hubs, if *by_the_hub { HUBS } else { 0 }, "{name}");
        if arrived(peer, PINGREQ) > 0 {
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
        assert_eq!(
            changes(&told, row, HubChange::Lost),
            0,
            "{name}: the session stands"
        );
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

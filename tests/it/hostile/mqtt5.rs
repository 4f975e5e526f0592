//! Brokers of MQTT 5: every way to refuse a session, bytes that are no MQTT 5, and limits that hubs must keep.

use super::broker::{Broker, PINGREQ, PUBLISH, arrived, says, then};
use super::connecting::in_vain;
use super::hubs::{HUBS, Row, changes, lost, packets, stage_as};
use super::peer::{Move, Peer, Seen};
use super::stage::LIMIT;
use crate::live_hubs::fleet::start;
use rushhour::event::{Cause, Event, HubChange, Outcome, PacketKind, ReferenceVerdict};
use rushhour::plan::OperationKind;
use std::time::Duration;

const DISCONNECT: u8 = 14;

/// CONNACK with this reason and no properties.
fn connack(reason: u8) -> Vec<Move> {
    says(&[0x20, 3, 0, reason, 0])
}

/// CONNACK that lets in, with these properties.
fn accepts(properties: &[u8]) -> Vec<u8> {
    let length = u8::try_from(properties.len()).unwrap();
    [&[0x20, 3 + length, 0, 0, length], properties].concat()
}

/// Every reason with which CONNACK may refuse (section 3.2.2.2), one that nobody knows, and a code of the older version.
fn refusals() -> Vec<Row<Outcome>> {
    const REASONS: [(&str, u8); 24] = [
        ("unspecified", 0x80),
        ("malformed", 0x81),
        ("protocol", 0x82),
        ("implementation", 0x83),
        ("version", 0x84),
        ("client-id", 0x85),
        ("password", 0x86),
        ("not-authorized", 0x87),
        ("unavailable", 0x88),
        ("busy", 0x89),
        ("banned", 0x8a),
        ("method", 0x8c),
        ("topic", 0x90),
        ("too-large", 0x95),
        ("quota", 0x97),
        ("payload", 0x99),
        ("no-retain", 0x9a),
        ("no-qos", 0x9b),
        ("another-server", 0x9c),
        ("moved", 0x9d),
        ("rate", 0x9f),
        ("of-nobody", 0xc7),
        ("below-error", 0x10),
        ("older", 0x01),
    ];
    let mut rows: Vec<Row<Outcome>> = REASONS
        .iter()
        .map(|(name, reason)| {
            let broker = Broker::connect(connack(*reason));
            (*name, broker, Outcome::Refused(u16::from(*reason)))
        })
        .collect();
    rows.push((
        "speaks-the-older",
        Broker::connect(says(&[0x20, 2, 0, 1])),
        Outcome::Refused(1),
    ));
    rows.push((
        "disconnects",
        Broker::connect(then(&[0xe0, 1, 0x97], Move::Close)),
        Outcome::Refused(0x97),
    ));
    const GRANTS: [(&str, u8); 9] = [
        ("suback-unspecified", 0x80),
        ("suback-implementation", 0x83),
        ("suback-not-authorized", 0x87),
        ("suback-filter", 0x8f),
        ("suback-packet-id", 0x91),
        ("suback-quota", 0x97),
        ("suback-shared", 0x9e),
        ("suback-ids", 0xa1),
        ("suback-wildcards", 0xa2),
    ];
    rows.extend(GRANTS.map(|(name, reason)| {
        let broker = Broker::right5()
            .about_subscribe(move |said| says(&[0x90, 4, said.bytes[2], said.bytes[3], 0, reason]));
        (name, broker, Outcome::Refused(u16::from(reason)))
    }));
    rows
}

/// Bytes that are no MQTT 5, or not now.
fn malformed() -> Vec<Row<Outcome>> {
    let about_connect: [(&str, &[u8]); 16] = [
        ("connack-without-properties", &[0x20, 2, 0, 0]),
        ("properties-cut", &[0x20, 3, 0, 0, 5]),
        ("property-of-others", &[0x20, 5, 0, 0, 2, 0x01, 0]),
        ("property-twice", &accepts(&[0x24, 0, 0x24, 0]).leak()[..]),
        ("property-of-nobody", &accepts(&[0x7f, 0]).leak()[..]),
        ("receive-maximum-0", &accepts(&[0x21, 0, 0]).leak()[..]),
        ("packet-size-0", &accepts(&[0x27, 0, 0, 0, 0]).leak()[..]),
        ("qos-2-at-most", &accepts(&[0x24, 2]).leak()[..]),
        (
            "text-beyond-the-packet",
            &accepts(&[0x1c, 0, 9, b'a']).leak()[..],
        ),
        ("no-text", &accepts(&[0x1c, 0, 1, 0xff]).leak()[..]),
        ("connack-flags", &[0x21, 3, 0, 0, 0]),
        ("endless-length", &[0x20, 0xff, 0xff, 0xff, 0xff, 1]),
        ("auth-unasked", &[0xf0, 0]),
        ("auth-flags", &[0xf1, 0]),
        ("says-subscribe", &[0x82, 7, 0, 1, 0, 0, 1, b'a', 0]),
        ("publish-first", &[0x30, 4, 0, 1, b'a', 0]),
    ];
    let about_subscribe: [(&str, &[u8]); 4] = [
        ("suback-without-properties", &[0x90, 3, 0, 1, 1]),
        ("suback-of-two", &[0x90, 5, 0, 1, 0, 1, 1]),
        ("suback-of-another", &[0x90, 4, 0, 9, 0, 1]),
        ("suback-without-reason", &[0x90, 3, 0, 1, 0]),
    ];
    let connect = about_connect.map(|(name, bytes)| (name, Broker::connect(says(bytes))));
    let subscribe = about_subscribe.map(|(name, bytes)| {
        let broker = Broker::right5().about_subscribe(move |_| says(bytes));
        (name, broker)
    });
    let both = connect.into_iter().chain(subscribe);
    both.map(|(name, broker)| (name, broker, Outcome::Protocol))
        .collect()
}

/// Each of them twice by each hub, in the report as in the broker's log; a hub says why it leaves where it is the one who does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_of_mqtt_5_keeps_its_reason_and_the_brokers_count() {
    let rows = in_vain("mqtt: 5", [refusals(), malformed()].concat()).await;
    for (name, peer, expected) in &rows {
        let said_why = arrived(peer, DISCONNECT);
        let expected = match expected {
            Outcome::Protocol => 2 * HUBS,
            _ if name.starts_with("suback") => 2 * HUBS,
            _ => 0,
        };
        assert_eq!(said_why, expected, "{name}: DISCONNECT");
    }
}

/// A session that ends, by what ended it, and what the hub said about it.
type Ended = (Cause, Option<u8>);

/// Brokers that say DISCONNECT.
fn leaving() -> Vec<Row<Ended>> {
    let said: [(&str, &[u8], u8); 7] = [
        ("normal", &[0xe0, 0], 0),
        ("shuts-down", &[0xe0, 2, 0x8b, 0], 0x8b),
        ("takes-over", &[0xe0, 2, 0x8e, 0], 0x8e),
        ("uses-another", &[0xe0, 2, 0x9c, 0], 0x9c),
        ("moved-for-good", &[0xe0, 2, 0x9d, 0], 0x9d),
        ("of-nobody", &[0xe0, 2, 0xa3, 0], 0xa3),
        ("without-properties", &[0xe0, 1, 0x98], 0x98),
    ];
    let rows = said.map(|(name, bytes, reason)| {
        let broker = Broker::session5(then(bytes, Move::Close));
        (name, broker, (Cause::Disconnected(reason), None))
    });
    rows.into()
}

/// Brokers that break the protocol, and what the hub says to that.
fn breaking() -> Vec<Row<Ended>> {
    let said: [(&str, &[u8], u8); 9] = [
        // No alias was allowed.
        ("alias-unasked", b"\x30\x08\x00\x01a\x03\x23\x00\x01{", 0x94),
        ("no-topic", b"\x30\x04\x00\x00\x00{", 0x81),
        ("disconnect-flags", &[0xe1, 0], 0x81),
        ("disconnect-cut", &[0xe0, 2, 0x8b, 7], 0x81),
        ("puback-of-0", &[0x40, 2, 0, 0], 0x81),
        ("qos-3", b"\x36\x06\x00\x01a\x00\x01\x00", 0x81),
        ("connack-again", &[0x20, 3, 0, 0, 0], 0x82),
        ("suback-again", &[0x90, 4, 0, 1, 0, 1], 0x82),
        ("auth-unasked", &[0xf0, 2, 0x18, 0], 0x82),
    ];
    let mut rows: Vec<Row<Ended>> = said
        .map(|(name, bytes, reason)| {
            (
                name,
                Broker::session5(says(bytes)),
                (Cause::Protocol, Some(reason)),
            )
        })
        .into();
    // 2 MiB are announced: nobody waits for them.
    let oversized = Broker::session5(says(&[0x30, 0x80, 0x80, 0x80, 0x01]));
    rows.push(("oversized", oversized, (Cause::TooLarge, Some(0x95))));
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_end_of_a_session_of_mqtt_5_is_told_once_with_its_cause() {
    let hubs =
        "keep_alive: 60s, reconnect: { fixed: { every: 60s }, first: 0s, healthy_after: 30s }";
    let (plan, rows) = stage_as("mqtt: 5", [leaving(), breaking()].concat(), hubs).await;
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "every session is lost", |told| {
        told.lost() == HUBS * rows.len()
    })
    .await;
    fleet.stop(LIMIT).await;
    for (row, (name, peer, (cause, reason))) in rows.iter().enumerate() {
        assert_eq!(changes(&told, row, HubChange::Lost(*cause)), HUBS, "{name}");
        assert_eq!(lost(&told, row), HUBS, "{name}");
        assert_eq!(peer.accepted(), HUBS, "{name}: nobody is back yet");
        let goodbyes = peer.log().into_iter().filter_map(|line| match line.seen {
            Seen::Bytes(bytes) if bytes[0] >> 4 == DISCONNECT => Some(bytes[2]),
            _ => None,
        });
        let expected = reason.map_or_else(Vec::new, |reason| vec![reason; HUBS]);
        assert_eq!(goodbyes.collect::<Vec<_>>(), expected, "{name}");
    }
}

/// Where nobody follows references, or none that stands in the target file is named, hubs stay away and it is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_reference_is_told_and_nobody_goes_where_the_target_file_does_not() {
    let moved = Broker::connect(says(b"\x20\x0b\x00\x9d\x08\x1c\x00\x05elsex"));
    let rows = vec![("moved", moved, ())];
    let hubs = "reconnect: { fixed: { every: 50ms, attempts: 2 } }";
    let (plan, _rows) = stage_as("mqtt: 5", rows, hubs).await;
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "every hub has given up", |told| {
        told.count(|event| matches!(event, Event::Finished { .. })) == HUBS
    })
    .await;
    fleet.stop(LIMIT).await;
    let refused = told.count(|event| {
        matches!(event, Event::Reference { text, verdict: ReferenceVerdict::Refused, .. } if text == "elsex")
    });
    assert_eq!(refused, 2 * HUBS);
}

/// The publishes in a broker's log by connection, as when they came and their first byte.
fn publishes(peer: &Peer) -> Vec<Vec<(std::time::Instant, u8)>> {
    let log = peer.log();
    (0..peer.accepted())
        .map(|connection| {
            let lines = log.iter().filter(|line| line.connection == connection);
            lines
                .filter_map(|line| match &line.seen {
                    Seen::Bytes(bytes) if bytes[0] >> 4 == PUBLISH => Some((line.at, bytes[0])),
                    _ => None,
                })
                .collect()
        })
        .collect()
}

/// What a broker says in CONNACK about publishes and pings is kept: seen from its log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_the_broker_are_kept() {
    let delay = Duration::from_millis(150);
    let acknowledges_late = move |said: &super::peer::Said| {
        let id = super::broker::packet_id(&said.bytes).unwrap();
        [vec![Move::Wait(delay)], says(&super::broker::puback(id))].concat()
    };
    let limited = |properties: &[u8]| Broker::right5().about_connect(says(&accepts(properties)));
    let rows = vec![
        (
            "one-at-a-time",
            limited(&[0x21, 0, 1]).about_publish(acknowledges_late),
            Outcome::Ok,
        ),
        ("qos-0", limited(&[0x24, 0]), Outcome::Ok),
        ("small", limited(&[0x27, 0, 0, 0, 40]), Outcome::NotSent),
        ("pings", limited(&[0x13, 0, 1]), Outcome::Ok),
    ];
    let hubs = "timeout: 10s, keep_alive: 60s, telemetry: { every: 60ms, bytes: 24 }, reconnect: { fixed: { every: 60s } }";
    let (plan, rows) = stage_as("mqtt: 5", rows, hubs).await;
    let (fleet, told) = start(plan.clone()).await;
    told.until(LIMIT, "each has published and pinged", |told| {
        let ended = |row| outcomes_of_telemetry(told, &plan, row).len() >= 5 * HUBS;
        (0..rows.len()).all(ended) && arrived(&rows[3].1, PINGREQ) >= 2 * HUBS
    })
    .await;
    fleet.stop(LIMIT).await;
    for (row, (name, peer, expected)) in rows.iter().enumerate() {
        assert_eq!(lost(&told, row), 0, "{name}: the session stands");
        let ends = outcomes_of_telemetry(&told, &plan, row);
        assert!(ends.iter().all(|end| end == expected), "{name}: {ends:?}");
        let sent = packets(&told, row, PacketKind::Publish, true);
        assert_eq!(arrived(peer, PUBLISH), sent, "{name}");
    }
    for hub in publishes(&rows[0].1) {
        for pair in hub.windows(2) {
            assert!(
                pair[1].0 - pair[0].0 >= delay,
                "only after the PUBACK of the one before"
            );
        }
    }
    for hub in publishes(&rows[1].1) {
        assert!(
            hub.iter().all(|(_, first)| *first == 0x30),
            "QoS 0: {hub:x?}"
        );
    }
    let told_so = told.count(|event| {
        matches!(event, Event::Explained { outcome: Outcome::Ok, text, .. } if text.contains("QoS 0 at most"))
    });
    assert_eq!(told_so, HUBS);
    assert_eq!(arrived(&rows[2].1, PUBLISH), 0, "none is as small as that");
}

fn outcomes_of_telemetry(
    told: &crate::live_hubs::fleet::Told,
    plan: &rushhour::plan::Plan,
    row: usize,
) -> Vec<Outcome> {
    let wanted = plan.operation(OperationKind::Telemetry { hubs: row });
    let ends = told.all();
    let ends = ends.iter().filter_map(|event| match event {
        Event::Finished {
            operation, outcome, ..
        } if Some(*operation) == wanted => Some(*outcome),
        _ => None,
    });
    ends.collect()
}

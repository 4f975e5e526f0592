//! Servers that say odd things: each ends the attempt in its own way, never in silence.

use super::fleet::{Told, plan, start};
use rushhour::event::{Event, HubChange, Outcome, PacketKind};
use rushhour::plan::Plan;
use rushhour::plan::fault::{Disconnect, How};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(10);
const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
const SUBACK: [u8; 5] = [0x90, 3, 0, 1, 1];

/// What a server does after each packet of a client.
#[derive(Clone)]
enum Says {
    Bytes(&'static [u8]),
    /// FIN.
    Closes,
    /// RST.
    Resets,
    Nothing,
}

/// A server that answers each client's first read with the first line of the script, and so on; then it is silent.
async fn server(script: Vec<Says>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let script = script.clone();
            tokio::spawn(async move {
                let mut bytes = [0; 1024];
                let mut lines = script.into_iter();
                while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {
                    match lines.next() {
                        Some(Says::Bytes(answer)) => stream.write_all(answer).await.unwrap(),
                        Some(Says::Closes) => return,
                        Some(Says::Resets) => {
                            stream.set_zero_linger().unwrap();
                            return;
                        }
                        Some(Says::Nothing) | None => {}
                    }
                }
            });
        }
    });
    port
}

/// One hub that tries once, with a timeout of 300 ms.
fn one_try(port: u16) -> Plan {
    let mut plan = plan(&[port], 1);
    plan.hubs[0].timeout = Duration::from_millis(300);
    plan.hubs[0].reconnect.retry.attempts = Some(1);
    plan
}

async fn outcome_of_one_try(script: Vec<Says>) -> (Outcome, Told) {
    let (fleet, told) = start(one_try(server(script).await)).await;
    let finished = |told: &Told| told.count(|event| matches!(event, Event::Finished { .. })) > 0;
    told.until(LIMIT, "the attempt ended", finished).await;
    fleet.stop(LIMIT).await;
    let outcome = told.all().into_iter().find_map(|event| match event {
        Event::Finished { outcome, .. } => Some(outcome),
        _ => None,
    });
    (outcome.unwrap(), told)
}

/// The outcome of one try against each script.
async fn check(table: Vec<(&str, Vec<Says>, Outcome)>) {
    for (what, script, expected) in table {
        let (outcome, told) = outcome_of_one_try(script).await;
        assert_eq!(outcome, expected, "{what}");
        assert_eq!(told.hubs(HubChange::Opened), 1, "{what}");
        let stood = usize::from(expected == Outcome::Ok);
        assert_eq!(told.hubs(HubChange::Connected), stood, "{what}");
    }
}

#[tokio::test]
async fn each_odd_answer_to_connect_has_its_outcome() {
    let (refused, reset, protocol) = (Outcome::Refused, Outcome::Reset, Outcome::Protocol);
    let says = |bytes: &'static [u8]| vec![Says::Bytes(bytes)];
    check(vec![
        ("CONNACK refused", says(&[0x20, 2, 0, 5]), refused(5)),
        (
            "CONNACK with a code of nobody",
            says(&[0x20, 2, 0, 77]),
            refused(77),
        ),
        ("CONNACK a byte short", says(&[0x20, 1, 0]), protocol),
        (
            "CONNACK twice",
            says(&[0x20, 2, 0, 0, 0x20, 2, 0, 0]),
            protocol,
        ),
        (
            "half a CONNACK, then silence",
            says(&[0x20, 2]),
            Outcome::TimedOut,
        ),
        (
            "garbage",
            says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            protocol,
        ),
        (
            "PUBLISH before CONNACK",
            says(&[0x30, 3, 0, 1, b'a']),
            protocol,
        ),
        ("PINGRESP before CONNACK", says(&[0xd0, 0]), protocol),
        ("closes at CONNECT", vec![Says::Closes], reset),
        ("resets at CONNECT", vec![Says::Resets], reset),
        ("never answers", vec![Says::Nothing], Outcome::TimedOut),
    ])
    .await;
}

#[tokio::test]
async fn each_odd_answer_to_subscribe_has_its_outcome() {
    let (refused, reset, protocol) = (Outcome::Refused, Outcome::Reset, Outcome::Protocol);
    let then = |says: Says| vec![Says::Bytes(&CONNACK), says];
    let says = |bytes: &'static [u8]| then(Says::Bytes(bytes));
    check(vec![
        ("CONNACK, then closes", then(Says::Closes), reset),
        (
            "CONNACK, then silence",
            then(Says::Nothing),
            Outcome::TimedOut,
        ),
        ("SUBACK 0x80", says(&[0x90, 3, 0, 1, 0x80]), refused(0x80)),
        (
            "SUBACK of another packet",
            says(&[0x90, 3, 0, 9, 1]),
            protocol,
        ),
        (
            "SUBACK of two subscriptions",
            says(&[0x90, 4, 0, 1, 1, 1]),
            protocol,
        ),
        ("DISCONNECT from a server", says(&[0xe0, 0]), protocol),
        ("as it should be", says(&SUBACK), Outcome::Ok),
    ])
    .await;
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let (fleet, told) = start(one_try(crate::support::service::free_port())).await;
    told.until(LIMIT, "it found nobody", |told| {
        told.answered(Outcome::Unreachable) == 1
    })
    .await;
    fleet.stop(LIMIT).await;
    assert_eq!(told.hubs(HubChange::Opened), 0);
}

/// The server accepts everybody and never answers PINGREQ: the deadline is the group's timeout, not the next ping.
#[tokio::test]
async fn a_missing_pingresp_ends_the_session_at_its_deadline() {
    let mut plan = one_try(server(vec![Says::Bytes(&CONNACK), Says::Bytes(&SUBACK)]).await);
    plan.hubs[0].keep_alive = Duration::from_secs(1);
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "the session is lost", |told| {
        told.hubs(HubChange::Lost) == 1
    })
    .await;
    fleet.stop(LIMIT).await;
    let at = |wanted: &dyn Fn(&Event) -> bool| {
        told.all()
            .into_iter()
            .find(wanted)
            .map(|event| match event {
                Event::Packet { at, .. } | Event::Hub { at, .. } => at,
                other => panic!("{other:?}"),
            })
    };
    let pinged = at(&|event| {
        matches!(
            event,
            Event::Packet {
                kind: PacketKind::PingReq,
                ..
            }
        )
    })
    .unwrap();
    let lost = at(&|event| {
        matches!(
            event,
            Event::Hub {
                change: HubChange::Lost,
                ..
            }
        )
    })
    .unwrap();
    let waited = lost.since(pinged);
    // 300 ms by plan; the upper bound leaves room for a loaded machine and is far below the next ping at 1 s.
    assert!((299..800).contains(&waited.as_millis()), "{waited:?}");
}

/// A message split at every place arrives once, whole.
#[tokio::test]
async fn a_message_in_pieces_arrives_once() {
    const REST: &[u8] = b"\x00\x01{}\x30";
    let script = vec![
        Says::Bytes(&CONNACK),
        // SUBACK and the head of a PUBLISH with QoS 1, and later its rest with the first byte of the next one.
        Says::Bytes(b"\x90\x03\x00\x01\x01\x32\x07\x00\x01a"),
        Says::Bytes(REST),
    ];
    let mut plan = one_try(server(script).await);
    // Its PINGREQ is what makes the server say the rest.
    plan.hubs[0].keep_alive = Duration::from_millis(100);
    let (fleet, told) = start(plan).await;
    let foreign = |told: &Told| told.count(|event| matches!(event, Event::Foreign { .. }));
    told.until(LIMIT, "the message arrived", |told| foreign(told) == 1)
        .await;
    assert_eq!(told.packets(PacketKind::PubAck, true), 1);
    fleet.stop(LIMIT).await;
    assert_eq!(foreign(&told), 1);
}

/// Hubs come from many source addresses of the loopback network, so that one address's ports never bound the fleet.
#[tokio::test]
async fn connects_come_from_many_source_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (fleet, _told) = start(plan(&[port], 128)).await;
    let mut sources = Vec::new();
    for _ in 0..128 {
        let (stream, from) = tokio::time::timeout(LIMIT, listener.accept())
            .await
            .unwrap()
            .unwrap();
        sources.push((from.ip(), stream));
    }
    let mut addresses: Vec<_> = sources.iter().map(|(address, _)| *address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 64);
    assert!(
        !addresses.contains(&Ipv4Addr::LOCALHOST.into()),
        "left to riders and probes"
    );
    fleet.stop(LIMIT).await;
}

/// The end of the run cuts off what is under way, and everything that started is accounted for.
#[tokio::test]
async fn the_end_tells_what_is_unfinished() {
    let mut plan = plan(&[server(vec![Says::Nothing]).await], 30);
    plan.hubs[0].connect_over = Duration::ZERO;
    let (fleet, told) = start(plan).await;
    told.until(LIMIT, "all wait for CONNACK", |told| {
        told.packets(PacketKind::Connect, true) == 30
    })
    .await;
    let disconnect = Disconnect {
        group: 0,
        share: 1.0,
        within: Duration::from_secs(3600),
        by: How::Close,
        away: Duration::ZERO,
    };
    fleet.order_disconnect(&disconnect, 1);
    assert_eq!(
        fleet.stop(LIMIT).await,
        0,
        "a stop comes before drops that are due later"
    );
    let unfinished = told.count(|event| matches!(event, Event::Unfinished { .. }));
    let started = told.count(|event| matches!(event, Event::Started { .. }));
    assert_eq!((started, unfinished), (30, 30));
}

//! What servers other than a broker show of a fleet: its sources, its end, how it reads what comes in pieces.

use super::fleet::{Told, plan, start};
use rushhour::event::{Event, PacketKind};
use rushhour::plan::Plan;
use rushhour::plan::fault::{Disconnect, How, TriggerKind};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(10);

/// A server that answers each client's first read with the first line of the script, and so on; then it is silent.
async fn server(script: &'static [&'static [u8]]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = [0; 1024];
                let mut lines = script.iter();
                while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {
                    if let Some(answer) = lines.next() {
                        stream.write_all(answer).await.unwrap();
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

/// A message split at every place arrives once, whole.
#[tokio::test]
async fn a_message_in_pieces_arrives_once() {
    const REST: &[u8] = b"\x00\x01{}\x30";
    const SCRIPT: &[&[u8]] = &[
        b"\x20\x02\x00\x00",
        // SUBACK and the head of a PUBLISH with QoS 1, and later its rest with the first byte of the next one.
        b"\x90\x03\x00\x01\x01\x32\x07\x00\x01a",
        REST,
    ];
    let mut plan = one_try(server(SCRIPT).await);
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
    let mut plan = plan(&[server(&[]).await], 30);
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
        readmit: None,
    };
    fleet.order(&TriggerKind::Disconnect(disconnect), 1);
    assert_eq!(
        fleet.stop(LIMIT).await,
        0,
        "a stop comes before drops that are due later"
    );
    let unfinished = told.count(|event| matches!(event, Event::Unfinished { .. }));
    let started = told.count(|event| matches!(event, Event::Started { .. }));
    assert_eq!((started, unfinished), (30, 30));
}

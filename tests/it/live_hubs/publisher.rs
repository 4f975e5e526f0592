//! Commands over MQTT: what the broker took is what was told.

use super::fleet::{RUN, Told, plan};
use crate::support::service::{free_port, mosquitto};
use rushhour::event::{Event, HubChange, Outcome, PacketKind};
use rushhour::live::outgoing::Outgoing;
use rushhour::live::publish::Publisher;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LIMIT: Duration = Duration::from_secs(10);

async fn publisher(ports: &[u16]) -> (Publisher, Told) {
    let told = Told::default();
    let plan = Arc::new(plan(ports, 10));
    let hosts = Hosts::of(&plan.target).unwrap();
    let publisher = Publisher::start(&plan, 0, &hosts, Clock::start(), RUN, &told.sink())
        .await
        .unwrap();
    (publisher, told)
}

fn packets(told: &Told, wanted: PacketKind, was_sent: bool) -> usize {
    told.count(
        |event| matches!(event, Event::PublisherPacket { kind, sent, .. } if *kind == wanted && *sent == was_sent),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_publish_is_answered_at_its_own_puback() {
    let Some(broker) = mosquitto() else { return };
    let (publisher, told) = publisher(&[broker.port]).await;
    assert!(publisher.stands(LIMIT).await.is_ok());
    let mut under_way = tokio::task::JoinSet::new();
    for number in 0..500_u32 {
        let publisher = publisher.clone();
        under_way.spawn(async move {
            let qos = u8::from(number % 5 != 0);
            publisher
                .publish(0, message(format!("d/{number}"), qos))
                .await
        });
    }
    let outcomes = under_way.join_all().await;
    assert!(
        outcomes.iter().all(|outcome| *outcome == Outcome::Ok),
        "{outcomes:?}"
    );
    assert_eq!(packets(&told, PacketKind::Publish, true), 500);
    assert_eq!(packets(&told, PacketKind::PubAck, false), 400);
    drop(publisher);
    told.until(LIMIT, "the connection ends with its last user", |told| {
        told.count(|event| {
            matches!(
                event,
                Event::Publisher {
                    change: HubChange::Left,
                    ..
                }
            )
        }) == 1
    })
    .await;
    while broker.logged("Received DISCONNECT from rtest-issuers-0-0") < 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        broker.logged("Received PUBLISH from rtest-issuers-0-0"),
        500
    );
    assert_eq!(broker.logged("Sending PUBACK to rtest-issuers-0-0"), 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_broker_nothing_is_kept_for_later() {
    let (publisher, told) = publisher(&[free_port()]).await;
    assert!(publisher.stands(Duration::from_millis(100)).await.is_err());
    let outcome = publisher.publish(0, message("d/1".to_owned(), 1)).await;
    assert_eq!(outcome, Outcome::Unreachable);
    let failed = |event: &Event| {
        matches!(
            event,
            Event::PublisherFailed {
                outcome: Outcome::Unreachable,
                ..
            }
        )
    };
    assert_eq!(told.count(|event| !failed(event)), 0, "{:?}", told.all());
}

/// The broker dies with a publish under way: the attempt ends there, and nothing is repeated at the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_ends_what_is_unacknowledged() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (publisher, _told) = publisher(&[listener.local_addr().unwrap().port()]).await;
    let mut first = accept(&listener).await;
    assert!(publisher.stands(LIMIT).await.is_ok());
    let publish = {
        let publisher = publisher.clone();
        tokio::spawn(async move { publisher.publish(0, message("d/1".to_owned(), 1)).await })
    };
    // Read, not only readable: readiness may be left over from CONNECT, and then the connection would end before the publish.
    let mut bytes = [0; 64];
    assert!(first.read(&mut bytes).await.unwrap() > 0);
    drop(first);
    assert_eq!(publish.await.unwrap(), Outcome::Reset);
    let mut again = accept(&listener).await;
    assert!(publisher.stands(LIMIT).await.is_ok(), "it connects again");
    let silence = Duration::from_millis(200);
    let unasked = tokio::time::timeout(silence, again.read(&mut bytes)).await;
    assert!(unasked.is_err(), "{unasked:?} bytes: {bytes:02x?}");
}

/// Takes the next connection and accepts its session.
async fn accept(listener: &tokio::net::TcpListener) -> tokio::net::TcpStream {
    let (mut stream, _) = tokio::time::timeout(LIMIT, listener.accept())
        .await
        .unwrap()
        .unwrap();
    let mut connect = [0; 256];
    assert!(stream.read(&mut connect).await.unwrap() > 0);
    stream.write_all(&[0x20, 2, 0, 0]).await.unwrap();
    stream
}

fn message(topic: String, qos: u8) -> Outgoing {
    Outgoing {
        topic,
        qos,
        payload: b"{}".to_vec(),
        properties: Vec::new(),
    }
}

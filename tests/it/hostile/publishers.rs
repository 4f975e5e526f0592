//! Brokers that misbehave towards those who publish commands.

use super::broker::{Broker, PUBLISH, arrived, packet_id, puback, says, then};
use super::hubs::Row;
use super::peer::{Move, Peer};
use super::stage::{LIMIT, plan};
use crate::live_hubs::fleet::{RUN, Told};
use rushhour::event::{Cause, Event, HubChange, Outcome};
use rushhour::live::outgoing::Outgoing;
use rushhour::live::publish::Publisher;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use std::sync::Arc;
use std::time::Duration;

/// Of the issuers, and so of their connection.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A publisher for each of these brokers, and everything that all of them tell.
async fn publishers<E>(
    device: &str,
    rows: Vec<Row<E>>,
) -> (Vec<(&'static str, Peer, Publisher, E)>, Told) {
    let mut target = "environment: test\ndevices:\n".to_owned();
    let (mut commands, mut hubs, mut issuers) = (String::new(), String::new(), String::new());
    let mut served = Vec::new();
    for (name, broker, expected) in rows {
        let peer = broker.serve().await;
        target += &format!(
            "  d-{name}: {{ {device}, shards: {{ only: \"mqtt://{}\" }}, command: {{ topic: d/<serial>/cmd, qos: 1, id: {{ json: $.id }} }}, answer: {{ topic: d/<serial>/evt, json: {{ id: <command> }} }} }}\n",
            peer.address
        );
        commands += &format!(
            "  c-{name}: {{ to: d-{name}, publish: d/<serial>/cmd, qos: 1, json: {{ id: <command> }} }}\n"
        );
        hubs += &format!("  g-{name}: {{ device: d-{name}, count: 1 }}\n");
        issuers += &format!(
            "  i-{name}: {{ command: c-{name}, to: g-{name}, arrivals: {{ even: [ 1/s for 10s ] }}, in_time: 1s, ttl: 2s, timeout: {}ms }}\n",
            TIMEOUT.as_millis()
        );
        served.push((name, peer, expected));
    }
    let profile = format!(
        "target: target.yaml\nduration: 10s\nexpect: [ hubs connected >= 0% ]\nhubs:\n{hubs}issuers:\n{issuers}"
    );
    let plan = Arc::new(plan(&profile, &format!("{target}commands:\n{commands}")));
    let hosts = Hosts::of(&plan.target).unwrap();
    let (told, clock) = (Told::default(), Clock::start());
    let mut rows = Vec::new();
    for (device, (name, peer, expected)) in served.into_iter().enumerate() {
        let started = Publisher::start(&plan, device, &hosts, clock, RUN, &told.sink()).await;
        rows.push((name, peer, started.unwrap(), expected));
    }
    (rows, told)
}

/// How often the publisher of a device was lost, or an attempt of its failed, in this way.
fn ended(told: &Told, row: usize, wanted: &Ends) -> usize {
    told.count(|event| match (event, wanted) {
        (
            Event::PublisherFailed {
                device, outcome, ..
            },
            Ends::Failed(expected),
        ) => usize::from(*device) == row && outcome == expected,
        (Event::Publisher { device, change, .. }, Ends::Lost(cause)) => {
            usize::from(*device) == row && *change == HubChange::Lost(*cause)
        }
        _ => false,
    })
}

/// How each connection comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Failed(Outcome),
    Lost(Cause),
}

/// A broker that lets nobody in, or nobody stay, is asked ever more seldom, and the report counts each time with its reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_not_let_in_or_thrown_out_at_once_asks_ever_more_seldom() {
    let rows = vec![
        (
            "refuses",
            Broker::connect(says(&[0x20, 3, 0, 0x87, 0])),
            Ends::Failed(Outcome::Refused(0x87)),
        ),
        (
            "hangs",
            Broker::connect(Vec::new()),
            Ends::Failed(Outcome::TimedOut),
        ),
        (
            "closes",
            Broker::connect(vec![Move::Close]),
            Ends::Failed(Outcome::Reset),
        ),
        (
            "no-mqtt",
            Broker::connect(says(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
            Ends::Failed(Outcome::Protocol),
        ),
        (
            "accepts-and-closes",
            Broker::connect(then(&[0x20, 3, 0, 0, 0], Move::Close)),
            Ends::Lost(Cause::Closed),
        ),
        (
            "accepts-and-leaves",
            Broker::connect(says(&[0x20, 3, 0, 0, 0, 0xe0, 1, 0x8b])),
            Ends::Lost(Cause::Disconnected(0x8b)),
        ),
    ];
    let (rows, told) = publishers("mqtt: 5", rows).await;
    told.until(LIMIT, "each has been asked three times", |told| {
        let row = |row: usize| ended(told, row, &rows[row].3) >= 3;
        (0..rows.len()).all(row)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (row, (name, peer, publisher, ends)) in rows.iter().enumerate() {
        let connections = peer.accepted();
        let (told, under_way) = (ended(&told, row, ends), 1);
        assert!(
            told <= connections && connections <= told + under_way,
            "{name}: {connections} there, {told} told"
        );
        // Waits are drawn below 0.4, 0.8, 1.6 s and so on. At the first of them for ever, two seconds alone would see twenty.
        assert!(connections < 14, "{name}: {connections} connections");
        if *name == "refuses" {
            let why = publisher.stands(Duration::from_millis(1)).await;
            assert_eq!(why, Err("refused 0x87 not authorized".to_owned()));
        }
        if let Ends::Failed(_) = ends {
            let answer = publisher.publish(0, message("d/1")).await;
            assert_eq!(answer, Outcome::Unreachable, "{name}");
            assert_eq!(arrived(peer, PUBLISH), 0, "{name}");
        }
    }
}

/// What a broker says about publishes, and what comes of two of them; `None`: nothing does.
fn acknowledging() -> Vec<Row<Option<Outcome>>> {
    let answers = |reply: fn(u16) -> Vec<u8>| {
        Broker::right5().about_publish(move |said| says(&reply(packet_id(&said.bytes).unwrap())))
    };
    let reason = |reason: u8| {
        Broker::right5().about_publish(move |said| {
            let [high, low] = packet_id(&said.bytes).unwrap().to_be_bytes();
            says(&[0x40, 3, high, low, reason])
        })
    };
    let accepts = |connack: &[u8]| Broker::right5().about_connect(says(connack));
    vec![
        (
            "never",
            Broker::right5().about_publish(|_| Vec::new()),
            None,
        ),
        ("once", answers(|id| puback(id).to_vec()), Some(Outcome::Ok)),
        (
            "twice",
            answers(|id| [puback(id), puback(id)].concat()),
            Some(Outcome::Ok),
        ),
        (
            "of-unknown-ids",
            answers(|id| puback(id.wrapping_add(1_000)).to_vec()),
            None,
        ),
        (
            "in-reverse",
            Broker::right5().about_publish(|said| {
                let id = packet_id(&said.bytes).unwrap();
                // CONNECT was the first thing said.
                match said.nth {
                    3 => says(&[puback(id), puback(id - 1)].concat()),
                    _ => Vec::new(),
                }
            }),
            Some(Outcome::Ok),
        ),
        ("nobody-listens", reason(0x10), Some(Outcome::Ok)),
        ("quota", reason(0x97), Some(Outcome::Refused(0x97))),
        ("not-authorized", reason(0x87), Some(Outcome::Refused(0x87))),
        // Receive maximum 1 and no PUBACK: the second one stays here.
        (
            "one-at-a-time",
            accepts(&[0x20, 6, 0, 0, 3, 0x21, 0, 1]).about_publish(|_| Vec::new()),
            None,
        ),
        // At most QoS 0: there is no PUBACK to wait for.
        (
            "qos-0",
            accepts(&[0x20, 5, 0, 0, 2, 0x24, 0]),
            Some(Outcome::Ok),
        ),
        (
            "small",
            accepts(&[0x20, 8, 0, 0, 5, 0x27, 0, 0, 0, 20]),
            Some(Outcome::NotSent),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_publish_ends_once_by_what_the_broker_says_of_it() {
    let (rows, told) = publishers("mqtt: 5", acknowledging()).await;
    let mut under_way = tokio::task::JoinSet::new();
    for (row, (.., publisher, _)) in rows.iter().enumerate() {
        assert!(publisher.stands(LIMIT).await.is_ok());
        for _ in 0..2 {
            let publisher = publisher.clone();
            under_way.spawn(async move {
                let publish = publisher.publish(0, message("d/a-hub-of-the-test/cmd"));
                (
                    row,
                    tokio::time::timeout(Duration::from_secs(2), publish)
                        .await
                        .ok(),
                )
            });
        }
    }
    let ends = under_way.join_all().await;
    for (row, (name, peer, _, expected)) in rows.iter().enumerate() {
        let ends: Vec<_> = ends.iter().filter(|(of, _)| *of == row).collect();
        assert!(
            ends.iter().all(|(_, outcome)| outcome == expected),
            "{name}: {ends:?}"
        );
        let wanted = match *name {
            "one-at-a-time" => 1,
            "small" => 0,
            _ => 2,
        };
        assert_eq!(arrived(peer, PUBLISH), wanted, "{name}");
        assert_eq!(peer.accepted(), 1, "{name}: the session stands");
    }
    let losses =
        told.count(|event| matches!(event, Event::Publisher { change, .. } if change.is_lost()));
    assert_eq!(losses, 0);
}

fn message(topic: &str) -> Outgoing {
    Outgoing {
        topic: topic.to_owned(),
        qos: 1,
        payload: b"{}".to_vec(),
        properties: Vec::new(),
    }
}

//! The proxy as a process of its own, with real sockets on both sides.

use super::stage::{Carried, LIMIT, echo, round_trip, until};
use rushhour::chaos::proxy::toxics::{Kind, Latency};
use rushhour::chaos::proxy::wire::SetFault;
use rushhour::plan::fault::{Connections, Way};
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A fault on what the target answers; the test says which.
fn answers(id: &str, for_ms: Option<u64>) -> SetFault {
    SetFault {
        id: id.to_owned(),
        kind: Kind::Noop,
        way: Way::Answers,
        toxicity: 1.0,
        connections: Connections::All,
        for_ms,
        seed: 1,
    }
}

fn delay(add: Duration, jitter_us: u64) -> Kind {
    Kind::Latency(Latency {
        latency_us: u64::try_from(add.as_micros()).unwrap(),
        jitter_us,
    })
}

fn latency(id: &str, add: Duration, for_ms: Option<u64>) -> SetFault {
    SetFault {
        kind: delay(add, 0),
        ..answers(id, for_ms)
    }
}

/// Bytes that tell their place.
fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| (place * 31 + place / 251) as u8)
        .collect()
}

/// Sends everything in odd pieces, then FIN, and gives what came back until FIN.
async fn there_and_back(address: std::net::SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut reads, mut writes) = stream.into_split();
    let sent = bytes.to_vec();
    let sender = tokio::spawn(async move {
        for (piece, size) in sent.chunks(7919).zip((1..).cycle()) {
            writes.write_all(piece).await.unwrap();
            if size % 10 == 0 {
                tokio::task::yield_now().await;
            }
        }
        writes.shutdown().await.unwrap();
        writes
    });
    let mut back = Vec::new();
    tokio::time::timeout(LIMIT, reads.read_to_end(&mut back))
        .await
        .expect("the half-close is passed on, so the echo ends")
        .unwrap();
    drop(sender.await.unwrap());
    back
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_every_byte_and_the_half_close() {
    let carried = Carried::to(echo().await).await;
    let bytes = pattern(3_000_000);
    assert!(there_and_back(carried.address, &bytes).await == bytes);
    until("the connection is no longer counted as open", || async {
        carried.proxy.links().await.unwrap()[0].open == 0
    })
    .await;
    let counted = &carried.proxy.links().await.unwrap()[0];
    assert_eq!((counted.accepted, counted.refused), (1, 0));
    assert_eq!(
        (counted.to_target_bytes, counted.to_client_bytes),
        (3_000_000, 3_000_000)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn latencies_that_come_and_go_lose_no_byte() {
    let carried = Carried::to(echo().await).await;
    let bytes = pattern(8_000_000);
    let proxy = carried.proxy.clone();
    let changes = tokio::spawn(async move {
        for round in 0..40_u64 {
            let order = SetFault {
                kind: delay(Duration::from_millis(round % 7), 3_000),
                way: Way::Both,
                ..answers("wobble", None)
            };
            proxy.set_fault("db", &order).await.unwrap();
            if round % 3 == 0 {
                assert!(proxy.remove("wobble").await.unwrap());
            }
        }
        proxy.remove("wobble").await.unwrap();
    });
    assert!(there_and_back(carried.address, &bytes).await == bytes);
    changes.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_connections_that_stand_already_and_frees_them_at_once() {
    let carried = Carried::to(echo().await).await;
    let mut stream = TcpStream::connect(carried.address).await.unwrap();
    round_trip(&mut stream).await;
    let add = Duration::from_millis(300);
    carried
        .proxy
        .set_fault("db", &latency("slow", add, None))
        .await
        .unwrap();
    // The lower bound proves the delay, on this connection and on a new one.
    assert!(round_trip(&mut stream).await >= add);
    let mut second = TcpStream::connect(carried.address).await.unwrap();
    assert!(round_trip(&mut second).await >= add);
    // Two on one link add.
    carried
        .proxy
        .set_fault("db", &latency("slower", add, None))
        .await
        .unwrap();
    assert!(round_trip(&mut stream).await >= 2 * add);
    // What is held leaves when the last delay goes: a byte sent into 20 s comes back long before.
    let far = latency("slow", Duration::from_secs(20), None);
    carried.proxy.set_fault("db", &far).await.unwrap();
    let sent = Instant::now();
    stream.write_all(b"!").await.unwrap();
    until("the answer is held", || async {
        carried.proxy.links().await.unwrap()[0].held_chunks >= 4
    })
    .await;
    assert!(carried.proxy.remove("slow").await.unwrap());
    assert!(carried.proxy.remove("slower").await.unwrap());
    stream.read_exact(&mut [0]).await.unwrap();
    assert!(sent.elapsed() < Duration::from_secs(10));
    assert!(
        !carried.proxy.remove("slow").await.unwrap(),
        "removing it again is no error"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_latency_ends_by_itself() {
    let carried = Carried::to(echo().await).await;
    let order = latency("short", Duration::from_millis(50), Some(400));
    carried.proxy.set_fault("db", &order).await.unwrap();
    assert!(carried.proxy.canary("db", LIMIT).await.unwrap() >= Duration::from_millis(50));
    until("it has ended although nobody removed it", || async {
        carried.proxy.links().await.unwrap()[0].faults.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_does_not_limit_the_bandwidth() {
    let carried = Carried::to(echo().await).await;
    let order = SetFault {
        way: Way::Both,
        ..latency("far", Duration::from_millis(200), None)
    };
    carried.proxy.set_fault("db", &order).await.unwrap();
    let bytes = pattern(12_000_000);
    let begun = Instant::now();
    assert!(there_and_back(carried.address, &bytes).await == bytes);
    // With one chunk of 64 KiB under way at a time it would take 180 × 0.4 s.
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_passed_on_as_a_reset_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let carried = Carried::to(listener.local_addr().unwrap()).await;
    for by_client in [true, false] {
        let client = TcpStream::connect(carried.address).await.unwrap();
        let (target, _) = listener.accept().await.unwrap();
        let (resets, mut sees) = if by_client {
            (client, target)
        } else {
            (target, client)
        };
        rushhour::net::connect::reset(resets);
        let seen = tokio::time::timeout(LIMIT, sees.read(&mut [0]))
            .await
            .unwrap();
        assert_eq!(
            seen.expect_err("no FIN").kind(),
            ErrorKind::ConnectionReset,
            "by client: {by_client}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_refuses_is_shown_as_a_reset() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let carried = Carried::to(closed).await;
    // The RST may be faster than the connect.
    let connect_and_read = async {
        let mut client = TcpStream::connect(carried.address).await?;
        client.read(&mut [0]).await
    };
    let seen = tokio::time::timeout(LIMIT, connect_and_read).await.unwrap();
    assert_eq!(seen.expect_err("no FIN").kind(), ErrorKind::ConnectionReset);
    assert_eq!(carried.proxy.links().await.unwrap()[0].refused, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_never_read_do_not_stop_the_control_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let carried = Carried::to(listener.local_addr().unwrap()).await;
    let mut blocked = Vec::new();
    for _ in 0..20 {
        let client = TcpStream::connect(carried.address).await.unwrap();
        let (target, _) = listener.accept().await.unwrap();
        for mut stream in [client, target] {
            // Until neither the proxy nor the kernel takes any more.
            let full = async { while stream.write_all(&[7; 65_536]).await.is_ok() {} };
            let _ = tokio::time::timeout(Duration::from_millis(50), full).await;
            blocked.push(stream);
        }
    }
    let begun = Instant::now();
    for round in 0..10_u32 {
        let order = latency("slow", Duration::from_secs(1), None);
        carried.proxy.set_fault("db", &order).await.unwrap();
        assert_eq!(carried.proxy.links().await.unwrap()[0].open, 20);
        assert!(carried.proxy.remove("slow").await.unwrap(), "round {round}");
    }
    // 30 requests; each is bounded by 100 ms.
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_port_asks_for_the_token() {
    let carried = Carried::to(echo().await).await;
    let registration = carried.proxy.registration().unwrap();
    let url = format!("http://{}/rushhour/v1/links", registration.control);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let refused = client.get(&url).bearer_auth("guess").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert!(!refused.text().await.unwrap().contains(&registration.token));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_an_earlier_run_is_adopted_and_a_taken_address_is_told() {
    use rushhour::chaos::links::Links;
    use rushhour::plan::fault::Link;
    use rushhour::plan::template::Template;
    let mut carried = Carried::to(echo().await).await;
    let listen = Template::literal(&carried.address.to_string());
    let to = carried.target.links[0].addresses().unwrap().to.clone();
    carried.target.links[0] = Link::between("db", listen.clone(), to);
    let state = &carried.state.directory;
    let second = Links::start(&carried.target, super::stage::program(), state, "second")
        .await
        .unwrap();
    assert!(
        second.adopted()[0].contains("run test"),
        "{:?}",
        second.adopted()
    );
    second.stop().await.unwrap();
    let mut stream = TcpStream::connect(carried.address).await.unwrap();
    round_trip(&mut stream).await;
    // The same address for another target is no link to adopt.
    carried.target.links[0] = Link::between("db", listen, Template::literal("127.0.0.1:9"));
    let taken = Links::start(&carried.target, super::stage::program(), state, "third").await;
    let message = taken.err().expect("the address is taken").to_string();
    assert!(message.contains("can't listen on 127.0.0.1:"), "{message}");
    // Its own run ends it.
    carried.links.take().unwrap().stop().await.unwrap();
    assert!(TcpStream::connect(carried.address).await.is_err());
}

//! Faults that understand what a link carries: MQTT and HTTP. Through a proxy process, seen by the sockets on both sides.

use super::stage::{Carried, LIMIT, until};
use rushhour::chaos::proxy::toxics::{
    Abort, Delay, Disconnect, DropPuback, Kind, Latency, WithholdConnack, WithholdPingresp,
};
use rushhour::chaos::proxy::wire::{FaultState, SetFault};
use rushhour::plan::fault::{Connections, Way};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CONNECT_5: &[u8] = b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00";
const CONNECT_3: &[u8] = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00";
const CONNACK: &[u8] = b"\x20\x03\x00\x00\x00";
const PINGREQ: &[u8] = b"\xc0\x00";
const PINGRESP: &[u8] = b"\xd0\x00";
const PUBACK: &[u8] = b"\x40\x02\x00\x07";

fn fault(kind: Kind, way: Way) -> SetFault {
    SetFault {
        id: "fault".to_owned(),
        kind,
        way,
        toxicity: 1.0,
        connections: Connections::All,
        for_ms: None,
        seed: 5,
    }
}

/// A link and whoever listens behind it.
struct Line {
    carried: Carried,
    listener: TcpListener,
}

impl Line {
    async fn open() -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let carried = Carried::to(listener.local_addr().unwrap()).await;
        Line { carried, listener }
    }

    async fn pair(&self) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(self.carried.address).await.unwrap();
        let (target, _) = self.listener.accept().await.unwrap();
        for stream in [&client, &target] {
            stream.set_nodelay(true).unwrap();
        }
        (client, target)
    }

    /// A client that has said CONNECT, whose broker has heard it.
    async fn greeted(&self, connect: &[u8]) -> (TcpStream, TcpStream) {
        let (mut client, mut target) = self.pair().await;
        client.write_all(connect).await.unwrap();
        hears(&mut target, connect).await;
        (client, target)
    }

    async fn set(&self, kind: Kind, way: Way) {
        let order = fault(kind, way);
        self.carried.proxy.set_fault("db", &order).await.unwrap();
    }

    async fn clear(&self) {
        assert!(self.carried.proxy.remove("fault").await.unwrap());
    }

    async fn state(&self) -> FaultState {
        self.carried.proxy.links().await.unwrap()[0].faults[0].clone()
    }

    async fn hits(&self, count: u64) {
        until(&format!("{count} hits"), || async {
            self.state().await.hits == count
        })
        .await;
    }
}

async fn hears(stream: &mut TcpStream, wanted: &[u8]) {
    let mut heard = vec![0; wanted.len()];
    tokio::time::timeout(LIMIT, stream.read_exact(&mut heard))
        .await
        .unwrap_or_else(|_| panic!("{wanted:?} does not come"))
        .unwrap();
    assert_eq!(heard, wanted);
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    tokio::time::timeout(LIMIT, stream.read_to_end(&mut bytes))
        .await
        .unwrap()
        .expect("FIN, not RST");
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withheld_connack_comes_when_the_fault_goes_and_nobody_else_notices() {
    let line = Line::open().await;
    let (mut standing, mut its_broker) = line.greeted(CONNECT_5).await;
    its_broker.write_all(CONNACK).await.unwrap();
    hears(&mut standing, CONNACK).await;
    line.set(Kind::WithholdConnack(WithholdConnack {}), Way::Answers)
        .await;
    let (mut client, mut broker) = line.greeted(CONNECT_5).await;
    broker.write_all(CONNACK).await.unwrap();
    broker.write_all(PINGRESP).await.unwrap();
    line.hits(1).await;
    assert_eq!(line.state().await.acts_on, 2);
    its_broker.write_all(PINGRESP).await.unwrap();
    hears(&mut standing, PINGRESP).await;
    let mut nothing = [0];
    assert!(client.try_read(&mut nothing).is_err(), "nothing has come");
    line.clear().await;
    hears(&mut client, &[CONNACK, PINGRESP].concat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_and_acknowledgements_are_lost_whole_and_alone_however_they_are_cut() {
    let publish = [&[0x30, 0x80, 0x01][..], &[0xd0; 128]].concat();
    let stream = [CONNACK, PINGRESP, &publish, PUBACK, PINGRESP, PUBACK].concat();
    for (kind, left) in [
        (
            Kind::WithholdPingresp(WithholdPingresp {}),
            [CONNACK, &publish, PUBACK, PUBACK].concat(),
        ),
        (
            Kind::DropPuback(DropPuback {}),
            [CONNACK, PINGRESP, &publish, PINGRESP].concat(),
        ),
    ] {
        let line = Line::open().await;
        let (mut client, mut broker) = line.greeted(CONNECT_3).await;
        // It comes in the middle of a packet.
        broker.write_all(&stream[..2]).await.unwrap();
        hears(&mut client, &stream[..2]).await;
        line.set(kind, Way::Answers).await;
        until("it acts on the connection", || async {
            line.state().await.acts_on == 1
        })
        .await;
        for piece in stream[2..].chunks(3) {
            broker.write_all(piece).await.unwrap();
        }
        hears(&mut client, &left[2..]).await;
        line.hits(2).await;
        line.clear().await;
        broker
            .write_all(&[PINGRESP, PUBACK].concat())
            .await
            .unwrap();
        hears(&mut client, &[PINGRESP, PUBACK].concat()).await;
    }
    // Those of the client, where that way is meant.
    let line = Line::open().await;
    line.set(Kind::DropPuback(DropPuback {}), Way::Requests)
        .await;
    let (mut client, mut broker) = line.greeted(CONNECT_5).await;
    client.write_all(&[PUBACK, PINGREQ].concat()).await.unwrap();
    hears(&mut broker, PINGREQ).await;
    broker.write_all(PUBACK).await.unwrap();
    hears(&mut client, PUBACK).await;
    line.hits(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnect_says_why_between_two_packets_and_closes() {
    let line = Line::open().await;
    let (mut newer, mut newer_broker) = line.greeted(CONNECT_5).await;
    let (mut older, mut older_broker) = line.greeted(CONNECT_3).await;
    let (mut busy, mut busy_broker) = line.greeted(CONNECT_5).await;
    for (client, broker) in [
        (&mut newer, &mut newer_broker),
        (&mut older, &mut older_broker),
        (&mut busy, &mut busy_broker),
    ] {
        broker.write_all(CONNACK).await.unwrap();
        hears(client, CONNACK).await;
    }
    busy_broker.write_all(b"\x30\x04\x00\x01").await.unwrap();
    hears(&mut busy, b"\x30\x04\x00\x01").await;
    let kind = Kind::Disconnect(Disconnect {
        reason: 0x9c,
        after_us: 0,
    });
    line.set(kind, Way::Answers).await;
    assert_eq!(rest(&mut newer).await, [0xe0, 2, 0x9c, 0]);
    assert_eq!(rest(&mut older).await, [0; 0]);
    busy_broker.write_all(b"ab").await.unwrap();
    assert_eq!(rest(&mut busy).await, b"ab\xe0\x02\x9c\x00");
    // A new one learns it after its CONNACK.
    let (mut late, mut late_broker) = line.greeted(CONNECT_5).await;
    late_broker.write_all(CONNACK).await.unwrap();
    let heard = rest(&mut late).await;
    assert_eq!(heard, [CONNACK, &[0xe0, 2, 0x9c, 0]].concat());
    line.hits(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_mqtt_passes_and_is_said_to() {
    let line = Line::open().await;
    let (mut before, mut its_target) = line.pair().await;
    before.write_all(b"\x16\x03\x01 hello").await.unwrap();
    hears(&mut its_target, b"\x16\x03\x01 hello").await;
    line.set(Kind::DropPuback(DropPuback {}), Way::Both).await;
    let (mut after, mut target) = line.pair().await;
    after.write_all(b"\x40\x02\x00\x07").await.unwrap();
    hears(&mut target, b"\x40\x02\x00\x07").await;
    target.write_all(b"\x40\x02").await.unwrap();
    hears(&mut after, b"\x40\x02").await;
    until("both are known to pass", || async {
        let state = line.state().await;
        (state.foreign, state.acts_on, state.hits) == (2, 0, 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_on_the_connections_that_stand_on_new_ones_or_on_both() {
    let slow = Kind::Latency(Latency {
        latency_us: 150_000,
        jitter_us: 0,
    });
    for (connections, wanted) in [
        (Connections::Existing, [true, false]),
        (Connections::New, [false, true]),
        (Connections::All, [true, true]),
    ] {
        let line = Line::open().await;
        let standing = line.pair().await;
        let order = SetFault {
            connections,
            ..fault(slow, Way::Requests)
        };
        line.carried.proxy.set_fault("db", &order).await.unwrap();
        // Setting it again does not make the new ones old.
        let new = line.pair().await;
        line.carried.proxy.set_fault("db", &order).await.unwrap();
        let mut slowed = Vec::new();
        for (mut client, mut target) in [standing, new] {
            until("the chain is known to the connection", || async {
                line.state().await.acts_on == wanted.iter().filter(|hit| **hit).count() as u64
                    || !slowed.is_empty()
            })
            .await;
            let sent = Instant::now();
            client.write_all(b"?").await.unwrap();
            hears(&mut target, b"?").await;
            slowed.push(sent.elapsed() >= Duration::from_millis(150));
        }
        let lower: Vec<bool> = wanted.to_vec();
        assert_eq!(slowed, lower, "{connections:?}");
    }
}

/// An HTTP server that answers each request with its path, on connections that it keeps.
async fn http_line() -> Line {
    let line = Line::open().await;
    let app = axum::Router::new()
        .fallback(|uri: axum::http::Uri, body: String| async move { format!("{uri} {body}") });
    let std = line.listener.local_addr().unwrap();
    let Line { carried, listener } = line;
    tokio::spawn(async move { axum::serve(listener, app).await });
    Line {
        carried,
        listener: TcpListener::bind((std.ip(), 0)).await.unwrap(),
    }
}

/// Sends a request and reads its answer by the length that it tells.
async fn asks(client: &mut TcpStream, request: &str) -> (u16, String) {
    client.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    loop {
        let mut chunk = [0; 4096];
        let read = tokio::time::timeout(LIMIT, client.read(&mut chunk)).await;
        let read = read.expect("an answer").unwrap();
        assert!(read > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse::<usize>().unwrap())
        });
        if body.len() >= length.unwrap_or(0) {
            return (head[9..12].parse().unwrap(), body.to_owned());
        }
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")
}

const POST: &str =
    "POST /p HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn aborts_a_share_of_the_requests_on_a_connection_that_goes_on() {
    let line = http_line().await;
    let mut client = TcpStream::connect(line.carried.address).await.unwrap();
    assert_eq!(asks(&mut client, &get("/a")).await, (200, "/a ".to_owned()));
    let abort = |share| Kind::Abort(Abort { status: 503, share });
    line.set(abort(1.0), Way::Requests).await;
    until("it acts on the connection", || async {
        line.state().await.acts_on == 1
    })
    .await;
    for request in [&get("/b")[..], POST, "HEAD /c HTTP/1.1\r\n\r\n"] {
        let length = if request.starts_with("HEAD") { 0 } else { 28 };
        client.write_all(request.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            heard.push(client.read_u8().await.unwrap());
        }
        assert!(heard.starts_with(b"HTTP/1.1 503 Service Unavailable\r\n"));
        let mut body = vec![0; length];
        client.read_exact(&mut body).await.unwrap();
    }
    line.hits(3).await;
    line.set(abort(0.5), Way::Requests).await;
    let mut answers = Vec::new();
    for _ in 0..60 {
        answers.push(asks(&mut client, POST).await);
    }
    let aborted = answers.iter().filter(|(status, _)| *status == 503).count();
    // Four standard deviations of a binomial with 60 draws of one half.
    assert!((15..=45).contains(&aborted), "{aborted}");
    let passed = answers
        .iter()
        .filter(|answer| **answer == (200, "/p hello".to_owned()));
    assert_eq!(passed.count(), 60 - aborted);
    line.hits(3 + aborted as u64).await;
    // Who asks for the end gets it, with the answer.
    line.set(abort(1.0), Way::Requests).await;
    let last = "GET / HTTP/1.1\r\nconnection: close\r\n\r\n";
    client.write_all(last.as_bytes()).await.unwrap();
    let heard = String::from_utf8(rest(&mut client).await).unwrap();
    assert!(heard.starts_with("HTTP/1.1 503") && heard.contains("connection: close"));
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_requests_and_leaves_what_is_no_http_alone() {
    let line = http_line().await;
    let delay = Kind::Delay(Delay {
        delay_us: 200_000,
        share: 1.0,
    });
    line.set(delay, Way::Requests).await;
    let mut client = TcpStream::connect(line.carried.address).await.unwrap();
    for _ in 0..2 {
        let sent = Instant::now();
        // The head in two pieces: it is one request all the same.
        client.write_all(b"GET /a HT").await.unwrap();
        let answer = asks(&mut client, "TP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(answer, (200, "/a ".to_owned()));
        assert!(sent.elapsed() >= Duration::from_millis(200));
    }
    line.hits(2).await;
    let raw = Line::open().await;
    raw.set(delay, Way::Requests).await;
    let (mut client, mut target) = raw.pair().await;
    client.write_all(b"\x16\x03\x01").await.unwrap();
    hears(&mut target, b"\x16\x03\x01").await;
    assert_eq!(raw.state().await.foreign, 1);
}

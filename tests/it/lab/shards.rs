//! The shards as MQTT brokers.

use super::hub::{Hub, LIMIT, until};
use crate::support::lab::Lab;
use rumqttc::mqttbytes::QoS;
use rumqttc::mqttbytes::v4::{
    ConnAck, Connect, ConnectReturnCode, Packet, Publish, Subscribe, SubscribeReasonCode,
};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A client that says exactly what it is told to.
struct Raw {
    stream: TcpStream,
    unread: bytes::BytesMut,
}

impl Raw {
    async fn open(lab: &Lab, shard: &str) -> Raw {
        let stream = TcpStream::connect(lab.address(shard)).await.unwrap();
        Raw {
            stream,
            unread: bytes::BytesMut::new(),
        }
    }

    async fn connected(lab: &Lab, shard: &str, id: &str, keep_alive: u16) -> Raw {
        let mut raw = Raw::open(lab, shard).await;
        let mut connect = Connect::new(id);
        connect.keep_alive = keep_alive;
        raw.send(&Packet::Connect(connect)).await;
        let welcome = ConnAck::new(ConnectReturnCode::Success, false);
        assert_eq!(raw.next().await, Some(Packet::ConnAck(welcome)));
        raw
    }

    async fn send(&mut self, packet: &Packet) {
        let mut bytes = bytes::BytesMut::new();
        packet.write(&mut bytes, usize::MAX).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    /// The next packet; `None` at the end of the connection.
    async fn next(&mut self) -> Option<Packet> {
        loop {
            match Packet::read(&mut self.unread, usize::MAX) {
                Ok(packet) => return Some(packet),
                Err(rumqttc::mqttbytes::Error::InsufficientBytes(_)) => {}
                Err(error) => panic!("{error}"),
            }
            let read = self.stream.read_buf(&mut self.unread);
            let read = tokio::time::timeout(LIMIT, read)
                .await
                .expect("the shard says something");
            if read.unwrap_or(0) == 0 {
                return None;
            }
        }
    }
}

#[tokio::test]
async fn messages_go_to_those_who_subscribed_at_the_lower_of_both_qos() {
    let lab = Lab::start(&[]);
    let mut listener = Raw::connected(&lab, "shard-1", "listener", 30).await;
    let mut subscribe = Subscribe::new("d/+/evt", QoS::AtLeastOnce);
    subscribe.add("plain".to_owned(), QoS::AtMostOnce);
    subscribe.add("wrong/#/filter".to_owned(), QoS::AtMostOnce);
    subscribe.pkid = 7;
    listener.send(&Packet::Subscribe(subscribe)).await;
    let Some(Packet::SubAck(ack)) = listener.next().await else {
        panic!("no SUBACK")
    };
    let granted = [
        SubscribeReasonCode::Success(QoS::AtLeastOnce),
        SubscribeReasonCode::Success(QoS::AtMostOnce),
        SubscribeReasonCode::Failure,
    ];
    assert_eq!((ack.pkid, ack.return_codes.as_slice()), (7, &granted[..]));

    let mut speaker = Raw::connected(&lab, "shard-1", "speaker", 30).await;
    for (topic, number) in [("d/speaker/evt", 1), ("plain", 2), ("ünheard", 3)] {
        let mut publish = Publish::new(topic, QoS::AtLeastOnce, "x");
        publish.pkid = number;
        speaker.send(&Packet::Publish(publish)).await;
        let Some(Packet::PubAck(ack)) = speaker.next().await else {
            panic!("no PUBACK")
        };
        assert_eq!(ack.pkid, number);
    }
    for (topic, qos) in [
        ("d/speaker/evt", QoS::AtLeastOnce),
        ("plain", QoS::AtMostOnce),
    ] {
        let Some(Packet::Publish(publish)) = listener.next().await else {
            panic!("no PUBLISH")
        };
        assert_eq!((publish.topic.as_str(), publish.qos), (topic, qos));
    }
    listener.send(&Packet::PingReq).await;
    assert_eq!(
        listener.next().await,
        Some(Packet::PingResp),
        "nothing else came before it"
    );
}

#[tokio::test]
async fn silence_for_one_and_a_half_times_the_keep_alive_ends_the_session() {
    let lab = Lab::start(&[]);
    let mut quiet = Raw::connected(&lab, "shard-1", "quiet", 1).await;
    let begun = Instant::now();
    assert_eq!(quiet.next().await, None);
    let lived = begun.elapsed();
    // The bound that matters is the lower one: a shard that is early drops healthy hubs. Late is the machine.
    assert!(
        (Duration::from_millis(1450)..Duration::from_secs(4)).contains(&lived),
        "{lived:?}"
    );
    let stats = until(
        async || lab.stats().await,
        |stats| stats["shards"]["shard-1"]["sessions"] == 0,
    )
    .await;
    assert_eq!(stats["shards"]["shard-1"]["disconnects"]["keep-alive"], 1);
}

#[tokio::test]
async fn a_second_session_of_a_hub_ends_the_first_on_whichever_shard() {
    let lab = Lab::start(&[]);
    let mut first = Hub::connect(&lab, "shard-1", "h").await;
    let mut second = Hub::connect(&lab, "shard-1", "h").await;
    first.closed().await;
    assert!(second.is_connected());
    let mut third = Hub::connect(&lab, "shard-2", "h").await;
    second.closed().await;
    assert_eq!(lab.command("h", "c", 30_000).await, 202);
    assert_eq!(third.command().await["id"], "c");
    let shards = lab.stats().await["shards"].clone();
    assert_eq!(shards["shard-1"]["sessions"], 0, "{shards}");
    assert_eq!(shards["shard-2"]["sessions"], 1, "{shards}");
    assert_eq!(shards["shard-1"]["disconnects"]["takeover"], 2, "{shards}");
}

#[tokio::test]
async fn who_breaks_the_protocol_is_closed_and_nobody_else_notices() {
    let lab = Lab::start(&[]);
    let good = Hub::connect(&lab, "shard-1", "good").await;
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0x10, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0xc0, 0x00],
        &[0xf0, 0x00, 0x00, 0x00],
    ] {
        let mut raw = Raw::open(&lab, "shard-1").await;
        raw.stream.write_all(bytes).await.unwrap();
        assert_eq!(raw.next().await, None, "{bytes:?}");
    }
    let mut raw = Raw::open(&lab, "shard-1").await;
    raw.send(&Packet::Connect(Connect::new("a/b"))).await;
    let refusal = ConnAck::new(ConnectReturnCode::BadClientId, false);
    assert_eq!(raw.next().await, Some(Packet::ConnAck(refusal)));
    let mut raw = Raw::connected(&lab, "shard-1", "twice", 30).await;
    raw.send(&Packet::Connect(Connect::new("twice"))).await;
    assert_eq!(raw.next().await, None, "a second CONNECT ends the session");
    assert!(good.is_connected());
}

//! MQTT over WebSocket, plain and over TLS: the server's side of it, and that hubs get on with it.

use super::server::{Below, Server, Setup};
use super::stage::{operation, plan, start};
use crate::support::authority::Authority;
use crate::support::program::Home;
use futures::{SinkExt, StreamExt};
use std::fmt::Write;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;

const HUBS: u64 = 3;

/// Takes the upgrade of a client that asks for MQTT at `/mqtt`, and answers its packets, each in two frames.
pub async fn converse(server: &Server, stream: impl AsyncRead + AsyncWrite + Unpin) {
    #[expect(clippy::result_large_err, reason = "the library wants this type")]
    let agree = |request: &Request, mut response: Response| {
        assert_eq!(request.uri().path(), "/mqtt");
        assert_eq!(request.headers()["sec-websocket-protocol"], "mqtt");
        let mqtt = HeaderValue::from_static("mqtt");
        response
            .headers_mut()
            .insert("sec-websocket-protocol", mqtt);
        Ok(response)
    };
    let mut socket = accept_hdr_async(stream, agree).await.unwrap();
    let mut unread = Vec::new();
    // A client that is gone ends it.
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(bytes) => unread.extend_from_slice(&bytes),
            Message::Close(_) => return,
            other => panic!("MQTT comes in binary frames, not as {other:?}"),
        }
        while let Some(answer) = server.next(&mut unread, None) {
            let (first, rest) = answer.split_at(1);
            for frame in [first, rest] {
                if socket.send(Message::binary(frame.to_vec())).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Hubs stand over `ws://` and `wss://`, with packets spread over frames; only the second has handshakes of TLS.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hubs_speak_mqtt_over_websockets_plain_and_secured() {
    let home = Home::new();
    let ours = Authority::new();
    home.write("ca.pem", &ours.pem());
    let (mut devices, mut hubs) = ("devices:\n".to_owned(), String::new());
    let mut served = Vec::new();
    for (name, below) in [("ws", Below::WebSocket), ("wss", Below::WebSocketOverTls)] {
        let setup = Setup {
            below,
            ..Setup::with(ours.issue("server", &["127.0.0.1"]))
        };
        let server = setup.serve().await;
        let rest = "command: { topic: d/<serial>/cmd, qos: 1, id: { json: $.id } }";
        let address = server.address;
        writeln!(
            devices,
            "  {name}: {{ shards: {{ only: \"{name}://{address}/mqtt\" }}, {rest} }}"
        )
        .unwrap();
        writeln!(
            hubs,
            "  {name}: {{ device: {name}, count: {HUBS}, connect: {{ over: 0s }} }}"
        )
        .unwrap();
        served.push((name, server));
    }
    let stage = start(plan(&home, &devices, &hubs)).await;
    stage.stands().await;
    let report = stage.report().await;
    for (name, server) in served {
        assert_eq!(server.accepted() as u64, HUBS, "{name}");
        assert_eq!(operation(&report, name, "connect").ok, HUBS, "{name}");
        let handshakes = server.handshakes().len() as u64;
        assert_eq!(handshakes, if name == "wss" { HUBS } else { 0 }, "{name}");
        let hubs = report.hubs.iter().find(|row| row.group == name).unwrap();
        assert_eq!(hubs.handshakes_full, handshakes, "{name}");
    }
}

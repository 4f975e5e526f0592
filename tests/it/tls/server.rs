//! A server of the test that speaks TLS and, above it, as much MQTT or HTTP as clients ask of it. It logs what it saw of handshakes.

use super::websocket;
use crate::hostile::broker::{CONNACK, PINGRESP, packet_id, puback, suback};
use crate::hostile::peer::{Said, http, mqtt};
use crate::support::authority::{Authority, Issued};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, ServerConfig, SupportedProtocolVersion, version};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How a server is set up.
pub struct Setup<'a> {
    pub certificate: Issued,
    /// Who vouches for clients; without one they need no certificate.
    pub clients: Option<&'a Authority>,
    pub versions: Vec<&'static SupportedProtocolVersion>,
    pub alpn: Vec<&'static str>,
    /// The sessions of each client that it ends after SUBACK; it leaves the next one alone.
    pub kicks: usize,
    pub below: Below,
}

/// What lies below MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    Tls,
    WebSocket,
    WebSocketOverTls,
}

/// What a server saw of one handshake that was completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    pub resumed: bool,
    pub name: Option<String>,
    pub alpn: Option<String>,
    pub version: &'static str,
    /// The common name's certificate, as bytes.
    pub client: Option<Vec<u8>>,
}

/// What a server saw.
#[derive(Debug, Default)]
struct Seen {
    accepted: usize,
    handshakes: Vec<Handshake>,
    failed: Vec<String>,
    /// Sessions by client id.
    sessions: BTreeMap<Vec<u8>, usize>,
    /// The first lines of requests, with the certificate of whoever sent them.
    requests: Vec<(String, Option<Vec<u8>>)>,
}

/// A server and its log; it ends with the test's runtime.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    kicks: usize,
    below: Below,
}

impl<'a> Setup<'a> {
    /// TLS 1.2 and 1.3, and no certificate of anybody.
    pub fn with(certificate: Issued) -> Setup<'a> {
        Setup {
            certificate,
            clients: None,
            versions: vec![&version::TLS13, &version::TLS12],
            alpn: Vec::new(),
            kicks: 0,
            below: Below::Tls,
        }
    }

    fn config(&self) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.versions)
            .unwrap();
        let builder = match self.clients {
            Some(authority) => {
                let roots = Arc::new(authority.roots());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
            None => builder.with_no_client_auth(),
        };
        let chain = vec![self.certificate.certificate.clone()];
        let mut config = builder
            .with_single_cert(chain, self.certificate.secret())
            .unwrap();
        config.alpn_protocols = self
            .alpn
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        config
    }

    pub async fn serve(self) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(self.config()));
        let server = Server {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            kicks: self.kicks,
            below: self.below,
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.seen.lock().unwrap().accepted += 1;
                tokio::spawn(serving.clone().converse(stream, acceptor.clone()));
            }
        });
        server
    }
}

impl Server {
    async fn converse(self, stream: TcpStream, acceptor: TlsAcceptor) {
        stream.set_nodelay(true).unwrap();
        if self.below == Below::WebSocket {
            return websocket::converse(&self, stream).await;
        }
        let mut stream = match acceptor.accept(stream).await {
            Ok(stream) => stream,
            Err(error) => {
                self.seen.lock().unwrap().failed.push(error.to_string());
                return;
            }
        };
        let client = self.note(&stream);
        if self.below == Below::WebSocketOverTls {
            return websocket::converse(&self, stream).await;
        }
        let mut unread = Vec::new();
        // A client that is gone ends it.
        while let Ok(1..) = stream.read_buf(&mut unread).await {
            while let Some(answer) = self.next(&mut unread, client.as_deref()) {
                let ends = answer.is_empty();
                if stream.write_all(&answer).await.is_err() || stream.flush().await.is_err() || ends
                {
                    let _ = stream.shutdown().await;
                    return;
                }
            }
        }
    }

    /// Gives the client's certificate.
    fn note(&self, stream: &TlsStream<TcpStream>) -> Option<Vec<u8>> {
        let (_, session) = stream.get_ref();
        let handshake = Handshake {
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
            name: session.server_name().map(str::to_owned),
            alpn: session
                .alpn_protocol()
                .map(|name| String::from_utf8_lossy(name).into_owned()),
            version: match session.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_2) => "1.2",
                _ => "1.3",
            },
            client: session
                .peer_certificates()
                .and_then(<[_]>::first)
                .map(|certificate| certificate.to_vec()),
        };
        let client = handshake.client.clone();
        self.seen.lock().unwrap().handshakes.push(handshake);
        client
    }

    /// The answer to the next whole thing that was said; an empty one ends the connection.
    pub(super) fn next(&self, unread: &mut Vec<u8>, client: Option<&[u8]>) -> Option<Vec<u8>> {
        let is_http = unread.first()?.is_ascii_uppercase();
        let length = if is_http {
            http(unread)?
        } else {
            mqtt(unread)?
        };
        let said: Vec<u8> = unread.drain(..length).collect();
        if is_http {
            let line = String::from_utf8_lossy(&said).lines().next()?.to_owned();
            let body = if line.contains("/metrics") {
                METRICS
            } else {
                "{}"
            };
            let client = client.map(<[u8]>::to_vec);
            self.seen.lock().unwrap().requests.push((line, client));
            let length = body.len();
            return Some(
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes(),
            );
        }
        self.packet(said)
    }

    fn packet(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        match bytes[0] >> 4 {
            1 => Some(CONNACK.to_vec()),
            3 => packet_id(&bytes).map(|id| puback(id).to_vec()),
            8 => {
                // The topic names the client.
                let mut seen = self.seen.lock().unwrap();
                let sessions = seen.sessions.entry(bytes[4..].to_vec()).or_default();
                *sessions += 1;
                if *sessions <= self.kicks {
                    return Some(Vec::new());
                }
                Some(suback(&Said { nth: 0, bytes }).to_vec())
            }
            12 => Some(PINGRESP.to_vec()),
            _ => None,
        }
    }

    pub fn accepted(&self) -> usize {
        self.seen.lock().unwrap().accepted
    }

    pub fn handshakes(&self) -> Vec<Handshake> {
        self.seen.lock().unwrap().handshakes.clone()
    }

    pub fn resumed(&self) -> usize {
        self.handshakes().iter().filter(|seen| seen.resumed).count()
    }

    /// What was wrong with handshakes, as this side saw it.
    pub fn failed(&self) -> Vec<String> {
        self.seen.lock().unwrap().failed.clone()
    }

    /// Requests whose first line contains this, from whoever has this certificate.
    pub fn requests(&self, text: &str, client: Option<&Issued>) -> usize {
        let client = client.map(|issued| issued.certificate.to_vec());
        let seen = self.seen.lock().unwrap();
        let requests = seen.requests.iter();
        requests
            .filter(|(line, shown)| line.contains(text) && *shown == client)
            .count()
    }

    /// All requests.
    pub fn all_requests(&self) -> usize {
        self.seen.lock().unwrap().requests.len()
    }
}

const METRICS: &str = "# TYPE pool_waiting gauge\npool_waiting 0\n";

//! A client that says exactly the bytes that it is told to, with or without TLS.

use super::hub::LIMIT;
use crate::support::lab::Lab;
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// A connection to a shard.
pub struct Raw {
    stream: Box<dyn Bytes>,
    unread: Vec<u8>,
}

impl Raw {
    /// Connects without TLS.
    pub async fn plain(lab: &Lab, shard: &str) -> Raw {
        let tcp = TcpStream::connect(lab.address(shard)).await.unwrap();
        Raw {
            stream: Box::new(tcp),
            unread: Vec::new(),
        }
    }

    /// Connects and shakes hands.
    pub async fn tls(lab: &Lab, shard: &str, config: &Arc<ClientConfig>) -> io::Result<Raw> {
        let tcp = TcpStream::connect(lab.address(shard)).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(config));
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = connector.connect(name, tcp).await?;
        Ok(Raw {
            stream: Box::new(stream),
            unread: Vec::new(),
        })
    }

    /// Sends bytes; what a connection that has ended makes of them is seen by the next read.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }

    /// The next packet, whole; `None` at the end of the connection.
    pub async fn packet(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(length) = whole(&self.unread) {
                let rest = self.unread.split_off(length);
                return Some(std::mem::replace(&mut self.unread, rest));
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

    /// Whether the connection ends by a reset.
    pub async fn is_reset(&mut self) -> bool {
        let end = self.stream.read_buf(&mut self.unread);
        let end = tokio::time::timeout(LIMIT, end)
            .await
            .expect("the shard says something");
        matches!(end, Err(error) if error.kind() == io::ErrorKind::ConnectionReset)
    }
}

/// The length of the first packet, if it is there whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let (mut length, mut at) = (0, 1);
    loop {
        let byte = usize::from(*bytes.get(at)?);
        length |= (byte & 0x7f) << (7 * (at - 1));
        at += 1;
        if byte < 0x80 {
            break;
        }
    }
    (bytes.len() >= at + length).then_some(at + length)
}

/// CONNECT of MQTT 3.1.1 with a clean session.
pub fn connect_v4(id: &str) -> Vec<u8> {
    let mut packet = vec![0x10, u8::try_from(12 + id.len()).unwrap()];
    packet.extend(b"\x00\x04MQTT\x04\x02\x00\x1e");
    packet.extend(u16::try_from(id.len()).unwrap().to_be_bytes());
    packet.extend(id.as_bytes());
    packet
}

/// The authority of a lab with TLS.
pub fn authority(lab: &Lab) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(format!("{}/pki/ca.pem", lab.says("dir"))).unwrap()
}

/// A text behind its length.
pub fn text(text: &str) -> Vec<u8> {
    let mut bytes = u16::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// A packet with a body shorter than 128 bytes.
pub fn packet(first: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    assert!(body.len() < 128, "one byte says the length");
    [&[first, u8::try_from(body.len()).unwrap()], &body[..]].concat()
}

/// Properties behind their length.
pub fn properties(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// CONNECT of MQTT 5: flags (2 is a clean start), keep-alive in seconds, properties, and what follows the client id.
pub fn connect(id: &str, flags: u8, keep_alive: u8, given: &[u8], rest: &[u8]) -> Vec<u8> {
    let head = [b"\x00\x04MQTT\x05", &[flags, 0, keep_alive][..]].concat();
    packet(0x10, &[&head, &properties(given), &text(id), rest])
}

/// SUBSCRIBE of packet 9 to one filter with MQTT 5, with the options of the subscription.
pub fn subscribe(filter: &str, options: u8) -> Vec<u8> {
    packet(0x82, &[b"\x00\x09\x00", &text(filter), &[options]])
}

/// PUBLISH with MQTT 5; the packet number is empty with QoS 0.
pub fn publish(first: u8, topic: &str, number: &[u8], given: &[u8], payload: &str) -> Vec<u8> {
    packet(
        first,
        &[&text(topic), number, &properties(given), payload.as_bytes()],
    )
}

/// Whether the bytes stand in the packet.
pub fn holds(packet: &[u8], bytes: &[u8]) -> bool {
    packet.windows(bytes.len()).any(|window| window == bytes)
}

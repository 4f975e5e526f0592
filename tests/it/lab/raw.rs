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

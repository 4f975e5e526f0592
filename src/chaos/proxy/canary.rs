//! Proof that a fault bites: what is sent to a server of our own through the same chain that the real connections share, and what
//! comes back.

use super::mqtt::{self, Frames};
use super::wire::{CanaryEnd, CanaryOrder, CanaryReading, Speaks};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// What a canary of MQTT says: CONNECT, PINGREQ, PUBLISH of QoS 1, PUBACK.
const PACKETS: &[u8] = b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00\xc0\x00\x32\x06\x00\x01c\x00\x01\x00\x40\x02\x00\x01";
/// What is answered to which type of packet. That a PUBACK arrived is told by an UNSUBACK: nothing else would tell it.
const ANSWERS: [(u8, &[u8]); 4] = [
    (mqtt::CONNECT, b"\x20\x03\x00\x00\x00"),
    (12, b"\xd0\x00"),
    (3, b"\x40\x02\x00\x01"),
    (mqtt::PUBACK, b"\xb0\x04\x00\x01\x00\x00"),
];
const REQUEST: &[u8] = b"GET /canary HTTP/1.1\r\nhost: canary\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// Starts the server that canaries talk to.
pub(super) async fn echo() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A canary's connection may end in any way.
            tokio::spawn(answer(stream));
        }
    });
    Ok(address)
}

/// Answers in the language that the first byte tells.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut first = [0];
    let asked = stream.peek(&mut first).await?;
    let (mut reads, mut writes) = stream.split();
    match (asked, first[0]) {
        (1.., b'G') => {
            reads.read_exact(&mut [0; REQUEST.len()]).await?;
            writes.write_all(RESPONSE).await?;
            tokio::io::copy(&mut reads, &mut tokio::io::sink()).await?;
        }
        (1.., first) if mqtt::kind(first) == mqtt::CONNECT => {
            answer_packets(&mut reads, &mut writes).await?;
        }
        _ => {
            tokio::io::copy(&mut reads, &mut writes).await?;
        }
    }
    writes.shutdown().await
}

async fn answer_packets(
    reads: &mut (impl AsyncRead + Unpin),
    writes: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut scratch = [0; 256];
    loop {
        let read = reads.read(&mut scratch).await?;
        if read == 0 {
            return Ok(());
        }
        for kind in ended(&mut frames, &scratch[..read]) {
            let found = ANSWERS.iter().find(|(asked, _)| *asked == kind);
            if let Some((_, answer)) = found {
                writes.write_all(answer).await?;
            }
        }
    }
}

/// The types of the packets that end within these bytes.
fn ended(frames: &mut Frames, mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while !bytes.is_empty() {
        let run = frames.next(bytes);
        kinds.extend(frames.at_start().then_some(run.kind));
        bytes = &bytes[run.bytes..];
    }
    kinds
}

/// What a canary has heard so far.
struct Ear {
    speaks: Speaks,
    frames: Frames,
    text: Vec<u8>,
    heard: Vec<u16>,
}

impl Ear {
    fn hear(&mut self, bytes: &[u8]) {
        match self.speaks {
            Speaks::Bytes => {}
            Speaks::Mqtt => {
                let kinds = ended(&mut self.frames, bytes);
                self.heard.extend(kinds.into_iter().map(u16::from));
            }
            Speaks::Http if self.heard.is_empty() => {
                self.text.extend_from_slice(bytes);
                let status = self.text.get(9..12);
                let status = status.and_then(|digits| std::str::from_utf8(digits).ok());
                self.heard
                    .extend(status.and_then(|digits| digits.parse::<u16>().ok()));
            }
            Speaks::Http => {}
        }
    }

    /// Whether everything that was to come has come.
    fn is_content(&self, order: &CanaryOrder, back_bytes: u64) -> bool {
        match self.speaks {
            Speaks::Bytes => back_bytes >= order.bytes && !order.close,
            Speaks::Mqtt => self.heard.len() as u64 >= order.bytes,
            Speaks::Http => !self.heard.is_empty(),
        }
    }
}

/// Sends what is ordered and tells what came back, until all has, the connection ends, or the limit is over.
pub(super) async fn fly(stream: TcpStream, order: &CanaryOrder) -> CanaryReading {
    let (mut reads, mut writes) = stream.into_split();
    let sent = Instant::now();
    let bytes = match order.speaks {
        Speaks::Bytes => vec![b'?'; usize::try_from(order.bytes).unwrap_or(CHUNK_BYTES)],
        Speaks::Mqtt => PACKETS.to_vec(),
        Speaks::Http => REQUEST.to_vec(),
    };
    let ends = order.close;
    let sending = async move {
        writes.write_all(&bytes).await?;
        if ends {
            writes.shutdown().await?;
        }
        Ok::<_, io::Error>(writes)
    };
    let mut ear = Ear {
        speaks: order.speaks,
        frames: Frames::default(),
        text: Vec::new(),
        heard: Vec::new(),
    };
    let (mut back_bytes, mut end) = (0, CanaryEnd::Silent);
    let receiving = async {
        let mut scratch = vec![0; CHUNK_BYTES];
        loop {
            end = match reads.read(&mut scratch).await {
                Ok(0) => CanaryEnd::Finished,
                Err(_) => CanaryEnd::Reset,
                Ok(read) => {
                    back_bytes += read as u64;
                    ear.hear(&scratch[..read]);
                    if !ear.is_content(order, back_bytes) {
                        continue;
                    }
                    CanaryEnd::Open
                }
            };
            return;
        }
    };
    let flight = async { tokio::join!(sending, receiving) };
    // What has not come by then is part of the reading. Who could not send sees the end of the connection.
    let _ = tokio::time::timeout(Duration::from_millis(order.limit_ms), flight).await;
    CanaryReading {
        round_trip_us: u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX),
        back_bytes,
        end,
        heard: ear.heard,
    }
}

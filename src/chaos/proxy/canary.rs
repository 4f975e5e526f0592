//! Proof that a fault bites: bytes go to an echo of our own through the same chain that the real connections share.

use super::wire::{CanaryEnd, CanaryOrder, CanaryReading};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Read at once from the echo.
const CHUNK_BYTES: usize = 64 * 1024;

/// Starts the echo that canaries talk to.
pub(super) async fn echo() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reads, mut writes) = stream.split();
                tokio::io::copy(&mut reads, &mut writes).await?;
                writes.shutdown().await
            });
        }
    });
    Ok(address)
}

/// Sends what is ordered and tells what came back, until all has, the connection ends, or the limit is over.
pub(super) async fn fly(stream: TcpStream, order: &CanaryOrder) -> CanaryReading {
    let (mut reads, mut writes) = stream.into_split();
    let sent = Instant::now();
    let bytes = vec![b'?'; usize::try_from(order.bytes).unwrap_or(CHUNK_BYTES)];
    let ends = order.close;
    let sending = async move {
        writes.write_all(&bytes).await?;
        if ends {
            writes.shutdown().await?;
        }
        Ok::<_, io::Error>(writes)
    };
    let mut reading = CanaryReading {
        round_trip_us: 0,
        back_bytes: 0,
        end: CanaryEnd::Silent,
    };
    let receiving = async {
        let mut scratch = vec![0; CHUNK_BYTES];
        loop {
            let end = match reads.read(&mut scratch).await {
                Ok(0) => CanaryEnd::Finished,
                Err(_) => CanaryEnd::Reset,
                Ok(read) => {
                    reading.back_bytes += read as u64;
                    if reading.back_bytes < order.bytes || order.close {
                        continue;
                    }
                    CanaryEnd::Open
                }
            };
            reading.end = end;
            return;
        }
    };
    let flight = async { tokio::join!(sending, receiving) };
    // What has not come by then is part of the reading. Who could not send sees the end of the connection.
    let _ = tokio::time::timeout(Duration::from_millis(order.limit_ms), flight).await;
    reading.round_trip_us = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
    reading
}

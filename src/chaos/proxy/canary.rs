//! Proof that a latency bites: a byte goes to an echo of our own through the same chain that the real connections share.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Starts the echo that canaries talk to.
pub(super) async fn echo() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reads, mut writes) = stream.split();
                tokio::io::copy(&mut reads, &mut writes).await
            });
        }
    });
    Ok(address)
}

/// The time from sending one byte to its return.
pub(super) async fn round_trip(mut stream: TcpStream) -> io::Result<Duration> {
    let sent = Instant::now();
    stream.write_all(b"?").await?;
    stream.read_exact(&mut [0]).await?;
    Ok(sent.elapsed())
}

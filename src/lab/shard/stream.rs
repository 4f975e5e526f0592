//! A connection of a client, plain or with TLS, byte by byte.

use super::tls;
use crate::lab::messages::{Client, TlsTrouble};
use bytes::BytesMut;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// For the other side to take the last words of a connection.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// A connection of a client.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Takes an accepted connection, with a handshake if there is an acceptor.
    ///
    /// # Errors
    /// Why the handshake failed.
    pub async fn accept(
        tcp: TcpStream,
        acceptor: Option<&TlsAcceptor>,
    ) -> Result<(Stream, Client), TlsTrouble> {
        let _ = tcp.set_nodelay(true);
        let Some(acceptor) = acceptor else {
            return Ok((Stream::Plain(tcp), Client::default()));
        };
        match acceptor.accept(tcp).await {
            Ok(stream) => {
                let client = tls::client(stream.get_ref().1);
                Ok((Stream::Tls(Box::new(stream)), client))
            }
            Err(error) => Err(tls::trouble(&error)),
        }
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Waits for bytes and adds them to what is unread. Nothing is lost if it is given up while waiting.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn fill(&mut self, unread: &mut BytesMut) -> io::Result<()> {
        poll_fn(|context| {
            // On the stack: a connection that waits holds no buffer.
            let mut block = [0; 4096];
            let mut read = ReadBuf::new(&mut block);
            let polled = match self {
                Stream::Plain(tcp) => Pin::new(tcp).poll_read(context, &mut read),
                Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, &mut read),
            };
            polled.map(|result| {
                result?;
                if read.filled().is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                unread.extend_from_slice(read.filled());
                Ok(())
            })
        })
        .await
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// If the connection has ended.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(tcp) => tcp.write_all(bytes).await,
            Stream::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Returns when the client has closed the connection; never if it has sent something before that.
    pub async fn client_gone(&self) {
        let mut byte = [0];
        if let Ok(1) = self.tcp().peek(&mut byte).await {
            std::future::pending::<()>().await;
        }
    }

    /// Ends the connection in order.
    pub async fn close(mut self) {
        let end = async {
            match &mut self {
                Stream::Plain(tcp) => tcp.shutdown().await,
                Stream::Tls(stream) => stream.shutdown().await,
            }
        };
        // Who doesn't take it loses the connection all the same.
        let _ = timeout(CLOSE_LIMIT, end).await;
    }
    /// Ends the connection by a reset.
    pub fn reset(self) {
        // Dropped with this, a socket says RST in place of FIN.
        let _ = socket2::SockRef::from(self.tcp()).set_linger(Some(Duration::ZERO));
    }
}

//! A connection to a peer, whatever carries it.
//!
//! Decides how bytes are wrapped and how a connection ends. Knows neither who is spoken to nor what is said. TLS and WebSocket
//! lie in boxes: a fleet of plain hubs pays nothing for them.

use super::connect;
use super::websocket::WebSocket;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Reads that are tried for the peer's last words once nothing can be written any more.
const LAST_READS: usize = 4;

/// A connection that stands.
#[derive(Debug)]
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    WebSocket(Box<WebSocket>),
}

impl Stream {
    /// TLS over a TCP connection: the handshake, with the peer checked against `name` as `config` says.
    ///
    /// # Errors
    /// As the operating system or TLS says; [`connect::outcome`] classifies it.
    pub async fn secure(
        tcp: TcpStream,
        name: ServerName<'static>,
        config: Arc<ClientConfig>,
    ) -> io::Result<Stream> {
        let secured = TlsConnector::from(config).connect(name, tcp).await?;
        Ok(Stream::Tls(Box::new(secured)))
    }

    /// Ends the connection with FIN, after what was written and the goodbye of TLS or WebSocket. Waits for nothing: where the
    /// peer takes no more bytes, the goodbye is left out.
    pub fn close(self) {
        let mut context = Context::from_waker(Waker::noop());
        match self {
            Stream::Plain(tcp) => connect::close(tcp),
            Stream::Tls(mut secured) => {
                // What can't be said any more is left out; the FIN follows all the same.
                let _ = Pin::new(&mut *secured).poll_shutdown(&mut context);
                connect::close(secured.into_inner().0);
            }
            Stream::WebSocket(socket) => socket.say_goodbye(&mut context).close(),
        }
    }

    /// Ends the connection with RST.
    pub fn reset(self) {
        match self {
            Stream::Plain(tcp) => connect::reset(tcp),
            Stream::Tls(secured) => connect::reset(secured.into_inner().0),
            Stream::WebSocket(socket) => socket.into_inner().reset(),
        }
    }

    /// The TLS session, if there is one.
    #[must_use]
    pub fn session(&self) -> Option<&rustls::ClientConnection> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(secured) => Some(secured.get_ref().1),
            Stream::WebSocket(socket) => socket.inner().session(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Stream::Tls(secured) => Pin::new(&mut **secured).poll_read(context, buffer),
            Stream::WebSocket(socket) => Pin::new(&mut **socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Stream::Tls(secured) => Pin::new(&mut **secured)
                .poll_write(context, bytes)
                .map_err(|error| last_words(secured, error)),
            Stream::WebSocket(socket) => Pin::new(&mut **socket).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Stream::Tls(secured) => Pin::new(&mut **secured)
                .poll_flush(context)
                .map_err(|error| last_words(secured, error)),
            Stream::WebSocket(socket) => Pin::new(&mut **socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Stream::Tls(secured) => Pin::new(&mut **secured).poll_shutdown(context),
            Stream::WebSocket(socket) => Pin::new(&mut **socket).poll_shutdown(context),
        }
    }
}

/// Why the peer ended TLS, if it said so before it went: a server that takes no certificate says that after the client's side
/// of the handshake, so that the client is often writing when it learns of it.
fn last_words(secured: &mut TlsStream<TcpStream>, error: io::Error) -> io::Error {
    let mut context = Context::from_waker(Waker::noop());
    let mut space = [0; 256];
    for _ in 0..LAST_READS {
        let mut read = ReadBuf::new(&mut space);
        match Pin::new(&mut *secured).poll_read(&mut context, &mut read) {
            Poll::Ready(Err(said)) if tls_error(&said).is_some() => return said,
            Poll::Ready(Ok(())) if !read.filled().is_empty() => {}
            Poll::Ready(_) | Poll::Pending => break,
        }
    }
    error
}

/// What TLS says inside an error of reading or writing, however often it was wrapped: `source` passes over what an error of the
/// system's kind holds.
#[must_use]
pub fn tls_error(error: &io::Error) -> Option<&Error> {
    let inner = error.get_ref()?;
    inner
        .downcast_ref::<Error>()
        .or_else(|| tls_error(inner.downcast_ref::<io::Error>()?))
}

//! MQTT over WebSocket: a stream of bytes in binary frames (MQTT 3.1.1 §6, MQTT 5 §6).
//!
//! A packet may be spread over frames and a frame may hold several: whoever reads sees bytes only. Text frames break the
//! protocol.

use super::stream::Stream;
use bytes::{Buf, Bytes};
use futures::{Sink, Stream as Frames};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Bytes that a socket keeps for reading: hubs are many, and their packets small.
const READ_BYTES: usize = 2 * 1024;
/// Bytes of the largest frame and message that is read; MQTT itself goes to 256 MiB, our packets to 1 MiB.
const LARGEST_BYTES: usize = 2 * 1024 * 1024;
/// The subprotocol that a server must confirm.
const SUBPROTOCOL: &str = "mqtt";

/// A WebSocket that carries MQTT.
#[derive(Debug)]
pub struct WebSocket {
    socket: WebSocketStream<Stream>,
    /// The rest of a frame that is not read yet.
    unread: Bytes,
}

/// Why a server would not take up the WebSocket.
#[derive(Debug, thiserror::Error)]
pub enum Declined {
    /// It answered with this HTTP status.
    #[error("the server answered the WebSocket upgrade with status {0}")]
    Status(u16),
    #[error("the WebSocket upgrade failed: {0}")]
    Protocol(Box<Error>),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl WebSocket {
    /// Asks for the upgrade at `address` (`ws://` or `wss://`, with its path) over a stream that stands.
    ///
    /// # Errors
    /// If the server declines, does not speak MQTT, or the stream fails.
    pub async fn upgrade(stream: Stream, address: &str) -> Result<Stream, Declined> {
        let mut request = address.into_client_request().map_err(declined)?;
        request.headers_mut().insert(
            "Sec-WebSocket-Protocol",
            HeaderValue::from_static(SUBPROTOCOL),
        );
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_frame_size(Some(LARGEST_BYTES))
            .max_message_size(Some(LARGEST_BYTES));
        let (socket, _) = client_async_with_config(request, stream, Some(config))
            .await
            .map_err(declined)?;
        Ok(Stream::WebSocket(Box::new(WebSocket {
            socket,
            unread: Bytes::new(),
        })))
    }

    /// What carries it.
    pub(super) fn inner(&self) -> &Stream {
        self.socket.get_ref()
    }

    pub(super) fn into_inner(self) -> Stream {
        self.socket.into_inner()
    }

    /// Sends a close frame, if there is room for it, and gives up what carries it.
    pub(super) fn say_goodbye(mut self, context: &mut Context<'_>) -> Stream {
        // A peer that takes no more bytes gets none.
        let _ = Pin::new(&mut self.socket).poll_close(context);
        self.into_inner()
    }
}

impl AsyncRead for WebSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(context)) {
                Some(Ok(Message::Binary(bytes))) => self.unread = bytes,
                Some(Ok(Message::Text(_))) => {
                    let what = "a text frame where MQTT wants binary ones";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
                }
                // Pings are answered by the library; the end follows a close frame.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let taken = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..taken]);
        self.unread.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(Pin::new(&mut self.socket).poll_ready(context)).map_err(io_error)?;
        let frame = Message::Binary(Bytes::copy_from_slice(bytes));
        Pin::new(&mut self.socket)
            .start_send(frame)
            .map_err(io_error)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket)
            .poll_flush(context)
            .map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket)
            .poll_close(context)
            .map_err(io_error)
    }
}

fn declined(error: Error) -> Declined {
    match error {
        Error::Http(response) => Declined::Status(response.status().as_u16()),
        Error::Io(error) => Declined::Io(error),
        other => Declined::Protocol(Box::new(other)),
    }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

//! One MQTT 3.1.1 connection: packets in and out over a socket.
//!
//! Knows neither agents nor topics. While nothing is half read or half written it holds nothing but the socket: a fleet of
//! hubs is mostly idle, and a buffer each would cost more than everything else.

mod frames;

use crate::event::{Cause, Outcome, PacketKind};
use crate::net::connect;
use crate::net::stream::Stream;
use bytes::BytesMut;
pub(super) use rumqttc::mqttbytes::QoS;
pub(super) use rumqttc::mqttbytes::v4::Packet;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read from the socket at once.
const READ_BYTES: usize = 8 * 1024;

/// Why a connection is at its end.
#[derive(Debug)]
pub(super) enum End {
    /// The peer closed it.
    Closed,
    /// The operating system reported an error.
    Failed(io::Error),
    /// The peer sent what MQTT 3.1.1 forbids.
    Malformed,
    /// CONNACK with a return code other than 0.
    Refused(u8),
}

impl End {
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            End::Closed => Outcome::Reset,
            // There was a connection, so it is lost, whatever the reason.
            End::Failed(error) => match connect::outcome(error) {
                Outcome::Unreachable => Outcome::Reset,
                other => other,
            },
            End::Malformed => Outcome::Protocol,
            End::Refused(code) => Outcome::Refused(u16::from(*code)),
        }
    }

    /// What ended a session that stood.
    pub(super) fn cause(&self) -> Cause {
        match self {
            End::Closed => Cause::Closed,
            End::Failed(error) if connect::outcome(error) == Outcome::Reset => Cause::Reset,
            End::Failed(_) => Cause::Network,
            End::Malformed | End::Refused(_) => Cause::Protocol,
        }
    }
}

/// A socket that speaks MQTT.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    /// Only while something is half read or half written.
    pending: Option<Box<Pending>>,
}

#[derive(Debug, Default)]
struct Pending {
    unread: BytesMut,
    unsent: BytesMut,
    /// What TLS or WebSocket took and has not handed on.
    unflushed: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream) -> Connection {
        Connection {
            stream,
            pending: None,
        }
    }

    /// Hands a packet to the socket; what does not fit follows when there is room.
    pub(super) fn send(&mut self, packet: &Packet) -> Result<(), End> {
        let mut bytes = BytesMut::with_capacity(packet.size());
        packet
            .write(&mut bytes, usize::MAX)
            .map_err(|error| End::Failed(io::Error::other(error)))?;
        if let Some(pending) = self
            .pending
            .as_mut()
            .filter(|pending| !pending.unsent.is_empty())
        {
            pending.unsent.extend_from_slice(&bytes);
            return Ok(());
        }
        // Nobody is woken here: what does not fit now is written by `poll_receive`, which whoever sends polls next.
        let mut context = Context::from_waker(Waker::noop());
        let written = match Pin::new(&mut self.stream).poll_write(&mut context, &bytes) {
            Poll::Ready(result) => result.map_err(End::Failed)?,
            Poll::Pending => 0,
        };
        if written < bytes.len() {
            let rest = bytes.split_off(written);
            self.pending.get_or_insert_default().unsent = rest;
            return Ok(());
        }
        match Pin::new(&mut self.stream).poll_flush(&mut context) {
            Poll::Ready(result) => result.map_err(End::Failed),
            Poll::Pending => {
                self.pending.get_or_insert_default().unflushed = true;
                Ok(())
            }
        }
    }

    /// Appends the packets that arrive; ready when there is at least one, or with the end of the connection. Packets that
    /// came before the end are in `out` then.
    pub(super) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<Packet>,
    ) -> Poll<Result<(), End>> {
        self.poll_flush(context)?;
        loop {
            let mut space = [MaybeUninit::<u8>::uninit(); READ_BYTES];
            let mut read = ReadBuf::uninit(&mut space);
            if let Err(error) = ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)) {
                return Poll::Ready(Err(End::Failed(error)));
            }
            if read.filled().is_empty() {
                return Poll::Ready(Err(End::Closed));
            }
            let mut bytes = match &mut self.pending {
                Some(pending) => std::mem::take(&mut pending.unread),
                None => BytesMut::new(),
            };
            // A buffer of just this size: a payload that is kept pins no more than that.
            bytes.extend_from_slice(read.filled());
            let result = frames::split(&mut bytes, out);
            self.keep_unread(bytes);
            match result {
                Ok(()) if out.is_empty() => {}
                other => return Poll::Ready(other),
            }
        }
    }

    /// Sends FIN, after what was written.
    pub(super) fn close(self) {
        self.stream.close();
    }

    /// Sends RST.
    pub(super) fn reset(self) {
        self.stream.reset();
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let Some(pending) = &mut self.pending else {
            return Ok(());
        };
        while !pending.unsent.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &pending.unsent) {
                Poll::Pending => return Ok(()),
                Poll::Ready(written) => {
                    let written = written.map_err(End::Failed)?;
                    if written == 0 {
                        return Err(End::Failed(io::ErrorKind::WriteZero.into()));
                    }
                    drop(pending.unsent.split_to(written));
                    pending.unflushed = true;
                }
            }
        }
        if pending.unflushed {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(flushed) => flushed.map_err(End::Failed)?,
            }
            pending.unflushed = false;
        }
        self.forget_empty();
        Ok(())
    }

    fn keep_unread(&mut self, bytes: BytesMut) {
        if bytes.is_empty() {
            self.forget_empty();
        } else {
            self.pending.get_or_insert_default().unread = bytes;
        }
    }

    fn forget_empty(&mut self) {
        self.pending.take_if(|pending| {
            pending.unread.is_empty() && pending.unsent.is_empty() && !pending.unflushed
        });
    }
}

/// The kind of a packet, if it is one that is counted.
pub(super) fn kind(packet: &Packet) -> Option<PacketKind> {
    Some(match packet {
        Packet::Connect(_) => PacketKind::Connect,
        Packet::ConnAck(_) => PacketKind::ConnAck,
        Packet::Publish(_) => PacketKind::Publish,
        Packet::PubAck(_) => PacketKind::PubAck,
        Packet::Subscribe(_) => PacketKind::Subscribe,
        Packet::SubAck(_) => PacketKind::SubAck,
        Packet::PingReq => PacketKind::PingReq,
        Packet::PingResp => PacketKind::PingResp,
        Packet::Disconnect => PacketKind::Disconnect,
        _ => return None,
    })
}

/// The level of a plan's `qos`, which is 0 or 1.
pub(super) fn level(qos: u8) -> QoS {
    if qos == 0 {
        QoS::AtMostOnce
    } else {
        QoS::AtLeastOnce
    }
}

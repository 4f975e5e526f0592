//! One MQTT connection: packets in and out over a socket.
//!
//! Packets are those of MQTT 5, which says everything that 3.1.1 can say; `frames` brings them to the older form and back. Knows neither agents nor topics. While nothing is half read or half written it holds nothing but the socket: a fleet of
//! hubs is mostly idle, and a buffer each would cost more than everything else.

mod frames;
mod terms;
mod v5;

use crate::event::{Cause, Outcome, PacketKind};
use crate::net::connect;
use crate::net::stream::Stream;
use crate::plan::session::MqttVersion;
use crate::plan::target::Device;
use bytes::BytesMut;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use terms::Terms;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
pub(super) use v5::{
    Acknowledgement, Authentication, Connect, Disconnect, Packet, Property, Publish, SubAck,
    Subscribe, Will,
};

/// Bytes read from the socket at once.
const READ_BYTES: usize = 8 * 1024;

/// Why a connection is at its end.
#[derive(Debug)]
pub(super) enum End {
    /// The peer closed it.
    Closed,
    /// The operating system reported an error.
    Failed(io::Error),
    /// The peer sent what MQTT forbids.
    Malformed,
    /// The peer sent a packet above the limit that it had been told.
    TooLarge,
    /// The peer used a topic alias above the maximum that it had been told.
    AliasInvalid,
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
            End::Malformed | End::TooLarge | End::AliasInvalid => Outcome::Protocol,
        }
    }

    /// What ended a session that stood.
    pub(super) fn cause(&self) -> Cause {
        match self {
            End::Closed => Cause::Closed,
            End::Failed(error) => match connect::outcome(error) {
                Outcome::Reset => Cause::Reset,
                Outcome::Tls(trouble) => Cause::Tls(trouble),
                _ => Cause::Network,
            },
            End::Malformed | End::AliasInvalid => Cause::Protocol,
            End::TooLarge => Cause::TooLarge,
        }
    }

    /// The reason that MQTT 5 has the client give in DISCONNECT, where the connection still stands.
    pub(super) fn reason(&self) -> Option<u8> {
        match self {
            End::Closed | End::Failed(_) => None,
            End::Malformed => Some(0x81),
            End::TooLarge => Some(0x95),
            End::AliasInvalid => Some(0x94),
        }
    }
}

/// A socket that speaks MQTT.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    /// Only while something is half read or half written.
    pending: Option<Box<Pending>>,
    /// MQTT 5: what both sides agreed on; `None` for 3.1.1.
    terms: Option<Box<Terms>>,
    /// Bytes of the largest packet that is read.
    limit: u32,
}

#[derive(Debug, Default)]
struct Pending {
    unread: BytesMut,
    unsent: BytesMut,
    /// What TLS or WebSocket took and has not handed on.
    unflushed: bool,
}

impl Connection {
    pub(super) fn new(stream: Stream, device: &Device) -> Connection {
        let session = &device.session;
        let terms = || Box::new(Terms::new(session.topic_alias_maximum));
        Connection {
            stream,
            pending: None,
            terms: (device.version == MqttVersion::V5).then(terms),
            limit: session.maximum_packet_size,
        }
    }

    /// What the broker said in CONNACK about the packets that it takes.
    pub(super) fn obey(&mut self, properties: &[Property]) {
        if let Some(terms) = &mut self.terms {
            terms.obey(properties);
        }
    }

    /// The QoS with which a publish may leave that is meant for this one: a broker of MQTT 5 may take none but 0.
    pub(super) fn qos(&self, meant: u8) -> u8 {
        self.terms.as_ref().map_or(meant, |terms| terms.qos(meant))
    }

    /// MQTT 5: says why the connection ends, if the protocol has a reason for it; true if it was said.
    pub(super) fn say_why(&mut self, reason: Option<u8>) -> bool {
        let Some(reason) = reason.filter(|_| self.terms.is_some()) else {
            return false;
        };
        let said = Packet::Disconnect(Disconnect {
            reason,
            properties: Vec::new(),
        });
        self.send(&said).is_ok()
    }

    /// Hands a packet to the socket; what does not fit follows when there is room. False: it is larger than the broker takes, and
    /// nothing was sent.
    pub(super) fn send(&mut self, packet: &Packet) -> Result<bool, End> {
        let bytes = match &self.terms {
            Some(terms) => {
                let bytes = packet.write();
                if !terms.allow(bytes.len()) {
                    return Ok(false);
                }
                bytes
            }
            None => frames::write(packet).map_err(|error| End::Failed(io::Error::other(error)))?,
        };
        self.write(bytes).map(|()| true)
    }

    fn write(&mut self, mut bytes: BytesMut) -> Result<(), End> {
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
            let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
            let result = match &mut self.terms {
                Some(terms) => terms.split(&mut bytes, limit, out),
                None => frames::split(&mut bytes, limit, out),
            };
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

/// The kind of a packet.
pub(super) fn kind(packet: &Packet) -> PacketKind {
    match packet {
        Packet::Connect(_) => PacketKind::Connect,
        Packet::ConnAck(_) => PacketKind::ConnAck,
        Packet::Publish(_) => PacketKind::Publish,
        Packet::PubAck(_) => PacketKind::PubAck,
        Packet::Subscribe(_) => PacketKind::Subscribe,
        Packet::SubAck(_) => PacketKind::SubAck,
        Packet::PingReq => PacketKind::PingReq,
        Packet::PingResp => PacketKind::PingResp,
        Packet::Disconnect(_) => PacketKind::Disconnect,
        Packet::Auth(_) => PacketKind::Auth,
    }
}

//! A connection of a client, packet by packet.

use super::ending::End;
use super::packet::{self, Connect, Flaw, Incoming, Outgoing, Properties, Value, Version, id};
use super::stream::Stream;
use crate::lab::messages::Cause;
use bytes::BytesMut;
use std::time::Duration;
use tokio::time::timeout;

/// For the client to take what is sent to it.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// The kind of packet that a connection begins with, as its first byte has it.
const CONNECT_KIND: u8 = 1;
/// The return code of MQTT 3.1.1 for a protocol that isn't spoken, in the form that every client can read.
const UNKNOWN_LEVEL: [u8; 4] = [0x20, 0x02, 0x00, 0x01];

/// The connection.
pub struct Wire {
    stream: Stream,
    /// Holds memory only while part of a packet is there.
    unread: BytesMut,
    /// MQTT 3.1.1 until the CONNECT says something else.
    pub version: Version,
    /// Longest packet that is read, in bytes.
    longest: usize,
}

impl Wire {
    /// A connection on which nothing was said yet.
    pub fn new(stream: Stream, longest: usize) -> Wire {
        Wire {
            stream,
            unread: BytesMut::new(),
            version: Version::V4,
            longest,
        }
    }

    /// Waits for bytes. Nothing is lost if it is given up while waiting.
    pub async fn fill(&mut self) -> Result<(), Cause> {
        self.stream
            .fill(&mut self.unread)
            .await
            .map_err(|_| Cause::Gone)
    }

    /// The next whole packet that is there already.
    pub fn packet(&mut self) -> Result<Option<Incoming>, Flaw> {
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
            return Ok(None);
        }
        match packet::frame(&mut self.unread, self.longest)? {
            Some((first, body)) => packet::incoming(first, body, self.version).map(Some),
            None => Ok(None),
        }
    }

    /// The CONNECT that a connection begins with; from here on its version counts.
    pub async fn connect(&mut self) -> Result<Connect, Cause> {
        loop {
            self.fill().await?;
            // Whatever speaks another protocol is not waited for until its "packet" is whole.
            if self
                .unread
                .first()
                .is_some_and(|first| first >> 4 != CONNECT_KIND)
            {
                return Err(Cause::Protocol);
            }
            match self.packet().map_err(|_| Cause::Protocol)? {
                Some(Incoming::Connect(connect)) => {
                    self.version = connect.version;
                    return Ok(*connect);
                }
                Some(Incoming::OtherLevel) => {
                    self.send(&UNKNOWN_LEVEL).await?;
                    return Err(Cause::Protocol);
                }
                Some(_) => return Err(Cause::Protocol),
                None => {}
            }
        }
    }

    /// Returns when the client has closed the connection; never if it has sent something before that.
    pub async fn client_gone(&self) {
        self.stream.client_gone().await;
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        match timeout(WRITE_LIMIT, self.stream.send(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Cause::Gone),
            Err(_) => Err(Cause::Stuck),
        }
    }

    /// Sends a packet.
    pub async fn say(&mut self, packet: &Outgoing<'_>) -> Result<(), Cause> {
        let mut bytes = BytesMut::new();
        packet.write(self.version, &mut bytes);
        self.send(&bytes).await
    }

    /// Closes the connection, after a DISCONNECT where the client can be told why.
    pub async fn close(mut self, end: End) {
        if end.by_reset {
            return self.stream.reset();
        }
        if let (Version::V5, Some(reason)) = (self.version, end.reason) {
            let mut properties = Properties::default();
            if let Some(reference) = end.reference {
                properties = properties.with(id::SERVER_REFERENCE, Value::Text(reference));
            }
            // Who doesn't hear it learns by the end of the connection.
            let _ = self.say(&Outgoing::Disconnect { reason, properties }).await;
        }
        self.stream.close().await;
    }
}

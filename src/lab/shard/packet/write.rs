//! Packets to clients, in their shortest form.

use super::{Properties, Publish, Version, reason};
use bytes::{BufMut, BytesMut};

/// A packet to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing<'a> {
    ConnAck {
        present: bool,
        /// A return code of MQTT 3.1.1 or a reason code of MQTT 5, as the connection is.
        code: u8,
        properties: Properties,
    },
    Publish(&'a Publish),
    PubAck {
        packet: u16,
        reason: u8,
    },
    SubAck {
        packet: u16,
        codes: &'a [u8],
    },
    UnsubAck {
        packet: u16,
        codes: &'a [u8],
    },
    PingResp,
    /// MQTT 5 only.
    Disconnect {
        reason: u8,
        properties: Properties,
    },
    /// MQTT 5 only.
    Auth {
        reason: u8,
        properties: Properties,
    },
}

impl Outgoing<'_> {
    /// Adds the packet to the bytes.
    pub fn write(&self, version: Version, bytes: &mut BytesMut) {
        let v5 = version == Version::V5;
        let mut body = BytesMut::new();
        let first = match self {
            Outgoing::ConnAck {
                present,
                code,
                properties,
            } => {
                body.put_u8(u8::from(*present));
                body.put_u8(*code);
                if v5 {
                    properties.write(&mut body);
                }
                0x20
            }
            Outgoing::Publish(publish) => {
                binary(publish.topic.as_bytes(), &mut body);
                if publish.qos > 0 {
                    body.put_u16(publish.packet);
                }
                if v5 {
                    publish.properties.write(&mut body);
                }
                body.extend_from_slice(&publish.payload);
                0x30 | u8::from(publish.duplicate) << 3
                    | publish.qos << 1
                    | u8::from(publish.retain)
            }
            Outgoing::PubAck { packet, reason } => {
                body.put_u16(*packet);
                if v5 && *reason != reason::SUCCESS {
                    body.put_u8(*reason);
                }
                0x40
            }
            Outgoing::SubAck { packet, codes } => {
                body.put_u16(*packet);
                if v5 {
                    body.put_u8(0);
                }
                body.extend_from_slice(codes);
                0x90
            }
            Outgoing::UnsubAck { packet, codes } => {
                body.put_u16(*packet);
                if v5 {
                    body.put_u8(0);
                    body.extend_from_slice(codes);
                }
                0xb0
            }
            Outgoing::PingResp => 0xd0,
            Outgoing::Disconnect { reason, properties } => {
                ending(*reason, properties, &mut body);
                0xe0
            }
            Outgoing::Auth { reason, properties } => {
                ending(*reason, properties, &mut body);
                0xf0
            }
        };
        bytes.put_u8(first);
        length(body.len(), bytes);
        bytes.extend_from_slice(&body);
    }
}

fn ending(reason: u8, properties: &Properties, body: &mut BytesMut) {
    if reason != reason::SUCCESS || !properties.is_empty() {
        body.put_u8(reason);
    }
    if !properties.is_empty() {
        properties.write(body);
    }
}

/// A length in bytes of seven bits.
pub fn length(mut value: usize, bytes: &mut BytesMut) {
    loop {
        let digit = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            return bytes.put_u8(digit);
        }
        bytes.put_u8(digit | 0x80);
    }
}

/// Bytes behind their length. Longer ones than the length can say are cut; nothing that comes here is.
pub fn binary(data: &[u8], bytes: &mut BytesMut) {
    let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
    bytes.put_u16(length);
    bytes.extend_from_slice(&data[..usize::from(length)]);
}

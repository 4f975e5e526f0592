//! The packets of MQTT 5, read and written.

use super::bytes::{Reader, Writer};
use super::property::{self, Property};
use super::{Kind, Malformed};
use bytes::{Bytes, BytesMut};

const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
const DISCONNECT: u8 = 0xe0;
const AUTH: u8 = 0xf0;
/// What the protocol is called, and its version.
const PROTOCOL: (&[u8], u8) = (b"MQTT", 5);

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::live) enum Packet {
    Connect(Box<Connect>),
    ConnAck(ConnAck),
    Publish(Publish),
    PubAck(Acknowledgement),
    Subscribe(Subscribe),
    SubAck(SubAck),
    PingReq,
    PingResp,
    Disconnect(Disconnect),
    Auth(Authentication),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct Connect {
    pub clean_start: bool,
    pub keep_alive_s: u16,
    pub client_id: String,
    pub username: Option<String>,
    pub password: Option<Bytes>,
    pub will: Option<Will>,
    pub properties: Vec<Property>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct Will {
    pub topic: String,
    pub payload: Bytes,
    /// 0 or 1.
    pub qos: u8,
    pub retain: bool,
    pub properties: Vec<Property>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct ConnAck {
    pub session_present: bool,
    pub reason: u8,
    pub properties: Vec<Property>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct Publish {
    pub duplicate: bool,
    pub retain: bool,
    /// With QoS 1; never 0.
    pub packet_id: Option<u16>,
    pub topic: String,
    pub properties: Vec<Property>,
    pub payload: Bytes,
}

/// PUBACK.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct Acknowledgement {
    pub packet_id: u16,
    pub reason: u8,
    pub properties: Vec<Property>,
}

/// SUBSCRIBE to one topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct Subscribe {
    pub packet_id: u16,
    pub topic: String,
    /// QoS and the other subscription options, as on the wire.
    pub options: u8,
    pub properties: Vec<Property>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct SubAck {
    pub packet_id: u16,
    pub properties: Vec<Property>,
    pub reasons: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct Disconnect {
    pub reason: u8,
    pub properties: Vec<Property>,
}

/// AUTH; method and data are properties.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::live) struct Authentication {
    pub reason: u8,
    pub properties: Vec<Property>,
}

impl Packet {
    /// Whether a packet that is known may begin with this byte: its type and its fixed flags.
    pub fn may_begin(first: u8) -> bool {
        let fixed = [
            CONNECT, CONNACK, PUBACK, SUBSCRIBE, SUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH,
        ];
        fixed.contains(&first) || first & 0xf0 == PUBLISH
    }

    /// The packet with this first byte and this body, which is whole.
    pub(super) fn read(first: u8, body: Bytes) -> Result<Packet, Malformed> {
        let mut reader = Reader(body);
        let packet = match first {
            CONNECT => Packet::Connect(Box::new(Connect::read(&mut reader)?)),
            CONNACK => Packet::ConnAck(ConnAck::read(&mut reader)?),
            PUBACK => Packet::PubAck(Acknowledgement::read(&mut reader)?),
            SUBSCRIBE => Packet::Subscribe(Subscribe::read(&mut reader)?),
            SUBACK => Packet::SubAck(SubAck::read(&mut reader)?),
            PINGREQ => Packet::PingReq,
            PINGRESP => Packet::PingResp,
            DISCONNECT => {
                let (reason, properties) = reason_and_properties(&mut reader, Kind::Disconnect)?;
                Packet::Disconnect(Disconnect { reason, properties })
            }
            AUTH => {
                let (reason, properties) = reason_and_properties(&mut reader, Kind::Auth)?;
                Packet::Auth(Authentication { reason, properties })
            }
            flags if flags & 0xf0 == PUBLISH => Packet::Publish(Publish::read(flags, &mut reader)?),
            _ => return Err(Malformed),
        };
        if reader.is_empty() {
            Ok(packet)
        } else {
            Err(Malformed)
        }
    }

    /// The packet as bytes.
    pub fn write(&self) -> BytesMut {
        let mut writer = Writer::default();
        let first = match self {
            Packet::Connect(connect) => connect.write(&mut writer),
            Packet::ConnAck(answer) => answer.write(&mut writer),
            Packet::Publish(publish) => publish.write(&mut writer),
            Packet::PubAck(answer) => answer.write(&mut writer),
            Packet::Subscribe(subscribe) => subscribe.write(&mut writer),
            Packet::SubAck(answer) => answer.write(&mut writer),
            Packet::PingReq => PINGREQ,
            Packet::PingResp => PINGRESP,
            Packet::Disconnect(said) => {
                write_reason(said.reason, &said.properties, &mut writer);
                DISCONNECT
            }
            Packet::Auth(said) => {
                write_reason(said.reason, &said.properties, &mut writer);
                AUTH
            }
        };
        writer.packet(first)
    }
}

/// Reason code and properties as DISCONNECT and AUTH have them, and PUBACK behind its packet id: both may be missing, or the second.
fn reason_and_properties(
    reader: &mut Reader,
    kind: Kind,
) -> Result<(u8, Vec<Property>), Malformed> {
    if reader.is_empty() {
        return Ok((0, Vec::new()));
    }
    let reason = reader.byte()?;
    if reader.is_empty() {
        return Ok((reason, Vec::new()));
    }
    Ok((reason, property::read(reader, kind)?))
}

/// In the shortest form.
fn write_reason(reason: u8, properties: &[Property], writer: &mut Writer) {
    if reason == 0 && properties.is_empty() {
        return;
    }
    writer.byte(reason);
    if !properties.is_empty() {
        property::write(properties, writer);
    }
}

impl Connect {
    fn read(reader: &mut Reader) -> Result<Connect, Malformed> {
        if reader.binary()? != PROTOCOL.0 || reader.byte()? != PROTOCOL.1 {
            return Err(Malformed);
        }
        let flags = reader.byte()?;
        let has = |bit: u8| flags & bit != 0;
        let (qos, retain) = (flags >> 3 & 3, has(0x20));
        if has(0x01) || qos > 1 || (!has(0x04) && (qos > 0 || retain)) {
            return Err(Malformed);
        }
        let keep_alive_s = reader.two()?;
        let properties = property::read(reader, Kind::Connect)?;
        let client_id = reader.text()?;
        let will = match has(0x04) {
            true => Some(Will {
                properties: property::read(reader, Kind::Will)?,
                topic: reader.text()?,
                payload: reader.binary()?,
                qos,
                retain,
            }),
            false => None,
        };
        Ok(Connect {
            clean_start: has(0x02),
            keep_alive_s,
            client_id,
            username: has(0x80).then(|| reader.text()).transpose()?,
            password: has(0x40).then(|| reader.binary()).transpose()?,
            will,
            properties,
        })
    }

    fn write(&self, writer: &mut Writer) -> u8 {
        writer.binary(PROTOCOL.0);
        writer.byte(PROTOCOL.1);
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let will = self
            .will
            .as_ref()
            .map_or(0, |will| 0x04 | will.qos << 3 | bit(will.retain, 0x20));
        writer.byte(
            bit(self.clean_start, 0x02)
                | will
                | bit(self.username.is_some(), 0x80)
                | bit(self.password.is_some(), 0x40),
        );
        writer.two(self.keep_alive_s);
        property::write(&self.properties, writer);
        writer.binary(self.client_id.as_bytes());
        if let Some(will) = &self.will {
            property::write(&will.properties, writer);
            writer.binary(will.topic.as_bytes());
            writer.binary(&will.payload);
        }
        if let Some(username) = &self.username {
            writer.binary(username.as_bytes());
        }
        if let Some(password) = &self.password {
            writer.binary(password);
        }
        CONNECT
    }
}

impl ConnAck {
    fn read(reader: &mut Reader) -> Result<ConnAck, Malformed> {
        let flags = reader.byte()?;
        let reason = reader.byte()?;
        // A broker that knows only older versions answers in their form: a return code of 1 to 5 and no properties.
        let is_older = reader.is_empty() && (1..=5).contains(&reason);
        if flags > 1 || (flags == 1 && reason != 0) {
            return Err(Malformed);
        }
        Ok(ConnAck {
            session_present: flags == 1,
            reason,
            properties: match is_older {
                true => Vec::new(),
                false => property::read(reader, Kind::ConnAck)?,
            },
        })
    }

    fn write(&self, writer: &mut Writer) -> u8 {
        writer.byte(u8::from(self.session_present));
        writer.byte(self.reason);
        property::write(&self.properties, writer);
        CONNACK
    }
}

impl Publish {
    fn read(flags: u8, reader: &mut Reader) -> Result<Publish, Malformed> {
        let (duplicate, qos, retain) = (flags & 0x08 != 0, flags >> 1 & 3, flags & 0x01 != 0);
        if qos > 1 || (duplicate && qos == 0) {
            return Err(Malformed);
        }
        let topic = reader.text()?;
        if topic.contains(['+', '#']) {
            return Err(Malformed);
        }
        let packet_id = (qos == 1).then(|| reader.packet_id()).transpose()?;
        let properties = property::read(reader, Kind::Publish)?;
        let has_alias = properties
            .iter()
            .any(|property| matches!(property, Property::TopicAlias(_)));
        if topic.is_empty() && !has_alias {
            return Err(Malformed);
        }
        // A buffer of just this size: a payload that is kept pins no more than that.
        let payload = std::mem::take(&mut reader.0);
        Ok(Publish {
            duplicate,
            retain,
            packet_id,
            topic,
            properties,
            payload,
        })
    }

    fn write(&self, writer: &mut Writer) -> u8 {
        writer.binary(self.topic.as_bytes());
        if let Some(packet_id) = self.packet_id {
            writer.two(packet_id);
        }
        property::write(&self.properties, writer);
        writer.raw(&self.payload);
        let qos = u8::from(self.packet_id.is_some());
        PUBLISH | u8::from(self.duplicate) << 3 | qos << 1 | u8::from(self.retain)
    }
}

impl Acknowledgement {
    fn read(reader: &mut Reader) -> Result<Acknowledgement, Malformed> {
        let packet_id = reader.packet_id()?;
        let (reason, properties) = reason_and_properties(reader, Kind::PubAck)?;
        Ok(Acknowledgement {
            packet_id,
            reason,
            properties,
        })
    }

    fn write(&self, writer: &mut Writer) -> u8 {
        writer.two(self.packet_id);
        write_reason(self.reason, &self.properties, writer);
        PUBACK
    }
}

impl Subscribe {
    fn read(reader: &mut Reader) -> Result<Subscribe, Malformed> {
        let packet_id = reader.packet_id()?;
        let properties = property::read(reader, Kind::Subscribe)?;
        let topic = reader.text()?;
        let options = reader.byte()?;
        if options & 0x03 > 2 || options & 0xc0 != 0 || options & 0x30 == 0x30 {
            return Err(Malformed);
        }
        Ok(Subscribe {
            packet_id,
            topic,
            options,
            properties,
        })
    }

    fn write(&self, writer: &mut Writer) -> u8 {
        writer.two(self.packet_id);
        property::write(&self.properties, writer);
        writer.binary(self.topic.as_bytes());
        writer.byte(self.options);
        SUBSCRIBE
    }
}

impl SubAck {
    fn read(reader: &mut Reader) -> Result<SubAck, Malformed> {
        let packet_id = reader.packet_id()?;
        let properties = property::read(reader, Kind::SubAck)?;
        let reasons = std::mem::take(&mut reader.0).to_vec();
        if reasons.is_empty() {
            return Err(Malformed);
        }
        Ok(SubAck {
            packet_id,
            properties,
            reasons,
        })
    }

    fn write(&self, writer: &mut Writer) -> u8 {
        writer.two(self.packet_id);
        property::write(&self.properties, writer);
        writer.raw(&self.reasons);
        SUBACK
    }
}

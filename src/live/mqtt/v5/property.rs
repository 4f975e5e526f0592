//! Properties of MQTT 5 packets: a list, in the order in which they stand.
//!
//! One table says which property may stand in which packet (section 2.2.2.2 of the standard); what stands elsewhere, twice, or with a
//! value that the standard forbids is malformed.

use super::bytes::{Reader, Writer};
use super::{Kind, Malformed};
use bytes::Bytes;

/// One property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::live) enum Property {
    PayloadFormat(u8),
    MessageExpiry(u32),
    ContentType(String),
    ResponseTopic(String),
    CorrelationData(Bytes),
    SubscriptionIdentifier(u32),
    SessionExpiry(u32),
    AssignedClientIdentifier(String),
    ServerKeepAlive(u16),
    AuthenticationMethod(String),
    AuthenticationData(Bytes),
    RequestProblemInformation(u8),
    WillDelay(u32),
    RequestResponseInformation(u8),
    ResponseInformation(String),
    ServerReference(String),
    ReasonString(String),
    ReceiveMaximum(u16),
    TopicAliasMaximum(u16),
    TopicAlias(u16),
    MaximumQos(u8),
    RetainAvailable(u8),
    User(String, String),
    MaximumPacketSize(u32),
    WildcardSubscriptions(u8),
    SubscriptionIdentifiers(u8),
    SharedSubscriptions(u8),
}

use Kind::{Auth, ConnAck, Connect, Disconnect, PubAck, Publish, SubAck, Subscribe, Will};
use Property as P;

impl Property {
    fn identifier(&self) -> u8 {
        match self {
            P::PayloadFormat(_) => 0x01,
            P::MessageExpiry(_) => 0x02,
            P::ContentType(_) => 0x03,
            P::ResponseTopic(_) => 0x08,
            P::CorrelationData(_) => 0x09,
            P::SubscriptionIdentifier(_) => 0x0b,
            P::SessionExpiry(_) => 0x11,
            P::AssignedClientIdentifier(_) => 0x12,
            P::ServerKeepAlive(_) => 0x13,
            P::AuthenticationMethod(_) => 0x15,
            P::AuthenticationData(_) => 0x16,
            P::RequestProblemInformation(_) => 0x17,
            P::WillDelay(_) => 0x18,
            P::RequestResponseInformation(_) => 0x19,
            P::ResponseInformation(_) => 0x1a,
            P::ServerReference(_) => 0x1c,
            P::ReasonString(_) => 0x1f,
            P::ReceiveMaximum(_) => 0x21,
            P::TopicAliasMaximum(_) => 0x22,
            P::TopicAlias(_) => 0x23,
            P::MaximumQos(_) => 0x24,
            P::RetainAvailable(_) => 0x25,
            P::User(..) => 0x26,
            P::MaximumPacketSize(_) => 0x27,
            P::WildcardSubscriptions(_) => 0x28,
            P::SubscriptionIdentifiers(_) => 0x29,
            P::SharedSubscriptions(_) => 0x2a,
        }
    }

    /// The packets in which it may stand.
    fn places(&self) -> &'static [Kind] {
        match self {
            P::PayloadFormat(_)
            | P::MessageExpiry(_)
            | P::ContentType(_)
            | P::ResponseTopic(_)
            | P::CorrelationData(_) => &[Publish, Will],
            P::SubscriptionIdentifier(_) => &[Publish, Subscribe],
            P::SessionExpiry(_) => &[Connect, ConnAck, Disconnect],
            P::AssignedClientIdentifier(_)
            | P::ServerKeepAlive(_)
            | P::ResponseInformation(_)
            | P::MaximumQos(_)
            | P::RetainAvailable(_)
            | P::WildcardSubscriptions(_)
            | P::SubscriptionIdentifiers(_)
            | P::SharedSubscriptions(_) => &[ConnAck],
            P::AuthenticationMethod(_) | P::AuthenticationData(_) => &[Connect, ConnAck, Auth],
            P::RequestProblemInformation(_) | P::RequestResponseInformation(_) => &[Connect],
            P::WillDelay(_) => &[Will],
            P::ServerReference(_) => &[ConnAck, Disconnect],
            P::ReasonString(_) => &[ConnAck, PubAck, SubAck, Disconnect, Auth],
            P::ReceiveMaximum(_) | P::TopicAliasMaximum(_) | P::MaximumPacketSize(_) => {
                &[Connect, ConnAck]
            }
            P::TopicAlias(_) => &[Publish],
            P::User(..) => &[
                Connect, ConnAck, Publish, Will, PubAck, Subscribe, SubAck, Disconnect, Auth,
            ],
        }
    }

    /// The value of a property of one byte: 0 or 1.
    fn flag(&self) -> Option<u8> {
        match self {
            P::PayloadFormat(value)
            | P::RequestProblemInformation(value)
            | P::RequestResponseInformation(value)
            | P::MaximumQos(value)
            | P::RetainAvailable(value)
            | P::WildcardSubscriptions(value)
            | P::SubscriptionIdentifiers(value)
            | P::SharedSubscriptions(value) => Some(*value),
            _ => None,
        }
    }

    /// Whether the standard allows this value.
    fn is_valid(&self) -> bool {
        match self {
            P::ReceiveMaximum(value) | P::TopicAlias(value) => *value != 0,
            P::MaximumPacketSize(value) | P::SubscriptionIdentifier(value) => *value != 0,
            other => other.flag().is_none_or(|flag| flag <= 1),
        }
    }

    /// Whether it may stand more than once in such a packet.
    fn may_repeat(&self, kind: Kind) -> bool {
        matches!(self, P::User(..))
            || (kind == Publish && matches!(self, P::SubscriptionIdentifier(_)))
    }

    fn read(reader: &mut Reader) -> Result<Property, Malformed> {
        Ok(match reader.byte()? {
            0x01 => P::PayloadFormat(reader.byte()?),
            0x02 => P::MessageExpiry(reader.four()?),
            0x03 => P::ContentType(reader.text()?),
            0x08 => P::ResponseTopic(reader.text()?),
            0x09 => P::CorrelationData(reader.binary()?),
            0x0b => P::SubscriptionIdentifier(reader.variable()?),
            0x11 => P::SessionExpiry(reader.four()?),
            0x12 => P::AssignedClientIdentifier(reader.text()?),
            0x13 => P::ServerKeepAlive(reader.two()?),
            0x15 => P::AuthenticationMethod(reader.text()?),
            0x16 => P::AuthenticationData(reader.binary()?),
            0x17 => P::RequestProblemInformation(reader.byte()?),
            0x18 => P::WillDelay(reader.four()?),
            0x19 => P::RequestResponseInformation(reader.byte()?),
            0x1a => P::ResponseInformation(reader.text()?),
            0x1c => P::ServerReference(reader.text()?),
            0x1f => P::ReasonString(reader.text()?),
            0x21 => P::ReceiveMaximum(reader.two()?),
            0x22 => P::TopicAliasMaximum(reader.two()?),
            0x23 => P::TopicAlias(reader.two()?),
            0x24 => P::MaximumQos(reader.byte()?),
            0x25 => P::RetainAvailable(reader.byte()?),
            0x26 => P::User(reader.text()?, reader.text()?),
            0x27 => P::MaximumPacketSize(reader.four()?),
            0x28 => P::WildcardSubscriptions(reader.byte()?),
            0x29 => P::SubscriptionIdentifiers(reader.byte()?),
            0x2a => P::SharedSubscriptions(reader.byte()?),
            _ => return Err(Malformed),
        })
    }

    fn write(&self, writer: &mut Writer) {
        writer.byte(self.identifier());
        match self {
            P::ServerKeepAlive(value)
            | P::ReceiveMaximum(value)
            | P::TopicAliasMaximum(value)
            | P::TopicAlias(value) => writer.two(*value),
            P::MessageExpiry(value)
            | P::SessionExpiry(value)
            | P::WillDelay(value)
            | P::MaximumPacketSize(value) => writer.four(*value),
            P::SubscriptionIdentifier(value) => writer.variable(*value),
            P::ContentType(value)
            | P::ResponseTopic(value)
            | P::AssignedClientIdentifier(value)
            | P::AuthenticationMethod(value)
            | P::ResponseInformation(value)
            | P::ServerReference(value)
            | P::ReasonString(value) => writer.binary(value.as_bytes()),
            P::CorrelationData(value) | P::AuthenticationData(value) => writer.binary(value),
            P::User(name, value) => {
                writer.binary(name.as_bytes());
                writer.binary(value.as_bytes());
            }
            flag => flag.flag().into_iter().for_each(|value| writer.byte(value)),
        }
    }
}

/// The properties of a packet of this kind, with their length before them.
pub(super) fn read(reader: &mut Reader, kind: Kind) -> Result<Vec<Property>, Malformed> {
    let length = reader.variable()?;
    let mut part = reader.part(length)?;
    let mut list: Vec<Property> = Vec::new();
    while !part.is_empty() {
        let property = Property::read(&mut part)?;
        let again = list
            .iter()
            .any(|known| known.identifier() == property.identifier());
        let fits = property.is_valid() && property.places().contains(&kind);
        if !fits || (again && !property.may_repeat(kind)) {
            return Err(Malformed);
        }
        list.push(property);
    }
    Ok(list)
}

pub(super) fn write(list: &[Property], writer: &mut Writer) {
    let mut part = Writer::default();
    list.iter().for_each(|property| property.write(&mut part));
    writer.variable(part.length());
    writer.append(&part);
}

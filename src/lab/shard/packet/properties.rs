//! Properties of MQTT 5: which there are, of which kind, and where each may stand.

use super::read::Reader;
use super::{Flaw, MALFORMED, PROTOCOL_ERROR};
use bytes::{BufMut, Bytes, BytesMut};

/// Their identifiers.
pub mod id {
    pub const PAYLOAD_FORMAT: u8 = 0x01;
    pub const MESSAGE_EXPIRY: u8 = 0x02;
    pub const CONTENT_TYPE: u8 = 0x03;
    pub const RESPONSE_TOPIC: u8 = 0x08;
    pub const CORRELATION_DATA: u8 = 0x09;
    pub const SUBSCRIPTION_ID: u8 = 0x0b;
    pub const SESSION_EXPIRY: u8 = 0x11;
    pub const SERVER_KEEP_ALIVE: u8 = 0x13;
    pub const AUTH_METHOD: u8 = 0x15;
    pub const AUTH_DATA: u8 = 0x16;
    pub const REQUEST_PROBLEM: u8 = 0x17;
    pub const WILL_DELAY: u8 = 0x18;
    pub const REQUEST_RESPONSE: u8 = 0x19;
    pub const SERVER_REFERENCE: u8 = 0x1c;
    pub const REASON_STRING: u8 = 0x1f;
    pub const RECEIVE_MAXIMUM: u8 = 0x21;
    pub const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
    pub const TOPIC_ALIAS: u8 = 0x23;
    pub const MAXIMUM_QOS: u8 = 0x24;
    pub const USER: u8 = 0x26;
    pub const MAXIMUM_PACKET_SIZE: u8 = 0x27;
    pub const SUBSCRIPTION_IDS_AVAILABLE: u8 = 0x29;
    pub const SHARED_AVAILABLE: u8 = 0x2a;
}

/// The value of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Byte(u8),
    Two(u16),
    Four(u32),
    Length(u32),
    Text(String),
    Binary(Bytes),
    Pair(String, String),
}

/// Properties in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties(Vec<(u8, Value)>);

/// Properties that may stand in a packet from a client.
pub const CONNECT: &[u8] = &[
    id::SESSION_EXPIRY,
    id::AUTH_METHOD,
    id::AUTH_DATA,
    id::REQUEST_PROBLEM,
    id::REQUEST_RESPONSE,
    id::RECEIVE_MAXIMUM,
    id::TOPIC_ALIAS_MAXIMUM,
    id::USER,
    id::MAXIMUM_PACKET_SIZE,
];
pub const WILL: &[u8] = &[
    id::PAYLOAD_FORMAT,
    id::MESSAGE_EXPIRY,
    id::CONTENT_TYPE,
    id::RESPONSE_TOPIC,
    id::CORRELATION_DATA,
    id::WILL_DELAY,
    id::USER,
];
pub const PUBLISH: &[u8] = &[
    id::PAYLOAD_FORMAT,
    id::MESSAGE_EXPIRY,
    id::CONTENT_TYPE,
    id::RESPONSE_TOPIC,
    id::CORRELATION_DATA,
    id::TOPIC_ALIAS,
    id::USER,
];
pub const PUBACK: &[u8] = &[id::REASON_STRING, id::USER];
pub const SUBSCRIBE: &[u8] = &[id::SUBSCRIPTION_ID, id::USER];
pub const UNSUBSCRIBE: &[u8] = &[id::USER];
pub const DISCONNECT: &[u8] = &[id::SESSION_EXPIRY, id::REASON_STRING, id::USER];
pub const AUTH: &[u8] = &[id::AUTH_METHOD, id::AUTH_DATA, id::REASON_STRING, id::USER];

impl Properties {
    /// Reads a property length and so many bytes of properties, all of which must be among `allowed`.
    pub fn read(reader: &mut Reader, allowed: &[u8]) -> Result<Properties, Flaw> {
        let length = usize::try_from(reader.length()?).map_err(|_| MALFORMED)?;
        let mut inside = Reader(reader.take(length)?);
        let mut properties = Properties::default();
        while !inside.is_empty() {
            let id = inside.byte()?;
            if !allowed.contains(&id) {
                return Err(PROTOCOL_ERROR);
            }
            if id != id::USER && properties.get(id).is_some() {
                return Err(PROTOCOL_ERROR);
            }
            let value = value(&mut inside, id)?;
            let is_zero = matches!(value, Value::Two(0) | Value::Four(0) | Value::Length(0));
            let may_be_zero = !matches!(
                id,
                id::RECEIVE_MAXIMUM | id::MAXIMUM_PACKET_SIZE | id::SUBSCRIPTION_ID
            );
            let is_flag = matches!(
                id,
                id::PAYLOAD_FORMAT | id::REQUEST_PROBLEM | id::REQUEST_RESPONSE
            );
            if (is_zero && !may_be_zero) || (is_flag && matches!(value, Value::Byte(2..))) {
                return Err(PROTOCOL_ERROR);
            }
            properties.0.push((id, value));
        }
        Ok(properties)
    }

    /// Writes the property length and the properties.
    pub fn write(&self, bytes: &mut BytesMut) {
        let mut inside = BytesMut::new();
        for (id, value) in &self.0 {
            inside.put_u8(*id);
            match value {
                Value::Byte(value) => inside.put_u8(*value),
                Value::Two(value) => inside.put_u16(*value),
                Value::Four(value) => inside.put_u32(*value),
                Value::Length(value) => super::write::length(*value as usize, &mut inside),
                Value::Text(text) => super::write::binary(text.as_bytes(), &mut inside),
                Value::Binary(data) => super::write::binary(data, &mut inside),
                Value::Pair(name, value) => {
                    super::write::binary(name.as_bytes(), &mut inside);
                    super::write::binary(value.as_bytes(), &mut inside);
                }
            }
        }
        super::write::length(inside.len(), bytes);
        bytes.extend_from_slice(&inside);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a property.
    #[must_use]
    pub fn with(mut self, id: u8, value: Value) -> Properties {
        self.0.push((id, value));
        self
    }

    /// The same without this property.
    #[must_use]
    pub fn without(mut self, id: u8) -> Properties {
        self.0.retain(|(other, _)| *other != id);
        self
    }

    fn get(&self, id: u8) -> Option<&Value> {
        self.0
            .iter()
            .find(|(other, _)| *other == id)
            .map(|(_, value)| value)
    }

    /// A property that is a number.
    pub fn number(&self, id: u8) -> Option<u32> {
        match self.get(id)? {
            Value::Byte(value) => Some(u32::from(*value)),
            Value::Two(value) => Some(u32::from(*value)),
            Value::Four(value) | Value::Length(value) => Some(*value),
            _ => None,
        }
    }

    /// A property that is a text.
    pub fn text(&self, id: u8) -> Option<&str> {
        match self.get(id)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

fn value(reader: &mut Reader, id: u8) -> Result<Value, Flaw> {
    Ok(match id {
        id::PAYLOAD_FORMAT
        | id::REQUEST_PROBLEM
        | id::REQUEST_RESPONSE
        | id::MAXIMUM_QOS
        | id::SUBSCRIPTION_IDS_AVAILABLE
        | id::SHARED_AVAILABLE => Value::Byte(reader.byte()?),
        id::SERVER_KEEP_ALIVE | id::RECEIVE_MAXIMUM | id::TOPIC_ALIAS_MAXIMUM | id::TOPIC_ALIAS => {
            Value::Two(reader.two()?)
        }
        id::MESSAGE_EXPIRY | id::SESSION_EXPIRY | id::WILL_DELAY | id::MAXIMUM_PACKET_SIZE => {
            Value::Four(reader.four()?)
        }
        id::SUBSCRIPTION_ID => Value::Length(reader.length()?),
        id::CORRELATION_DATA | id::AUTH_DATA => Value::Binary(reader.binary()?),
        id::USER => Value::Pair(reader.text()?, reader.text()?),
        id::CONTENT_TYPE
        | id::RESPONSE_TOPIC
        | id::AUTH_METHOD
        | id::SERVER_REFERENCE
        | id::REASON_STRING => Value::Text(reader.text()?),
        _ => return Err(MALFORMED),
    })
}

//! A message that is about to be published: every placeholder replaced.

use super::mqtt::{Property, Publish};
use crate::plan::command::{self, Publishing};
use crate::plan::template::UnknownName;
use bytes::Bytes;

/// What is published, once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outgoing {
    pub topic: String,
    /// 0 or 1.
    pub qos: u8,
    pub payload: Vec<u8>,
    /// Only for brokers that are spoken to in MQTT 5.
    pub properties: Vec<(command::Property, String)>,
}

impl Outgoing {
    /// The message with its placeholders replaced by what `value` appends for them.
    ///
    /// # Errors
    /// If a name is unknown to `value`.
    pub fn of(
        publishing: &Publishing,
        value: &mut dyn FnMut(&str, &mut String) -> bool,
    ) -> Result<Outgoing, UnknownName> {
        let mut topic = String::new();
        publishing.topic.render_into(&mut topic, &mut *value)?;
        let mut properties = Vec::new();
        for (property, template) in &publishing.properties {
            let mut text = String::new();
            template.render_into(&mut text, &mut *value)?;
            properties.push((property.clone(), text));
        }
        Ok(Outgoing {
            topic,
            qos: publishing.qos,
            payload: publishing.payload.render(value)?,
            properties,
        })
    }

    /// The packet; `packet_id` is used with QoS 1 only.
    pub(super) fn packet(self, packet_id: impl FnOnce() -> u16) -> Publish {
        Publish {
            packet_id: (self.qos > 0).then(packet_id),
            topic: self.topic,
            payload: self.payload.into(),
            properties: self.properties.into_iter().map(property).collect(),
            ..Publish::default()
        }
    }
}

fn property((of, value): (command::Property, String)) -> Property {
    match of {
        command::Property::CorrelationData => Property::CorrelationData(Bytes::from(value)),
        command::Property::User(name) => Property::User(name, value),
    }
}

/// The value of a property of a message.
pub(super) fn find(properties: &[Property], wanted: &command::Property) -> Option<Vec<u8>> {
    properties
        .iter()
        .find_map(|property| match (property, wanted) {
            (Property::CorrelationData(data), command::Property::CorrelationData) => {
                Some(data.to_vec())
            }
            (Property::User(name, value), command::Property::User(wanted)) if name == wanted => {
                Some(value.clone().into_bytes())
            }
            _ => None,
        })
}

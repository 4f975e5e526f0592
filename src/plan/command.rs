//! Commands: how one is handed over, whose id it has, and where that id stands in what a hub receives.

use super::json_path::JsonPath;
use super::payload::{self, Payload};
use super::target::Request;
use super::template::{JsonTemplate, Template};
use super::tls::HttpTls;
use std::fmt;
use std::ops::Range;

/// How a command is handed to the target.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSpec {
    pub name: String,
    /// Row in `Target::devices`.
    pub to: usize,
    pub send: CommandSend,
    pub id: IdOwner,
    /// How its request speaks TLS, if not like all others.
    pub tls: Option<HttpTls>,
}

/// Who gives a command its id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum IdOwner {
    /// We do, the same on every attempt.
    #[default]
    Ours,
    /// The target, in its answer; this is where.
    Theirs(JsonPath),
}

/// By HTTP, or by publishing to a broker of the device.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandSend {
    Http(Request),
    Publish(Publishing),
}

/// What is published: a command, or an answer to one.
#[derive(Debug, Clone, PartialEq)]
pub struct Publishing {
    pub topic: Template,
    /// 0 or 1.
    pub qos: u8,
    pub payload: Payload,
    /// MQTT 5: what stands beside the payload.
    pub properties: Vec<(Property, Template)>,
}

/// A property of a message in MQTT 5.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Property {
    CorrelationData,
    /// A user property of this name.
    User(String),
}

/// Where the id of a command stands in what a hub receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdPlace {
    Json(JsonPath),
    /// The number of the field, from the outermost message inwards.
    Protobuf(Vec<u32>),
    Property(Property),
    /// These bytes of the payload.
    Bytes(Range<usize>),
}

impl Publishing {
    /// Every name that it needs, repeated where it repeats.
    pub fn names(&self, each: &mut dyn FnMut(&str)) {
        self.topic.names().for_each(&mut *each);
        self.payload.names(each);
        let properties = self.properties.iter();
        properties.for_each(|(_, value)| value.names().for_each(&mut *each));
    }

    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        each(&mut self.topic);
        self.payload.each_template(each);
        self.properties
            .iter_mut()
            .for_each(|(_, value)| each(value));
    }

    pub(super) fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        self.payload.each_json(each);
    }
}

impl Property {
    /// The word for it in files.
    #[must_use]
    pub fn named(name: &str) -> Property {
        match name {
            "correlation_data" => Property::CorrelationData,
            name => Property::User(name.to_owned()),
        }
    }
}

impl IdPlace {
    /// The id in a message with this payload, in whatever form it travels; `property` gives the value of a property.
    pub fn find(
        &self,
        payload: &[u8],
        property: impl FnOnce(&Property) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        match self {
            IdPlace::Json(path) => {
                let body: serde_json::Value = serde_json::from_slice(payload).ok()?;
                path.text(&body).map(String::into_bytes)
            }
            IdPlace::Protobuf(fields) => payload::protobuf_field(payload, fields),
            IdPlace::Property(wanted) => property(wanted),
            IdPlace::Bytes(place) => payload.get(place.clone()).map(<[u8]>::to_vec),
        }
    }
}

impl fmt::Display for IdPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdPlace::Json(path) => write!(out, "{path}"),
            IdPlace::Protobuf(fields) => {
                let numbers: Vec<String> = fields.iter().map(u32::to_string).collect();
                write!(out, "field {} of a protobuf message", numbers.join("."))
            }
            IdPlace::Property(Property::CorrelationData) => write!(out, "the correlation data"),
            IdPlace::Property(Property::User(name)) => write!(out, "the user property {name}"),
            IdPlace::Bytes(place) => write!(out, "bytes {} to {}", place.start, place.end),
        }
    }
}

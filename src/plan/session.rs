//! What a device asks of its MQTT session: what the broker keeps, how much it may send, what it says when the device is gone.

use super::payload::Payload;
use super::quantity::{count, duration};
use super::template::{JsonTemplate, Template};
use std::time::Duration;

/// The version of the protocol that a device speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MqttVersion {
    #[default]
    V311,
    V5,
}

/// What a device asks of its session, and what it lets the broker do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// False: the broker keeps the session over a reconnect, and unacknowledged publishes are sent again.
    pub clean_start: bool,
    /// MQTT 5: how long the broker keeps the session after the connection has ended, in whole seconds.
    pub expiry: Duration,
    /// MQTT 5: unacknowledged publishes that the broker may have under way to the hub; `None`: the standard's 65 535.
    pub receive_maximum: Option<u16>,
    /// MQTT 5: topic aliases that the broker may use.
    pub topic_alias_maximum: u16,
    /// Bytes of the largest packet that the hub takes; MQTT 5 tells it to the broker.
    pub maximum_packet_size: u32,
}

impl Session {
    /// Bytes of the largest packet that a hub takes unless the target file says otherwise.
    pub const MAXIMUM_PACKET_SIZE: u32 = 1024 * 1024;
}

impl Default for Session {
    fn default() -> Self {
        Session {
            clean_start: true,
            expiry: Duration::ZERO,
            receive_maximum: None,
            topic_alias_maximum: 0,
            maximum_packet_size: Session::MAXIMUM_PACKET_SIZE,
        }
    }
}

/// What the broker publishes for a hub whose session ends without DISCONNECT.
#[derive(Debug, Clone, PartialEq)]
pub struct Will {
    pub topic: Template,
    /// 0 or 1.
    pub qos: u8,
    pub retain: bool,
    pub body: Payload,
    /// MQTT 5: how long the broker waits with it, in whole seconds.
    pub delay: Duration,
}

/// MQTT 5 enhanced authentication: what a hub says in CONNECT, and again when it re-authenticates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    pub method: String,
    pub data: Template,
    /// What answers a challenge of the broker (AUTH 0x18).
    pub answer: Template,
}

impl Session {
    /// What it asks for, as `check` says it.
    #[must_use]
    pub fn text(&self, version: MqttVersion) -> String {
        let mut parts = vec![match version {
            MqttVersion::V311 => "MQTT 3.1.1".to_owned(),
            MqttVersion::V5 => "MQTT 5".to_owned(),
        }];
        parts.push(match (self.clean_start, version, self.expiry.is_zero()) {
            (true, _, true) => "a new session each time".to_owned(),
            (true, _, false) => format!(
                "a new session each time, kept {} after it",
                duration(self.expiry)
            ),
            (false, MqttVersion::V5, false) => {
                format!("session kept for {}", duration(self.expiry))
            }
            (false, MqttVersion::V5, true) => "session resumed, and kept for no time".to_owned(),
            (false, MqttVersion::V311, _) => "session kept".to_owned(),
        });
        if let Some(most) = self.receive_maximum {
            parts.push(format!("receive maximum {most}"));
        }
        if self.topic_alias_maximum > 0 {
            parts.push(format!("topic aliases {}", self.topic_alias_maximum));
        }
        if self.maximum_packet_size != Session::MAXIMUM_PACKET_SIZE {
            parts.push(format!(
                "packets up to {} bytes",
                count(u64::from(self.maximum_packet_size))
            ));
        }
        parts.join(", ")
    }
}

impl Will {
    /// What it says, as `check` says it.
    #[must_use]
    pub fn text(&self) -> String {
        let retain = if self.retain { ", retained" } else { "" };
        let delay = match self.delay.is_zero() {
            true => String::new(),
            false => format!(", after {}", duration(self.delay)),
        };
        format!(
            "will to {} with QoS {}{retain}{delay}",
            self.topic, self.qos
        )
    }

    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        each(&mut self.topic);
        self.body.each_template(each);
    }

    pub(super) fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        self.body.each_json(each);
    }
}

impl Authentication {
    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        each(&mut self.data);
        each(&mut self.answer);
    }
}

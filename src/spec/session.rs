//! What a device asks of its MQTT session: version, session, will, enhanced authentication.

use super::device::{qos, topic_text};
use super::fields::Fields;
use super::message;
use super::reader::At;
use super::target::Names;
use crate::plan::session::{Authentication, MqttVersion, Session, Will};
use std::time::Duration;

/// The largest number of two bytes.
const LARGEST_16: u64 = 65_535;
/// A packet that a hub must take in any case: the shortest useful ones are smaller.
const SMALLEST_PACKET: u64 = 128;
/// What a hub keeps in memory for one packet at most.
const LARGEST_PACKET: u64 = 16 * 1024 * 1024;

/// `mqtt: 5`
pub(super) fn version(fields: &mut Fields<'_>) -> MqttVersion {
    let Some(at) = fields.get("mqtt") else {
        return MqttVersion::V311;
    };
    match at.lone_word() {
        Some("3.1.1") => MqttVersion::V311,
        Some("5") => MqttVersion::V5,
        _ => {
            at.wrong(
                "unknown version of MQTT",
                "write `mqtt: 5`, or `mqtt: 3.1.1`, which is what stands without the key",
            );
            MqttVersion::V311
        }
    }
}

/// What a device says when its session begins and ends.
pub(super) struct Spoken {
    pub session: Session,
    pub will: Option<Will>,
    pub authentication: Option<Authentication>,
}

/// `session`, `will` and `auth` of a device.
pub(super) fn spoken(
    fields: &mut Fields<'_>,
    names: &Names,
    who: &[&str],
    version: MqttVersion,
) -> Spoken {
    let session = fields.get("session").and_then(|at| session(&at, version));
    Spoken {
        session: session.unwrap_or_default(),
        will: fields
            .get("will")
            .and_then(|at| will(&at, names, who, version)),
        authentication: fields
            .get("auth")
            .and_then(|at| authentication(&at, names, who, version)),
    }
}

/// `{ clean_start: false, expiry: 1h, receive_maximum: 20 }`
fn session(at: &At<'_>, version: MqttVersion) -> Option<Session> {
    let mut fields = at.fields()?;
    let clean_start = fields.get("clean_start").and_then(|at| at.truth());
    let expiry = newer(&mut fields, "expiry", version).and_then(|at| whole_seconds(&at));
    let receive_maximum = newer(&mut fields, "receive_maximum", version)
        .and_then(|at| at.count(1..=LARGEST_16))
        .and_then(|most| u16::try_from(most).ok());
    let topic_alias_maximum = newer(&mut fields, "topic_alias_maximum", version)
        .and_then(|at| at.count(0..=LARGEST_16))
        .and_then(|most| u16::try_from(most).ok());
    let maximum_packet_size = fields
        .get("maximum_packet_size")
        .and_then(|at| at.count(SMALLEST_PACKET..=LARGEST_PACKET))
        .and_then(|bytes| u32::try_from(bytes).ok());
    fields.finish(&[]);
    let usual = Session::default();
    Some(Session {
        clean_start: clean_start.unwrap_or(usual.clean_start),
        expiry: expiry.unwrap_or(usual.expiry),
        receive_maximum,
        topic_alias_maximum: topic_alias_maximum.unwrap_or(usual.topic_alias_maximum),
        maximum_packet_size: maximum_packet_size.unwrap_or(usual.maximum_packet_size),
    })
}

/// A key that MQTT 3.1.1 has no word for.
fn newer<'a>(fields: &mut Fields<'a>, key: &'static str, version: MqttVersion) -> Option<At<'a>> {
    let at = fields.get(key)?;
    if version == MqttVersion::V5 {
        return Some(at);
    }
    at.wrong_key(
        format!("MQTT 3.1.1 knows no `{key}`"),
        "add `mqtt: 5` to the device, or leave it out",
    );
    None
}

/// MQTT counts these times in whole seconds.
fn whole_seconds(at: &At<'_>) -> Option<Duration> {
    let time = at.duration()?;
    if time.subsec_micros() != 0 {
        at.wrong(
            "MQTT counts this in whole seconds",
            "write a number of seconds such as `60s`",
        );
        return None;
    }
    Some(time)
}

/// `{ topic: d/<serial>/gone, qos: 1, retain: true, text: gone, delay: 5s }`
fn will(at: &At<'_>, names: &Names, who: &[&str], version: MqttVersion) -> Option<Will> {
    let mut fields = at.fields()?;
    let topic = fields
        .need("topic")
        .and_then(|at| topic_text(&at, names, who));
    let qos = qos(&mut fields);
    let retain = fields.get("retain").and_then(|at| at.truth());
    let body = message::payload(&mut fields, names, who);
    let delay = newer(&mut fields, "delay", version).and_then(|at| whole_seconds(&at));
    fields.finish(&[]);
    Some(Will {
        topic: topic?,
        qos,
        retain: retain.unwrap_or(false),
        body: body?,
        delay: delay.unwrap_or_default(),
    })
}

/// `{ method: token, data: <secret.token>, answer: … }`
fn authentication(
    at: &At<'_>,
    names: &Names,
    who: &[&str],
    version: MqttVersion,
) -> Option<Authentication> {
    if version == MqttVersion::V311 {
        at.wrong_key(
            "MQTT 3.1.1 knows no `auth`",
            "add `mqtt: 5` to the device, or leave it out",
        );
        return None;
    }
    let mut fields = at.fields()?;
    let method = fields.need("method").and_then(|at| at.text());
    let known = names.placeholders(who);
    let data = fields.need("data").and_then(|at| at.template(&known));
    let answer = fields.get("answer").and_then(|at| at.template(&known));
    fields.finish(&[]);
    let data = data?;
    Some(Authentication {
        method: method?.to_owned(),
        answer: answer.unwrap_or_else(|| data.clone()),
        data,
    })
}

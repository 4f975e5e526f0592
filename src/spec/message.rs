//! MQTT messages as a file describes them: topic, payload, properties, and where the id of a command stands in one.

use super::device::{json_path, qos, topic_text};
use super::fields::Fields;
use super::reader::At;
use super::target::Names;
use super::words::Placeholders;
use crate::plan::command::{IdPlace, Property, Publishing};
use crate::plan::payload::{Field, Message, Payload, Piece};
use crate::plan::session::MqttVersion;
use crate::plan::template::{JsonTemplate, Part, Template};

/// The 16 bytes of a command's UUID; only where a payload can hold bytes.
const COMMAND_BYTES: &str = "command.bytes";
/// Numbers of fields that protobuf allows (protobuf.dev, "Assigning Field Numbers").
const LARGEST_FIELD: u32 = 536_870_911;
const RESERVED_FIELDS: std::ops::RangeInclusive<u32> = 19_000..=19_999;
/// As much of a payload as is searched for an id.
const LONGEST_PLACE: usize = 1024 * 1024;

/// `topic: …, qos: 1, json: …, property: { … }`; `key` is that of the topic. `agent` are the placeholders of who publishes.
pub(super) fn publishing(
    fields: &mut Fields<'_>,
    topic: Option<At<'_>>,
    names: &Names,
    agent: &[&str],
    version: Option<MqttVersion>,
) -> Option<Publishing> {
    let topic = topic.and_then(|at| topic_text(&at, names, agent));
    let qos = qos(fields);
    let payload = payload(fields, names, agent);
    let properties = fields
        .get("property")
        .map(|at| properties(&at, &names.placeholders(agent), version));
    Some(Publishing {
        topic: topic?,
        qos,
        payload: payload?,
        properties: properties.unwrap_or_default(),
    })
}

/// `json`, `text`, `protobuf` or `bytes`.
pub(super) fn payload(fields: &mut Fields<'_>, names: &Names, agent: &[&str]) -> Option<Payload> {
    let known = names.placeholders(agent);
    let mut with_bytes = known.clone();
    if agent.contains(&"command") {
        with_bytes.agent.push(COMMAND_BYTES.to_owned());
    }
    let (form, at) = fields.one_of(&["json", "text", "protobuf", "bytes"])?;
    match form {
        "json" => at.json(&known).map(Payload::Json),
        "text" => at.template(&known).map(Payload::Text),
        "protobuf" => message(&at, &at.json(&with_bytes)?).map(Payload::Protobuf),
        _ => pieces(&at, &at.template(&with_bytes)?).map(Payload::Bytes),
    }
}

/// `{ 1: <command>, 2: true, 3: { 1: 17 }, 4: [ a, b ] }`
fn message(at: &At<'_>, json: &JsonTemplate) -> Option<Message> {
    let JsonTemplate::Map(entries) = json else {
        at.wrong(
            "a protobuf message is a map of numbers of fields",
            "write `{ 1: <command>, 2: true }`",
        );
        return None;
    };
    let mut fields = Vec::new();
    for (key, value) in entries {
        let at = at.find(&[key]);
        let number = field_number(&at, key)?;
        match value {
            JsonTemplate::List(items) => {
                for item in items {
                    fields.push((number, field(&at, item)?));
                }
            }
            one => fields.push((number, field(&at, one)?)),
        }
    }
    Some(Message(fields))
}

fn field_number(at: &At<'_>, text: &str) -> Option<u32> {
    let number = text.parse().ok();
    let number = number
        .filter(|number| (1..=LARGEST_FIELD).contains(number) && !RESERVED_FIELDS.contains(number));
    if number.is_none() {
        at.wrong_key(
            format!("`{text}` is no number of a protobuf field"),
            format!("write one from 1 to {LARGEST_FIELD}, and none from 19000 to 19999"),
        );
    }
    number
}

fn field(at: &At<'_>, value: &JsonTemplate) -> Option<Field> {
    match value {
        JsonTemplate::Map(_) => message(at, value).map(Field::Message),
        JsonTemplate::Text(text) => match text.parts().collect::<Vec<_>>()[..] {
            [Part::Name(COMMAND_BYTES)] => Some(Field::CommandBytes),
            _ if text.names().any(|name| name == COMMAND_BYTES) => {
                at.wrong(
                    "the bytes of an id can't stand within a text",
                    "give them a field of their own, or write <command>",
                );
                None
            }
            _ => Some(Field::Text(text.clone())),
        },
        JsonTemplate::Plain(serde_json::Value::Bool(truth)) => {
            Some(Field::Whole(i64::from(*truth)))
        }
        JsonTemplate::Plain(serde_json::Value::Number(number)) => match number.as_i64() {
            Some(whole) => Some(Field::Whole(whole)),
            None => number.as_f64().map(Field::Double),
        },
        JsonTemplate::Plain(_) | JsonTemplate::List(_) => {
            at.wrong(
                "a protobuf field holds a text, a number, a truth or a message",
                "write one of them, or a list of them for a repeated field",
            );
            None
        }
    }
}

/// `<command.bytes> 01 ff <serial>`: pairs of hexadecimal digits, and placeholders.
fn pieces(at: &At<'_>, text: &Template) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    for part in text.parts() {
        match part {
            Part::Name(COMMAND_BYTES) => pieces.push(Piece::CommandBytes),
            Part::Name(name) => pieces.push(Piece::Text(Template::placeholder(name))),
            Part::Text(digits) => {
                let digits: String = digits.split_whitespace().collect();
                let Some(raw) = hex(&digits) else {
                    at.wrong(
                        format!("`{digits}` is not made of pairs of hexadecimal digits"),
                        "write `<command.bytes> 01 ff`",
                    );
                    return None;
                };
                pieces.push(Piece::Raw(raw));
            }
        }
    }
    Some(pieces)
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_hex && digits.len().is_multiple_of(2)).then_some(())?;
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

/// `{ correlation_data: <command>, source: app }`
fn properties(
    at: &At<'_>,
    known: &Placeholders<'_>,
    version: Option<MqttVersion>,
) -> Vec<(Property, Template)> {
    needs_version_5(at, version);
    let entries = at.entries().unwrap_or_default();
    entries
        .iter()
        .filter_map(|(name, at)| Some((Property::named(name), at.template(known)?)))
        .collect()
}

fn needs_version_5(at: &At<'_>, version: Option<MqttVersion>) {
    if version == Some(MqttVersion::V311) {
        at.wrong_key(
            "messages of MQTT 3.1.1 have no properties",
            "add `mqtt: 5` to the device, or put the id into the payload",
        );
    }
}

/// `{ json: $.id }`, `{ protobuf: 1 }`, `{ property: correlation_data }` or `{ bytes: 0 to 16 }`
pub(super) fn id_place(at: &At<'_>, version: MqttVersion) -> Option<IdPlace> {
    let mut fields = at.fields()?;
    let place = fields.one_of(&["json", "protobuf", "property", "bytes"]);
    let place = place.and_then(|(form, at)| match form {
        "json" => json_path(&at).map(IdPlace::Json),
        "protobuf" => protobuf_place(&at).map(IdPlace::Protobuf),
        "property" => {
            needs_version_5(&at, Some(version));
            at.text().map(Property::named).map(IdPlace::Property)
        }
        _ => bytes_place(&at),
    });
    fields.finish(&[]);
    place
}

/// `1`, or `2.1` for field 1 of the message in field 2.
fn protobuf_place(at: &At<'_>) -> Option<Vec<u32>> {
    let text = at.lone_word().unwrap_or_default();
    text.split('.')
        .map(|number| {
            let number = number.parse().ok();
            number.filter(|number| (1..=LARGEST_FIELD).contains(number))
        })
        .collect::<Option<Vec<u32>>>()
        .or_else(|| {
            at.wrong(
                "not the number of a protobuf field",
                "write `1`, or `2.1` for field 1 of the message in field 2",
            );
            None
        })
}

/// `0 to 16`: from the first byte to the one behind the last.
fn bytes_place(at: &At<'_>) -> Option<IdPlace> {
    let text = at.text()?;
    let place = text.split_once(" to ").and_then(|(from, to)| {
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from < to && to <= LONGEST_PLACE).then_some(from..to)
    });
    if place.is_none() {
        at.wrong(
            format!("`{text}` is no place in a payload"),
            "write the first byte and the one behind the last: `0 to 16` for the first sixteen",
        );
    }
    place.map(IdPlace::Bytes)
}

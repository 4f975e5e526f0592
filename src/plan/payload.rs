//! What an MQTT message carries: JSON, a text, a protobuf message, or plain bytes.
//!
//! Protobuf is written and read by field numbers alone, without a schema (encoding: protobuf.dev, "Encoding").

use super::template::{JsonTemplate, Template, UnknownName};
use crate::event::uuid_bytes;

/// The payload of a message, with its placeholders.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    Json(JsonTemplate),
    Text(Template),
    Protobuf(Message),
    Bytes(Vec<Piece>),
}

/// A protobuf message: fields in the order in which they are written, by their numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Message(pub Vec<(u32, Field)>);

/// The value of a field of a protobuf message.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// A string, or bytes.
    Text(Template),
    /// `int32`, `int64`, `uint64`, `bool`.
    Whole(i64),
    /// `double`.
    Double(f64),
    Message(Message),
    /// The 16 bytes of the command's UUID.
    CommandBytes,
}

/// A part of a payload of plain bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Raw(Vec<u8>),
    Text(Template),
    /// The 16 bytes of the command's UUID.
    CommandBytes,
}

/// The placeholder whose bytes [`Field::CommandBytes`] and [`Piece::CommandBytes`] are.
const UUID: &str = "command.uuid";

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// What appends the value of a name, and answers whether it knew it.
type Value<'a> = &'a mut dyn FnMut(&str, &mut String) -> bool;

impl Payload {
    /// The bytes with every placeholder replaced by what `value` appends for it.
    ///
    /// # Errors
    /// If a name is unknown to `value`.
    pub fn render(&self, value: Value<'_>) -> Result<Vec<u8>, UnknownName> {
        match self {
            Payload::Json(json) => Ok(json.render(value)?.to_string().into_bytes()),
            Payload::Text(text) => rendered(text, value),
            Payload::Protobuf(message) => message.render(value),
            Payload::Bytes(pieces) => {
                let mut bytes = Vec::new();
                for piece in pieces {
                    match piece {
                        Piece::Raw(raw) => bytes.extend(raw),
                        Piece::Text(text) => bytes.extend(rendered(text, value)?),
                        Piece::CommandBytes => bytes.extend(command_bytes(value)?),
                    }
                }
                Ok(bytes)
            }
        }
    }

    /// Every name that it needs.
    pub fn names(&self, each: &mut dyn FnMut(&str)) {
        match self {
            Payload::Json(json) => json.names(each),
            Payload::Text(text) => text.names().for_each(each),
            Payload::Protobuf(message) => message.names(each),
            Payload::Bytes(pieces) => pieces.iter().for_each(|piece| match piece {
                Piece::Raw(_) => {}
                Piece::Text(text) => text.names().for_each(&mut *each),
                Piece::CommandBytes => each(UUID),
            }),
        }
    }

    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        match self {
            Payload::Json(_) => {}
            Payload::Text(text) => each(text),
            Payload::Protobuf(message) => message.each_template(each),
            Payload::Bytes(pieces) => pieces.iter_mut().for_each(|piece| {
                if let Piece::Text(text) = piece {
                    each(text);
                }
            }),
        }
    }

    pub(super) fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        if let Payload::Json(json) = self {
            each(json);
        }
    }
}

impl Message {
    fn render(&self, value: Value<'_>) -> Result<Vec<u8>, UnknownName> {
        let mut bytes = Vec::new();
        for (number, field) in &self.0 {
            let key = |kind: u64| (u64::from(*number) << 3) | kind;
            let inside = match field {
                Field::Whole(whole) => {
                    write_varint(key(VARINT), &mut bytes);
                    // A negative number is written as its two's complement.
                    write_varint(u64::from_ne_bytes(whole.to_ne_bytes()), &mut bytes);
                    continue;
                }
                Field::Double(number) => {
                    write_varint(key(FIXED_64), &mut bytes);
                    bytes.extend(number.to_le_bytes());
                    continue;
                }
                Field::Text(text) => rendered(text, value)?,
                Field::Message(message) => message.render(value)?,
                Field::CommandBytes => command_bytes(value)?,
            };
            write_varint(key(LENGTH_DELIMITED), &mut bytes);
            write_varint(inside.len() as u64, &mut bytes);
            bytes.extend(inside);
        }
        Ok(bytes)
    }

    fn names(&self, each: &mut dyn FnMut(&str)) {
        for (_, field) in &self.0 {
            match field {
                Field::Text(text) => text.names().for_each(&mut *each),
                Field::Message(message) => message.names(each),
                Field::CommandBytes => each(UUID),
                Field::Whole(_) | Field::Double(_) => {}
            }
        }
    }

    fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        for (_, field) in &mut self.0 {
            match field {
                Field::Text(text) => each(text),
                Field::Message(message) => message.each_template(each),
                Field::Whole(_) | Field::Double(_) | Field::CommandBytes => {}
            }
        }
    }
}

fn rendered(text: &Template, value: Value<'_>) -> Result<Vec<u8>, UnknownName> {
    let mut out = String::new();
    text.render_into(&mut out, value)?;
    Ok(out.into_bytes())
}

/// The bytes of the command's UUID, or of its text where the target gave it an id that is none.
fn command_bytes(value: Value<'_>) -> Result<Vec<u8>, UnknownName> {
    let mut text = String::new();
    if !value(UUID, &mut text) {
        return Err(UnknownName(UUID.to_owned()));
    }
    Ok(uuid_bytes(&text).map_or_else(|| text.into_bytes(), |uuid| uuid.to_vec()))
}

/// The bytes or the digits of a field, the last one of its number as readers of protobuf have it; `None` if it is not there or the
/// message is broken.
pub(super) fn protobuf_field(message: &[u8], path: &[u32]) -> Option<Vec<u8>> {
    let (wanted, deeper) = path.split_first()?;
    let mut rest = message;
    let mut found = None;
    while !rest.is_empty() {
        let key = read_varint(&mut rest)?;
        let value = match key & 7 {
            VARINT => read_varint(&mut rest)?.to_string().into_bytes(),
            FIXED_64 => {
                let value = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
                value.to_string().into_bytes()
            }
            FIXED_32 => {
                let value = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
                value.to_string().into_bytes()
            }
            LENGTH_DELIMITED => {
                let length = usize::try_from(read_varint(&mut rest)?).ok()?;
                take(&mut rest, length)?.to_vec()
            }
            _ => return None,
        };
        if key >> 3 == u64::from(*wanted) {
            found = Some(value);
        }
    }
    match deeper {
        [] => found,
        deeper => protobuf_field(&found?, deeper),
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn write_varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// At most ten bytes, and no more than 64 bits.
fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(rest, 1)?.first()?;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Field, Message, Payload, Piece, protobuf_field};
    use crate::plan::template::Template;

    fn text(text: &str) -> Field {
        Field::Text(Template::parse(text).unwrap())
    }

    fn value(name: &str, out: &mut String) -> bool {
        match name {
            "command" => out.push_str("id-1"),
            "command.uuid" => out.push_str("00010203-0405-8607-8809-0a0b0c0d0e0f"),
            _ => return false,
        }
        true
    }

    /// The examples of protobuf.dev's "Encoding": `150` as field 1, "testing" as field 2, a message with 150 in it as field 3.
    #[test]
    fn protobuf_is_written_as_its_makers_show() {
        let payload = Payload::Protobuf(Message(vec![
            (1, Field::Whole(150)),
            (2, text("testing")),
            (3, Field::Message(Message(vec![(1, Field::Whole(150))]))),
            (4, Field::Whole(-2)),
        ]));
        let bytes = payload.render(&mut value).unwrap();
        let wanted = b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x20\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(bytes, wanted);
        for (path, found) in [(&[1][..], "150"), (&[2], "testing"), (&[3, 1], "150")] {
            assert_eq!(protobuf_field(&bytes, path), Some(found.into()), "{path:?}");
        }
        assert_eq!(protobuf_field(&bytes, &[9]), None);
    }

    #[test]
    fn the_last_field_of_a_number_counts_and_a_broken_message_has_none() {
        assert_eq!(
            protobuf_field(b"\x0a\x01a\x0a\x01b", &[1]),
            Some(b"b".into())
        );
        let broken: [&[u8]; 6] = [
            b"\x0a\x05ab",
            b"\x0a",
            b"\x0b",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0d\x00\x00",
        ];
        for message in broken {
            assert_eq!(protobuf_field(message, &[1]), None, "{message:?}");
        }
    }

    #[test]
    fn plain_bytes_hold_the_id_in_either_form() {
        let command = Template::parse("<command>").unwrap();
        let pieces = vec![
            Piece::Raw(vec![0xff]),
            Piece::CommandBytes,
            Piece::Text(command),
        ];
        let bytes = Payload::Bytes(pieces).render(&mut value).unwrap();
        let wanted = b"\xff\x00\x01\x02\x03\x04\x05\x86\x07\x88\x09\x0a\x0b\x0c\x0d\x0e\x0fid-1";
        assert_eq!(bytes, wanted);
    }
}

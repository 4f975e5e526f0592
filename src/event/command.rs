//! Commands and the ids under which they travel.

use serde::{Deserialize, Serialize};

/// One intended device action: the issuer group and the number of its arrival (from 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandId {
    pub issuer: u16,
    pub number: u64,
}

/// One of the ids under which a command travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandName {
    pub command: CommandId,
    /// 0, unless every attempt has an id of its own: then how many there were before it.
    pub copy: u8,
}

/// Version and variant of a UUID of one's own making (RFC 9562, section 5.8).
const VERSION: u8 = 0x80;
const VARIANT: u8 = 0x80;

/// The issuer of what the target has given an id of its own, as long as nobody has said which command that is.
const GIVEN: u16 = u16::MAX;

impl CommandId {
    /// Stands for the command with the `number`th id that the target has given.
    #[must_use]
    pub fn given(number: u64) -> CommandId {
        let issuer = GIVEN;
        CommandId { issuer, number }
    }

    /// Whether it is one of [`CommandId::given`], which no ledger may see.
    #[must_use]
    pub fn is_given(self) -> bool {
        self.issuer == GIVEN
    }

    /// The id as it travels: the run's tag keeps two runs against one broker apart.
    #[must_use]
    pub fn wire(self, run_tag: &str) -> String {
        CommandName::from(self).wire(run_tag)
    }

    /// Reads [`CommandId::wire`] back; `None` if it is of another run or of nobody.
    #[must_use]
    pub fn from_wire(text: &str, run_tag: &str) -> Option<CommandId> {
        Some(CommandName::from_wire(text, run_tag)?.command)
    }
}

impl From<CommandId> for CommandName {
    fn from(command: CommandId) -> CommandName {
        CommandName { command, copy: 0 }
    }
}

impl CommandName {
    /// Appends what `<command>` and `<command.uuid>` stand for; false if `word` is neither.
    pub fn value(self, word: &str, run_tag: &str, out: &mut String) -> bool {
        match word {
            "command" => out.push_str(&self.wire(run_tag)),
            "command.uuid" => out.push_str(&uuid_text(self.uuid(run_tag))),
            _ => return false,
        }
        true
    }

    /// Reads any form back in which it travels: the text, the UUID as text, its 16 bytes. `None` if it is of another run or of nobody.
    #[must_use]
    pub fn read(bytes: &[u8], run_tag: &str) -> Option<CommandName> {
        let text = std::str::from_utf8(bytes).ok().map(plain);
        if let Some(name) = text.and_then(|text| CommandName::from_wire(text, run_tag)) {
            return Some(name);
        }
        let uuid = match text.and_then(uuid_bytes) {
            Some(uuid) => uuid,
            None => bytes.try_into().ok()?,
        };
        CommandName::from_uuid(uuid, run_tag)
    }

    fn wire(self, run_tag: &str) -> String {
        let CommandId { issuer, number } = self.command;
        match self.copy {
            0 => format!("{run_tag}-{issuer}-{number}"),
            copy => format!("{run_tag}-{issuer}-{number}-{copy}"),
        }
    }

    fn from_wire(text: &str, run_tag: &str) -> Option<CommandName> {
        let rest = text.strip_prefix(run_tag)?.strip_prefix('-')?;
        let mut parts = rest.split('-');
        let command = CommandId {
            issuer: parts.next()?.parse().ok()?,
            number: parts.next()?.parse().ok()?,
        };
        let copy = match parts.next() {
            None => 0,
            Some(copy) => copy.parse().ok().filter(|copy| *copy > 0)?,
        };
        parts
            .next()
            .is_none()
            .then_some(CommandName { command, copy })
    }

    /// The run's tag (48 bits of its hash), the copy, the issuer, 40 bits of the number: a million commands a second for twelve days.
    fn uuid(self, run_tag: &str) -> [u8; 16] {
        let mut uuid = [0; 16];
        uuid[..6].copy_from_slice(&tag_bits(run_tag));
        uuid[6] = VERSION;
        uuid[7] = self.copy;
        uuid[8] = VARIANT;
        uuid[9..11].copy_from_slice(&self.command.issuer.to_be_bytes());
        uuid[11..].copy_from_slice(&self.command.number.to_be_bytes()[3..]);
        uuid
    }

    fn from_uuid(uuid: [u8; 16], run_tag: &str) -> Option<CommandName> {
        let mut number = [0; 8];
        number[3..].copy_from_slice(&uuid[11..]);
        let name = CommandName {
            command: CommandId {
                issuer: u16::from_be_bytes([uuid[9], uuid[10]]),
                number: u64::from_be_bytes(number),
            },
            copy: uuid[7],
        };
        (name.uuid(run_tag) == uuid).then_some(name)
    }
}

/// An id that the target has given, as a text: the bytes of a UUID are told as one. `None` for other bytes that are no text.
#[must_use]
pub fn id_text(bytes: &[u8]) -> Option<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(plain(text).to_owned()),
        Err(_) => bytes.try_into().ok().map(uuid_text),
    }
}

/// The same for every way in which a UUID may be written.
#[must_use]
pub fn id_key(text: &str) -> String {
    uuid_bytes(text).map_or_else(|| text.to_owned(), uuid_text)
}

/// Texts in fields of a fixed length are filled up behind their end.
fn plain(text: &str) -> &str {
    text.trim_end_matches('\0').trim()
}

fn tag_bits(run_tag: &str) -> [u8; 6] {
    // FNV-1a, 64 bits.
    let hash = run_tag
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    let bytes = hash.to_be_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let hex = u128::from_be_bytes(uuid);
    let text = format!("{hex:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..]
    )
}

/// The bytes of a UUID in its usual form, or without hyphens; `None` for any other text.
#[must_use]
pub fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let is_grouped = text.len() == 36
        && [8, 13, 18, 23]
            .iter()
            .all(|place| text.as_bytes()[*place] == b'-');
    let hex: String = match is_grouped {
        true => text.replace('-', ""),
        false => text.to_owned(),
    };
    let is_hex = hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(&hex, 16).ok())??;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::{CommandId, CommandName, uuid_bytes};

    const TAG: &str = "qwerty";

    fn name(issuer: u16, number: u64, copy: u8) -> CommandName {
        let command = CommandId { issuer, number };
        CommandName { command, copy }
    }

    #[test]
    fn every_form_is_read_back_and_only_by_its_own_run() {
        for name in [
            name(0, 1, 0),
            name(7, (1 << 40) - 1, 3),
            name(u16::MAX - 1, 99, 255),
        ] {
            for word in ["command", "command.uuid"] {
                let mut text = String::new();
                assert!(name.value(word, TAG, &mut text));
                assert_eq!(
                    CommandName::read(text.as_bytes(), TAG),
                    Some(name),
                    "{text}"
                );
                assert_eq!(CommandName::read(text.as_bytes(), "others"), None, "{text}");
                let padded = format!("{text}\0\0\0");
                assert_eq!(CommandName::read(padded.as_bytes(), TAG), Some(name));
            }
            let mut uuid = String::new();
            name.value("command.uuid", TAG, &mut uuid);
            let bytes = uuid_bytes(&uuid).unwrap();
            assert_eq!(CommandName::read(&bytes, TAG), Some(name));
            assert_eq!(
                (bytes[6] >> 4, bytes[8] >> 6),
                (8, 0b10),
                "a UUID of version 8"
            );
        }
    }

    #[test]
    fn what_looks_like_an_id_and_is_none_is_nobodys() {
        for text in [
            "",
            "qwerty",
            "qwerty-1",
            "qwerty-1-2-0",
            "qwerty-1-2-3-4",
            "qwerty-x-2",
            "0123456789abcdef",
        ] {
            assert_eq!(CommandName::read(text.as_bytes(), TAG), None, "{text}");
        }
        assert_eq!(uuid_bytes("0000000000000-000000-000000000-00000"), None);
        assert_eq!(uuid_bytes("+0000000000000000000000000000000"), None);
    }
}

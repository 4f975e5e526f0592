//! MQTT as far as the proxy reads it: whether a client speaks it, where its packets begin, and the few bytes that the proxy says itself.
//!
//! Pure, and nothing is copied: a look at the bytes that pass, a few bytes of memory for each connection.

/// Protocol level of MQTT 5 (MQTT 5, §3.1.2.2).
pub const MQTT_5: u8 = 5;
/// Types of packets, the upper half of their first byte (MQTT 5, §2.1.2).
pub const CONNECT: u8 = 1;
pub const CONNACK: u8 = 2;
pub const PUBACK: u8 = 4;
pub const UNSUBACK: u8 = 11;
pub const PINGRESP: u8 = 13;
pub const DISCONNECT: u8 = 14;

/// The first byte of a CONNECT; its lower half is reserved and zero.
const CONNECT_BYTE: u8 = CONNECT << 4;
/// The protocol's name with its length (MQTT 3.1.1 and 5, §3.1.2.1).
const NAME: &[u8] = b"\x00\x04MQTT";
/// A remaining length takes at most so many bytes (MQTT 5, §1.5.5).
const LENGTH_BYTES: usize = 4;
/// Fixed header, name, level, flags, keep-alive and the length of the client id.
const SHORTEST_CONNECT: usize = 14;
/// What tells a CONNECT: its first byte, its length, the name and the level.
const GREETING_BYTES: usize = 1 + LENGTH_BYTES + NAME.len() + 1;

/// What a connection speaks, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    Unknown,
    /// MQTT of this protocol level: 4 is 3.1.1, 5 is 5.
    Mqtt(u8),
    /// Something else, or MQTT that can't be read, as within TLS.
    Other,
}

/// The first bytes of a client, however they are cut.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Greeting {
    seen: [u8; GREETING_BYTES],
    count: u8,
}

impl Greeting {
    /// What the client speaks, with these bytes more.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Speech {
        let count = usize::from(self.count);
        let room = self.seen.get_mut(count..).unwrap_or_default();
        let taken = room.len().min(bytes.len());
        room[..taken].copy_from_slice(&bytes[..taken]);
        // At most `GREETING_BYTES`.
        self.count += taken as u8;
        speech(&self.seen[..count + taken])
    }
}

fn speech(seen: &[u8]) -> Speech {
    let Some((first, rest)) = seen.split_first() else {
        return Speech::Unknown;
    };
    if *first != CONNECT_BYTE {
        return Speech::Other;
    }
    let mut frames = Frames::default();
    let run = frames.next(seen);
    match frames.place {
        Place::Length { .. } => return Speech::Unknown,
        Place::Body { left, .. } if left as usize + run.bytes < SHORTEST_CONNECT => {
            return Speech::Other;
        }
        Place::Start | Place::Lost => return Speech::Other,
        Place::Body { .. } => {}
    }
    let length = rest.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
    let name = rest.get(length..).unwrap_or_default();
    let known = name.len().min(NAME.len());
    if name[..known] != NAME[..known] {
        return Speech::Other;
    }
    match name.get(NAME.len()) {
        None => Speech::Unknown,
        Some(level @ (4 | 5)) => Speech::Mqtt(*level),
        Some(_) => Speech::Other,
    }
}

/// Where one way of a connection stands between two packets or within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    place: Place,
    /// A CONNACK has passed.
    greeted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Length {
        kind: u8,
        read: u32,
        digits: u8,
    },
    Body {
        kind: u8,
        left: u32,
    },
    /// A length was none: nobody knows where packets begin any more.
    Lost,
}

/// The bytes of one packet that stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub bytes: usize,
    /// The type of the packet; 0 where nobody knows.
    pub kind: u8,
    /// The packet begins with these bytes.
    pub begins: bool,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            place: Place::Start,
            greeted: false,
        }
    }
}

impl Frames {
    /// Passes over the bytes of `bytes` that belong to the packet at their front: to its end, or all of them.
    pub fn next(&mut self, bytes: &[u8]) -> Run {
        let begins = self.place == Place::Start;
        let mut passed = 0;
        let mut kind = 0;
        while let Some(byte) = bytes.get(passed) {
            match self.place {
                Place::Start => {
                    kind = byte >> 4;
                    self.place = Place::Length {
                        kind,
                        read: 0,
                        digits: 0,
                    };
                    passed += 1;
                }
                Place::Length {
                    kind: of,
                    read,
                    digits,
                } => {
                    kind = of;
                    passed += 1;
                    self.length(
                        of,
                        read | u32::from(byte & 0x7f) << (7 * digits),
                        digits + 1,
                        *byte,
                    );
                }
                Place::Body { kind: of, left } => {
                    kind = of;
                    let there = bytes.len() - passed;
                    let taken = there.min(left as usize);
                    passed += taken;
                    // At most what was left.
                    self.body(of, left - taken as u32);
                }
                Place::Lost => {
                    kind = 0;
                    passed = bytes.len();
                }
            }
            if self.place == Place::Start {
                break;
            }
        }
        Run {
            bytes: passed,
            kind,
            begins,
        }
    }

    fn length(&mut self, kind: u8, read: u32, digits: u8, byte: u8) {
        self.place = match (byte & 0x80 != 0, usize::from(digits)) {
            (true, LENGTH_BYTES..) => Place::Lost,
            (true, _) => Place::Length { kind, read, digits },
            (false, _) => return self.body(kind, read),
        };
    }

    fn body(&mut self, kind: u8, left: u32) {
        self.place = match left {
            0 => Place::Start,
            left => Place::Body { kind, left },
        };
        self.greeted |= left == 0 && kind == CONNACK;
    }

    /// Passes over all of these bytes.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let run = self.next(bytes);
            bytes = &bytes[run.bytes..];
        }
    }

    /// Whether the next byte begins a packet.
    #[must_use]
    pub fn at_start(&self) -> bool {
        self.place == Place::Start
    }

    /// Whether a CONNACK has passed.
    #[must_use]
    pub fn greeted(&self) -> bool {
        self.greeted
    }
}

/// The type of the packet that begins with this byte.
pub(super) fn kind(first: u8) -> u8 {
    first >> 4
}

/// A DISCONNECT of MQTT 5 with a reason code and no properties (MQTT 5, §3.14).
pub(super) fn disconnect(reason: u8) -> [u8; 4] {
    [DISCONNECT << 4, 2, reason, 0]
}

#[cfg(test)]
mod tests {
    use super::{Frames, Greeting, Run, Speech, disconnect};

    const CONNECT_5: &[u8] = b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00";

    fn read(bytes: &[u8]) -> Speech {
        Greeting::default().read(bytes)
    }

    #[test]
    fn knows_a_connect_by_its_first_bytes_however_they_are_cut() {
        let older = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00";
        assert_eq!(read(older), Speech::Mqtt(4));
        assert_eq!(read(CONNECT_5), Speech::Mqtt(5));
        // A remaining length of two bytes.
        assert_eq!(read(b"\x10\x80\x01\x00\x04MQTT\x05"), Speech::Mqtt(5));
        let mut greeting = Greeting::default();
        for byte in &CONNECT_5[..8] {
            assert_eq!(greeting.read(&[*byte]), Speech::Unknown);
        }
        assert_eq!(greeting.read(&CONNECT_5[8..]), Speech::Mqtt(5));
        for other in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"\x16\x03\x01\x02\x00\x01\x00",
            b"\x10\x0c\x00\x06MQIsdp\x03",
            b"\x10\x02\x00\x04",
            b"\x10\xff\xff\xff\xff\x01",
            b"\x10\x0d\x00\x04MQTT\x09",
        ] {
            assert_eq!(read(other), Speech::Other, "{other:?}");
        }
        assert_eq!(disconnect(0x8b), [0xe0, 2, 0x8b, 0]);
    }

    #[test]
    fn finds_every_packet_whatever_pieces_it_comes_in() {
        let mut stream = vec![0x20, 2, 0, 0];
        stream.extend([0x30, 0x80, 0x01]);
        stream.extend(vec![0xd0; 128]);
        stream.extend([0xd0, 0, 0xe0, 1, 0x8e]);
        for piece in 1..=stream.len() {
            let mut frames = Frames::default();
            let mut begun = Vec::new();
            for mut bytes in stream.chunks(piece) {
                while !bytes.is_empty() {
                    let run = frames.next(bytes);
                    begun.extend(run.begins.then_some(run.kind));
                    bytes = &bytes[run.bytes..];
                }
            }
            assert_eq!(begun, [2, 3, 13, 14], "pieces of {piece}");
            assert!(frames.at_start() && frames.greeted());
        }
        let mut lost = Frames::default();
        lost.pass(b"\x30\xff\xff\xff\xff\x01");
        let rest = lost.next(b"\xd0\x00");
        assert_eq!(
            rest,
            Run {
                bytes: 2,
                kind: 0,
                begins: false
            }
        );
    }
}

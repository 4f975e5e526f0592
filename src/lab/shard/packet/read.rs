//! Packets from clients, read strictly: a packet that is whole and doesn't add up is malformed, never "not there yet".

use super::properties::{self, Properties, id};
use super::{
    Connect, Flaw, Incoming, MALFORMED, PROTOCOL_ERROR, Publish, Version, Will, Wish, reason,
};
use bytes::{Buf, Bytes, BytesMut};

/// Takes the next whole packet out of the bytes: its first byte and what comes after the length.
///
/// # Errors
/// If the length can't be read, or says more than `most` bytes for the whole packet.
pub fn frame(unread: &mut BytesMut, most: usize) -> Result<Option<(u8, Bytes)>, Flaw> {
    let Some(&first) = unread.first() else {
        return Ok(None);
    };
    let (mut length, mut digits) = (0, 0);
    loop {
        let Some(&byte) = unread.get(1 + digits) else {
            return Ok(None);
        };
        length |= usize::from(byte & 0x7f) << (7 * digits);
        digits += 1;
        if byte < 0x80 {
            if byte == 0 && digits > 1 {
                return Err(MALFORMED);
            }
            break;
        }
        if digits == 4 {
            return Err(MALFORMED);
        }
    }
    if 1 + digits + length > most {
        return Err(Flaw(reason::TOO_LARGE));
    }
    if unread.len() < 1 + digits + length {
        return Ok(None);
    }
    unread.advance(1 + digits);
    // Copied: a payload that is kept must not hold on to the whole of the buffer.
    let body = Bytes::copy_from_slice(&unread[..length]);
    unread.advance(length);
    Ok(Some((first, body)))
}

/// Reads a packet; `version` is that of the connection, which a CONNECT does not look at.
///
/// # Errors
/// If it is malformed or no packet that a client may send.
pub fn incoming(first: u8, body: Bytes, version: Version) -> Result<Incoming, Flaw> {
    let mut reader = Reader(body);
    let (kind, flags) = (first >> 4, first & 0x0f);
    let expected_flags = match kind {
        3 => flags,
        8 | 10 => 0x02,
        _ => 0,
    };
    if flags != expected_flags {
        return Err(MALFORMED);
    }
    let packet = match kind {
        1 => return connect(reader),
        3 => publish(flags, &mut reader, version)?,
        4 => puback(&mut reader, version)?,
        8 => subscribe(&mut reader, version)?,
        10 => unsubscribe(&mut reader, version)?,
        12 => Incoming::PingReq,
        14 if version == Version::V4 => Incoming::Disconnect {
            reason: reason::SUCCESS,
            properties: Properties::default(),
        },
        14 => {
            let (reason, properties) = ending(&mut reader, properties::DISCONNECT)?;
            Incoming::Disconnect { reason, properties }
        }
        15 if version == Version::V5 => {
            let (reason, properties) = ending(&mut reader, properties::AUTH)?;
            Incoming::Auth { reason, properties }
        }
        _ => return Err(PROTOCOL_ERROR),
    };
    if reader.is_empty() {
        Ok(packet)
    } else {
        Err(MALFORMED)
    }
}

fn connect(mut reader: Reader) -> Result<Incoming, Flaw> {
    if reader.text()? != "MQTT" {
        return Ok(Incoming::OtherLevel);
    }
    let version = match reader.byte()? {
        4 => Version::V4,
        5 => Version::V5,
        _ => return Ok(Incoming::OtherLevel),
    };
    let flags = reader.byte()?;
    let keep_alive = reader.two()?;
    let has = |bit: u8| flags & (1 << bit) != 0;
    let qos = flags >> 3 & 3;
    if has(0) || qos == 3 || (!has(2) && (qos > 0 || has(5))) {
        return Err(MALFORMED);
    }
    let properties = reader.properties(version, properties::CONNECT)?;
    let id = reader.text()?;
    let will = if has(2) {
        let properties = reader.properties(version, properties::WILL)?;
        Some(Will {
            topic: reader.text()?,
            payload: reader.binary()?,
            qos,
            retain: has(5),
            delay: properties.number(id::WILL_DELAY).unwrap_or(0),
            properties: properties.without(id::WILL_DELAY),
        })
    } else {
        None
    };
    if has(7) {
        reader.text()?;
    } else if has(6) && version == Version::V4 {
        return Err(MALFORMED);
    }
    if has(6) {
        reader.binary()?;
    }
    if !reader.is_empty() {
        return Err(MALFORMED);
    }
    Ok(Incoming::Connect(Box::new(Connect {
        version,
        id,
        clean_start: has(1),
        keep_alive,
        will,
        properties,
    })))
}

fn publish(flags: u8, reader: &mut Reader, version: Version) -> Result<Incoming, Flaw> {
    let qos = flags >> 1 & 3;
    if qos == 3 || (qos == 0 && flags & 8 != 0) {
        return Err(MALFORMED);
    }
    let topic = reader.text()?;
    let packet = if qos > 0 { reader.packet()? } else { 0 };
    let properties = reader.properties(version, properties::PUBLISH)?;
    Ok(Incoming::Publish(Publish {
        duplicate: flags & 8 != 0,
        qos,
        retain: flags & 1 != 0,
        topic,
        packet,
        properties,
        payload: std::mem::take(&mut reader.0),
    }))
}

fn puback(reader: &mut Reader, version: Version) -> Result<Incoming, Flaw> {
    let packet = reader.packet()?;
    if version == Version::V5 {
        // Reason code and properties may both be left out; what a client thinks of a command stands in its answer.
        ending(reader, properties::PUBACK)?;
    }
    Ok(Incoming::PubAck { packet })
}

fn subscribe(reader: &mut Reader, version: Version) -> Result<Incoming, Flaw> {
    let packet = reader.packet()?;
    let properties = reader.properties(version, properties::SUBSCRIBE)?;
    let mut wishes = Vec::new();
    while !reader.is_empty() {
        let filter = reader.text()?;
        let options = reader.byte()?;
        let reserved = if version == Version::V5 { 0xc0 } else { 0xfc };
        let (qos, retain_handling) = (options & 3, options >> 4 & 3);
        if options & reserved != 0 || qos == 3 || retain_handling == 3 {
            return Err(MALFORMED);
        }
        wishes.push(Wish {
            filter,
            qos,
            no_local: options & 4 != 0,
            retain_as_published: options & 8 != 0,
            retain_handling,
        });
    }
    if wishes.is_empty() {
        return Err(PROTOCOL_ERROR);
    }
    Ok(Incoming::Subscribe {
        packet,
        properties,
        wishes,
    })
}

fn unsubscribe(reader: &mut Reader, version: Version) -> Result<Incoming, Flaw> {
    let packet = reader.packet()?;
    reader.properties(version, properties::UNSUBSCRIBE)?;
    let mut filters = Vec::new();
    while !reader.is_empty() {
        filters.push(reader.text()?);
    }
    if filters.is_empty() {
        return Err(PROTOCOL_ERROR);
    }
    Ok(Incoming::Unsubscribe { packet, filters })
}

/// A reason code and properties, where each may be left out from the end on.
fn ending(reader: &mut Reader, allowed: &[u8]) -> Result<(u8, Properties), Flaw> {
    let reason = if reader.is_empty() {
        reason::SUCCESS
    } else {
        reader.byte()?
    };
    let properties = if reader.is_empty() {
        Properties::default()
    } else {
        Properties::read(reader, allowed)?
    };
    Ok((reason, properties))
}

/// Reads from the front of a packet; too few bytes are a flaw.
pub struct Reader(pub Bytes);

impl Reader {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take(&mut self, length: usize) -> Result<Bytes, Flaw> {
        if self.0.len() < length {
            return Err(MALFORMED);
        }
        Ok(self.0.split_to(length))
    }

    pub fn byte(&mut self) -> Result<u8, Flaw> {
        Ok(self.take(1)?[0])
    }

    pub fn two(&mut self) -> Result<u16, Flaw> {
        Ok(self.take(2)?.get_u16())
    }

    pub fn four(&mut self) -> Result<u32, Flaw> {
        Ok(self.take(4)?.get_u32())
    }

    /// A number in up to four bytes of seven bits.
    pub fn length(&mut self) -> Result<u32, Flaw> {
        let mut value = 0;
        for digit in 0..4 {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << (7 * digit);
            if byte < 0x80 {
                return if byte == 0 && digit > 0 {
                    Err(MALFORMED)
                } else {
                    Ok(value)
                };
            }
        }
        Err(MALFORMED)
    }

    pub fn binary(&mut self) -> Result<Bytes, Flaw> {
        let length = self.two()?;
        self.take(usize::from(length))
    }

    pub fn text(&mut self) -> Result<String, Flaw> {
        let text = String::from_utf8(self.binary()?.to_vec()).map_err(|_| MALFORMED)?;
        if text.contains('\0') {
            return Err(MALFORMED);
        }
        Ok(text)
    }

    /// A packet number, which is never zero.
    fn packet(&mut self) -> Result<u16, Flaw> {
        match self.two()? {
            0 => Err(PROTOCOL_ERROR),
            number => Ok(number),
        }
    }

    /// Properties where the version has any.
    fn properties(&mut self, version: Version, allowed: &[u8]) -> Result<Properties, Flaw> {
        match version {
            Version::V4 => Ok(Properties::default()),
            Version::V5 => Properties::read(self, allowed),
        }
    }
}

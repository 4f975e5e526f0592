//! The data types of MQTT on the wire.

use super::Malformed;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The largest variable byte integer.
pub(super) const LARGEST: u32 = 268_435_455;

/// The rest of a packet that is complete: what is lacking here will never come.
#[derive(Debug)]
pub(super) struct Reader(pub Bytes);

impl Reader {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        self.0.try_get_u8().map_err(|_| Malformed)
    }

    pub fn two(&mut self) -> Result<u16, Malformed> {
        self.0.try_get_u16().map_err(|_| Malformed)
    }

    pub fn four(&mut self) -> Result<u32, Malformed> {
        self.0.try_get_u32().map_err(|_| Malformed)
    }

    /// A packet id, which is never 0.
    pub fn packet_id(&mut self) -> Result<u16, Malformed> {
        self.two().and_then(|id| match id {
            0 => Err(Malformed),
            id => Ok(id),
        })
    }

    pub fn variable(&mut self) -> Result<u32, Malformed> {
        match variable(&self.0)? {
            Some((value, length)) => {
                self.0.advance(length);
                Ok(value)
            }
            None => Err(Malformed),
        }
    }

    /// So many bytes as a reader of their own.
    pub fn part(&mut self, length: u32) -> Result<Reader, Malformed> {
        match usize::try_from(length) {
            Ok(length) if length <= self.0.len() => Ok(Reader(self.0.split_to(length))),
            _ => Err(Malformed),
        }
    }

    pub fn binary(&mut self) -> Result<Bytes, Malformed> {
        let length = self.two()?;
        Ok(self.part(u32::from(length))?.0)
    }

    pub fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.binary()?;
        let text = std::str::from_utf8(&bytes).map_err(|_| Malformed)?;
        if text.contains('\0') {
            return Err(Malformed);
        }
        Ok(text.to_owned())
    }
}

/// A variable byte integer at the front and its length; `None` if more bytes are needed. It must be as short as it can be.
pub(super) fn variable(bytes: &[u8]) -> Result<Option<(u32, usize)>, Malformed> {
    let mut value = 0_u32;
    for (place, byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            let is_longer_than_needed = place > 0 && *byte == 0;
            return match is_longer_than_needed {
                true => Err(Malformed),
                false => Ok(Some((value, place + 1))),
            };
        }
    }
    if bytes.len() < 4 {
        Ok(None)
    } else {
        Err(Malformed)
    }
}

/// What becomes a packet.
#[derive(Debug, Default)]
pub(super) struct Writer(BytesMut);

impl Writer {
    pub fn byte(&mut self, value: u8) {
        self.0.put_u8(value);
    }

    pub fn two(&mut self, value: u16) {
        self.0.put_u16(value);
    }

    pub fn four(&mut self, value: u32) {
        self.0.put_u32(value);
    }

    pub fn variable(&mut self, value: u32) {
        let mut rest = value.min(LARGEST);
        loop {
            let low = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 {
                self.0.put_u8(low);
                return;
            }
            self.0.put_u8(low | 0x80);
        }
    }

    /// With two bytes of length before it; what does not fit these is cut, and refused before it comes here.
    pub fn binary(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.0.put_u16(length);
        self.raw(&bytes[..usize::from(length)]);
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.put_slice(bytes);
    }

    pub fn append(&mut self, other: &Writer) {
        self.0.put_slice(&other.0);
    }

    pub fn length(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// The packet with this first byte, and what was written behind it.
    pub fn packet(self, first: u8) -> BytesMut {
        let mut whole = Writer::default();
        whole.byte(first);
        whole.variable(self.length());
        whole.append(&self);
        whole.0
    }
}

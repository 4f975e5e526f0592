//! Bytes to packets, strictly.
//!
//! The codec of rumqttc reads a packet; this decides what the codec leaves open: flags that must be fixed, lengths that must
//! fit, packets that a client never gets.

use super::{End, Packet};
use bytes::BytesMut;
use rumqttc::mqttbytes::{self, Error, QoS};

/// Bytes of the largest packet that is read; a longer one is malformed.
const MAX_PACKET_BYTES: usize = 1024 * 1024;

/// Takes every whole packet off the front of `bytes` and appends it to `out`; what remains is the beginning of the next.
pub(super) fn split(bytes: &mut BytesMut, out: &mut Vec<Packet>) -> Result<(), End> {
    while let Some(first) = bytes.first() {
        // A wrong first byte is wrong at once; the length behind it may be anything.
        if !may_begin(*first) {
            return Err(End::Malformed);
        }
        let header = match mqttbytes::check(bytes.iter(), MAX_PACKET_BYTES) {
            Ok(header) => header,
            Err(Error::InsufficientBytes(_)) => return Ok(()),
            Err(_) => return Err(End::Malformed),
        };
        let length = header.frame_length();
        // The frame is complete: whatever the codec lacks now, it will never get.
        let packet = match Packet::read(bytes, MAX_PACKET_BYTES) {
            Ok(packet) => packet,
            Err(Error::InvalidConnectReturnCode(code)) => return Err(End::Refused(code)),
            Err(_) => return Err(End::Malformed),
        };
        if !may_arrive(&packet, length) {
            return Err(End::Malformed);
        }
        out.push(packet);
    }
    Ok(())
}

/// Whether a packet for a client that subscribes with QoS 0 or 1 may begin with this byte: its type and its fixed flags.
fn may_begin(first: u8) -> bool {
    const CONNACK: u8 = 0x20;
    const PUBACK: u8 = 0x40;
    const SUBACK: u8 = 0x90;
    const PINGRESP: u8 = 0xd0;
    matches!(first, CONNACK | PUBACK | SUBACK | PINGRESP) || first >> 4 == 3
}

/// Whether such a client may get this packet with this whole length.
fn may_arrive(packet: &Packet, length: usize) -> bool {
    match packet {
        Packet::Publish(publish) => {
            publish.qos != QoS::ExactlyOnce
                && !publish.topic.is_empty()
                && !publish.topic.contains(['+', '#', '\0'])
        }
        Packet::ConnAck(_) => length == 4,
        Packet::PubAck(acknowledged) => length == 4 && acknowledged.pkid != 0,
        Packet::SubAck(acknowledged) => acknowledged.pkid != 0,
        Packet::PingResp => length == 2,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Vec<Packet>, Result<(), End>, usize) {
        let mut bytes = BytesMut::from(bytes);
        let mut out = Vec::new();
        let result = split(&mut bytes, &mut out);
        (out, result, bytes.len())
    }

    #[test]
    fn waits_for_the_rest_of_a_packet_and_keeps_what_it_has() {
        for part in [
            &[][..],
            &[0x20],
            &[0x20, 0x02],
            &[0x20, 0x02, 0x00],
            &[0x30, 0x80],
        ] {
            let (packets, result, kept) = read(part);
            assert!(packets.is_empty() && result.is_ok(), "{part:02x?}");
            assert_eq!(kept, part.len(), "{part:02x?}");
        }
    }

    #[test]
    fn reads_packets_that_share_a_segment() {
        let (packets, result, kept) = read(&[0x20, 2, 0, 0, 0x90, 3, 0, 1, 1, 0xd0, 0, 0x30]);
        assert!(result.is_ok());
        assert_eq!((packets.len(), kept), (3, 1));
    }

    #[test]
    fn does_not_wait_for_the_length_of_garbage() {
        assert!(matches!(
            read(b"HTTP/1.1 400 Bad Request").1,
            Err(End::Malformed)
        ));
    }

    /// Each is complete by its length, so waiting would be for ever.
    #[test]
    fn takes_what_is_wrong_inside_a_complete_frame_as_malformed() {
        let wrong: [&[u8]; 15] = [
            &[0x20, 0x01, 0x00],                   // CONNACK without return code
            &[0x20, 0x03, 0x00, 0x00, 0x00],       // CONNACK with a byte more
            &[0x21, 0x02, 0x00, 0x00],             // CONNACK with flags
            &[0x20, 0x00],                         // CONNACK without anything
            &[0x30, 0x03, 0x00, 0x05, b'a'],       // PUBLISH: topic longer than the frame
            &[0x30, 0x02, 0x00, 0x00],             // PUBLISH without topic
            &[0x32, 0x03, 0x00, 0x01, b'a'],       // PUBLISH QoS 1 without packet id
            &[0x32, 0x05, 0x00, 0x01, b'a', 0, 0], // PUBLISH QoS 1 with packet id 0
            &[0x36, 0x05, 0x00, 0x01, b'a', 0, 1], // PUBLISH QoS 3
            &[0x40, 0x02, 0x00, 0x00],             // PUBACK of packet id 0
            &[0x90, 0x02, 0x00, 0x01],             // SUBACK without return code
            &[0x90, 0x03, 0x00, 0x01, 0x03],       // SUBACK with a code that does not exist
            &[0xd3, 0x00],                         // PINGRESP with flags
            &[0xe0, 0x00],                         // DISCONNECT, which a 3.1.1 server never sends
            &[0x30, 0xff, 0xff, 0xff, 0xff, 0x01], // length of five bytes
        ];
        for bytes in wrong {
            let (packets, result, _) = read(bytes);
            assert!(
                packets.is_empty() && matches!(result, Err(End::Malformed)),
                "{bytes:02x?} gave {packets:?}"
            );
        }
    }

    #[test]
    fn keeps_a_return_code_that_nobody_knows() {
        assert!(matches!(
            read(&[0x20, 0x02, 0x00, 0x8d]).1,
            Err(End::Refused(0x8d))
        ));
    }
}

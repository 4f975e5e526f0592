//! MQTT 3.1.1 on the wire, strictly.
//!
//! The codec of rumqttc reads and writes a packet; this brings it to the form of MQTT 5 and back, and decides what the codec leaves
//! open: flags that must be fixed, lengths that must fit, packets that a client never gets.

use super::End;
use super::v5::{Acknowledgement, ConnAck, Connect, Packet, Publish, SubAck};
use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{self, SubscribeReasonCode};
use rumqttc::mqttbytes::{self, Error, QoS};

/// Return code of SUBACK for a subscription that is not granted.
const NOT_GRANTED: u8 = 0x80;

/// Takes every whole packet of at most `limit` bytes off the front of `bytes` and appends it to `out`; what remains is the beginning of
/// the next.
pub(super) fn split(bytes: &mut BytesMut, limit: usize, out: &mut Vec<Packet>) -> Result<(), End> {
    while let Some(first) = bytes.first() {
        // A wrong first byte is wrong at once; the length behind it may be anything.
        if !may_begin(*first) {
            return Err(End::Malformed);
        }
        let header = match mqttbytes::check(bytes.iter(), limit) {
            Ok(header) => header,
            Err(Error::InsufficientBytes(_)) => return Ok(()),
            Err(Error::PayloadSizeLimitExceeded(_)) => return Err(End::TooLarge),
            Err(_) => return Err(End::Malformed),
        };
        let length = header.frame_length();
        // The frame is complete: whatever the codec lacks now, it will never get.
        let packet = match v4::Packet::read(bytes, limit) {
            Ok(packet) => packet,
            // A code that nobody knows refuses all the same.
            Err(Error::InvalidConnectReturnCode(reason)) => {
                out.push(Packet::ConnAck(ConnAck {
                    reason,
                    ..ConnAck::default()
                }));
                continue;
            }
            Err(_) => return Err(End::Malformed),
        };
        if !may_arrive(&packet, length) {
            return Err(End::Malformed);
        }
        out.push(newer(packet).ok_or(End::Malformed)?);
    }
    Ok(())
}

/// A packet that arrived in the form of MQTT 5.
fn newer(packet: v4::Packet) -> Option<Packet> {
    Some(match packet {
        v4::Packet::ConnAck(answer) => Packet::ConnAck(ConnAck {
            session_present: answer.session_present,
            reason: answer.code as u8,
            properties: Vec::new(),
        }),
        v4::Packet::Publish(publish) => Packet::Publish(Publish {
            duplicate: publish.dup,
            retain: publish.retain,
            packet_id: (publish.pkid != 0).then_some(publish.pkid),
            topic: publish.topic,
            properties: Vec::new(),
            payload: publish.payload,
        }),
        v4::Packet::PubAck(answer) => Packet::PubAck(Acknowledgement {
            packet_id: answer.pkid,
            ..Acknowledgement::default()
        }),
        v4::Packet::SubAck(answer) => Packet::SubAck(SubAck {
            packet_id: answer.pkid,
            properties: Vec::new(),
            reasons: answer.return_codes.iter().map(return_code).collect(),
        }),
        v4::Packet::PingResp => Packet::PingResp,
        _ => return None,
    })
}

fn return_code(code: &SubscribeReasonCode) -> u8 {
    match code {
        SubscribeReasonCode::Success(qos) => *qos as u8,
        SubscribeReasonCode::Failure => NOT_GRANTED,
    }
}

/// A packet as MQTT 3.1.1 writes it.
pub(super) fn write(packet: &Packet) -> Result<BytesMut, Error> {
    let mut bytes = BytesMut::new();
    older(packet)
        .ok_or(Error::InvalidProtocol)?
        .write(&mut bytes, usize::MAX)?;
    Ok(bytes)
}

/// `None` for what the older version can't say.
fn older(packet: &Packet) -> Option<v4::Packet> {
    Some(match packet {
        Packet::Connect(connect) => v4::Packet::Connect(greeting(connect)),
        Packet::Publish(publish) => {
            let qos = level(u8::from(publish.packet_id.is_some()));
            let mut older =
                v4::Publish::from_bytes(publish.topic.as_str(), qos, publish.payload.clone());
            older.dup = publish.duplicate;
            older.retain = publish.retain;
            older.pkid = publish.packet_id.unwrap_or_default();
            v4::Packet::Publish(older)
        }
        Packet::PubAck(answer) => v4::Packet::PubAck(v4::PubAck::new(answer.packet_id)),
        Packet::Subscribe(subscribe) => {
            let filter =
                v4::SubscribeFilter::new(subscribe.topic.clone(), level(subscribe.options & 1));
            let mut older = v4::Subscribe::new_many([filter]);
            older.pkid = subscribe.packet_id;
            v4::Packet::Subscribe(older)
        }
        Packet::PingReq => v4::Packet::PingReq,
        Packet::Disconnect(_) => v4::Packet::Disconnect,
        _ => return None,
    })
}

fn greeting(connect: &Connect) -> v4::Connect {
    let mut older = v4::Connect::new(connect.client_id.as_str());
    older.keep_alive = connect.keep_alive_s;
    older.clean_session = connect.clean_start;
    older.login = connect.username.clone().map(|username| v4::Login {
        username,
        password: connect
            .password
            .as_ref()
            .map_or_else(String::new, |password| {
                String::from_utf8_lossy(password).into_owned()
            }),
    });
    older.last_will = connect.will.as_ref().map(|will| v4::LastWill {
        topic: will.topic.clone(),
        message: will.payload.clone(),
        qos: level(will.qos),
        retain: will.retain,
    });
    older
}

/// The level of a `qos` of 0 or 1.
fn level(qos: u8) -> QoS {
    if qos == 0 {
        QoS::AtMostOnce
    } else {
        QoS::AtLeastOnce
    }
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
fn may_arrive(packet: &v4::Packet, length: usize) -> bool {
    match packet {
        v4::Packet::Publish(publish) => {
            publish.qos != QoS::ExactlyOnce
                && !publish.topic.is_empty()
                && !publish.topic.contains(['+', '#', '\0'])
        }
        v4::Packet::ConnAck(_) => length == 4,
        v4::Packet::PubAck(acknowledged) => length == 4 && acknowledged.pkid != 0,
        v4::Packet::SubAck(acknowledged) => acknowledged.pkid != 0,
        v4::Packet::PingResp => length == 2,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Vec<Packet>, Result<(), End>, usize) {
        let mut bytes = BytesMut::from(bytes);
        let mut out = Vec::new();
        let result = split(&mut bytes, 1024 * 1024, &mut out);
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
        let (packets, result, _) = read(&[0x20, 0x02, 0x00, 0x8d]);
        let refused = ConnAck {
            reason: 0x8d,
            ..ConnAck::default()
        };
        assert!(result.is_ok());
        assert_eq!(packets, [Packet::ConnAck(refused)]);
    }

    #[test]
    fn says_before_it_is_there_that_a_packet_is_too_large() {
        assert!(matches!(
            read(&[0x30, 0x80, 0x80, 0x80, 0x01]).1,
            Err(End::TooLarge)
        ));
    }
}

//! Bytes that other codecs get wrong, packets there and back, and bytes of nobody.

use super::*;
use ::bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const LIMIT: usize = 1024 * 1024;

fn read(bytes: &[u8]) -> Result<Option<Packet>, Unreadable> {
    let mut bytes = BytesMut::from(bytes);
    let result = take(&mut bytes, LIMIT);
    if let Ok(Some(_)) = &result {
        assert!(bytes.is_empty(), "{bytes:02x?} is left over");
    }
    result
}

fn whole(bytes: &[u8]) -> Packet {
    match read(bytes) {
        Ok(Some(packet)) => packet,
        other => panic!("{bytes:02x?} gave {other:?}"),
    }
}

fn reference(name: &str) -> Vec<Property> {
    vec![Property::ServerReference(name.to_owned())]
}

#[test]
fn disconnect_may_lack_properties_and_reason() {
    let said = |reason, properties| Packet::Disconnect(Disconnect { reason, properties });
    assert_eq!(whole(&[0xe0, 0x00]), said(0, vec![]));
    assert_eq!(whole(&[0xe0, 0x01, 0x8e]), said(0x8e, vec![]));
    assert_eq!(whole(&[0xe0, 0x02, 0x8b, 0x00]), said(0x8b, vec![]));
    assert_eq!(
        whole(&[0xe0, 0x06, 0x9d, 0x04, 0x1c, 0x00, 0x01, b'b']),
        said(0x9d, reference("b"))
    );
    assert_eq!(
        whole(&[0xe0, 0x01, 0xa3]),
        said(0xa3, vec![]),
        "a reason that nobody knows"
    );
}

#[test]
fn a_disconnect_with_a_reason_alone_has_no_stray_byte() {
    let with_will = Packet::Disconnect(Disconnect {
        reason: 0x04,
        properties: vec![],
    });
    assert_eq!(with_will.write()[..], [0xe0, 0x01, 0x04]);
}

#[test]
fn auth_is_read_and_written_with_the_lengths_of_its_texts() {
    let bytes = [
        0xf0, 0x0b, 0x18, 0x09, 0x15, 0x00, 0x01, b'm', 0x16, 0x00, 0x02, 1, 2,
    ];
    let said = Packet::Auth(Authentication {
        reason: 0x18,
        properties: vec![
            Property::AuthenticationMethod("m".to_owned()),
            Property::AuthenticationData(Bytes::from_static(&[1, 2])),
        ],
    });
    assert_eq!(whole(&bytes), said);
    assert_eq!(said.write()[..], bytes);
    assert_eq!(
        whole(&[0xf0, 0x00]),
        Packet::Auth(Authentication::default())
    );
}

#[test]
fn connack_names_another_server() {
    assert_eq!(
        whole(&[0x20, 0x07, 0x00, 0x9d, 0x04, 0x1c, 0x00, 0x01, b'b']),
        Packet::ConnAck(ConnAck {
            session_present: false,
            reason: 0x9d,
            properties: reference("b"),
        })
    );
}

#[test]
fn the_refusal_of_a_broker_of_an_older_version_is_read() {
    assert_eq!(
        whole(&[0x20, 0x02, 0x00, 0x01]),
        Packet::ConnAck(ConnAck {
            reason: 1,
            ..ConnAck::default()
        })
    );
}

#[test]
fn two_subscription_identifiers_stay_out_of_the_payload() {
    let bytes = [
        0x30, 0x0c, 0x00, 0x01, b'a', 0x06, 0x0b, 0x01, 0x0b, 0x02, 0x01, 0x01, b'h', b'i',
    ];
    assert_eq!(
        whole(&bytes),
        Packet::Publish(Publish {
            topic: "a".to_owned(),
            properties: vec![
                Property::SubscriptionIdentifier(1),
                Property::SubscriptionIdentifier(2),
                Property::PayloadFormat(1),
            ],
            payload: Bytes::from_static(b"hi"),
            ..Publish::default()
        })
    );
}

#[test]
fn puback_may_have_a_reason_without_properties() {
    let said = |reason| {
        Packet::PubAck(Acknowledgement {
            packet_id: 1,
            reason,
            properties: vec![],
        })
    };
    assert_eq!(whole(&[0x40, 0x02, 0x00, 0x01]), said(0));
    assert_eq!(whole(&[0x40, 0x03, 0x00, 0x01, 0x10]), said(0x10));
}

/// Each is complete by its length, so waiting would be for ever.
#[test]
fn what_is_wrong_in_a_complete_packet_is_malformed() {
    let wrong: [&[u8]; 21] = [
        &[0xd3, 0x00],                                     // PINGRESP with flags
        &[0xd0, 0x80, 0x00],                               // a length longer than it needs to be
        &[0xd0, 0x01, 0x00],                               // PINGRESP with a body
        &[0x30, 0xff, 0xff, 0xff, 0xff],                   // a length of five bytes
        &[0x20, 0x02, 0x00, 0x00],                         // CONNACK without properties
        &[0x20, 0x02, 0x00, 0x87],                         // the same, refused
        &[0x20, 0x03, 0x02, 0x00, 0x00],                   // CONNACK with a reserved flag
        &[0x20, 0x03, 0x01, 0x87, 0x00],                   // refused, and a session is present
        &[0x20, 0x06, 0x00, 0x00, 0x03, 0x21, 0x00, 0x00], // receive maximum 0
        &[0x20, 0x05, 0x00, 0x00, 0x02, 0x24, 0x02],       // maximum QoS 2 said in words
        &[0x20, 0x06, 0x00, 0x00, 0x05, 0x13, 0x00, 0x01], // properties longer than the packet
        &[0x20, 0x05, 0x00, 0x00, 0x02, 0x23, 0x01],       // a topic alias in CONNACK
        &[0x30, 0x04, 0x00, 0x00, 0x00, b'x'],             // PUBLISH without topic and alias
        &[0x30, 0x04, 0x00, 0x01, b'#', 0x00],             // PUBLISH to a wildcard
        &[0x32, 0x06, 0x00, 0x01, b'a', 0, 0, 0],          // PUBLISH QoS 1 with packet id 0
        &[0x36, 0x06, 0x00, 0x01, b'a', 0, 1, 0],          // QoS 3
        &[0x38, 0x04, 0x00, 0x01, b'a', 0x00],             // DUP with QoS 0
        &[0x30, 0x04, 0x00, 0x01, 0xff, 0x00],             // no UTF-8
        &[0x40, 0x02, 0x00, 0x00],                         // PUBACK of packet id 0
        &[0x90, 0x03, 0x00, 0x01, 0x00],                   // SUBACK without reason
        &[0xe0, 0x03, 0x9d, 0x01, 0x7f],                   // an unknown property
    ];
    for bytes in wrong {
        assert_eq!(read(bytes), Err(Unreadable::Malformed), "{bytes:02x?}");
    }
}

#[test]
fn a_packet_above_the_limit_is_too_large_before_it_is_there() {
    let mut bytes = BytesMut::from(&[0x30, 0x80, 0x80, 0x80, 0x01][..]);
    assert_eq!(take(&mut bytes, LIMIT), Err(Unreadable::TooLarge));
}

fn text() -> impl Strategy<Value = String> {
    "[a-z0-9äß/]{0,12}"
}

fn data() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..20).prop_map(Bytes::from)
}

/// Properties that may stand together in a PUBLISH.
fn of_publish() -> impl Strategy<Value = Vec<Property>> {
    (
        option::of(0_u8..2),
        option::of(any::<u32>()),
        option::of(1_u16..),
        option::of(data()),
        vec(1_u32..300_000, 0..3),
        vec((text(), text()), 0..3),
    )
        .prop_map(|(format, expiry, alias, correlation, identifiers, users)| {
            let mut list: Vec<Property> = Vec::new();
            list.extend(format.map(Property::PayloadFormat));
            list.extend(expiry.map(Property::MessageExpiry));
            list.extend(alias.map(Property::TopicAlias));
            list.extend(correlation.map(Property::CorrelationData));
            list.extend(
                identifiers
                    .into_iter()
                    .map(Property::SubscriptionIdentifier),
            );
            list.extend(
                users
                    .into_iter()
                    .map(|(name, value)| Property::User(name, value)),
            );
            list
        })
}

/// Properties that CONNACK may have.
fn of_connack() -> impl Strategy<Value = Vec<Property>> {
    (
        option::of(any::<u16>()),
        option::of(1_u16..),
        option::of(1_u32..),
        option::of(text()),
        option::of((text(), data())),
        option::of((0_u8..2, text())),
    )
        .prop_map(
            |(keep_alive, receive, size, reference, authentication, other)| {
                let mut list: Vec<Property> = Vec::new();
                list.extend(keep_alive.map(Property::ServerKeepAlive));
                list.extend(receive.map(Property::ReceiveMaximum));
                list.extend(size.map(Property::MaximumPacketSize));
                list.extend(reference.map(Property::ServerReference));
                if let Some((method, data)) = authentication {
                    list.extend([
                        Property::AuthenticationMethod(method),
                        Property::AuthenticationData(data),
                    ]);
                }
                if let Some((flag, reason)) = other {
                    list.extend([
                        Property::MaximumQos(flag),
                        Property::RetainAvailable(flag),
                        Property::WildcardSubscriptions(flag),
                        Property::SubscriptionIdentifiers(flag),
                        Property::SharedSubscriptions(flag),
                        Property::AssignedClientIdentifier(reason.clone()),
                        Property::ResponseInformation(reason.clone()),
                        Property::ReasonString(reason),
                        Property::SessionExpiry(7),
                        Property::TopicAliasMaximum(0),
                    ]);
                }
                list
            },
        )
}

fn connect() -> impl Strategy<Value = Packet> {
    let will = (
        text(),
        data(),
        0_u8..2,
        any::<bool>(),
        option::of(any::<u32>()),
    );
    let will = will.prop_map(|(topic, payload, qos, retain, delay)| Will {
        topic,
        payload,
        qos,
        retain,
        properties: delay.map(Property::WillDelay).into_iter().collect(),
    });
    (
        any::<bool>(),
        any::<u16>(),
        text(),
        option::of(text()),
        option::of(data()),
        option::of(will),
    )
        .prop_map(
            |(clean_start, keep_alive_s, client_id, username, password, will)| {
                Packet::Connect(Box::new(Connect {
                    clean_start,
                    keep_alive_s,
                    client_id,
                    username,
                    password,
                    will,
                    properties: vec![
                        Property::RequestProblemInformation(1),
                        Property::RequestResponseInformation(0),
                    ],
                }))
            },
        )
}

fn packet() -> impl Strategy<Value = Packet> {
    let id = 1_u16..;
    prop_oneof![
        connect(),
        (any::<bool>(), any::<u8>(), of_connack()).prop_map(
            |(session_present, reason, properties)| {
                Packet::ConnAck(ConnAck {
                    session_present: session_present && reason == 0,
                    reason,
                    properties,
                })
            }
        ),
        (
            any::<bool>(),
            any::<bool>(),
            option::of(id.clone()),
            "[a-z]{1,9}",
            of_publish(),
            data()
        )
            .prop_map(
                |(duplicate, retain, packet_id, topic, properties, payload)| {
                    Packet::Publish(Publish {
                        duplicate: duplicate && packet_id.is_some(),
                        retain,
                        packet_id,
                        topic,
                        properties,
                        payload,
                    })
                }
            ),
        (id.clone(), any::<u8>(), option::of(text())).prop_map(|(packet_id, reason, why)| {
            Packet::PubAck(Acknowledgement {
                packet_id,
                reason,
                properties: why.map(Property::ReasonString).into_iter().collect(),
            })
        }),
        (id.clone(), "[a-z]{1,9}", 0_u8..2).prop_map(|(packet_id, topic, options)| {
            Packet::Subscribe(Subscribe {
                packet_id,
                topic,
                options,
                properties: vec![Property::SubscriptionIdentifier(9)],
            })
        }),
        (id, vec(any::<u8>(), 1..4)).prop_map(|(packet_id, reasons)| {
            Packet::SubAck(SubAck {
                packet_id,
                properties: vec![],
                reasons,
            })
        }),
        last_words(),
    ]
}

/// Pings, DISCONNECT and AUTH.
fn last_words() -> impl Strategy<Value = Packet> {
    prop_oneof![
        Just(Packet::PingReq),
        Just(Packet::PingResp),
        (any::<u8>(), option::of(text())).prop_map(|(reason, to)| {
            Packet::Disconnect(Disconnect {
                reason,
                properties: to.map(Property::ServerReference).into_iter().collect(),
            })
        }),
        (any::<u8>(), option::of(data())).prop_map(|(reason, data)| {
            Packet::Auth(Authentication {
                reason,
                properties: data.map(Property::AuthenticationData).into_iter().collect(),
            })
        }),
    ]
}

proptest! {
    /// There and back, alone and with the beginning of the next packet behind it; any shorter piece is waited for.
    #[test]
    fn every_packet_is_read_as_it_was_written(packet in packet(), cut in 0.0..1.0_f64) {
        let bytes = packet.write();
        prop_assert_eq!(read(&bytes), Ok(Some(packet.clone())));
        let mut more = bytes.clone();
        more.extend_from_slice(&[0x30]);
        prop_assert_eq!(take(&mut more, LIMIT), Ok(Some(packet)));
        prop_assert_eq!(&more[..], &[0x30][..]);
        let part = (bytes.len() as f64 * cut) as usize;
        prop_assert_eq!(take(&mut BytesMut::from(&bytes[..part]), LIMIT), Ok(None));
    }

    /// Bytes of nobody never make it panic, and whatever is read is written to bytes that are read the same.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..64), first in 0_u8..16) {
        let mut bytes = BytesMut::from(&bytes[..]);
        if let Some(byte) = bytes.first_mut() {
            *byte = first << 4 | *byte & 0x0f;
        }
        while let Ok(Some(packet)) = take(&mut bytes, LIMIT) {
            prop_assert_eq!(read(&packet.write()), Ok(Some(packet)));
        }
    }

    /// The same for packets that are wrong in one byte.
    #[test]
    fn a_damaged_packet_is_read_or_refused(packet in packet(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = packet.write();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        while let Ok(Some(packet)) = take(&mut bytes, LIMIT) {
            prop_assert_eq!(read(&packet.write()), Ok(Some(packet)));
        }
    }
}

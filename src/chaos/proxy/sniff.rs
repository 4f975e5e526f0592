//! What the first bytes of a client tell about its protocol, and the few bytes of MQTT that the proxy says itself.

/// Protocol level of MQTT 5 (MQTT 5, §3.1.2.2).
pub(super) const MQTT_5: u8 = 5;

const CONNECT: u8 = 0x10;
const DISCONNECT: u8 = 0xe0;
/// The protocol's name with its length (MQTT 3.1.1 and 5, §3.1.2.1).
const NAME: &[u8] = b"\x00\x04MQTT";
/// A remaining length takes at most so many bytes.
const LENGTH_BYTES: usize = 4;

/// The protocol level of a CONNECT; 0 if these bytes begin no CONNECT of MQTT 3.1.1 or 5.
pub(super) fn mqtt_level(bytes: &[u8]) -> u8 {
    let Some((&CONNECT, rest)) = bytes.split_first() else {
        return 0;
    };
    let more = rest
        .iter()
        .take(LENGTH_BYTES)
        .take_while(|byte| **byte & 0x80 != 0)
        .count();
    rest.get(more + 1..)
        .and_then(|rest| rest.strip_prefix(NAME))
        .and_then(|rest| rest.first().copied())
        .unwrap_or(0)
}

/// A DISCONNECT of MQTT 5 with a reason code and no properties (MQTT 5, §3.14).
pub(super) fn disconnect(reason: u8) -> [u8; 4] {
    [DISCONNECT, 2, reason, 0]
}

#[cfg(test)]
mod tests {
    use super::{disconnect, mqtt_level};

    #[test]
    fn knows_a_connect_by_its_first_bytes() {
        assert_eq!(
            mqtt_level(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"),
            4
        );
        assert_eq!(
            mqtt_level(b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00"),
            5
        );
        assert_eq!(mqtt_level(b"\x10\xff\x01\x00\x04MQTT\x05"), 5);
        for other in [
            &b""[..],
            b"\x10",
            b"GET / HTTP/1.1\r\n",
            b"\x10\x0c\x00\x06MQIsdp\x03",
        ] {
            assert_eq!(mqtt_level(other), 0, "{other:?}");
        }
        assert_eq!(disconnect(0x8b), [0xe0, 2, 0x8b, 0]);
    }
}

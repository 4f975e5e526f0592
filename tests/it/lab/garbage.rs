//! Packets with bytes that are wrong anywhere: a shard ends that connection at most, and serves everybody else.

use super::raw::{Raw, connect, packet, properties, publish, subscribe, text};
use crate::support::lab::Lab;

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// One good packet of each kind that a client sends.
fn good() -> Vec<Vec<u8>> {
    let will = [
        &b"\x05\x18\x00\x00\x00\x01"[..],
        &text("gone/h"),
        &text("bye"),
    ]
    .concat();
    let method = [b"\x15", &text("lab-token")[..]].concat();
    vec![
        connect("h", 0x26, 30, b"\x11\x00\x00\x00\x3c\x21\x00\x05", &will),
        publish(
            0x33,
            "d/h/evt",
            b"\x00\x01",
            b"\x02\x00\x00\x00\x09\x26\x00\x01a\x00\x01b",
            "{}",
        ),
        publish(0x30, "a/b", b"", b"\x23\x00\x01", "x"),
        packet(0x40, &[b"\x00\x01\x10\x00"]),
        subscribe("a/+/#", 0x2d),
        packet(0xa2, &[b"\x00\x07\x00", &text("a/b")]),
        b"\xc0\x00".to_vec(),
        packet(0xf0, &[b"\x19", &properties(&method)]),
        packet(0xe0, &[b"\x04\x05\x11\x00\x00\x00\x01"]),
    ]
}

#[tokio::test]
async fn no_byte_that_is_wrong_ends_more_than_its_own_connection() {
    let lab = Lab::start(&["--shards", "1"]);
    let before = lab.pid_of("shard-1");
    let mut witness = Raw::plain(&lab, "shard-1").await;
    witness.send(&connect("witness", 2, 0, b"", b"")).await;
    witness.packet().await.unwrap();
    let (mut numbers, good) = (Numbers(7), good());
    for round in 0..400 {
        let mut raw = Raw::plain(&lab, "shard-1").await;
        let mut bytes = Vec::new();
        // Every other connection is a session before it goes wrong.
        if round % 2 == 0 {
            bytes.extend(connect("victim", 2, 30, b"", b""));
        }
        for _ in 0..3 {
            let mut one = good[numbers.below(good.len())].clone();
            let at = numbers.below(one.len());
            match numbers.below(3) {
                0 => one[at] = u8::try_from(numbers.below(256)).unwrap(),
                1 => one[at] ^= 1 << numbers.below(8),
                _ => one.truncate(at),
            }
            bytes.extend(one);
        }
        raw.send(&bytes).await;
        if round % 50 == 0 {
            witness.send(b"\xc0\x00").await;
            assert_eq!(
                witness.packet().await.unwrap(),
                b"\xd0\x00",
                "round {round}"
            );
        }
    }
    witness.send(b"\xc0\x00").await;
    assert_eq!(witness.packet().await.unwrap(), b"\xd0\x00");
    assert_eq!(lab.pid_of("shard-1"), before);
}

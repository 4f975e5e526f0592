//! The shards as brokers of MQTT 5, byte by byte.

use super::hub::until;
use super::raw::{Raw, connect, connect_v4, holds, packet, properties, publish, subscribe, text};
use crate::support::lab::Lab;
use serde_json::json;

const SESSION_EXPIRY_60S: &[u8] = b"\x11\x00\x00\x00\x3c";

/// Connects and gives the CONNACK.
async fn open(lab: &Lab, connect: &[u8]) -> (Raw, Vec<u8>) {
    let mut raw = Raw::plain(lab, "shard-1").await;
    raw.send(connect).await;
    let answer = raw.packet().await.expect("a CONNACK");
    (raw, answer)
}

/// A connected hub with a session of a minute that takes its commands at QoS 1; whether its session was there already.
async fn hub(lab: &Lab, id: &str, flags: u8) -> (Raw, bool) {
    let (mut raw, answer) = open(lab, &connect(id, flags, 30, SESSION_EXPIRY_60S, b"")).await;
    assert_eq!((answer[0], answer[3]), (0x20, 0), "{answer:02x?}");
    if answer[2] == 0 {
        raw.send(&subscribe(&format!("d/{id}/cmd"), 1)).await;
        assert_eq!(raw.packet().await.unwrap(), b"\x90\x04\x00\x09\x00\x01");
    }
    (raw, answer[2] == 1)
}

/// The packet number of a PUBLISH with QoS 1.
fn number(publish: &[u8]) -> [u8; 2] {
    let topic = usize::from(publish[3]);
    [publish[4 + topic], publish[5 + topic]]
}

#[tokio::test]
async fn the_connack_says_what_the_shard_takes() {
    let lab = Lab::start(&[
        "--set",
        "server_keep_alive_s=7",
        "--set",
        "session_expiry_max_s=50",
        "--set",
        "receive_maximum=3",
    ]);
    let (_raw, answer) = open(&lab, &connect("h", 2, 30, SESSION_EXPIRY_60S, b"")).await;
    for (what, bytes) in [
        ("receive maximum", &b"\x21\x00\x03"[..]),
        ("server keep alive", b"\x13\x00\x07"),
        ("session expiry", b"\x11\x00\x00\x00\x32"),
        ("topic alias maximum", b"\x22\x00\x0a"),
        ("maximum packet size", b"\x27\x00\x01\x00\x00"),
        ("maximum QoS", b"\x24\x01"),
    ] {
        assert!(holds(&answer, bytes), "no {what} in {answer:02x?}");
    }
    let (_, page) = lab.get("/admin/sessions").await;
    assert_eq!(page["sessions"][0]["protocol"], "5");
}

#[tokio::test]
async fn who_breaks_the_protocol_is_told_by_which_reason_code() {
    let lab = Lab::start(&["--set", "receive_maximum=2"]);
    let three = publish(0x32, "a", b"\x00\x01", b"", "x").repeat(3);
    for (what, bytes, reason) in [
        ("a second CONNECT", connect("h", 2, 30, b"", b""), 0x82),
        (
            "PUBLISH with QoS 2",
            publish(0x34, "a", b"\x00\x01", b"", ""),
            0x9b,
        ),
        (
            "a topic with a wildcard",
            publish(0x30, "a/#", b"", b"", ""),
            0x90,
        ),
        (
            "an alias above the maximum",
            publish(0x30, "a", b"", b"\x23\x00\x0b", ""),
            0x94,
        ),
        (
            "an alias of nothing",
            publish(0x30, "", b"", b"\x23\x00\x01", ""),
            0x82,
        ),
        (
            "a property that has no place here",
            publish(0x30, "a", b"", b"\x21\x00\x01", ""),
            0x82,
        ),
        (
            "a property twice",
            publish(0x30, "a", b"", b"\x01\x00\x01\x00", ""),
            0x82,
        ),
        ("a length in too many bytes", b"\xc0\x80\x00".to_vec(), 0x81),
        ("wrong flags", b"\xe3\x00".to_vec(), 0x81),
        ("PUBACK of packet 0", b"\x40\x02\x00\x00".to_vec(), 0x82),
        (
            "a packet that ends too early",
            b"\x40\x01\x00".to_vec(),
            0x81,
        ),
        (
            "a subscription identifier",
            packet(0x82, &[b"\x00\x09\x02\x0b\x01", &text("a"), b"\x00"]),
            0xa1,
        ),
        ("more than it may have unacknowledged", three, 0x93),
        (
            "a packet that is too large",
            b"\x30\xff\xff\x04".to_vec(),
            0x95,
        ),
        (
            "AUTH without a method in CONNECT",
            b"\xf0\x01\x19".to_vec(),
            0x82,
        ),
    ] {
        let (mut raw, _) = open(&lab, &connect("h", 2, 30, b"", b"")).await;
        raw.send(&bytes).await;
        let farewell = raw.packet().await;
        assert_eq!(farewell.as_deref(), Some(&[0xe0, 1, reason][..]), "{what}");
        assert_eq!(raw.packet().await, None, "{what}");
    }
}

#[tokio::test]
async fn an_unacknowledged_command_comes_again_with_dup_and_its_number_to_a_session_that_goes_on() {
    let lab = Lab::start(&[]);
    let (mut raw, _) = hub(&lab, "h", 0).await;
    assert_eq!(lab.command("h", "c-1", 30_000).await, 202);
    let first = raw.packet().await.unwrap();
    assert_eq!(first[0], 0x32);
    drop(raw);
    let read = async || lab.stats().await["shards"]["shard-1"]["sessions"].clone();
    until(read, |sessions| *sessions == 0).await;
    // While it is away commands go to its shard and wait there.
    assert_eq!(lab.command("h", "c-2", 30_000).await, 202);
    let read = async || lab.stats().await["commands"]["sent"].clone();
    until(read, |sent| *sent == 2).await;

    let (mut raw, present) = hub(&lab, "h", 0).await;
    assert!(present);
    let again = raw.packet().await.unwrap();
    assert_eq!(again[0], 0x3a, "QoS 1 and DUP");
    assert_eq!(number(&again), number(&first));
    let second = raw.packet().await.unwrap();
    assert_eq!(second[0], 0x32, "sent for the first time");
    assert_ne!(number(&second), number(&first));
    // A double PUBACK is harmless.
    for publish in [&again, &again, &second] {
        raw.send(&packet(0x40, &[&number(publish)])).await;
    }
    let read = async || lab.stats().await["counts"]["commands_delivered"].clone();
    until(read, |delivered| *delivered == 2).await;

    drop(raw);
    let (mut raw, present) = hub(&lab, "h", 2).await;
    assert!(!present, "a clean start");
    raw.send(b"\xc0\x00").await;
    let next = raw.packet().await.unwrap();
    assert_eq!(next, b"\xd0\x00", "nothing of before comes again");
}

#[tokio::test]
async fn a_session_that_expires_gives_its_commands_back_and_they_reach_the_next_one() {
    let lab = Lab::start(&["--set", "session_expiry_max_s=1"]);
    let (raw, _) = hub(&lab, "h", 0).await;
    drop(raw);
    let read = async || lab.stats().await["shards"]["shard-1"]["sessions"].clone();
    until(read, |sessions| *sessions == 0).await;
    assert_eq!(lab.command("h", "c", 30_000).await, 202);
    let read = async || lab.stats().await["commands"].clone();
    until(read, |commands| commands["waiting"] == 1).await;
    let (mut raw, present) = hub(&lab, "h", 0).await;
    assert!(!present);
    let command = raw.packet().await.unwrap();
    assert_eq!(command[0], 0x32, "not a redelivery");
    assert!(holds(&command, b"\"id\":\"c\""));
}

#[tokio::test]
async fn the_old_connection_is_told_of_the_takeover_and_its_commands_move_to_the_new_one() {
    let lab = Lab::start(&[]);
    let (mut old, _) = hub(&lab, "h", 0).await;
    assert_eq!(lab.command("h", "c", 30_000).await, 202);
    let first = old.packet().await.unwrap();
    let (mut new, present) = hub(&lab, "h", 0).await;
    assert!(present);
    assert_eq!(old.packet().await.unwrap(), b"\xe0\x01\x8e");
    assert_eq!(old.packet().await, None);
    let again = new.packet().await.unwrap();
    assert_eq!((again[0], number(&again)), (0x3a, number(&first)));
    new.send(&packet(0x40, &[&number(&again)])).await;
    let stats = until(
        async || lab.stats().await,
        |stats| stats["counts"]["commands_delivered"] == 1,
    )
    .await;
    let shard = &stats["shards"]["shard-1"];
    assert_eq!(
        (&shard["sessions"], &shard["disconnects"]["takeover"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn receive_maximum_maximum_packet_size_and_aliases_of_the_client_are_kept() {
    let lab = Lab::start(&[]);
    // Receive maximum 1, maximum packet size 60 bytes, one topic alias.
    let given = b"\x21\x00\x01\x27\x00\x00\x00\x3c\x22\x00\x01";
    let (mut listener, _) = open(&lab, &connect("listener", 2, 30, given, b"")).await;
    listener.send(&subscribe("t", 1)).await;
    listener.packet().await.unwrap();
    let (mut speaker, _) = open(&lab, &connect("speaker", 2, 30, b"", b"")).await;
    let long = "x".repeat(60);
    for (payload, packet_number) in [
        ("one", b"\x00\x01"),
        (long.as_str(), b"\x00\x02"),
        ("three", b"\x00\x03"),
    ] {
        speaker
            .send(&publish(0x32, "t", packet_number, b"", payload))
            .await;
        assert_eq!(speaker.packet().await.unwrap()[..2], *b"\x40\x02");
    }
    let first = listener.packet().await.unwrap();
    assert_eq!(
        first,
        publish(0x32, "t", &number(&first), b"\x23\x00\x01", "one")
    );
    listener.send(b"\xc0\x00").await;
    assert_eq!(
        listener.packet().await.unwrap(),
        b"\xd0\x00",
        "one at a time"
    );
    listener.send(&packet(0x40, &[&number(&first)])).await;
    let third = listener.packet().await.unwrap();
    assert_eq!(
        third,
        publish(0x32, "", &number(&third), b"\x23\x00\x01", "three")
    );
}

#[tokio::test]
async fn a_will_is_published_when_its_client_vanishes_and_retained_messages_come_with_the_flag() {
    let lab = Lab::start(&[]);
    let (mut listener, _) = open(&lab, &connect("listener", 2, 30, b"", b"")).await;
    listener.send(&subscribe("gone/+", 0)).await;
    listener.packet().await.unwrap();
    let will = [&b"\x00"[..], &text("gone/h"), &text("bye")].concat();
    // Will flag, will retain, clean start.
    let (client, _) = open(&lab, &connect("h", 0x26, 30, b"", &will)).await;
    let (mut polite, _) = open(&lab, &connect("polite", 0x26, 30, b"", &will)).await;
    polite.send(b"\xe0\x00").await;
    assert_eq!(polite.packet().await, None);
    drop(client);
    let heard = listener.packet().await.unwrap();
    assert_eq!(heard, publish(0x30, "gone/h", b"", b"", "bye"));
    listener.send(b"\xc0\x00").await;
    assert_eq!(
        listener.packet().await.unwrap(),
        b"\xd0\x00",
        "a farewell leaves no will"
    );

    let (mut late, _) = open(&lab, &connect("late", 2, 30, b"", b"")).await;
    late.send(&subscribe("gone/#", 0)).await;
    late.packet().await.unwrap();
    let kept = late.packet().await.unwrap();
    assert_eq!(kept, publish(0x31, "gone/h", b"", b"", "bye"));
}

#[tokio::test]
async fn re_authentication_is_challenged_and_then_decided_like_a_new_connection() {
    let lab = Lab::start(&[]);
    let method = [b"\x15", &text("lab-token")[..]].concat();
    let auth = |step: u8| packet(0xf0, &[&[step], &properties(&method)]);
    let (mut raw, answer) = open(&lab, &connect("h", 2, 30, &method, b"")).await;
    assert!(holds(&answer, &method), "{answer:02x?}");
    raw.send(&auth(0x19)).await;
    let challenge = raw.packet().await.unwrap();
    assert_eq!((challenge[0], challenge[2]), (0xf0, 0x18));
    raw.send(&auth(0x18)).await;
    assert_eq!(raw.packet().await.unwrap(), auth(0));
    let read = async || lab.stats().await["counts"]["reauthentications"].clone();
    until(read, |count| *count == 1).await;

    let url = format!("postgres://any@{}/lab", lab.says("database"));
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let revoke = "INSERT INTO revoked (serial) VALUES ('h')";
    client.batch_execute(revoke).await.unwrap();
    lab.post("/admin/operations/refresh-certificates", json!({}))
        .await;
    assert_eq!(
        raw.packet().await.unwrap(),
        b"\xe0\x01\x87",
        "not authorized any more"
    );
    let (_, answer) = open(&lab, &connect("h", 2, 30, &method, b"")).await;
    assert_eq!(answer[3], 0x87);
    let other = [b"\x15", &text("other")[..]].concat();
    let (_, answer) = open(&lab, &connect("h", 2, 30, &other, b"")).await;
    assert_eq!(answer[3], 0x8c, "bad authentication method");
}

#[tokio::test]
async fn more_connects_than_the_rate_are_turned_away() {
    let lab = Lab::start(&["--set", "max_connects_per_second=1"]);
    let mut codes = Vec::new();
    for number in 0..5 {
        let id = format!("h-{number}");
        codes.push(open(&lab, &connect(&id, 2, 30, b"", b"")).await.1[3]);
    }
    assert_eq!(codes[0], 0, "{codes:02x?}");
    // Five in a row take far less than four seconds, so that at least one is too many.
    assert!(codes.contains(&0x9f), "{codes:02x?}");
    let mut many = codes.iter().filter(|code| **code == 0x9f).count();
    let old = open(&lab, &connect_v4("old")).await.1;
    if old[3] != 0 {
        assert_eq!(old[3], 3, "server unavailable, as MQTT 3.1.1 has it");
        many += 1;
    }
    let read = async || lab.stats().await["shards"]["shard-1"]["refused"]["throttled"].clone();
    until(read, |refused| *refused == many).await;
}

#[tokio::test]
async fn a_delayed_will_is_not_published_if_the_session_goes_on_before() {
    let lab = Lab::start(&[]);
    let (mut listener, _) = open(&lab, &connect("listener", 2, 30, b"", b"")).await;
    listener.send(&subscribe("gone/+", 0)).await;
    listener.packet().await.unwrap();
    let connect_with = |id: &str, delay: u8| {
        let topic = text(&format!("gone/{id}"));
        let will = [&[5, 0x18, 0, 0, 0, delay], &topic[..], &text("bye")].concat();
        connect(id, 0x04, 30, SESSION_EXPIRY_60S, &will)
    };
    let (back, _) = open(&lab, &connect_with("back", 3)).await;
    let (away, _) = open(&lab, &connect_with("away", 4)).await;
    // Both vanish, and one of them is back long before its three seconds are over: its will would come first.
    drop(back);
    let (_back, answer) = open(&lab, &connect_with("back", 3)).await;
    assert_eq!(answer[2], 1, "the session was there");
    drop(away);
    let heard = listener.packet().await.unwrap();
    assert_eq!(heard, publish(0x30, "gone/away", b"", b"", "bye"));
}

#[tokio::test]
async fn a_message_that_has_expired_while_it_waited_is_not_sent() {
    let lab = Lab::start(&[]);
    let (mut listener, _) = open(&lab, &connect("listener", 0, 30, SESSION_EXPIRY_60S, b"")).await;
    listener.send(&subscribe("t", 1)).await;
    listener.packet().await.unwrap();
    drop(listener);
    let read = async || lab.stats().await["shards"]["shard-1"]["sessions"].clone();
    until(read, |sessions| *sessions == 0).await;
    let (mut speaker, _) = open(&lab, &connect("speaker", 2, 30, b"", b"")).await;
    // One lives for no time at all, one for a minute.
    for (number, expiry, payload) in [(b"\x00\x01", 0, "over"), (b"\x00\x02", 60, "fresh")] {
        let given = [2, 0, 0, 0, expiry];
        speaker
            .send(&publish(0x32, "t", number, &given, payload))
            .await;
        speaker.packet().await.unwrap();
    }
    let connect = connect("listener", 0, 30, SESSION_EXPIRY_60S, b"");
    let (mut listener, answer) = open(&lab, &connect).await;
    assert_eq!(answer[2], 1);
    let heard = listener.packet().await.unwrap();
    assert!(heard.ends_with(b"fresh"), "{heard:02x?}");
    let at = heard.len() - 10;
    assert_eq!(heard[at], 2, "what is left of its expiry goes with it");
    assert!((1..=60).contains(&heard[at + 4]));
}

//! Each way in which TLS does not come about has a class of its own, says what is wrong, and is counted as the server counts it.

use super::server::{Server, Setup};
use super::stage::{attempts, operation, plan, start, troubles, until};
use crate::hostile::peer::serve;
use crate::hostile::stage::ended_after;
use crate::support::authority::Authority;
use crate::support::program::Home;
use crate::support::service::mosquitto_with;
use rushhour::report::{Report, json, markdown, summary};
use rustls::version::{TLS12, TLS13};
use std::fmt::Write;
use std::time::Duration;

const HUBS: u64 = 3;
/// A hub hears of it after the server has seen it.
const SETTLED: Duration = Duration::from_millis(500);
/// Hubs that fail come back long after the test.
const REST: &str = "connect: { over: 0s }, reconnect: { fixed: { every: 1h }, first: 1h }";

/// A server, how its hubs speak TLS, and what is to be told of them: the class, and a part of the text.
struct Row<'a> {
    name: &'static str,
    setup: Setup<'a>,
    tls: &'static str,
    class: &'static str,
    text: &'static str,
}

const HERE: &[&str] = &["127.0.0.1"];

fn row<'a>(
    name: &'static str,
    setup: Setup<'a>,
    tls: &'static str,
    (class, text): (&'static str, &'static str),
) -> Row<'a> {
    Row {
        name,
        setup,
        tls,
        class,
        text,
    }
}

/// What hubs find wrong with servers.
fn about_servers<'a>(ours: &Authority, strangers: &Authority) -> Vec<Row<'a>> {
    let of = |names: &[&str]| Setup::with(ours.issue("server", names));
    let years = |years| Setup::with(ours.issue_for("server", HERE, years, None));
    let expired = ("certificate expired", "expired on 2021-12-31 00:00:00 UTC");
    let young = (
        "certificate not yet valid",
        "valid only from 2080-01-01 00:00:00 UTC on",
    );
    let stranger = (
        "certificate not trusted",
        "no authority of `trust` vouches for the certificate of 127.0.0.1:",
    );
    let other = "certificate for another name";
    let is_other = (other, "is for mqtt.fleet.example, not for 127.0.0.1");
    let asked = (other, "is for 127.0.0.1, not for other.example");
    let version = ("no common version", "ProtocolVersion");
    let only = |versions| Setup {
        versions,
        ..of(HERE)
    };
    let h2 = Setup {
        alpn: vec!["h2"],
        ..of(HERE)
    };
    let alpn = ("refused by the peer", "NoApplicationProtocol");
    let foreign = Setup::with(strangers.issue("server", HERE));
    let namesake = Setup::with(Authority::new().issue("server", HERE));
    let another_key = (
        "certificate not trusted",
        "has the name of the one that issued the certificate of 127.0.0.1:",
    );
    vec![
        row("expired", years((2020, 2021)), "{}", expired),
        row("young", years((2080, 2090)), "{}", young),
        row("stranger", foreign, "{}", stranger),
        row("namesake", namesake, "{}", another_key),
        row("other", of(&["mqtt.fleet.example"]), "{}", is_other),
        row("asked", of(HERE), "{ server_name: other.example }", asked),
        row("new", only(vec![&TLS12]), "{ versions: [ 1.3 ] }", version),
        row("old", only(vec![&TLS13]), "{ versions: [ 1.2 ] }", version),
        row("alpn", h2, "{ alpn: [ mqtt ] }", alpn),
    ]
}

/// What servers find wrong with hubs.
fn about_hubs<'a>(ours: &'a Authority) -> Vec<Row<'a>> {
    let wants = || Setup {
        clients: Some(ours),
        ..Setup::with(ours.issue("server", HERE))
    };
    let required = "client certificate required";
    let said = (
        required,
        "wants a client certificate; write `tls: { cert: …, key: … }` in the target file",
    );
    let refused = "refused by the peer";
    let unknown = (refused, "refused with the alert UnknownCA");
    let expired = (refused, "refused with the alert CertificateExpired");
    let foreign = "{ cert: other.pem, key: other-key.pem }";
    let foreign_12 = "{ cert: other.pem, key: other-key.pem, versions: [ 1.2 ] }";
    let past = "{ cert: past.pem, key: past-key.pem }";
    vec![
        row("required", wants(), "{ versions: [ 1.3 ] }", said),
        row("required-12", wants(), "{ versions: [ 1.2 ] }", said),
        row("refused", wants(), foreign, unknown),
        row("refused-12", wants(), foreign_12, unknown),
        row("past", wants(), past, expired),
    ]
}

/// Every hub tries once. The server's failed handshakes, the attempts with that outcome and the count beside the example are the same
/// number, in all forms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_trouble_has_its_class_and_says_what_is_wrong() {
    let home = Home::new();
    let (ours, strangers) = (Authority::new(), Authority::named("strangers"));
    home.write("ca.pem", &ours.pem());
    strangers.write(home.path(), "other", &[]);
    let past = ours.issue_for("hub", &[], (2020, 2021), None);
    past.write(home.path(), "past");
    let (mut devices, mut hubs) = ("devices:\n".to_owned(), String::new());
    let mut served: Vec<(&str, Server, String, &str)> = Vec::new();
    let rows = [about_servers(&ours, &strangers), about_hubs(&ours)];
    for row in rows.into_iter().flatten() {
        let server = row.setup.serve().await;
        writeln!(
            devices,
            "  d-{}: {{ shards: {{ only: \"mqtts://{}\" }}, tls: {} }}",
            row.name, server.address, row.tls
        )
        .unwrap();
        writeln!(
            hubs,
            "  {}: {{ device: d-{}, count: {HUBS}, {REST} }}",
            row.name, row.name
        )
        .unwrap();
        served.push((row.name, server, format!("tls: {}", row.class), row.text));
    }
    let stage = start(plan(&home, &devices, &hubs)).await;
    until("every server sees every hub fail", || {
        served
            .iter()
            .all(|(_, server, ..)| server.failed().len() == 3)
    })
    .await;
    tokio::time::sleep(SETTLED).await;
    let report = stage.report().await;
    for (name, server, class, text) in &served {
        assert_eq!(server.accepted(), 3, "{name}");
        let connect = operation(&report, name, "connect");
        assert_eq!(
            attempts(connect, class),
            HUBS,
            "{name}: {:?}",
            connect.outcomes
        );
        assert_eq!(connect.attempts, HUBS, "{name}");
        let [trouble] = troubles(&report, name)[..] else {
            panic!("{name}: {:?}", troubles(&report, name));
        };
        assert_eq!((&trouble.trouble, trouble.count), (class, HUBS), "{name}");
        assert!(
            trouble.example.contains(text),
            "{name}: {}",
            trouble.example
        );
        every_form_shows(&report, &trouble.example);
    }
}

#[track_caller]
fn every_form_shows(report: &Report, example: &str) {
    assert!(markdown(report).contains(example));
    assert!(json(report).contains(&example.replace('"', "\\\"")));
    let words: String = summary(report, false).split_whitespace().collect();
    let wanted: String = example.split_whitespace().collect();
    assert!(words.contains(&wanted), "{example}");
}

/// A server that takes TCP connections and never answers the ClientHello: each hub gives up after its timeout, not before and not long
/// after, and the class is the one of time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_is_never_answered_times_out() {
    let home = Home::new();
    home.write("ca.pem", &Authority::new().pem());
    // A record of TLS has its length in bytes 3 and 4.
    let record = |bytes: &[u8]| {
        let length = 5 + usize::from(u16::from_be_bytes([*bytes.get(3)?, *bytes.get(4)?]));
        (bytes.len() >= length).then_some(length)
    };
    let silent = serve(record, |_| Vec::new()).await;
    let devices = format!(
        "devices:\n  hub: {{ shards: {{ only: \"mqtts://{}\" }} }}\n",
        silent.address
    );
    let hubs = format!("  homes: {{ device: hub, count: {HUBS}, timeout: 400ms, {REST} }}\n");
    let stage = start(plan(&home, &devices, &hubs)).await;
    until("every hub gives up", || silent.patience().len() == 3).await;
    let report = stage.report().await;
    assert_eq!(silent.accepted(), 3);
    ended_after(&silent, Duration::from_millis(400), 3, "a silent server");
    for name in ["connect", "handshake"] {
        let row = operation(&report, "homes", name);
        assert_eq!(
            attempts(row, "timed out"),
            HUBS,
            "{name}: {:?}",
            row.outcomes
        );
    }
    assert!(report.troubles.is_empty(), "{:?}", report.troubles);
}

/// OpenSSL with TLS 1.2 does not say that it wants a certificate, it just refuses; that it had asked for one says it all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_only_refuses_is_understood() {
    let ours = Authority::new();
    let broker = mosquitto_with(|folder| {
        std::fs::write(folder.join("ca.pem"), ours.pem()).unwrap();
        ours.write(folder, "server", HERE);
        let folder = folder.display();
        format!(
            "cafile {folder}/ca.pem\ncertfile {folder}/server.pem\nkeyfile {folder}/server-key.pem\n\
             require_certificate true\n"
        )
    });
    let Some(broker) = broker else {
        return;
    };
    let home = Home::new();
    home.write("ca.pem", &ours.pem());
    let devices = format!(
        "devices:\n  hub: {{ shards: {{ only: \"mqtts://{}\" }}, tls: {{ versions: [ 1.2 ] }} }}\n",
        broker.address()
    );
    let hubs = format!("  homes: {{ device: hub, count: {HUBS}, {REST} }}\n");
    let stage = start(plan(&home, &devices, &hubs)).await;
    until("the broker refuses every hub", || {
        broker.logged("peer did not return a certificate") == 3
    })
    .await;
    tokio::time::sleep(SETTLED).await;
    let report = stage.report().await;
    let [trouble] = troubles(&report, "homes")[..] else {
        panic!("{:?}", report.troubles);
    };
    let said = (trouble.trouble.as_str(), trouble.count);
    assert_eq!(said, ("tls: client certificate required", HUBS));
    assert!(
        trouble
            .example
            .contains("had asked for a client certificate"),
        "{}",
        trouble.example
    );
}

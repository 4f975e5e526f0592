//! What a server sees of handshakes that are completed: names, protocols, certificates, and sessions that are taken up again.

use super::server::{Handshake, Server, Setup};
use super::stage::{attempts, operation, plan, start, until};
use crate::support::authority::Authority;
use crate::support::program::Home;
use rushhour::report::Report;
use rustls::version::{TLS12, TLS13};
use std::fmt::Write;

const HUBS: usize = 4;
/// Sessions of each hub that the server ends at once.
const KICKS: usize = 2;
const TOPIC: &str = "command: { topic: d/<serial>/cmd, qos: 1, id: { json: $.id } }";
const BACK: &str = "connect: { over: 0s }, reconnect: { fixed: { every: 50ms }, first: 0s }";

/// A server, and what its group of hubs does.
struct Served {
    name: String,
    server: Server,
    hubs: usize,
    resumed: usize,
}

/// A hub that may takes up its own session and no other hub's: its first handshake is full, each later one resumed, with both
/// versions. One that may not never does. The report counts handshakes as the server does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_taken_up_by_the_hub_that_had_them_or_by_nobody() {
    let home = Home::new();
    let ours = Authority::new();
    home.write("ca.pem", &ours.pem());
    let mut table = "serial,cert,key\n".to_owned();
    for hub in 0..HUBS {
        ours.write(home.path(), &format!("hub-{hub}"), &[]);
        writeln!(table, "hub-{hub},hub-{hub}.pem,hub-{hub}-key.pem").unwrap();
    }
    home.write("hubs.csv", &table);
    let mut devices = "identities: { certificates: { csv: hubs.csv } }\ndevices:\n".to_owned();
    let (mut hubs, mut served) = (String::new(), Vec::new());
    let rows = [
        ("own", "{ resume: own }", &TLS13, KICKS),
        ("own-12", "{ resume: own }", &TLS12, KICKS),
        ("never", "{ resume: never }", &TLS13, 0),
        ("never-12", "{ resume: never }", &TLS12, 0),
    ];
    for (name, tls, version, resumed) in rows {
        for mutual in [false, true] {
            let name = format!("{name}-{}", if mutual { "mutual" } else { "server" });
            let server = Setup {
                clients: mutual.then_some(&ours),
                versions: vec![version],
                kicks: KICKS,
                ..Setup::with(ours.issue("server", &["127.0.0.1"]))
            }
            .serve()
            .await;
            let count = if mutual { 1 } else { HUBS };
            let identity = if mutual {
                "identity: certificates, "
            } else {
                ""
            };
            let address = server.address;
            writeln!(devices, "  d-{name}: {{ {identity}shards: {{ only: \"mqtts://{address}\" }}, tls: {tls}, {TOPIC} }}").unwrap();
            writeln!(
                hubs,
                "  {name}: {{ device: d-{name}, count: {count}, {BACK} }}"
            )
            .unwrap();
            served.push(Served {
                name,
                server,
                hubs: count,
                resumed: resumed * count,
            });
        }
    }
    let stage = start(plan(&home, &devices, &hubs)).await;
    until("every hub comes back after each kick", || {
        served
            .iter()
            .all(|row| row.server.handshakes().len() == row.hubs * (KICKS + 1))
    })
    .await;
    stage.stands().await;
    let report = stage.report().await;
    served.iter().for_each(|row| row.agrees(&report));
}

impl Served {
    #[track_caller]
    fn agrees(&self, report: &Report) {
        let (name, handshakes) = (&self.name, self.server.handshakes());
        assert_eq!(self.server.failed(), [""; 0], "{name}");
        assert_eq!(
            self.server.resumed(),
            self.resumed,
            "{name}: {handshakes:?}"
        );
        assert!(!handshakes[0].resumed, "{name}: the first one is full");
        let row = operation(report, name, "handshake");
        let total = (self.hubs * (KICKS + 1)) as u64;
        assert_eq!(row.ok, total, "{name}");
        assert_eq!(attempts(row, "ok"), total, "{name}");
        assert_eq!(row.service.unwrap().count, total, "{name}: the histogram");
        let hubs = report.hubs.iter().find(|row| row.group == *name).unwrap();
        let resumed = self.resumed as u64;
        let counted = (hubs.handshakes_full, hubs.handshakes_resumed);
        assert_eq!(counted, (total - resumed, resumed), "{name}");
    }
}

/// The server sees the name that it is asked for apart from its address, the protocol, the versions and the certificate that the file
/// says, and nothing of it where the file says nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_sees_what_the_file_says() {
    let home = Home::new();
    let ours = Authority::new();
    home.write("ca.pem", &ours.pem());
    let hub = ours.issue("hub", &[]);
    hub.write(home.path(), "hub");
    let names = ["mqtt.fleet.example", "127.0.0.1"];
    let serve = async || {
        let setup = Setup {
            clients: None,
            alpn: vec!["mqtt", "x-amzn-mqtt-ca"],
            ..Setup::with(ours.issue("server", &names))
        };
        setup.serve().await
    };
    let wants = Setup {
        clients: Some(&ours),
        alpn: vec!["mqtt", "x-amzn-mqtt-ca"],
        ..Setup::with(ours.issue("server", &names))
    };
    let (said, silent) = (wants.serve().await, serve().await);
    let devices = format!(
        "devices:
  said:
    shards: {{ only: \"mqtts://{}\" }}
    tls: {{ server_name: mqtt.fleet.example, alpn: [ x-amzn-mqtt-ca ], versions: [ 1.2 ], cert: hub.pem, key: hub-key.pem }}
  silent: {{ shards: {{ only: \"mqtts://{}\" }} }}
",
        said.address, silent.address
    );
    let hubs = format!(
        "  said: {{ device: said, count: 1, {BACK} }}\n  silent: {{ device: silent, count: 1, {BACK} }}\n"
    );
    let stage = start(plan(&home, &devices, &hubs)).await;
    stage.stands().await;
    stage.report().await;
    let named = Handshake {
        resumed: false,
        name: Some("mqtt.fleet.example".to_owned()),
        alpn: Some("x-amzn-mqtt-ca".to_owned()),
        version: "1.2",
        client: Some(hub.certificate.to_vec()),
    };
    assert_eq!(said.handshakes(), [named]);
    // An address is no name that could be sent (RFC 6066 §3).
    let unnamed = Handshake {
        resumed: false,
        name: None,
        alpn: None,
        version: "1.3",
        client: None,
    };
    assert_eq!(silent.handshakes(), [unnamed]);
}

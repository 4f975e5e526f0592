//! Certificates that hubs renew, seen by a broker that nobody here wrote.

use super::{LIMIT, broker_target, profile};
use crate::support::authority::Authority;
use crate::support::program::Home;
use crate::support::service::{Mosquitto, mosquitto_with};
use std::fmt::Write;
use std::fs;

const HUBS: usize = 20;

/// A mosquitto that wants a certificate of every client and calls it by the name in it.
fn broker(authority: &Authority) -> Option<Mosquitto> {
    mosquitto_with(|folder| {
        fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        authority.write(folder, "server", &["127.0.0.1"]);
        let folder = folder.display();
        format!(
            "cafile {folder}/ca.pem\ncertfile {folder}/server.pem\nkeyfile {folder}/server-key.pem\n\
             require_certificate true\nuse_identity_as_username true\n"
        )
    })
}

/// The table of the hubs: each has a certificate, and one to renew to whose name says so.
fn table(home: &Home, authority: &Authority) {
    let mut text = String::from("serial,cert,key,next_cert,next_key\n");
    // One row more than there are hubs, for the connection over which commands are published.
    for hub in 0..=HUBS {
        let (now, next) = (format!("hub-{hub:03}"), format!("hub-{hub:03}-renewed"));
        authority.write(home.path(), &now, &[]);
        authority.write(home.path(), &next, &[]);
        writeln!(
            text,
            "{now},{now}.pem,{now}-key.pem,{next}.pem,{next}-key.pem"
        )
        .unwrap();
    }
    home.write("hubs.csv", &text);
    home.write("ca.pem", &authority.pem());
}

/// The names by which the broker called the clients that it let in, in order.
fn users(log: &str) -> Vec<&str> {
    log.lines()
        .filter(|line| line.contains("New client connected"))
        .filter_map(|line| line.split("u'").nth(1)?.split('\'').next())
        .collect()
}

/// 20 hubs renew within 2 s. The broker's log says who came with which certificate: before the wave each hub with its first, in the
/// wave each with its next, and nobody with the first again.
#[test]
fn a_broker_sees_every_hub_renew() {
    let authority = Authority::new();
    let Some(broker) = broker(&authority) else {
        return;
    };
    let home = Home::new();
    table(&home, &authority);
    let target = broker_target(
        &home,
        &format!("mqtts://127.0.0.1:{}", broker.port),
        "trust: ca.pem\nidentities: { certificates: { csv: hubs.csv } }\n",
        "    identity: certificates\n    tls: { cert: <cert>, key: <key>, next_cert: <next_cert>, next_key: <next_key> }\n",
    );
    let rest = "timeline: { renew: { at: 10s, renew: { hubs: homes, share: 100%, within: 2s, jitter: full } } }
expect:
  - hubs lost == 0
  - hubs connected >= 99% within 3s after renew
  - commands lost == 0
";
    let finished = home.finish(&["run", &profile(&home, &target, 18, rest)], LIMIT);
    finished.expect_code(0);
    let result = finished.result();
    let row = &result["certificates"][0];
    assert_eq!(row["renewals"], HUBS, "{row}");
    assert_eq!(row["changed"], HUBS, "{row}");
    assert_eq!(row["handshakes_new"], HUBS, "{row}");
    assert_eq!(row["handshakes_old"], 0, "{row}");
    let log = broker.log();
    let users = users(&log);
    for hub in 0..HUBS {
        let (now, next) = (format!("hub-{hub:03}"), format!("hub-{hub:03}-renewed"));
        let mut of_hub: Vec<&&str> = users
            .iter()
            .filter(|user| **user == now || **user == next)
            .collect();
        // On a busy machine an attempt may be given up that the broker has let in.
        of_hub.dedup();
        assert_eq!(of_hub, [&now.as_str(), &next.as_str()], "{log}");
    }
}

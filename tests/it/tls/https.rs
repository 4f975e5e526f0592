//! Requests over TLS: who shows which certificate, and what is told where TLS does not come about.

use super::server::{Server, Setup};
use super::stage::{LIMIT, plan};
use crate::hostile::stage::{count, operation, run};
use crate::support::authority::{Authority, Issued};
use crate::support::program::Home;
use rushhour::chaos::request::StoredRequest;
use rustls::version::{TLS12, TLS13};
use serde_json::Value;
use std::fmt::Write;
use std::net::SocketAddr;

const HERE: &[&str] = &["127.0.0.1"];

fn wants(ours: &Authority) -> Setup<'_> {
    Setup {
        clients: Some(ours),
        ..Setup::with(ours.issue("server", HERE))
    }
}

/// A certificate of this name, in the home.
fn held(home: &Home, ours: &Authority, name: &str) -> Issued {
    let issued = ours.issue(name, &[]);
    issued.write(home.path(), name);
    issued
}

/// Two hubs whose identities have a column `site`, and two accounts with certificates.
fn identities(home: &Home, ours: &Authority) -> Vec<Issued> {
    let mut hubs = "serial,site,cert,key\n".to_owned();
    let mut accounts = "email,cert,key\n".to_owned();
    let mut issued = Vec::new();
    for n in 0..2 {
        held(home, ours, &format!("hub-{n}"));
        writeln!(hubs, "hub-{n},site-{n},hub-{n}.pem,hub-{n}-key.pem").unwrap();
        issued.push(held(home, ours, &format!("rider-{n}")));
        writeln!(
            accounts,
            "rider-{n}@x.example,rider-{n}.pem,rider-{n}-key.pem"
        )
        .unwrap();
    }
    home.write("hubs.csv", &hubs);
    home.write("accounts.csv", &accounts);
    issued
}

const EVERYBODY: &str = "target: target.yaml
duration: 2s
drain: 1s
hubs: { homes: { device: lock, count: 2, connect: { over: 0s } } }
riders: { people: { journey: ride, arrivals: { even: [ 10/s for 2s ] }, timeout: 2s } }
issuers: { app: { command: unlock, to: homes, arrivals: { even: [ 10/s for 2s ] }, in_time: 1s, ttl: 1s, timeout: 2s } }
expect: [ near success == 100%, commands lost >= 0 ]
";

fn everybody(address: SocketAddr) -> String {
    format!(
        "environment: test
trust: ca.pem
tls: {{ cert: tool.pem, key: tool-key.pem }}
identities: {{ locks: {{ csv: hubs.csv }}, accounts: {{ csv: accounts.csv }} }}
devices:
  lock:
    identity: locks
    shards: {{ lb: \"mqtts://{address}\" }}
    command: {{ topic: d/<serial>/cmd, qos: 1, id: {{ json: $.id }} }}
    answer: {{ topic: d/<serial>/evt, qos: 1, json: {{ id: <command> }} }}
commands:
  unlock:
    to: lock
    post: \"https://{address}/unlock/<serial>/<site>\"
    tls: {{ cert: app.pem, key: app-key.pem, versions: [ 1.2 ] }}
    json: {{ id: <command> }}
journeys:
  ride: {{ identity: accounts, base: \"https://{address}\", steps: {{ near: {{ get: /near/<email> }} }} }}
probes:
  every: 500ms
  timeout: 400ms
  sources: {{ gateway: {{ plays: pool, scrape: \"https://{address}/metrics\", signals: {{ waiting: {{ gauge: pool_waiting }} }} }} }}
"
    )
}

/// Everybody over mutual TLS against one server: each account, the issuers, the probe and the hubs show their own certificates, and the
/// server counts what the report counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_shows_the_certificate_that_the_file_gives_to_them() {
    let home = Home::new();
    let ours = Authority::new();
    home.write("ca.pem", &ours.pem());
    let (tool, app) = (held(&home, &ours, "tool"), held(&home, &ours, "app"));
    let riders = identities(&home, &ours);
    let server = wants(&ours).serve().await;
    let target = everybody(server.address);
    let finished = run(&home, EVERYBODY, &target).await;
    let result = finished.result();
    let near = operation(&result, "near");
    assert_eq!(
        (count(near, "attempts"), count(near, "ok")),
        (20, 20),
        "{near}"
    );
    let shown = riders.iter().enumerate().map(|(n, issued)| {
        let path = format!("/near/rider-{n}%40x.example");
        server.requests(&path, Some(issued))
    });
    let shown: Vec<usize> = shown.collect();
    assert!(shown.iter().all(|count| *count > 0), "{shown:?}");
    assert_eq!(shown.iter().sum::<usize>(), 20, "each with its own");
    let issued: usize = (0..2)
        .map(|n| server.requests(&format!("/unlock/hub-{n}/site-{n} "), Some(&app)))
        .sum();
    assert_eq!(issued, 20);
    assert_eq!(count(operation(&result, "app"), "attempts"), issued);
    let readings = server.requests("/metrics", Some(&tool));
    assert!(readings > 0);
    assert_eq!(server.all_requests(), 40 + readings, "nobody asks besides");
    let hubs = &result["hubs"][0];
    assert_eq!(count(hubs, "handshakes_full"), 2, "{hubs}");
    assert_eq!(server.failed(), [""; 0]);
    let older = server
        .handshakes()
        .into_iter()
        .filter(|seen| seen.version == "1.2");
    assert!(older.clone().count() > 0);
    assert!(
        older
            .into_iter()
            .all(|seen| seen.client == Some(app.certificate.to_vec()))
    );
}

type Row<'a> = (&'static str, Setup<'a>, &'static str, &'static str);

fn unhelped(ours: &Authority) -> Vec<Row<'_>> {
    let old = Setup::with(ours.issue_for("server", HERE, (2020, 2021), None));
    let other = Setup::with(ours.issue("server", &["api.fleet.example"]));
    let only = |version| Setup {
        versions: vec![version],
        ..wants(ours)
    };
    vec![
        (
            "expired",
            old,
            "certificate expired",
            "expired on 2021-12-31",
        ),
        (
            "other",
            other,
            "certificate for another name",
            "is for api.fleet.example",
        ),
        (
            "required",
            only(&TLS13),
            "client certificate required",
            "wants a client certificate",
        ),
        (
            "required-12",
            only(&TLS12),
            "client certificate required",
            "wants a client certificate",
        ),
    ]
}

/// Riders whom no certificate helps: each server counts as many failed handshakes as the report attempts of that class.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn troubles_of_requests_have_classes_and_texts() {
    let home = Home::new();
    let ours = Authority::new();
    home.write("ca.pem", &ours.pem());
    let (mut target, mut profile) = (
        "environment: test\ntrust: ca.pem\njourneys:\n".to_owned(),
        "target: target.yaml\nduration: 1s\ndrain: 1s\nexpect: [ s-expired success >= 0% ]\nriders:\n".to_owned(),
    );
    let mut served: Vec<(&str, Server, String, &str)> = Vec::new();
    for (name, setup, class, text) in unhelped(&ours) {
        let server = setup.serve().await;
        let address = server.address;
        writeln!(
            target,
            "  j-{name}: {{ steps: {{ s-{name}: {{ get: \"https://{address}/\" }} }} }}"
        )
        .unwrap();
        writeln!(profile, "  {name}: {{ journey: j-{name}, arrivals: {{ even: [ 5/s for 1s ] }}, timeout: 2s, retry: {{ immediate: {{ attempts: 1 }} }} }}").unwrap();
        served.push((name, server, format!("tls: {class}"), text));
    }
    let finished = run(&home, &profile, &target).await;
    let result = finished.result();
    for (name, server, class, text) in served {
        let row = operation(&result, &format!("s-{name}"));
        assert_eq!(count(row, "attempts"), 5, "{name}");
        assert_eq!(server.failed().len(), 5, "{name}: {:?}", server.failed());
        let outcomes = row["outcomes"].as_array().unwrap();
        let found = outcomes
            .iter()
            .find(|outcome| outcome["outcome"] == class.as_str());
        let found = found.unwrap_or_else(|| panic!("{name}: {row}"));
        assert_eq!(count(found, "attempts"), 5, "{name}");
        let trouble = trouble(&result, name);
        assert_eq!(
            (&trouble["trouble"], count(trouble, "count")),
            (&Value::from(class), 5)
        );
        let example = trouble["example"].as_str().unwrap();
        assert!(example.contains(text), "{name}: {example}");
    }
}

#[track_caller]
fn trouble<'a>(result: &'a Value, group: &str) -> &'a Value {
    let rows = result["troubles"].as_array().unwrap();
    let mut rows = rows.iter().filter(|row| row["group"] == group);
    let (first, second) = (rows.next(), rows.next());
    assert!(second.is_none(), "{first:?} and {second:?}");
    first.unwrap_or_else(|| panic!("no trouble of {group}"))
}

/// What stands in the journal of a run is enough to ask over mutual TLS, from any folder.
#[tokio::test]
async fn an_operation_that_lies_in_the_journal_is_asked_over_mutual_tls() {
    let home = Home::new();
    let ours = Authority::new();
    home.write("ca.pem", &ours.pem());
    let tool = held(&home, &ours, "tool");
    let server = wants(&ours).serve().await;
    let target = format!(
        "tls: {{ cert: tool.pem, key: tool-key.pem }}
devices: {{ hub: {{ shards: {{ only: \"mqtt://127.0.0.1:1\" }} }} }}
operations: {{ refresh: {{ do: {{ post: \"https://{}/refresh\" }} }} }}
",
        server.address
    );
    let target = plan(&home, &target, "  homes: { device: hub, count: 1 }\n").target;
    let stored = StoredRequest::of(&target.operations[0].request, &target).unwrap();
    let text = serde_json::to_string(&stored).unwrap();
    let stored: StoredRequest = serde_json::from_str(&text).unwrap();
    assert_eq!(stored.send(LIMIT).await.unwrap(), 200);
    assert_eq!(server.requests("POST /refresh", Some(&tool)), 1);
    let Some((cert, key)) = stored.shown else {
        panic!("{text}");
    };
    assert!(cert.starts_with('/') && key.starts_with('/'), "{text}");
    assert!(!text.contains("PRIVATE"), "{text}");
}

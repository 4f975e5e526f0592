//! Hubs whose connections run through a link of the run's own, against a broker that nobody here wrote.

use super::{LIMIT, profile};
use crate::support::program::{Home, eventually};
use crate::support::service::{Mosquitto, mosquitto};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

fn target(home: &Home, broker: &Mosquitto, head: &str, links: &str) -> String {
    let target = format!(
        "about: A broker of the test's own.
environment: test
{head}devices:
  hub:
    shards: {{ broker: \"mqtt://127.0.0.1:{}\" }}
    client_id: <serial>
    command: {{ topic: d/<serial>/cmd, qos: 1, id: {{ json: $.id }} }}
    answer: {{ topic: d/<serial>/evt, qos: 1, json: {{ id: <command>, ok: true }} }}
commands:
  switch: {{ to: hub, publish: d/<serial>/cmd, qos: 1, json: {{ id: <command> }} }}
links:
{links}",
        broker.port
    );
    home.write("target.yaml", &target).display().to_string()
}

fn mark(result: &Value, name: &str) -> Value {
    let rows = result["marks"].as_array().expect("marks are a list");
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no mark {name}: {rows:?}"))
        .clone()
}

fn notes(result: &Value) -> String {
    let notes = result["notes"].as_array().expect("notes are a list");
    notes
        .iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn hubs_go_through_their_link_and_faults_on_it_hit_them_alone() {
    let Some(broker) = mosquitto() else { return };
    let home = Home::new();
    let target = target(&home, &broker, "", "  hubs-to-broker: { device: hub }\n");
    let profile = profile(
        &home,
        &target,
        13,
        "expect: [ hubs connected >= 99% within 2s after third ]\n",
    );
    let faults = "about: A third is told to go.
faults:
  third: { cut: { link: hubs-to-broker, share: 30%, by: { disconnect: 0x8B } }, at: 10s }
";
    let faults = home.write("faults.yaml", faults).display().to_string();
    let arguments = ["run", &profile, "--chaos", &faults];
    let check = home.finish(&["check", &profile, "--chaos", &faults], LIMIT);
    check.expect_code(0);
    assert!(
        check.stdout.contains("hubs (hub) to each of their shards"),
        "{}",
        check.stdout
    );
    let finished = home.finish(&arguments, LIMIT);
    let result = finished.result();
    let third = mark(&result, "third");
    let observed = third["observed"].as_str().unwrap_or_default();
    assert!(observed.starts_with("6 of 20 connections"), "{third}");
    assert!(result["ledger"][0]["adds_up"].as_bool().unwrap());
    // Twenty hubs and the six that came back; the publisher goes straight to the broker.
    let notes = notes(&result);
    assert!(
        notes.contains("link hubs-to-broker: 26 connections accepted, 0 refused, 6 cut"),
        "{notes}"
    );
    assert_eq!(result["hubs"][0]["accepted"], 26);
    // Their source addresses are those that they would have without the link.
    let log = broker.log();
    assert!(
        log.matches("New connection from 127.0.1.").count() >= 26,
        "{log}"
    );
}

/// `rushhour proxy` as somebody started it elsewhere, ended with the test.
struct Elsewhere(Child);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_proxy_elsewhere_carries_a_link_and_asks_for_its_token() {
    let Some(broker) = mosquitto() else { return };
    let home = Home::new();
    let (api, listen) = (free_port(), free_port());
    let token = home.write("token", "open-sesame\n");
    let proxy = Command::new(env!("CARGO_BIN_EXE_rushhour"))
        .args([
            "proxy",
            "--api",
            &format!("127.0.0.1:{api}"),
            "--api-token-file",
        ])
        .arg(&token)
        .env("XDG_STATE_HOME", home.path().join("elsewhere"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _proxy = Elsewhere(proxy);
    eventually("the proxy listens", LIMIT, || {
        std::net::TcpStream::connect(("127.0.0.1", api)).ok()
    });
    let link = format!(
        "  front: {{ proxy: \"http://127.0.0.1:{api}\", token: <secret.proxy>, listen: \"127.0.0.1:{listen}\", to: \"127.0.0.1:{}\" }}\n",
        broker.port
    );
    let secret = "secrets: { proxy: { env: RUSHHOUR_TEST_TOKEN } }\n";
    let target = target(&home, &broker, secret, &link);
    let profile = profile(&home, &target, 12, "");
    let faults = "about: Late.
faults:
  late: { latency: { link: front, add: 100ms, to: answers }, at: 10s, for: 500ms }
";
    let faults = home.write("faults.yaml", faults).display().to_string();
    let arguments = ["run", &profile, "--chaos", &faults];
    let run = |token: &str| {
        let variables = [("RUSHHOUR_TEST_TOKEN", token)];
        home.start(&arguments, &variables).wait(LIMIT)
    };
    let wrong = run("wrong");
    wrong.expect_code(2);
    assert!(wrong.stderr.contains("status 401"), "{}", wrong.stderr);
    let finished = run("open-sesame");
    let result = finished.result();
    let late = mark(&result, "late");
    assert!(
        late["observed"].is_string() && late["end_us"].is_i64(),
        "{late}"
    );
    assert!(notes(&result).contains("link front: "), "{result}");
    let journal =
        std::fs::read_to_string(finished.run.as_ref().unwrap().join("journal.jsonl")).unwrap();
    assert!(
        journal.contains("<secret.proxy>") && !journal.contains("open-sesame"),
        "{journal}"
    );
    // It goes on, since whoever connects there depends on it.
    assert!(std::net::TcpStream::connect(("127.0.0.1", listen)).is_ok());
}

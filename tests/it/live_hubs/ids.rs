//! Ids of commands in every place where they may stand, given by us or by the target: whole runs against the lab.

use crate::support::program::Home;
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

const TARGET: &str = r#"
environment: lab
lab: { settings: SETTINGS }
devices:
  json:     { shards: { one: mqtt://<lab.shard-1> }, command: { topic: d/<serial>/cmd, qos: 1, id: { json: $.id } }, answer: { topic: d/<serial>/evt, qos: 1, json: { id: <command>, ok: true } } }
  property: { mqtt: 5, shards: { one: mqtt://<lab.shard-1> }, command: { topic: d/<serial>/cmd, qos: 1, id: { property: correlation_data } }, answer: { topic: d/<serial>/evt, qos: 1, json: { id: <command>, ok: true } } }
  buffers:  { shards: { one: mqtt://<lab.shard-1> }, command: { topic: in/<serial>, qos: 1, id: { protobuf: 2.1 } }, answer: { topic: out/<serial>, qos: 1, protobuf: { 1: <command>, 2: true } } }
  binary:   { shards: { one: mqtt://<lab.shard-1> }, command: { topic: in/<serial>, qos: 1, id: { bytes: 1 to 17 } }, answer: { topic: out/<serial>, qos: 1, bytes: <command.bytes> 01 } }
  named:    { mqtt: 5, shards: { one: mqtt://<lab.shard-1> }, command: { topic: in/<serial>, qos: 1, id: { property: command-id } }, answer: { topic: out/<serial>, qos: 1, text: done, property: { correlation_data: <command.uuid> } } }
commands:
  given:    { to: json, post: <lab.api>/v1/hubs/<serial>/commands, json: { action: switch, ttl_ms: 40000 }, ok: 202, id: { theirs: $.id } }
  ours:     { to: json, post: <lab.api>/v1/hubs/<serial>/commands, json: { id: <command>, action: switch, ttl_ms: 40000 }, ok: 202 }
  beside:   { to: property, post: <lab.api>/v1/hubs/<serial>/commands, json: { id: <command.uuid>, action: switch, ttl_ms: 40000 }, ok: 202 }
  buffered: { to: buffers, publish: in/<serial>, qos: 1, protobuf: { 1: switch, 2: { 1: <command.bytes>, 2: 1.5 } } }
  packed:   { to: binary, publish: in/<serial>, qos: 1, bytes: 07 <command.bytes> ff }
  labelled: { to: named, publish: in/<serial>, qos: 1, text: switch, property: { command-id: <command>, content: none } }
"#;

/// Exit code, result and summary of a run of these groups.
fn run(settings: &str, groups: &str, expect: &str) -> (i32, Value, String) {
    let home = Home::new();
    home.write("target.yaml", &TARGET.replace("SETTINGS", settings));
    let hubs = ["json", "property", "buffers", "binary", "named"].map(|device| {
        format!("  h-{device}: {{ device: {device}, count: 5, connect: {{ over: 100ms }} }}\n")
    });
    let profile = format!(
        "target: target.yaml\nduration: 4s\ndrain: 20s\nhubs:\n{}issuers:\n{groups}expect:\n{expect}",
        hubs.concat()
    );
    let profile = home.write("profile.yaml", &profile).display().to_string();
    let finished = home.finish(&["run", &profile], LIMIT);
    let result = finished.result();
    (finished.code, result, finished.stdout)
}

fn group(name: &str, command: &str, to: &str, more: &str) -> String {
    format!(
        "  {name}: {{ command: {command}, to: h-{to}, arrivals: {{ even: [ 4/s for 2s, 0/s for 2s ] }}, in_time: 30s, ttl: 40s{more} }}\n"
    )
}

#[test]
fn hubs_find_the_id_wherever_it_stands_and_whoever_gave_it() {
    let groups = [
        group("theirs", "given", "json", ""),
        group("mine", "ours", "json", ""),
        group("correlated", "beside", "property", ""),
        group("protobuf", "buffered", "buffers", ""),
        group("bytes", "packed", "binary", ""),
        group("labels", "labelled", "named", ""),
    ];
    let expect = "  - commands in time == 100%\n  - commands duplicated == 0\n  - commands unexpected == 0\n  - commands lost == 0\n";
    let (code, result, stdout) = run("{ service_ms: 1 }", &groups.concat(), expect);
    assert_eq!(code, 0, "{stdout}");
    for row in result["ledger"].as_array().unwrap() {
        let in_time = json!({ "state": "in time", "count": row["due"] });
        assert!(
            row["states"].as_array().unwrap().contains(&in_time),
            "{row}"
        );
        assert!((7..=9).contains(&row["due"].as_u64().unwrap()), "{row}");
    }
}

#[test]
fn what_is_tried_again_under_another_id_is_done_twice() {
    // The lab takes longer to accept a command than its issuer waits, and accepts it all the same.
    let slow = "{ service_ms: 250 }";
    let retry = ", timeout: 120ms, retry: { fixed: { every: 50ms, attempts: 2 } }";
    let groups = [
        group("app", "ours", "json", retry),
        group(
            "forgetful",
            "ours",
            "json",
            &format!("{retry}, idempotency: off"),
        ),
    ];
    let expect = "  - app duplicated == 0\n  - forgetful duplicated == 0\n";
    let (code, result, stdout) = run(slow, &groups.concat(), expect);
    assert_eq!(code, 3, "{stdout}");
    let groups = result["ledger"].as_array().unwrap();
    let duplicated = |name: &str| {
        let row = groups.iter().find(|row| row["group"] == name);
        row.and_then(|row| row["duplicated"].as_u64())
            .unwrap_or_else(|| panic!("{groups:?}"))
    };
    assert_eq!(duplicated("app"), 0, "{stdout}");
    // Whether the first attempt is given up is a matter of the lab's speed, which nothing makes higher.
    assert!(duplicated("forgetful") >= 6, "{stdout}");
}

//! Issuers before an API that misbehaves, and what they make of `Retry-After`: the server's log beside the report and the ledger.

use super::broker::Broker;
use super::http::{Row, ending, malformed, odd, says, server, slow};
use super::peer::{Peer, Seen};
use super::stage::{count, operation, run};
use crate::support::program::Home;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Of each group: 4/s for 2 s.
const COMMANDS: usize = 8;

/// Files with a group of issuers for each server: `retry` is their policy, `more` stands behind the address of the command.
fn files(groups: &[(String, Peer, &str, &str)], broker: &Peer) -> (String, String) {
    let mut target = format!(
        "environment: test\ndevices: {{ hub: {{ shards: {{ one: \"mqtt://{}\" }}, command: {{ topic: d/<serial>/cmd, id: {{ json: $.id }} }}, answer: {{ topic: d/<serial>/evt, json: {{ id: <command> }} }} }} }}\ncommands:\n",
        broker.address
    );
    let mut profile = "target: target.yaml
duration: 2s
drain: 6s
hubs: { homes: { device: hub, count: 1, connect: { over: 10ms } } }
expect: [ hubs connected == 100% ]
issuers:
"
    .to_owned();
    for (name, peer, more, retry) in groups {
        target += &format!(
            "  c-{name}: {{ to: hub, post: \"http://{}/\", json: {{ id: <command> }}{more} }}\n",
            peer.address
        );
        profile += &format!(
            "  {name}: {{ command: c-{name}, to: homes, arrivals: {{ even: [ 4/s for 2s ] }}, in_time: 1s, ttl: 60s, timeout: 1s{retry} }}\n"
        );
    }
    (profile, target)
}

/// How many commands of a group ended in this state.
fn state(result: &Value, group: &str, wanted: &str) -> usize {
    let groups = result["ledger"].as_array().unwrap();
    let row = groups.iter().find(|row| row["group"] == group).unwrap();
    assert_eq!(row["adds_up"], true, "{row}");
    let states = row["states"].as_array().unwrap();
    let state = states.iter().find(|state| state["state"] == wanted);
    count(state.unwrap_or_else(|| panic!("{row}")), "count")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_misbehaviour_has_its_outcome_for_commands_too() {
    let broker = Broker::right().serve().await;
    let mut rows: Vec<Row> = [slow(), ending(), malformed(), odd()]
        .into_iter()
        .flatten()
        .filter(|row| row.step.is_empty())
        .collect();
    // What a journey keeps, a command has for its id.
    for row in malformed().into_iter().filter(|row| !row.step.is_empty()) {
        let step = ", id: { theirs: $.id }";
        rows.push(Row { step, ..row });
    }
    let mut groups = Vec::new();
    for row in &rows {
        let peer = server(row.moves.clone()).await;
        groups.push((row.name.to_owned(), peer, row.step, ""));
    }
    let (profile, target) = files(&groups, &broker);
    let home = Home::new();
    let result = run(&home, &profile, &target).await.result();
    for (row, (name, peer, ..)) in rows.iter().zip(&groups) {
        let told = operation(&result, name);
        assert_eq!(peer.said(), COMMANDS, "{name}: requests that arrived");
        assert_eq!(count(told, "attempts"), COMMANDS, "{name}: {told}");
        assert_eq!(
            told["outcomes"][0]["outcome"], row.outcome,
            "{name}: {told}"
        );
        assert_eq!(count(&told["outcomes"][0], "attempts"), COMMANDS, "{name}");
        // After anything but a plain refusal the target may have the command.
        let refused = if row.outcome.starts_with("refused") {
            COMMANDS
        } else {
            0
        };
        assert_eq!(state(&result, name, "refused"), refused, "{name}");
        assert_eq!(state(&result, name, "not sent"), 0, "{name}");
    }
}

/// The shortest gap between two requests for the same command, by the server's log.
fn shortest_gap(peer: &Peer) -> Duration {
    let mut last: Vec<(String, Instant)> = Vec::new();
    let mut shortest = Duration::MAX;
    for line in peer.log() {
        let Seen::Bytes(bytes) = &line.seen else {
            continue;
        };
        let text = String::from_utf8_lossy(bytes);
        let body: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        let id = body["id"].as_str().unwrap().to_owned();
        match last.iter_mut().find(|(known, _)| *known == id) {
            Some((_, at)) => {
                shortest = shortest.min(line.at - *at);
                *at = line.at;
            }
            None => last.push((id, line.at)),
        }
    }
    shortest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retry_after_is_respected_where_the_policy_says_so_and_nowhere_else() {
    let broker = Broker::right().serve().await;
    let busy = |status: &str| {
        says(format!("HTTP/1.1 {status}\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n").as_bytes())
    };
    let policy = |respects: bool| {
        format!(
            ", retry: {{ fixed: {{ every: 50ms, attempts: 2 }}, respect_retry_after: {respects} }}"
        )
    };
    let (polite, rude) = (policy(true), policy(false));
    let (many, full) = ("429 Too Many Requests", "503 Service Unavailable");
    let groups = [
        ("polite-429", many, &polite),
        ("polite-503", full, &polite),
        ("rude-429", many, &rude),
        ("rude-503", full, &rude),
        // It is about these two statuses only.
        ("polite-500", "500 Internal Server Error", &polite),
    ];
    let mut peers = Vec::new();
    for (name, status, policy) in groups {
        let peer = server(busy(status)).await;
        peers.push((name.to_owned(), peer, "", policy.as_str()));
    }
    let (profile, target) = files(&peers, &broker);
    let home = Home::new();
    let result = run(&home, &profile, &target).await.result();
    for (name, peer, ..) in &peers {
        let told = operation(&result, name);
        assert_eq!(peer.said(), 2 * COMMANDS, "{name}");
        assert_eq!(count(told, "attempts"), 2 * COMMANDS, "{name}");
        let gap = shortest_gap(peer);
        let waits = name.starts_with("polite") && !name.ends_with("500");
        // A machine may make a gap longer and never shorter; one of eight is not made two seconds long.
        assert_eq!(gap >= Duration::from_secs(2), waits, "{name}: {gap:?}");
    }
}

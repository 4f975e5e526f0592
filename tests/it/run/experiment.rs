//! Whole runs with an experiment whose faults wait, overlap and come again; and what a run leaves that is killed.

use super::{LIMIT, lab_target, profile};
use crate::support::program::{Home, eventually};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::time::Duration;

fn mark(result: &Value, name: &str) -> Value {
    let rows = result["marks"].as_array().expect("marks are a list");
    let found = rows.iter().find(|row| row["name"] == name);
    found
        .unwrap_or_else(|| panic!("no mark {name}: {rows:?}"))
        .clone()
}

fn us(row: &Value, key: &str) -> i64 {
    row[key]
        .as_i64()
        .unwrap_or_else(|| panic!("no {key} in {row}"))
}

/// `again` may begin only when the target has recovered from `slow`, which the run itself has to find out.
#[test]
fn faults_wait_for_a_recovery_overlap_and_come_again() {
    let home = Home::new();
    let profile = profile(
        &home,
        &lab_target(),
        25,
        "expect: [ hubs connected >= 50% during again, recovery <= 20s after slow, recovery <= 20s after again-2 ]\n",
    );
    let chaos = "about: One after another.
steady: [ hubs connected >= 99% for 3s ]
faults:
  slow: { latency: { link: gateway-to-db, add: 60ms, to: answers }, at: 10500ms, for: 1500ms }
  more: { latency: { link: gateway-to-db, add: 60ms, to: answers }, at: 300ms into slow, for: 1s }
  again: { latency: { link: gateway-to-db, add: 60ms, to: answers }, at: 10s after slow recovers, for: 500ms, repeat: { times: 2, every: 1s } }
stop_if: [ commands in time < 10% for 5s, blind > 90% ]
";
    let chaos = home.write("chaos.yaml", chaos).display().to_string();
    let finished = home.finish(&["run", &profile, "--chaos", &chaos], LIMIT);
    finished.expect_code(0);
    let result = finished.result();
    let (slow, more) = (mark(&result, "slow"), mark(&result, "more"));
    assert!(
        us(&more, "begin_us") - us(&slow, "begin_us") >= 300_000,
        "{more}"
    );
    assert!(us(&more, "end_us") < us(&slow, "end_us"), "{slow}\n{more}");
    let (first, second) = (mark(&result, "again-1"), mark(&result, "again-2"));
    assert!(
        us(&first, "begin_us") - us(&slow, "end_us") >= 10_000_000,
        "{first}"
    );
    assert!(
        us(&second, "begin_us") - us(&first, "begin_us") >= 1_000_000,
        "{second}"
    );
    assert_eq!(result["run"]["unfinished"], false);
    let recoveries = result["recoveries"].as_array().unwrap();
    assert_eq!(recoveries.len(), 4, "{recoveries:?}");
}

#[test]
fn a_killed_run_leaves_a_readable_folder_and_no_proxy() {
    let home = Home::new();
    let profile = profile(
        &home,
        &lab_target(),
        60,
        "expect: [ hubs connected >= 50% ]\n",
    );
    let running = home.start(&["run", &profile], &[]);
    let read = || -> Option<Value> {
        let files = home.files();
        let (_, text) = files
            .iter()
            .find(|(path, _)| path.ends_with("result.json"))?;
        // Never half of it.
        Some(serde_json::from_slice(text).expect("what is there is JSON"))
    };
    eventually(
        "a report of some seconds of load",
        Duration::from_secs(60),
        || read().filter(|result| result["run"]["lasted_s"].as_u64() > Some(0)),
    );
    let proxies = || {
        let files = home.files().into_iter();
        files
            .filter(|(path, _)| path.display().to_string().contains("/proxies/"))
            .count()
    };
    assert_eq!(proxies(), 1, "the lab's link is carried");
    running.signal(Signal::SIGKILL);
    running.wait(LIMIT).expect_code(128 + 9);
    let left = read().unwrap();
    assert_eq!(left["run"]["unfinished"], true);
    assert_eq!(
        left["verdict"]["verdict"], "inconclusive",
        "{}",
        left["verdict"]
    );
    eventually(
        "the watchdog has ended the proxy",
        Duration::from_secs(30),
        || (proxies() == 0).then_some(()),
    );
    let healed = home.finish(&["heal", "--all"], LIMIT);
    healed.expect_code(0);
    assert_eq!(healed.stdout.trim(), "nothing to heal");
}

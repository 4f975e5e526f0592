//! The shipped target with mutual TLS: certificates that are renewed, hubs that are moved, each against the healthy lab and
//! against its defects.

use super::{LIMIT, shipped};
use crate::support::program::{Finished, Home};
use serde_json::Value;

/// So many hubs that checks of all of them through the database take longer than a session lives with the defect.
const HUBS: u32 = 240;

/// A profile of half a minute against the shipped target.
fn profile(home: &Home, seconds: u32, rest: &str) -> String {
    let target = shipped("profiles/targets/lab-fleet.yaml");
    let text = format!(
        "about: A wave in seconds.
target: {}
seed: 7
duration: {seconds}s
baseline: 10s
sustain: 4s
settle: 25s
drain: 2s
hubs:
  homes:
    device: hub
    count: {HUBS}
    connect: {{ over: 3s }}
    keep_alive: 30s
    timeout: 3s
    reconnect: {{ full_jitter: {{ base: 200ms, cap: 500ms }}, first: 1s, healthy_after: 2s }}
issuers:
  app: {{ command: switch, to: homes, arrivals: {{ even: [ 20/s for {seconds}s ] }}, in_time: 3s, ttl: 5s, timeout: 3s }}
{rest}",
        target.display()
    );
    home.write("profile.yaml", &text).display().to_string()
}

fn certificate_wave(home: &Home, defects: &[&str]) -> Finished {
    let rest = "timeline:
  spread: { at: 10s, renew: { hubs: homes, share: 100%, within: 3s, jitter: full } }
  refresh: { at: 28s, operate: refresh-certificates }
expect:
  - connect success >= 99% during spread
  - hubs lost == 0 during spread
  - hubs lost == 0
  - pool wait mean < 50ms
  - recovery <= 20s after each trigger
";
    let profile = profile(home, 34, rest);
    let mut arguments = vec!["run", &profile];
    arguments.extend(defects.iter().flat_map(|defect| ["--on", *defect]));
    home.finish(&arguments, LIMIT)
}

fn number(row: &Value, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("no {key} in {row}"))
}

/// Every hub shows a second certificate, none shows its old one again, and the lab's own list of sessions says the same.
#[test]
fn renewed_certificates_are_seen_on_either_side() {
    let home = Home::new();
    let finished = certificate_wave(&home, &[]);
    finished.expect_code(0);
    let result = finished.result();
    let row = &result["certificates"][0];
    let hubs = u64::from(HUBS);
    assert_eq!(number(row, "renewals"), hubs, "{row}");
    assert_eq!(number(row, "changed"), hubs, "{row}");
    assert_eq!(number(row, "handshakes_before"), hubs, "{row}");
    assert_eq!(number(row, "handshakes_old"), 0, "{row}");
    assert_eq!(number(&row["seen"], "as_shown"), hubs, "{row}");
    let example = &row["examples"][0];
    assert_ne!(example["before"], example["after"]);
    assert_eq!(example["after"], example["seen_by_target"]);
    assert_eq!(result["hubs"][0]["lost"], 0);
}

/// The target's checks go through the database and a slow one ends the session: hubs are lost, and the reason is named.
#[test]
fn checks_through_the_database_fail_the_wave() {
    let home = Home::new();
    let finished = certificate_wave(&home, &["auth-from-database", "slow-auth-expires-session"]);
    finished.expect_code(3);
    let result = finished.result();
    let reasons = result["verdict"]["reasons"].to_string();
    assert!(reasons.contains("hubs lost == 0"), "{reasons}");
    assert!(number(&result["hubs"][0], "lost") > 0, "{result}");
}

fn rebalance(home: &Home, defects: &[&str]) -> Finished {
    let rest = "timeline:
  move: { at: 10s, operate: rebalance }
expect:
  - commands in time >= 98%
  - commands lost == 0
  - hubs connected >= 99% within 8s after move
  - stale-dispatches value == 0
";
    let profile = profile(home, 24, rest);
    let mut arguments = vec!["run", &profile];
    arguments.extend(defects.iter().flat_map(|defect| ["--on", *defect]));
    home.finish(&arguments, LIMIT)
}

/// Hubs that were moved ask for their shard and go there; commands follow them.
#[test]
fn commands_follow_hubs_that_were_moved() {
    let home = Home::new();
    let finished = rebalance(&home, &[]);
    finished.expect_code(0);
    let result = finished.result();
    let row = &result["places"][0];
    // A share of 30 % of the hubs; which ones the lab's hash decides.
    let moved = number(row, "moved_hubs");
    assert!((30..150).contains(&moved), "{row}");
    assert_eq!(number(row, "stale_seen"), 0, "{row}");
    let to_moved = row["commands_to_moved"].as_array().unwrap();
    let in_time = to_moved.iter().find(|state| state["state"] == "in time");
    assert!(number(in_time.unwrap(), "count") > 0, "{row}");
    let find = result["operations"].as_array().unwrap();
    let find = find.iter().find(|row| row["kind"] == "find").unwrap();
    assert!(number(find, "ok") >= u64::from(HUBS) + moved, "{find}");
}

/// Dispatch believes the old map: the ghost sees commands on the shard that hubs have left, as the lab's own counter does.
#[test]
fn dispatch_by_the_old_map_fails_the_rebalance() {
    let home = Home::new();
    let defects = ["shard-map-ignores-generation", "immediate-dispatch-retry"];
    let finished = rebalance(&home, &defects);
    finished.expect_code(3);
    let result = finished.result();
    let reasons = result["verdict"]["reasons"].to_string();
    assert!(reasons.contains("stale-dispatches value"), "{reasons}");
    assert!(
        number(&result["places"][0], "stale_seen") > 0,
        "{}",
        result["places"]
    );
}

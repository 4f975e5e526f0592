//! The shipped target with MQTT 5 over mutual TLS: certificates that are renewed, sessions that authenticate again, hubs that are
//! moved, each against the healthy lab and against its defects.

use super::{LIMIT, shipped};
use crate::support::program::{Finished, Home};
use serde_json::Value;

/// So many hubs that checks of all of them through the database take longer than a session lives with the defect.
const HUBS: u32 = 240;

/// A profile of half a minute against the shipped target, with groups of hubs of these devices: the name of each, its device, how
/// many they are, and the command that they get.
fn profile(home: &Home, seconds: u32, groups: &[(&str, &str, u32, &str)], rest: &str) -> String {
    let target = shipped("profiles/targets/lab-fleet.yaml");
    let mut text = format!(
        "about: A wave in seconds.
target: {}
seed: 7
duration: {seconds}s
baseline: 10s
sustain: 4s
settle: 25s
drain: 2s
hubs:
",
        target.display()
    );
    for (name, device, count, _) in groups {
        text += &format!(
            "  {name}: {{ device: {device}, count: {count}, connect: {{ over: 3s }}, keep_alive: 30s, timeout: 3s, \
             reconnect: {{ full_jitter: {{ base: 200ms, cap: 500ms }}, first: 1s, healthy_after: 2s }} }}\n"
        );
    }
    text += "issuers:\n";
    for (name, _, _, command) in groups {
        text += &format!(
            "  to-{name}: {{ command: {command}, to: {name}, arrivals: {{ even: [ 10/s for {seconds}s ] }}, in_time: 3s, ttl: 5s, timeout: 3s }}\n"
        );
    }
    let file = home.write("profile.yaml", &(text + rest));
    file.display().to_string()
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
    let groups = [("homes", "hub", HUBS, "switch")];
    let profile = profile(home, 34, &groups, rest);
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

/// Hubs that ask for their shard, and locks that follow Server References, are moved by DISCONNECT 0x9C; later the hubs authenticate
/// again on their live sessions.
fn rebalance(home: &Home, defects: &[&str]) -> Finished {
    let rest = "timeline:
  move: { at: 10s, operate: rebalance }
  again: { at: 25s, reauthenticate: { hubs: homes, share: 100%, within: 1s, jitter: full } }
expect:
  - commands in time >= 98%
  - commands lost == 0
  - commands stale == 0
  - hubs connected >= 99% within 8s after move
  - hubs lost == 0 during again
  - reauthenticate success == 100%
  - reauthenticate latency p99 < 3s
  - stale-dispatches value == 0
";
    let groups = [
        ("homes", "hub", HUBS / 2, "switch"),
        ("doors", "lock", HUBS / 2, "unlock"),
    ];
    let profile = profile(home, 30, &groups, rest);
    let mut arguments = vec!["run", &profile];
    arguments.extend(defects.iter().flat_map(|defect| ["--on", *defect]));
    home.finish(&arguments, LIMIT)
}

fn named<'a>(rows: &'a Value, key: &str, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter()
        .find(|row| row[key] == name)
        .unwrap_or_else(|| panic!("no {name} in {rows:?}"))
}

/// Those that were moved go to their new shard, by asking or by following, and commands follow them.
#[test]
fn commands_follow_hubs_that_were_moved() {
    let home = Home::new();
    let finished = rebalance(&home, &[]);
    finished.expect_code(0);
    let result = finished.result();
    let mut moved_in_all = 0;
    for row in result["places"].as_array().unwrap() {
        let moved = number(row, "moved_hubs");
        moved_in_all += moved;
        assert_eq!(number(row, "stale_seen"), 0, "{row}");
        assert_eq!(number(row, "ghost_gaps"), 0, "{row}");
        let in_time = named(&row["commands_to_moved"], "state", "in time");
        assert!(number(in_time, "count") > 0, "{row}");
        // One reference for each, which locks follow and hubs do not.
        let followed = row["group"] == "doors";
        let told = row["references"].as_array().unwrap();
        let told = told
            .iter()
            .filter(|told| told["verdict"].as_str().unwrap().starts_with("followed") == followed);
        let times: u64 = told.map(|told| number(told, "count")).sum();
        assert_eq!(times, moved, "{row}");
        let hubs = named(&result["hubs"], "group", row["group"].as_str().unwrap());
        let causes = &hubs["losses"];
        let cause = named(causes, "cause", "0x9C use another server");
        assert_eq!(number(cause, "count"), moved, "{causes}");
    }
    // A share of 30 % of all of them.
    assert_eq!(moved_in_all, u64::from(HUBS) * 3 / 10);
    let find = named(&result["operations"], "kind", "find");
    let asked = u64::from(HUBS / 2) + number(&result["places"][0], "moved_hubs");
    assert!(number(find, "ok") >= asked, "{find}");
    let again = named(&result["operations"], "name", "reauthenticate");
    assert_eq!(number(again, "ok"), u64::from(HUBS / 2), "{again}");
}

/// Dispatch believes the old map: the ghosts see commands on the shard that hubs have left, as the lab's own counter does.
#[test]
fn dispatch_by_the_old_map_fails_the_rebalance() {
    let home = Home::new();
    let defects = ["shard-map-ignores-generation", "immediate-dispatch-retry"];
    let finished = rebalance(&home, &defects);
    finished.expect_code(3);
    let result = finished.result();
    let reasons = result["verdict"]["reasons"].to_string();
    assert!(reasons.contains("stale-dispatches value"), "{reasons}");
    assert!(reasons.contains("commands stale == 0"), "{reasons}");
    let places = result["places"].as_array().unwrap();
    let stale: u64 = places.iter().map(|row| number(row, "stale_seen")).sum();
    assert!(stale > 0, "{places:?}");
    assert!(places.iter().any(|row| number(row, "stale_longest_us") > 0));
}

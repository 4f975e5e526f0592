//! Faults and operations of the target in whole runs: seen, measured, undone.

use super::{LIMIT, lab_target, shipped};
use crate::support::postgres::postgres;
use crate::support::program::{Finished, Home, eventually};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Riders and commands on the lab for `seconds`, with room for one fault in the middle.
pub fn busy_profile(home: &Home, target: &str, seconds: u32, rest: &str) -> String {
    let text = format!(
        "about: A short busy time.
target: {target}
seed: 11
duration: {seconds}s
baseline: 10s
sustain: 4s
settle: 15s
drain: 3s
hubs:
  homes:
    device: hub
    count: 60
    connect: {{ over: 1s }}
    keep_alive: 30s
    timeout: 1s
    reconnect: {{ full_jitter: {{ base: 200ms, cap: 1s }}, first: 200ms, healthy_after: 2s }}
riders:
  commuters:
    journey: unlock-and-ride
    arrivals: {{ even: [ 12/s for {seconds}s ] }}
    timeout: 2s
issuers:
  app: {{ command: switch, to: homes, arrivals: {{ even: [ 12/s for {seconds}s ] }}, in_time: 2s, ttl: 10s, timeout: 2s }}
{rest}"
    );
    home.write("busy.yaml", &text).display().to_string()
}

const SLOW_DATABASE: &str = "about: Slow.
faults:
  slow: { latency: { link: gateway-to-db, add: 300ms, to: answers }, at: 12s, for: 4s }
expect: [ recovery <= 60s from removal of slow ]
";

const KILL_SHARD: &str = "about: Kill.
faults:
  kill: { kill: { component: shard-1 }, at: 12s, for: 3s }
expect: [ recovery <= 60s from removal of kill ]
";

fn mark(result: &Value, name: &str) -> Value {
    let rows = result["marks"].as_array().expect("marks are a list");
    rows.iter()
        .find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("no mark {name}: {rows:?}"))
        .clone()
}

fn recovery(result: &Value, name: &str) -> Value {
    let rows = result["recoveries"]
        .as_array()
        .expect("recoveries are a list");
    rows.iter()
        .find(|row| row["mark"] == name)
        .unwrap_or_else(|| panic!("no recovery from {name}: {rows:?}"))
        .clone()
}

fn wait_mean_us(result: &Value, span: &str) -> f64 {
    let spans = result["pools"][0]["spans"]
        .as_array()
        .expect("spans are a list");
    let row = spans
        .iter()
        .find(|row| row["span"] == span)
        .unwrap_or_else(|| panic!("no span {span}: {spans:?}"));
    row["wait_mean_us"]
        .as_f64()
        .unwrap_or_else(|| panic!("no wait in {row}"))
}

fn slow_database_shows(finished: &Finished) {
    let result = finished.result();
    let slow = mark(&result, "slow");
    assert!(
        slow["observed"].is_string() && slow["end_us"].is_i64() && slow["problem"].is_null(),
        "{slow}"
    );
    let (before, during) = (
        wait_mean_us(&result, "before slow"),
        wait_mean_us(&result, "during slow"),
    );
    assert!(
        during > 5.0 * before.max(1_000.0),
        "pool wait rose from {before} to {during} us only"
    );
    let back = recovery(&result, "slow");
    assert!(
        back["from_removal_us"].is_u64() && back["from_injection_us"].is_u64(),
        "{back}"
    );
}

#[test]
fn a_slow_database_is_seen_in_the_pool_and_recovered_from() {
    let home = Home::new();
    let profile = busy_profile(
        &home,
        &lab_target(),
        24,
        "expect: [ pool wait mean < 60s ]\n",
    );
    let slow = home.write("slow.yaml", SLOW_DATABASE).display().to_string();
    let finished = home.finish(&["run", &profile, "--chaos", &slow], LIMIT);
    finished.expect_code(0);
    slow_database_shows(&finished);
    home.finish(&["heal", "--all"], LIMIT).expect_code(0);
}

#[test]
fn a_slow_postgresql_is_seen_in_the_pool_and_recovered_from() {
    let Some(postgres) = postgres() else { return };
    let home = Home::new();
    let profile = busy_profile(
        &home,
        &lab_target(),
        24,
        "expect: [ pool wait mean < 60s ]\n",
    );
    let slow = home.write("slow.yaml", SLOW_DATABASE).display().to_string();
    let finished = home.finish(
        &[
            "run",
            &profile,
            "--chaos",
            &slow,
            "--database",
            &postgres.url(),
        ],
        LIMIT,
    );
    finished.expect_code(0);
    slow_database_shows(&finished);
}

fn killed_shard_shows(finished: &Finished) {
    finished.expect_code(0);
    let result = finished.result();
    let killed = mark(&result, "kill");
    assert!(
        killed["observed"].is_string() && killed["end_us"].is_i64(),
        "{killed}"
    );
    // The hubs of one shard of two were gone while it was down; the others stayed.
    let least = result["hubs"][0]["standing_least"].as_u64().unwrap();
    assert!(
        (1..60).contains(&least),
        "at least {least} of 60 hubs stood"
    );
    let away_us = recovery(&result, "kill")["from_injection_us"]
        .as_u64()
        .expect("a time");
    assert!(
        away_us >= 3_000_000,
        "the shard was down for 3 s, the recovery took {away_us} us"
    );
    let other = result["ledger"][0]["shards"][1].clone();
    assert_eq!(other["shard"], "shard-2");
    let states = other["states"].as_array().expect("a list of states");
    for state in states {
        let count = state["count"].as_u64().unwrap();
        assert!(
            state["state"] == "in time" || count == 0,
            "a command for the other shard: {other}"
        );
    }
    assert!(
        states
            .iter()
            .any(|state| state["count"].as_u64() > Some(50)),
        "{other}"
    );
}

#[test]
fn a_killed_shard_is_seen_and_comes_back() {
    let home = Home::new();
    let profile = busy_profile(
        &home,
        &lab_target(),
        24,
        "expect: [ hubs connected >= 99% at end ]\n",
    );
    let kill = home.write("kill.yaml", KILL_SHARD).display().to_string();
    killed_shard_shows(&home.finish(&["run", &profile, "--chaos", &kill], LIMIT));
}

#[test]
fn a_killed_shard_over_postgresql_is_seen_and_comes_back() {
    let Some(postgres) = postgres() else { return };
    let home = Home::new();
    let profile = busy_profile(
        &home,
        &lab_target(),
        24,
        "expect: [ hubs connected >= 99% at end ]\n",
    );
    let kill = home.write("kill.yaml", KILL_SHARD).display().to_string();
    let arguments = [
        "run",
        &profile,
        "--chaos",
        &kill,
        "--database",
        &postgres.url(),
    ];
    killed_shard_shows(&home.finish(&arguments, LIMIT));
}

/// An operation whose undo takes a second to answer.
struct SlowUndo {
    url: String,
    asked: Arc<AtomicBool>,
}

impl SlowUndo {
    fn start() -> SlowUndo {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&asked);
        // Ends with the test's process; it serves this test alone.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(&stream).lines().map(Result::unwrap);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                if head[0].contains("/undo") {
                    told.store(true, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_secs(1));
                }
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .unwrap();
            }
        });
        SlowUndo { url, asked }
    }

    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }
}

#[test]
fn ctrl_c_in_a_fault_leaves_nothing_behind() {
    let home = Home::new();
    let profile = busy_profile(
        &home,
        &lab_target(),
        60,
        "expect: [ hubs connected >= 1% ]\n",
    );
    let slow = home
        .write("slow.yaml", &SLOW_DATABASE.replace("for: 4s", "for: 40s"))
        .display()
        .to_string();
    let undos = SlowUndo::start();
    let target = fs::read_to_string(lab_target()).unwrap().replace(
        "operations: ",
        &format!(
            "operations:\n  odd: {{ do: {{ post: {0}/do }}, undo: {{ post: {0}/undo }} }}\n ",
            undos.url
        ),
    );
    let target = home.write("odd.yaml", &target).display().to_string();
    let odd = "faults: { odd: { operate: odd, at: 1s into slow } }\n";
    let odd = home.write("odd-chaos.yaml", odd).display().to_string();
    let running = home.start(
        &[
            "run", &profile, "--target", &target, "--chaos", &slow, "--chaos", &odd,
        ],
        &[],
    );
    eventually("the fault's effect", Duration::from_secs(60), || {
        let events = home
            .files()
            .into_iter()
            .find(|(path, _)| path.ends_with("events.jsonl"))?;
        String::from_utf8_lossy(&events.1)
            .contains("odd")
            .then_some(())
    });
    running.signal(Signal::SIGINT);
    eventually("the undo is under way", LIMIT, || {
        undos.is_asked().then_some(())
    });
    // Neither of them cuts it short.
    running.signal(Signal::SIGINT);
    running.signal(Signal::SIGTERM);
    running.wait(LIMIT).expect_code(130);
    let healed = home.finish(&["heal", "--all"], LIMIT);
    healed.expect_code(0);
    assert!(
        healed.stdout.contains("nothing to heal"),
        "{}",
        healed.stdout
    );
}

#[test]
fn a_run_goes_on_until_recovery_is_decided() {
    let home = Home::new();
    // The sustain time of 4 s ends after the load.
    let rest = "timeline: { drop: { at: 11s, disconnect: { hubs: homes, share: 50%, within: 0s, by: close } } }
expect: [ recovery <= 30s after drop ]\n";
    let finished = home.finish(
        &["run", &busy_profile(&home, &lab_target(), 12, rest)],
        LIMIT,
    );
    finished.expect_code(0);
    let result = finished.result();
    assert!(
        result["run"]["lasted_s"].as_u64().unwrap() >= 15,
        "{}",
        result["run"]
    );
    assert!(
        result["ledger"][0]["due"].as_u64().unwrap() > 144,
        "arrivals go on at their last rate"
    );
}

#[test]
fn metrics_that_do_not_answer_are_inconclusive() {
    let home = Home::new();
    // Accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let target = fs::read_to_string(lab_target())
        .unwrap()
        .replace("<lab.metrics>", &address);
    let target = home.write("blind.yaml", &target).display().to_string();
    let profile = busy_profile(&home, &target, 6, "expect: [ pool wait mean < 60s ]\n");
    home.finish(&["run", &profile], LIMIT).expect_code(4);
}

/// The shipped profile with its times cut, so that three runs of it fit into a test.
fn short_refresh(home: &Home) -> String {
    let text = fs::read_to_string(shipped("profiles/certificate-refresh.yaml")).unwrap();
    let cut = [
        (
            "target: targets/lab.yaml".to_owned(),
            format!("target: {}", lab_target()),
        ),
        ("duration: 60s".to_owned(), "duration: 24s".to_owned()),
        ("baseline: 15s".to_owned(), "baseline: 10s".to_owned()),
        ("sustain: 15s".to_owned(), "sustain: 6s".to_owned()),
        (
            "timeout: 5s\n    retry".to_owned(),
            "timeout: 2s\n    retry".to_owned(),
        ),
        ("settle: 60s".to_owned(), "settle: 8s".to_owned()),
        (
            "timeout: 5s\n    telemetry".to_owned(),
            "timeout: 2s\n    telemetry".to_owned(),
        ),
        (
            "cap: 8s }, first: 2s".to_owned(),
            "cap: 2s }, first: 1s".to_owned(),
        ),
        ("for 60s".to_owned(), "for 24s".to_owned()),
        ("at: 20s, operate".to_owned(), "at: 11s, operate".to_owned()),
    ];
    let text = cut.iter().fold(text, |text, (from, to)| {
        assert!(
            text.contains(from.as_str()),
            "the shipped profile has no `{from}` any more"
        );
        text.replace(from.as_str(), to)
    });
    home.write("refresh.yaml", &text).display().to_string()
}

fn failed_lines(result: &Value) -> Vec<String> {
    let rows = result["judgements"]
        .as_array()
        .expect("judgements are a list");
    let failed = rows.iter().filter(|row| row["verdict"] == "fail");
    failed
        .filter_map(|row| row["text"].as_str().map(str::to_owned))
        .collect()
}

/// Healthy it passes; with the checks in the database it fails and names pool wait; where slow checks also end sessions,
/// hubs come back and the report says how often.
fn refresh_verdicts(database: &[&str]) {
    let home = Home::new();
    let profile = short_refresh(&home);
    let run = |defects: &[&str]| {
        let arguments = [&["run", profile.as_str()], database, defects].concat();
        home.finish(&arguments, LIMIT)
    };
    run(&[]).expect_code(0);

    let asked = run(&["--on", "auth-from-database"]);
    asked.expect_code(3);
    let failed = failed_lines(&asked.result());
    assert!(
        failed.iter().any(|line| line.starts_with("pool wait")),
        "{failed:?}"
    );

    let (first, second) = ("auth-from-database", "slow-auth-expires-session");
    let stormed = run(&["--on", first, "--on", second]);
    stormed.expect_code(3);
    let reconnects = recovery(&stormed.result(), "refresh")["reconnects"].clone();
    let extra = reconnects["extra_per_hub"]
        .as_f64()
        .unwrap_or_else(|| panic!("{reconnects}"));
    assert!(extra > 0.2, "sessions expire, hubs come back: {reconnects}");
}

#[test]
fn a_certificate_refresh_passes_on_a_healthy_lab_only() {
    refresh_verdicts(&[]);
}

#[test]
fn a_certificate_refresh_passes_on_a_healthy_lab_over_postgresql_only() {
    let Some(postgres) = postgres() else { return };
    refresh_verdicts(&["--database", &postgres.url()]);
}

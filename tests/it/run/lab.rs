//! Against the embedded lab: a run passes, leaves its files, and nothing else.

use super::{LIMIT, lab_target, profile};
use crate::support::program::{Home, eventually};
use nix::sys::signal::Signal;
use std::fs;
use std::time::Duration;

const HEALTHY: &str =
    "expect: [ commands lost == 0, commands in time >= 95%, hubs connected >= 99% ]\n";

#[test]
fn a_healthy_lab_passes_and_leaves_every_file() {
    let home = Home::new();
    let finished = home.finish(&["run", &profile(&home, &lab_target(), 5, HEALTHY)], LIMIT);
    finished.expect_code(0);
    let run = finished.run.as_ref().expect("a run folder");
    for name in [
        "result.json",
        "report.md",
        "junit.xml",
        "events.jsonl",
        "latency.hlog",
    ] {
        let text =
            fs::read_to_string(run.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!text.trim().is_empty(), "{name} is empty");
    }
    assert!(run.join("inputs/profile.yaml").exists() && run.join("inputs/lab.yaml").exists());
    let result = finished.result();
    assert_eq!(result["verdict"]["verdict"], "pass");
    assert_eq!(
        result["ledger"][0]["due"], 50,
        "10/s for 5 s, the end instant included: {}",
        finished.stdout
    );
    assert_eq!(result["hubs"][0]["accepted"], 20);
    assert!(finished.stdout.contains("PASS"), "{}", finished.stdout);
}

#[test]
fn the_same_seed_gives_the_same_arrivals_and_choices() {
    let rest = "timeline: { drop: { at: 11s, disconnect: { hubs: homes, share: 35%, within: 0s, by: reset } } }
expect: [ commands unexpected == 0 ]\n";
    let counts = || {
        let home = Home::new();
        let profile = profile(&home, &lab_target(), 14, rest);
        // How long recovery takes is the target's choice, and arrivals go on as long.
        let text = fs::read_to_string(&profile).expect("it was just written");
        fs::write(&profile, text.replace("settle: 10s", "settle: 0s")).expect("it can be written");
        let finished = home.finish(&["run", &profile], LIMIT);
        let result = finished.result();
        (
            result["ledger"][0]["due"].clone(),
            result["hubs"][0]["lost"].clone(),
            result["hubs"][0]["accepted"].clone(),
        )
    };
    let first = counts();
    assert_eq!(first, counts());
    // Seven of twenty are dropped and come back; ending a session oneself is no loss.
    assert_eq!(first.2, 27);
}

#[test]
fn accepting_and_never_delivering_fails() {
    let home = Home::new();
    let profile = profile(&home, &lab_target(), 6, "expect: [ commands lost == 0 ]\n");
    let finished = home.finish(&["run", &profile, "--on", "accepts-and-forgets"], LIMIT);
    finished.expect_code(3);
    let states = finished.result()["ledger"][0]["states"].clone();
    let lost = states
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["state"] == "lost")
        .unwrap();
    assert!(lost["count"].as_u64().unwrap() > 0, "{states}");
}

#[test]
fn a_killed_run_leaves_no_lab_behind() {
    let home = Home::new();
    let running = home.start(&["run", &profile(&home, &lab_target(), 60, HEALTHY)], &[]);
    let pids = eventually("the lab's processes", Duration::from_secs(30), || {
        let pids: Vec<u32> = home
            .files()
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "pid"))
            .filter_map(|(_, text)| String::from_utf8_lossy(text).trim().parse().ok())
            .collect();
        (pids.len() >= 4).then_some(pids)
    });
    running.signal(Signal::SIGKILL);
    running.wait(LIMIT);
    for pid in pids {
        eventually(
            "the end of a process of the lab",
            Duration::from_secs(10),
            || (!is_alive(pid)).then_some(()),
        );
    }
}

/// Neither gone nor a zombie that nobody has waited for.
fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}

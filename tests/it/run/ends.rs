//! How a run ends from outside: signals.

use super::{LIMIT, lab_target, profile};
use crate::support::program::{Home, eventually};
use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

#[track_caller]
fn ends_by(signal: Signal, code: i32) {
    let home = Home::new();
    let running = home.start(
        &[
            "run",
            &profile(&home, &lab_target(), 60, "expect: [ commands lost == 0 ]\n"),
        ],
        &[],
    );
    eventually("load", Duration::from_secs(30), || {
        let events = home
            .files()
            .into_iter()
            .find(|(path, _)| path.ends_with("events.jsonl"))?;
        String::from_utf8_lossy(&events.1)
            .contains("zero")
            .then_some(())
    });
    running.signal(signal);
    let told = Instant::now();
    let finished = running.wait(LIMIT);
    finished.expect_code(code);
    // 2 s plus the profile's drain of 2 s, and a second for a machine that is busy with other tests.
    assert!(
        told.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        told.elapsed()
    );
    assert_eq!(finished.result()["verdict"]["exit_code"], code);
    for name in ["report.md", "junit.xml"] {
        assert!(
            finished.run.as_ref().unwrap().join(name).exists(),
            "{name} is missing"
        );
    }
}

#[test]
fn ctrl_c_ends_a_run_with_130_and_its_report() {
    ends_by(Signal::SIGINT, 130);
}

#[test]
fn sigterm_ends_a_run_with_143_and_its_report() {
    ends_by(Signal::SIGTERM, 143);
}

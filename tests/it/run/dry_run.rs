//! `rushhour check` looks at what the faults would touch, and touches nothing.

use super::{LIMIT, profile, shipped};
use crate::support::program::Home;
use std::fs;
use std::process::{Command, Stdio};

const EXPERIMENT: &str = "about: Pause.
faults:
  pause: { pause: { component: broker }, at: 12s, for: 2s }
  emptied: { run: { component: drained }, at: 60s, for: 2s }
";

/// The target of a bare broker with a process and a pair of programs.
fn target(home: &Home, drain: &str) -> String {
    let text = fs::read_to_string(shipped("profiles/targets/mosquitto.yaml")).unwrap();
    let pid_file = home.path().join("broker.pid");
    let components = format!(
        "components:\n  broker: {{ pid_file: {} }}\n  drained: {{ run: [ {drain} ], undo: [ \"true\" ] }}\n",
        pid_file.display()
    );
    home.write("target.yaml", &format!("{text}\n{components}"))
        .display()
        .to_string()
}

#[test]
fn a_check_names_what_the_faults_would_touch() {
    let home = Home::new();
    let mut broker = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = broker.id();
    home.write("broker.pid", &pid.to_string());
    let marker = home.path().join("drained");
    let target = target(&home, &format!("touch, {}", marker.display()));
    let profile = profile(&home, &target, 100, "expect: [ hubs connected >= 1% ]\n");
    let chaos = home.write("chaos.yaml", EXPERIMENT).display().to_string();
    let arguments = ["check", &profile, "--chaos", &chaos];
    let checked = home.finish(&arguments, LIMIT);
    checked.expect_code(0);
    let said = &checked.stdout;
    assert!(said.contains(&format!("process {pid} (")), "{said}");
    assert!(said.contains("started"), "{said}");
    assert!(said.contains("SIGCONT to process"), "{said}");
    assert!(
        said.contains(&format!("touch {}", marker.display())),
        "{said}"
    );
    assert!(!marker.exists(), "nothing was run");
    broker.kill().unwrap();
    broker.wait().unwrap();

    let checked = home.finish(&arguments, LIMIT);
    checked.expect_code(2);
    let wanted = "the fault `pause` could not be injected now";
    assert!(checked.stderr.contains(wanted), "{}", checked.stderr);
}

#[test]
fn a_program_that_is_not_there_is_found_by_the_check() {
    let home = Home::new();
    home.write("broker.pid", &std::process::id().to_string());
    let target = target(&home, "no-such-program-anywhere");
    let profile = profile(&home, &target, 100, "expect: [ hubs connected >= 1% ]\n");
    let chaos = home.write("chaos.yaml", EXPERIMENT).display().to_string();
    let checked = home.finish(&["check", &profile, "--chaos", &chaos], LIMIT);
    checked.expect_code(2);
    let said = &checked.stderr;
    assert!(
        said.contains("no-such-program-anywhere is not installed"),
        "{said}"
    );
    // The process is an ancestor of the program that looks.
    assert!(said.contains("will not be signalled"), "{said}");
}

#[test]
fn what_is_part_of_the_lab_is_no_error() {
    let home = Home::new();
    let chaos = shipped("chaos/black-hole-shard.yaml").display().to_string();
    let profile = shipped("profiles/commuter-burst.yaml")
        .display()
        .to_string();
    let checked = home.finish(&["check", &profile, "--chaos", &chaos], LIMIT);
    checked.expect_code(0);
    let said = &checked.stdout;
    assert!(
        said.contains("part of the lab, known once it runs"),
        "{said}"
    );
}

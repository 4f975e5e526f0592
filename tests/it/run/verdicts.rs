//! A verdict means something: nothing measured never passes.

use super::{LIMIT, lab_target, profile};
use crate::support::program::Home;
use crate::support::service::free_port;

/// A target file for ports on which nobody listens.
pub fn nobody_at(home: &Home, broker: u16, api: u16, environment: &str) -> String {
    let text = format!(
        "about: Nobody is there.
environment: {environment}
devices:
  hub:
    shards: {{ only: \"mqtt://127.0.0.1:{broker}\" }}
    find: balancer
    client_id: <serial>
    command: {{ topic: d/<serial>/cmd, qos: 1, id: {{ json: $.id }} }}
    answer: {{ topic: d/<serial>/evt, qos: 1, json: {{ id: <command> }} }}
commands:
  switch: {{ to: hub, post: \"http://127.0.0.1:{api}/commands/<serial>\", json: {{ id: <command> }}, ok: 202 }}
"
    );
    home.write("target.yaml", &text).display().to_string()
}

#[test]
fn a_target_that_is_not_there_never_passes() {
    let home = Home::new();
    let target = nobody_at(&home, free_port(), free_port(), "test");
    let profile = profile(&home, &target, 3, "expect: [ commands duplicated == 0 ]\n");
    let finished = home.finish(&["run", &profile], LIMIT);
    assert!(finished.code == 3 || finished.code == 4, "{finished:?}");
}

#[test]
fn an_expectation_without_data_never_passes() {
    let home = Home::new();
    // Half a rider: nobody is due before the end.
    let rest = "riders:
  late: { journey: unlock-and-ride, arrivals: { even: [ 0/s for 2500ms, 1/s for 500ms ] }, timeout: 1s }
expect: [ unlock success >= 1% ]\n";
    let finished = home.finish(&["run", &profile(&home, &lab_target(), 3, rest)], LIMIT);
    finished.expect_code(4);
}

#[test]
fn a_limit_that_is_missed_fails() {
    let home = Home::new();
    let finished = home.finish(
        &[
            "run",
            &profile(
                &home,
                &lab_target(),
                3,
                "expect: [ hubs connected <= 10 ]\n",
            ),
        ],
        LIMIT,
    );
    finished.expect_code(3);
}

//! The recipes of `chaos/` that can act on the lab do so, in two short runs.

use super::faults::busy_profile;
use super::{LIMIT, lab_target, shipped};
use crate::support::program::Home;
use std::fs;

/// A recipe, and what of it is changed for a short run: when it acts, and how long.
type Recipe = (&'static str, &'static [(&'static str, &'static str)]);

const AT_ONCE: [Recipe; 5] = [
    (
        "lose-all-connections",
        &[
            ("at: 4m, for: 5s", "at: 12s, for: 2s"),
            ("for: 5s", "for: 2s"),
        ],
    ),
    (
        "exhaust-pool",
        &[
            ("at: 4m, for: 1m", "at: 1s into kill-shard-1, for: 2s"),
            ("connections: 60", "connections: 20"),
        ],
    ),
    (
        "flapping-link",
        &[
            ("at: 4m, for: 2s", "at: 1s into kill-shard-2, for: 500ms"),
            ("every: 10s", "every: 1s"),
            ("times: 5", "times: 2"),
        ],
    ),
    (
        "black-hole-shard",
        &[("at: 4m, for: 30s", "at: 2s after kill-shard-1, for: 2s")],
    ),
    (
        "half-open",
        &[("at: 4m, for: 20s", "at: 4s after kill-shard-1, for: 1s")],
    ),
];

/// What waits for another's end or recovery.
const IN_TURN: [Recipe; 3] = [
    (
        "second-trigger",
        &[
            ("at: 4m, for: 30s", "at: 12s, for: 2s"),
            (
                "10s after slow-database, for: 10s",
                "1s after slow-database, for: 1s",
            ),
        ],
    ),
    (
        "rolling-shard-restart",
        &[
            ("at: 3m, for: 5s", "at: 1s after kill-shard-1, for: 1s"),
            (
                "45s after restart-shard-1 recovers, for: 5s",
                "10s after restart-shard-1 recovers, for: 1s",
            ),
        ],
    ),
    (
        "slow-authentication",
        &[("1s into refresh, for: 10s", "500ms into refresh, for: 1s")],
    ),
];

#[test]
fn recipes_bite_the_lab_and_leave_it_as_it_was() {
    let rest = "expect: [ hubs connected >= 99% at end ]\n";
    act(&AT_ONCE, 24, rest, AT_ONCE.len() + 2);
}

#[test]
fn recipes_that_wait_for_others_do_so_on_the_lab() {
    let rest = "timeline: { refresh: { at: 50s, operate: refresh-certificates } }
expect: [ hubs connected >= 99% at end ]\n";
    // Five faults and the refresh.
    act(&IN_TURN, 53, rest, 6);
}

/// A busy run of `seconds` with these recipes, after which `least_marks` or more were seen and undone, and nothing is left to heal.
fn act(recipes: &[Recipe], seconds: u32, rest: &str, least_marks: usize) {
    let home = Home::new();
    let mut arguments = vec![
        "run".to_owned(),
        busy_profile(&home, &lab_target(), seconds, rest),
    ];
    for (name, cuts) in recipes {
        let text = fs::read_to_string(shipped(&format!("chaos/{name}.yaml"))).unwrap();
        // What it expects is meant for the whole profile.
        let text = text.split("expect:").next().unwrap().to_owned();
        let text = cuts.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "{name} has no `{from}` any more");
            text.replace(from, to)
        });
        let file = home.write(&format!("{name}.yaml"), &text);
        arguments.extend(["--chaos".to_owned(), file.display().to_string()]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let finished = home.finish(&arguments, LIMIT);
    finished.expect_code(0);
    let result = finished.result();
    let marks = result["marks"].as_array().unwrap();
    assert!(marks.len() >= least_marks, "{marks:?}");
    // The refresh is a trigger: nothing of it is to be observed or undone.
    for mark in marks.iter().filter(|mark| mark["name"] != "refresh") {
        let (seen, problem) = (&mark["observed"], &mark["problem"]);
        assert!(seen.is_string() && problem.is_null(), "{mark}");
        assert!(mark["end_us"].is_i64(), "{mark}");
    }
    let healed = home.finish(&["heal", "--all"], LIMIT);
    healed.expect_code(0);
    assert!(healed.stdout.contains("nothing to heal"), "{healed:?}");
}

//! The recipes of `chaos/` that can act on the lab do so, all in one short run.

use super::faults::busy_profile;
use super::{LIMIT, lab_target, shipped};
use crate::support::program::Home;
use std::fs;

/// When each acts in the short run, in place of its own `at`, and what else is made shorter.
const RECIPES: [(&str, &[(&str, &str)]); 5] = [
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

#[test]
fn recipes_bite_the_lab_and_leave_it_as_it_was() {
    let home = Home::new();
    let rest = "expect: [ hubs connected >= 99% at end ]\n";
    let mut arguments = vec![
        "run".to_owned(),
        busy_profile(&home, &lab_target(), 24, rest),
    ];
    for (name, cuts) in RECIPES {
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
    assert!(marks.len() >= RECIPES.len() + 2, "{marks:?}");
    for mark in marks {
        let (seen, problem) = (&mark["observed"], &mark["problem"]);
        assert!(seen.is_string() && problem.is_null(), "{mark}");
        assert!(mark["end_us"].is_i64(), "{mark}");
    }
    let healed = home.finish(&["heal", "--all"], LIMIT);
    healed.expect_code(0);
    assert!(healed.stdout.contains("nothing to heal"), "{healed:?}");
}

//! Faults that wait for something, or come again: what the plan makes of them, and what `check` prints.

use super::here;
use rushhour::event::MarkId;
use rushhour::plan::Plan;
use rushhour::plan::fault::{After, Edge};
use rushhour::plan::outlook::Outlook;
use rushhour::spec::{Problems, Sources, read};
use std::time::Duration;

/// An experiment on the profile that has one of everything: it lasts 5 minutes, and drops hubs at 1:00.
fn with(faults: &str) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("chaos.yaml");
    std::fs::write(&file, format!("faults:\n{faults}")).expect("a temporary file can be written");
    read(&Sources {
        profile: here("tests/it/bad/good/profile.yaml"),
        chaos: vec![file],
        ..Sources::default()
    })
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn faults_wait_for_triggers_and_for_each_other() {
    let plan = with(
        "  last:  { operate: slow, at: 30s after slow recovers, for: 5s }
  slow:  { latency: { link: gateway-to-db, add: 50ms, to: answers }, at: 10s after drop, for: 20s }
  more:  { latency: { link: gateway-to-db, add: 50ms, to: answers }, at: 5s into slow, for: 5s }
",
    )
    .unwrap_or_else(|problems| panic!("{problems}"));
    let rows: Vec<_> = plan
        .faults
        .iter()
        .map(|fault| {
            (
                fault.name.as_str(),
                fault.at.as_secs(),
                fault.after.unwrap(),
            )
        })
        .collect();
    let after = |mark, edge, wait| After {
        mark: MarkId(mark),
        edge,
        wait: SECOND * wait,
    };
    // The trigger is mark 0. A recovery from `slow`, which ends at 1:30, is known at 2:00 at the earliest.
    assert_eq!(
        rows,
        [
            ("slow", 70, after(0, Edge::End, 10)),
            ("more", 75, after(1, Edge::Begin, 5)),
            ("last", 120, after(1, Edge::Recovery, 30)),
        ]
    );
    // What begins in the course of something else is compared with the quiet time before that.
    assert_eq!(plan.quiet_end(MarkId(2)), SECOND * 60);
    let text = Outlook::of(&plan).to_string();
    for line in [
        "10s after drop, from 1:10 on; given up when the load ends",
        "quiet before: that of drop, after:",
        "quiet before: that of slow, after:",
        "30s after slow recovers, from 2:00 on; given up when the load ends",
        "quiet before: 30s (needs 30s), after:",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

#[test]
fn every_repetition_is_a_mark_of_its_own() {
    let plan = with(
        "  flap: { refuse: { link: gateway-to-db }, at: 2m, for: 5s, repeat: { times: 3, every: 20s } }
  next: { operate: slow, at: 1s after flap, for: 2s, repeat: { times: 2, every: 10s } }
",
    )
    .unwrap_or_else(|problems| panic!("{problems}"));
    let rows: Vec<_> = plan
        .faults
        .iter()
        .map(|fault| (fault.name.as_str(), fault.at.as_secs()))
        .collect();
    let expected = [
        ("flap-1", 120),
        ("flap-2", 140),
        ("flap-3", 160),
        ("next-1", 166),
        ("next-2", 176),
    ];
    assert_eq!(rows, expected);
    let waits: Vec<_> = plan.faults.iter().map(|fault| fault.after).collect();
    assert_eq!(waits[..3], [None; 3]);
    // After the last of those that it waits for; then the next one follows the first.
    assert_eq!(waits[3].unwrap().mark, MarkId(3));
    assert_eq!(
        waits[4],
        Some(After {
            mark: MarkId(4),
            edge: Edge::Begin,
            wait: SECOND * 10
        })
    );
    let text = Outlook::of(&plan).to_string();
    assert!(
        text.contains("3 times, every 20s: to flap-3 at 2:40"),
        "{text}"
    );
    assert!(!text.contains(" flap-2 "), "{text}");
}

//! Lines that are asked while the run goes on.

use super::stage::{ISSUE, Stage, UNLOCK, drop_at, line, plan};
use rushhour::event::{CommandStep, HubChange, Outcome};
use rushhour::plan::Plan;
use rushhour::plan::expect::{
    CommandState, Comparison, HubState, Scope, Share, Stat, Subject, TimeOf, Unit,
};
use std::time::Duration;

fn guarded(
    subject: Subject,
    comparison: Comparison,
    value: f64,
    unit: Unit,
    scopes: Vec<Scope>,
) -> Stage {
    Stage::new(Plan {
        stop_if: vec![line(subject, comparison, value, unit, scopes)],
        ..plan()
    })
}

fn success() -> Subject {
    Subject::Share {
        operations: vec![UNLOCK],
        of: Share::Success,
    }
}

/// The first second of the run, from 0:00, in which the guard says stop.
fn stops_at(mut stage: Stage) -> Option<u32> {
    (1..60).find(|second| {
        stage.advance_to(f64::from(*second) + 1.0);
        stage.judge().should_stop().is_some()
    })
}

fn failing_from(stage: &Stage, from: u32, per_second: u32) {
    for second in 0..60 {
        for _ in 0..per_second {
            let outcome = if second >= from {
                Outcome::Reset
            } else {
                Outcome::Ok
            };
            stage.action(UNLOCK, f64::from(second) + 0.1, 0.1, outcome);
        }
    }
}

#[test]
fn a_guard_looks_at_the_last_ten_seconds() {
    let stage = guarded(success(), Comparison::Below, 0.5, Unit::Share, vec![]);
    failing_from(&stage, 20, 10);
    // After the seconds 20 to 25, six of ten are bad.
    assert_eq!(stops_at(stage), Some(26));
}

#[test]
fn few_samples_stop_nothing() {
    let stage = guarded(success(), Comparison::Below, 0.5, Unit::Share, vec![]);
    failing_from(&stage, 0, 1);
    assert_eq!(stops_at(stage), None);
}

#[test]
fn for_stops_only_without_a_break() {
    let held = vec![Scope::For(Duration::from_secs(15))];
    let stage = guarded(success(), Comparison::Below, 0.5, Unit::Share, held.clone());
    failing_from(&stage, 20, 10);
    assert_eq!(stops_at(stage), Some(35));
    let stage = guarded(success(), Comparison::Below, 0.5, Unit::Share, held);
    failing_from(&stage, 20, 10);
    for second in [30, 40, 50] {
        for _ in 0..20 {
            stage.action(UNLOCK, f64::from(second) + 0.1, 0.1, Outcome::Ok);
        }
    }
    assert_eq!(stops_at(stage), None);
}

#[test]
fn a_latency_guard_has_its_own_window() {
    let slow = Subject::Time {
        operations: vec![UNLOCK],
        of: TimeOf::Latency,
        stat: Stat::Percentile(50.0),
    };
    let stage = guarded(slow, Comparison::Above, 1e6, Unit::Time, vec![]);
    for second in 0..60 {
        for _ in 0..10 {
            let took = if second < 20 { 0.1 } else { 1.5 };
            stage.action(UNLOCK, f64::from(second) + 0.1, took, Outcome::Ok);
        }
    }
    // Slow ones end from 21 on; with five bad seconds of ten the middle is still good, with the sixth it is not.
    let at = stops_at(stage);
    assert!(matches!(at, Some(26 | 27)), "{at:?}");
}

#[test]
fn commands_in_time_wait_until_their_time_has_passed() {
    let in_time = Subject::Commands {
        issuers: vec![0],
        of: CommandState::InTime,
    };
    let held = vec![Scope::For(Duration::from_secs(5))];
    let stage = guarded(in_time, Comparison::Below, 0.8, Unit::Share, held);
    for number in 0..600_u64 {
        let due = number as f64 / 10.0;
        if due < 20.0 {
            stage.command(number, due, 1.5);
        } else {
            stage.step(number, CommandStep::Due, due);
            stage.action(ISSUE, due, 0.01, Outcome::Ok);
        }
    }
    // 20 + 5 s of it, and the 2 s + 1 that a command may take to be in time.
    assert_eq!(stops_at(stage), Some(28));
}

#[test]
fn steady_lines_must_hold_now_and_no_data_does_not_hold() {
    let connected = Subject::Hubs {
        groups: vec![0],
        of: HubState::Connected,
    };
    let held = vec![Scope::For(Duration::from_secs(5))];
    let steady = vec![
        line(connected, Comparison::AtLeast, 0.99, Unit::Share, held),
        line(success(), Comparison::AtLeast, 0.99, Unit::Share, vec![]),
    ];
    let mut stage = Stage::new(Plan { steady, ..plan() });
    stage.hubs(HubChange::Connected, 10, 3.5);
    stage.advance_to(7.0);
    assert_eq!(stage.judge().unsteady().len(), 2);
    stage.advance_to(12.0);
    let unsteady = stage.judge().unsteady();
    assert_eq!(unsteady.len(), 1, "{unsteady:?}");
    assert!(unsteady[0].contains("too little data"));
    for _ in 0..30 {
        stage.action(UNLOCK, 12.1, 0.1, Outcome::Ok);
    }
    stage.advance_to(15.0);
    assert!(stage.judge().unsteady().is_empty());
}

/// A guard that leaves triggers out is not to be set off by what they do.
#[test]
fn a_guard_outside_triggers_does_not_see_them() {
    let outside = |scopes| {
        let mut lines = vec![line(success(), Comparison::Below, 0.5, Unit::Share, scopes)];
        lines.push(line(
            Subject::Time {
                operations: vec![UNLOCK],
                of: TimeOf::Latency,
                stat: Stat::Percentile(50.0),
            },
            Comparison::Above,
            1e6,
            Unit::Time,
            lines[0].scopes.clone(),
        ));
        let stage = Stage::new(Plan {
            stop_if: lines,
            triggers: vec![drop_at("drop", 20)],
            ..plan()
        });
        for second in 0..60 {
            for _ in 0..10 {
                let hit = (20..30).contains(&second);
                let (took, outcome) = match hit {
                    true => (1.5, Outcome::Reset),
                    false => (0.1, Outcome::Ok),
                };
                stage.action(UNLOCK, f64::from(second) + 0.1, took, outcome);
            }
        }
        stage.mark(0, 20.0, 30.0);
        stage
    };
    let grace = Duration::from_secs(5);
    assert!(stops_at(outside(vec![])).is_some());
    assert_eq!(
        stops_at(outside(vec![Scope::OutsideTriggers { grace }])),
        None
    );
}

//! What turns a pass into "inconclusive", and that a failure stands.

use super::stage::{ISSUE, Stage, UNLOCK, at, drop_at, line, plan};
use rushhour::arrivals::{Piece, Schedule, Spread};
use rushhour::event::{CommandStep, Event, Mark, MarkId, MarkPhase, Outcome};
use rushhour::measure::Verdict;
use rushhour::plan::Plan;
use rushhour::plan::component::Act;
use rushhour::plan::expect::{Comparison, Expectation, Share, Stat, Subject, TimeOf, Unit};
use rushhour::plan::fault::{Fault, FaultKind};
use std::time::Duration;

fn success(limit: f64) -> Expectation {
    let subject = Subject::Share {
        operations: vec![UNLOCK],
        of: Share::Success,
    };
    line(subject, Comparison::AtLeast, limit, Unit::Share, vec![])
}

fn good(plan: Plan) -> Stage {
    let stage = Stage::new(plan);
    for second in 0..60 {
        stage.action(UNLOCK, f64::from(second) + 0.5, 0.1, Outcome::Ok);
    }
    stage
}

fn verdict(mut stage: Stage) -> Verdict {
    stage.finish_at(80.0);
    stage.judge().verdict().verdict
}

fn doubted(stage: Stage, reason: &str) {
    match verdict(stage) {
        Verdict::Inconclusive { why } => assert!(why.contains(reason), "{why}"),
        other => panic!("{other:?}, not inconclusive because of {reason}"),
    }
}

fn expecting(limit: f64) -> Plan {
    Plan {
        expect: vec![success(limit)],
        ..plan()
    }
}

#[test]
fn a_good_run_passes() {
    assert_eq!(verdict(good(expecting(0.99))), Verdict::Pass);
}

#[test]
fn nothing_completed_nothing_expected_or_no_data_can_not_pass() {
    doubted(Stage::new(expecting(0.0)), "nothing completed");
    doubted(good(plan()), "nothing was expected");
    let subject = Subject::AttemptsPer {
        operations: vec![ISSUE],
    };
    let plan = Plan {
        expect: vec![line(subject, Comparison::AtMost, 9.0, Unit::Count, vec![])],
        ..plan()
    };
    doubted(good(plan), "no expectation had data");
}

#[test]
fn load_that_was_not_sent_can_not_pass() {
    let stage = good(expecting(0.99));
    stage.action(UNLOCK, 5.0, 0.0, Outcome::NotSent);
    doubted(stage, "the load was not offered: 1 of 61 `unlock`");
}

#[test]
fn arrivals_that_were_never_started_can_not_pass() {
    let mut plan = expecting(0.99);
    let piece = Piece {
        from_per_second: 1.0,
        to_per_second: 1.0,
        lasts: Duration::from_secs(60),
    };
    plan.riders[0].arrivals = Schedule::new(Spread::Even, vec![piece]);
    doubted(good(plan), "0 of 60 arrivals of commuters were started");
}

#[test]
fn a_late_generator_can_not_judge_latencies() {
    let slow = |late_s: f64| {
        let subject = Subject::Time {
            operations: vec![UNLOCK],
            of: TimeOf::Latency,
            stat: Stat::Percentile(95.0),
        };
        let expect = vec![line(subject, Comparison::Below, 2e6, Unit::Time, vec![])];
        let stage = good(Plan { expect, ..plan() });
        for number in 0..3 {
            let due = at(30.0 + f64::from(number) * 0.1);
            stage.tell(Event::Started {
                operation: UNLOCK,
                due,
                at: due.after(Duration::from_secs_f64(late_s)),
            });
        }
        stage
    };
    doubted(slow(0.25), "the generator was late");
    assert_eq!(verdict(slow(0.15)), Verdict::Pass);
}

#[test]
fn a_ledger_that_does_not_equal_what_was_started_can_not_pass() {
    let stage = good(expecting(0.99));
    stage.step(1, CommandStep::Due, 1.0);
    doubted(stage, "the ledger of app does not add up");
}

#[test]
fn a_trigger_that_failed_or_never_came_can_not_pass() {
    let with = || Plan {
        triggers: vec![drop_at("drop", 20)],
        ..expecting(0.99)
    };
    doubted(good(with()), "trigger drop never happened");
    let stage = good(with());
    stage.mark(0, 20.0, 22.0);
    stage.tell(Event::Mark(Mark {
        id: MarkId(0),
        phase: MarkPhase::Failed("404 Not Found".to_owned()),
        at: at(20.0),
    }));
    doubted(stage, "trigger drop failed: 404 Not Found");
}

#[test]
fn a_fault_that_was_not_seen_can_not_pass() {
    let with = || Plan {
        faults: vec![Fault {
            name: "kill".to_owned(),
            at: Duration::from_secs(20),
            after: None,
            repeats: None,
            lasts: Some(Duration::from_secs(5)),
            kind: FaultKind::Act {
                component: 0,
                act: Act::Kill { count: 1 },
            },
        }],
        ..expecting(0.99)
    };
    let unseen = good(with());
    unseen.mark(0, 20.0, 25.0);
    doubted(unseen, "fault kill was not observed to take effect");
    let observed = |phase| {
        let stage = good(with());
        stage.mark(0, 20.0, 25.0);
        stage.tell(Event::Mark(Mark {
            id: MarkId(0),
            phase,
            at: at(20.5),
        }));
        stage
    };
    doubted(
        observed(MarkPhase::NotObserved("the port still answers".to_owned())),
        "the port still answers",
    );
    assert_eq!(
        verdict(observed(MarkPhase::Observed(
            "the port is closed".to_owned()
        ))),
        Verdict::Pass
    );
}

#[test]
fn lost_measurements_can_not_pass() {
    let stage = good(expecting(0.99));
    for number in 0..70_000 {
        stage.step(number, CommandStep::Sent, 1.0);
    }
    doubted(stage, "measurements were lost");
}

#[test]
fn a_failure_stands_whatever_else_is_doubtful() {
    let stage = good(expecting(0.99));
    stage.action(UNLOCK, 5.0, 0.0, Outcome::NotSent);
    for _ in 0..10 {
        stage.action(UNLOCK, 5.0, 1.0, Outcome::TimedOut);
    }
    assert!(matches!(verdict(stage), Verdict::Fail { .. }));
}

#[test]
fn worst_wins_and_of_equals_the_first() {
    let fail = |why: &str| Verdict::Fail {
        why: why.to_owned(),
    };
    let unknown = Verdict::Inconclusive {
        why: "blind".to_owned(),
    };
    assert_eq!(Verdict::Pass.worst(unknown.clone()), unknown);
    assert_eq!(unknown.clone().worst(fail("a")), fail("a"));
    assert_eq!(fail("a").worst(unknown), fail("a"));
    assert_eq!(fail("a").worst(fail("b")), fail("a"));
}

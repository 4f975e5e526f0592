//! Every subject and every scope on seconds told by hand, with the value pinned.

use super::stage::{Stage, UNLOCK, ZERO, drop_at, line, plan};
use rushhour::event::{Cause, HubChange, MarkId, Outcome};
use rushhour::measure::{Judgement, Verdict};
use rushhour::plan::Plan;
use rushhour::plan::expect::{
    Comparison, Expectation, HubRate, HubState, Scope, Share, Stat, Subject, TimeOf, Unit, What,
};
use std::time::Duration;

use Comparison::{AtLeast, AtMost, Below, Equal};

pub fn success() -> Subject {
    Subject::Share {
        operations: vec![UNLOCK],
        of: Share::Success,
    }
}

pub fn latency(percentile: f64) -> Subject {
    Subject::Time {
        operations: vec![UNLOCK],
        of: TimeOf::Latency,
        stat: Stat::Percentile(percentile),
    }
}

pub fn drop() -> What {
    What::One(MarkId(0))
}

pub fn with(triggers: &[(&str, u64)], expect: Expectation) -> Plan {
    let triggers = triggers
        .iter()
        .map(|(name, at)| drop_at(name, *at))
        .collect();
    Plan {
        triggers,
        expect: vec![expect],
        ..plan()
    }
}

/// 10 unlocks a second for 60 s that take 100 ms; from 20 to 25 they take 2 s and half of them fail.
pub fn evening(triggers: &[(&str, u64)], expect: Expectation) -> Stage {
    let stage = Stage::new(with(triggers, expect));
    for second in 0..60 {
        for tenth in 0..10 {
            let due = f64::from(second) + f64::from(tenth) / 10.0 + 0.01;
            let bad = (20..25).contains(&second);
            let outcome = if bad && tenth % 2 == 0 {
                Outcome::TimedOut
            } else {
                Outcome::Ok
            };
            stage.action(UNLOCK, due, if bad { 2.0 } else { 0.08 }, outcome);
        }
    }
    stage
}

pub fn judged(mut stage: Stage) -> Judgement {
    stage.finish_at(70.0);
    stage.judged()
}

pub fn close(judgement: &Judgement, value: f64) {
    let measured = judgement.value.unwrap_or(f64::NAN);
    assert!(
        (measured - value).abs() <= value.abs() * 0.001,
        "{measured} is not {value}: {judgement:?}"
    );
}

pub fn is(judgement: &Judgement, verdict: &str) {
    assert_eq!(
        judgement.verdict.as_ref().map(Verdict::name),
        Some(verdict),
        "{judgement:?}"
    );
}

#[test]
fn without_a_scope_everything_due_in_the_load_counts() {
    let share = judged(evening(
        &[],
        line(success(), AtLeast, 0.995, Unit::Share, vec![]),
    ));
    close(&share, 575.0 / 600.0);
    is(&share, "fail");
    assert_eq!(share.measured, "95.8%");
    let slow = judged(evening(
        &[],
        line(latency(95.0), Below, 1e6, Unit::Time, vec![]),
    ));
    close(&slow, 2e6);
    is(&slow, "fail");
    is(
        &judged(evening(
            &[],
            line(latency(50.0), Below, 1e6, Unit::Time, vec![]),
        )),
        "pass",
    );
}

#[test]
fn the_last_actions_count_although_they_end_after_the_load() {
    let mut stage = Stage::new(with(
        &[],
        line(success(), AtLeast, 0.9, Unit::Share, vec![]),
    ));
    stage.action(UNLOCK, 10.0, 0.1, Outcome::Ok);
    stage.action(UNLOCK, 59.5, 5.0, Outcome::TimedOut);
    stage.action(UNLOCK, 61.0, 0.1, Outcome::TimedOut);
    stage.finish_at(70.0);
    close(&stage.judged(), 0.5);
}

#[test]
fn during_after_and_outside_split_the_run_at_the_mark() {
    let judged_in = |scopes| {
        let stage = evening(
            &[("drop", 20)],
            line(success(), AtLeast, 0.995, Unit::Share, scopes),
        );
        stage.mark(0, 20.0, 25.0);
        judged(stage)
    };
    // What is due in the bad time ends two seconds later, 22 to 26. During is 20 to 25: four bad seconds and the good one of 25.
    close(&judged_in(vec![Scope::During(drop())]), 30.0 / 50.0);
    // After: 26, still bad, and 34 good seconds to the load's end.
    close(&judged_in(vec![Scope::After(drop())]), 345.0 / 350.0);
    let outside = |seconds| {
        vec![Scope::OutsideTriggers {
            grace: Duration::from_secs(seconds),
        }]
    };
    close(&judged_in(outside(0)), 545.0 / 550.0);
    let clean = judged_in(outside(3));
    close(&clean, 1.0);
    is(&clean, "pass");
    // No fault: all of the run is outside of faults.
    close(
        &judged_in(vec![Scope::OutsideFaults {
            grace: Duration::ZERO,
        }]),
        575.0 / 600.0,
    );
}

#[test]
fn after_ends_at_the_next_mark() {
    let after = line(
        success(),
        AtLeast,
        0.995,
        Unit::Share,
        vec![Scope::After(drop())],
    );
    let stage = evening(&[("early", 2), ("late", 20)], after);
    stage.mark(0, 2.0, 4.0);
    stage.mark(1, 20.0, 25.0);
    is(&judged(stage), "pass");
}

#[test]
fn each_trigger_must_hold_by_itself_and_the_worst_is_named() {
    let each = line(
        success(),
        AtLeast,
        0.995,
        Unit::Share,
        vec![Scope::During(What::EachTrigger)],
    );
    let stage = evening(&[("early", 2), ("late", 20)], each);
    stage.mark(0, 2.0, 4.0);
    stage.mark(1, 20.0, 25.0);
    let judgement = judged(stage);
    is(&judgement, "fail");
    assert_eq!(judgement.measured, "60% (late)");
}

#[test]
fn a_mark_that_never_happened_is_no_pass() {
    let judgement = judged(evening(
        &[("drop", 20)],
        line(
            success(),
            AtLeast,
            0.0,
            Unit::Share,
            vec![Scope::After(drop())],
        ),
    ));
    is(&judgement, "inconclusive");
    assert_eq!(judgement.measured, "drop never happened");
}

#[test]
fn in_every_finds_the_worst_window_and_says_where_it_ends() {
    let every = |seconds| vec![Scope::InEvery(Duration::from_secs(seconds))];
    let share = judged(evening(
        &[],
        line(success(), AtLeast, 0.9, Unit::Share, every(5)),
    ));
    close(&share, 0.5);
    assert_eq!(share.at, Some(ZERO + 24));
    let share = judged(evening(
        &[],
        line(success(), AtLeast, 0.9, Unit::Share, every(20)),
    ));
    close(&share, 175.0 / 200.0);
    let slow = judged(evening(
        &[],
        line(latency(50.0), Below, 1e6, Unit::Time, every(6)),
    ));
    close(&slow, 2e6);
    // Half of ten seconds is slow; the middle one of a longer window is not.
    is(
        &judged(evening(
            &[],
            line(latency(50.0), Below, 1e6, Unit::Time, every(11)),
        )),
        "pass",
    );
}

#[test]
fn a_stretch_shorter_than_the_window_is_a_window() {
    let scopes = vec![
        Scope::InEvery(Duration::from_secs(60)),
        Scope::During(drop()),
    ];
    for subject in [success(), latency(50.0)] {
        let stage = evening(
            &[("drop", 20)],
            line(subject, AtLeast, 0.0, Unit::Share, scopes.clone()),
        );
        stage.mark(0, 20.0, 25.0);
        assert!(judged(stage).value.is_some());
    }
}

#[test]
fn within_looks_from_then_on() {
    let within = |seconds| {
        vec![Scope::Within {
            time: Duration::from_secs(seconds),
            after: drop(),
        }]
    };
    let stage = |scopes| {
        let connected = Subject::Hubs {
            groups: vec![0],
            of: HubState::Connected,
        };
        let stage = evening(
            &[("drop", 20)],
            line(connected, AtLeast, 0.99, Unit::Share, scopes),
        );
        stage.mark(0, 20.0, 22.0);
        stage.hubs(HubChange::Connected, 10, -1.0);
        stage.hubs(HubChange::Lost(Cause::Closed), 5, 20.5);
        stage.hubs(HubChange::Connected, 5, 31.5);
        stage
    };
    // 31.5 s: the second 31 ends with all ten connected; 22 + 9 = 31.
    is(&judged(stage(within(9))), "pass");
    let early = judged(stage(within(8)));
    is(&early, "fail");
    close(&early, 0.5);
    assert_eq!(early.at, Some(ZERO + 30));
}

#[test]
fn for_asks_for_time_without_a_break() {
    let held = |seconds| vec![Scope::For(Duration::from_secs(seconds))];
    let pass = judged(evening(
        &[],
        line(success(), AtLeast, 0.99, Unit::Share, held(33)),
    ));
    is(&pass, "pass");
    assert_eq!(pass.measured, "held for 33s");
    is(
        &judged(evening(
            &[],
            line(success(), AtLeast, 0.99, Unit::Share, held(34)),
        )),
        "fail",
    );
    is(
        &judged(evening(
            &[],
            line(latency(95.0), Below, 1e6, Unit::Time, held(33)),
        )),
        "pass",
    );
    is(
        &judged(evening(
            &[],
            line(latency(95.0), Below, 1e6, Unit::Time, held(34)),
        )),
        "fail",
    );
}

#[test]
fn at_end_is_the_end() {
    let at_end = vec![Scope::AtEnd];
    let stage = evening(
        &[],
        line(success(), AtLeast, 0.99, Unit::Share, at_end.clone()),
    );
    is(&judged(stage), "pass");
    let connected = Subject::Hubs {
        groups: vec![0],
        of: HubState::Connected,
    };
    let stage = evening(&[], line(connected, Equal, 10.0, Unit::Count, at_end));
    stage.hubs(HubChange::Connected, 9, -1.0);
    stage.hubs(HubChange::Connected, 1, 58.0);
    is(&judged(stage), "pass");
}

#[test]
fn a_multiple_of_the_quiet_time_takes_the_seconds_before_the_mark() {
    let limit = |factor| {
        let stage = evening(
            &[("drop", 20)],
            line(
                latency(50.0),
                AtMost,
                factor,
                Unit::TimesBaseline,
                vec![Scope::During(drop())],
            ),
        );
        stage.mark(0, 20.0, 25.0);
        judged(stage)
    };
    let fail = limit(1.5);
    is(&fail, "fail");
    close(&fail, 2e6);
    assert_eq!(fail.limit, "<= 1.5x baseline = 120 ms");
    is(&limit(30.0), "pass");
}

#[test]
fn a_rate_against_its_quiet_time() {
    let reconnects = Subject::Rate {
        groups: vec![0],
        of: HubRate::Reconnects,
    };
    let stage = |factor| {
        let stage = evening(
            &[("drop", 20)],
            line(
                reconnects.clone(),
                AtMost,
                factor,
                Unit::TimesBaseline,
                vec![Scope::After(drop())],
            ),
        );
        for second in 10..20 {
            stage.hubs(HubChange::Opened, 2, f64::from(second) + 0.5);
        }
        stage.mark(0, 20.0, 20.0);
        for second in 21..60 {
            stage.hubs(HubChange::Opened, 6, f64::from(second) + 0.5);
        }
        judged(stage)
    };
    let fail = stage(2.9);
    close(&fail, 6.0);
    is(&fail, "fail");
    is(&stage(3.0), "pass");
}

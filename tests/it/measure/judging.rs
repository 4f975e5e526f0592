//! Every subject and every scope on seconds told by hand, with the value pinned.

use super::stage::{COMMAND, CONNECT, ISSUE, START, Stage, UNLOCK, ZERO, at, drop_at, line, plan};
use rushhour::event::{CommandStep, Event, HubChange, MarkId, Outcome};
use rushhour::measure::{Judgement, Verdict};
use rushhour::plan::Plan;
use rushhour::plan::expect::{
    CommandState, Comparison, Expectation, HubRate, HubState, Scope, Share, Stat, Subject, TimeOf,
    Unit, What,
};
use std::time::Duration;

use Comparison::{AtLeast, AtMost, Below, Equal};

fn success() -> Subject {
    Subject::Share {
        operations: vec![UNLOCK],
        of: Share::Success,
    }
}

fn latency(percentile: f64) -> Subject {
    Subject::Time {
        operations: vec![UNLOCK],
        of: TimeOf::Latency,
        stat: Stat::Percentile(percentile),
    }
}

fn drop() -> What {
    What::One(MarkId(0))
}

fn with(triggers: &[(&str, u64)], expect: Expectation) -> Plan {
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
fn evening(triggers: &[(&str, u64)], expect: Expectation) -> Stage {
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

fn judged(mut stage: Stage) -> Judgement {
    stage.finish_at(70.0);
    stage.judged()
}

fn close(judgement: &Judgement, value: f64) {
    let measured = judgement.value.unwrap_or(f64::NAN);
    assert!(
        (measured - value).abs() <= value.abs() * 0.001,
        "{measured} is not {value}: {judgement:?}"
    );
}

fn is(judgement: &Judgement, verdict: &str) {
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
        stage.hubs(HubChange::Lost, 5, 20.5);
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
            stage.hubs(HubChange::Accepted, 2, f64::from(second) + 0.5);
        }
        stage.mark(0, 20.0, 20.0);
        for second in 21..60 {
            stage.hubs(HubChange::Accepted, 6, f64::from(second) + 0.5);
        }
        judged(stage)
    };
    let fail = stage(2.9);
    close(&fail, 6.0);
    is(&fail, "fail");
    is(&stage(3.0), "pass");
}

#[test]
fn attempts_per_action_count_those_under_way_at_the_begin() {
    let subject = Subject::AttemptsPer {
        operations: vec![CONNECT],
    };
    let attempts = |scopes| {
        let mut stage = Stage::new(with(
            &[("drop", 20)],
            line(subject.clone(), AtMost, 3.0, Unit::Count, scopes),
        ));
        stage.mark(0, 20.0, 20.5);
        // Five hubs start to reconnect in the trigger's second and take four attempts each, all after it.
        for _ in 0..5 {
            stage.tell(Event::Started {
                operation: CONNECT,
                due: at(20.6),
                at: at(20.6),
            });
            for attempt in 1..=4 {
                stage.tell(Event::Attempted {
                    operation: CONNECT,
                    at: at(20.6 + f64::from(attempt)),
                });
            }
        }
        stage.finish_at(70.0);
        stage.judged()
    };
    close(&attempts(vec![Scope::After(drop())]), 4.0);
    close(&attempts(vec![]), 4.0);
}

#[test]
fn declined_is_neither_success_nor_failure_and_not_sent_says_nothing_of_the_target() {
    let mut stage = Stage::new(with(
        &[],
        line(success(), AtLeast, 1.0, Unit::Share, vec![]),
    ));
    stage.action(UNLOCK, 1.0, 0.1, Outcome::Ok);
    stage.action(UNLOCK, 1.0, 0.1, Outcome::Declined);
    stage.action(UNLOCK, 1.0, 0.1, Outcome::NotSent);
    stage.finish_at(70.0);
    close(&stage.judged(), 1.0);
}

#[test]
fn unfinished_are_those_started_and_never_ended() {
    let subject = Subject::Share {
        operations: vec![UNLOCK],
        of: Share::Unfinished,
    };
    let mut stage = Stage::new(with(&[], line(subject, Equal, 0.0, Unit::Share, vec![])));
    stage.action(UNLOCK, 1.0, 0.1, Outcome::Ok);
    stage.tell(Event::Started {
        operation: UNLOCK,
        due: at(2.0),
        at: at(2.0),
    });
    stage.finish_at(70.0);
    let judgement = stage.judged();
    close(&judgement, 0.5);
    is(&judgement, "fail");
}

#[test]
fn a_quick_refusal_does_not_make_the_target_look_fast() {
    let mut stage = Stage::new(with(
        &[],
        line(latency(50.0), Below, 1e6, Unit::Time, vec![]),
    ));
    for _ in 0..10 {
        stage.action(UNLOCK, 1.0, 0.001, Outcome::Refused(503));
    }
    stage.action(UNLOCK, 1.0, 5.0, Outcome::TimedOut);
    stage.finish_at(70.0);
    close(&stage.judged(), 5e6);
}

#[test]
fn latency_runs_from_the_due_time_and_service_from_the_start() {
    for (of, value) in [(TimeOf::Latency, 3e6), (TimeOf::Service, 1e6)] {
        let subject = Subject::Time {
            operations: vec![UNLOCK],
            of,
            stat: Stat::Max,
        };
        let mut stage = Stage::new(with(&[], line(subject, Below, 1.0, Unit::Time, vec![])));
        stage.tell(Event::Started {
            operation: UNLOCK,
            due: at(1.0),
            at: at(3.0),
        });
        stage.tell(Event::Finished {
            operation: UNLOCK,
            due: at(1.0),
            started: at(3.0),
            at: at(4.0),
            outcome: Outcome::Ok,
            attempts: 1,
        });
        stage.finish_at(70.0);
        close(&stage.judged(), value);
    }
}

#[test]
fn commands_count_by_their_due_time_as_numbers_or_as_a_share() {
    let commands = |of| Subject::Commands {
        issuers: vec![0],
        of,
    };
    let scene = |expect| {
        let mut stage = Stage::new(with(&[], expect));
        for number in 1..=8 {
            stage.command(number, number as f64, 0.5);
        }
        stage.command(9, 9.0, 5.0);
        stage.step(10, CommandStep::Due, 10.0);
        stage.step(10, CommandStep::Accepted, 10.0);
        stage.action(ISSUE, 10.0, 0.01, Outcome::Ok);
        stage.finish_at(70.0);
        stage.judged()
    };
    close(
        &scene(line(
            commands(CommandState::InTime),
            AtLeast,
            0.9,
            Unit::Share,
            vec![],
        )),
        0.8,
    );
    close(
        &scene(line(
            commands(CommandState::Late),
            Equal,
            1.0,
            Unit::Count,
            vec![],
        )),
        1.0,
    );
    let lost = scene(line(
        commands(CommandState::Lost),
        Equal,
        0.0,
        Unit::Count,
        vec![],
    ));
    close(&lost, 1.0);
    is(&lost, "fail");
    is(
        &scene(line(
            commands(CommandState::Duplicated),
            Equal,
            0.0,
            Unit::Count,
            vec![],
        )),
        "pass",
    );
}

#[test]
fn a_command_still_open_may_yet_be_lost_so_that_nothing_lost_is_not_known() {
    let lost = Subject::Commands {
        issuers: vec![0],
        of: CommandState::Lost,
    };
    let mut stage = Stage::new(with(&[], line(lost, Equal, 0.0, Unit::Count, vec![])));
    stage.command(1, 1.0, 0.5);
    stage.step(2, CommandStep::Due, 59.0);
    stage.step(2, CommandStep::Accepted, 59.1);
    stage.action(ISSUE, 59.0, 0.1, Outcome::Ok);
    stage.finish_at(65.0);
    let judgement = stage.judged();
    is(&judgement, "inconclusive");
    assert_eq!(judgement.measured, "0 to 1");
    // Ten seconds later the time to live and the grace are over: it is lost.
    stage.finish_at(75.0);
    is(&stage.judged(), "fail");
}

#[test]
fn messages_that_are_not_of_this_run_are_unexpected() {
    let unexpected = Subject::Commands {
        issuers: vec![0],
        of: CommandState::Unexpected,
    };
    let mut stage = Stage::new(with(&[], line(unexpected, Equal, 0.0, Unit::Count, vec![])));
    stage.command(1, 1.0, 0.5);
    stage.tell(Event::Foreign {
        group: 0,
        at: at(3.0),
    });
    stage.finish_at(70.0);
    close(&stage.judged(), 1.0);
}

#[test]
fn hubs_lost_and_refused_are_counts_or_shares_of_the_group() {
    let scene = |of, unit| {
        let subject = Subject::Hubs {
            groups: vec![0],
            of,
        };
        let mut stage = Stage::new(with(&[], line(subject, Equal, 0.0, unit, vec![])));
        stage.hubs(HubChange::Connected, 10, -1.0);
        stage.hubs(HubChange::Lost, 3, 5.0);
        stage.action(CONNECT, 6.0, 0.1, Outcome::Refused(151));
        stage.finish_at(70.0);
        stage.judged()
    };
    close(&scene(HubState::Lost, Unit::Count), 3.0);
    close(&scene(HubState::Lost, Unit::Share), 0.3);
    close(&scene(HubState::Refused, Unit::Count), 1.0);
}

#[test]
fn connects_in_every_second_are_attempts() {
    let connects = Subject::Rate {
        groups: vec![0],
        of: HubRate::Connects,
    };
    let scopes = vec![Scope::InEvery(Duration::from_secs(1))];
    let mut stage = Stage::new(with(
        &[],
        line(connects, AtMost, 5.0, Unit::PerSecond, scopes),
    ));
    for _ in 0..7 {
        stage.action(CONNECT, 12.5, 0.1, Outcome::Refused(151));
    }
    stage.finish_at(70.0);
    let judgement = stage.judged();
    close(&judgement, 7.0);
    assert_eq!(judgement.at, Some(ZERO + 12));
    assert_eq!(judgement.measured, "7/s");
}

#[test]
fn each_row_is_judged_by_itself() {
    let of = |each| {
        let subject = Subject::Time {
            operations: vec![UNLOCK, START],
            of: TimeOf::Latency,
            stat: Stat::Percentile(50.0),
        };
        let expect = Expectation {
            each,
            ..line(subject, Below, 1e6, Unit::Time, vec![])
        };
        let mut stage = Stage::new(with(&[], expect));
        for _ in 0..10 {
            stage.action(UNLOCK, 1.0, 0.1, Outcome::Ok);
        }
        stage.action(START, 1.0, 3.0, Outcome::Ok);
        stage.finish_at(70.0);
        stage.judged()
    };
    is(&of(false), "pass");
    let each = of(true);
    is(&each, "fail");
    assert_eq!(each.measured, "3.00 s (start)");
}

#[test]
fn each_of_several_operations_must_have_data() {
    let subject = Subject::Share {
        operations: vec![UNLOCK, START],
        of: Share::Success,
    };
    let expect = Expectation {
        each: true,
        ..line(subject, AtLeast, 0.9, Unit::Share, vec![])
    };
    is(&judged(evening(&[], expect)), "inconclusive");
}

#[test]
fn no_data_is_never_a_pass() {
    let subjects = [
        (success(), Unit::Share),
        (latency(95.0), Unit::Time),
        (
            Subject::AttemptsPer {
                operations: vec![UNLOCK],
            },
            Unit::Count,
        ),
        (
            Subject::Commands {
                issuers: vec![0],
                of: CommandState::Lost,
            },
            Unit::Count,
        ),
        (
            Subject::Pool {
                sources: vec![0],
                of: rushhour::plan::expect::PoolSignal::Stalled,
                stat: None,
            },
            Unit::Time,
        ),
        (Subject::Probe { source: 0 }, Unit::Count),
        (Subject::Recovery, Unit::Time),
        (Subject::Blind, Unit::Share),
    ];
    for (subject, unit) in subjects {
        let stage = Stage::new(with(&[], line(subject.clone(), AtMost, 1e12, unit, vec![])));
        is(&judged(stage), "inconclusive");
        let scopes = vec![Scope::InEvery(Duration::from_secs(5))];
        is(
            &judged(Stage::new(with(
                &[],
                line(subject, AtMost, 1e12, unit, scopes),
            ))),
            "inconclusive",
        );
    }
}

#[test]
fn if_probed_is_not_judged_without_a_probe() {
    let subject = Subject::Pool {
        sources: Vec::new(),
        of: rushhour::plan::expect::PoolSignal::Wait,
        stat: Some(Stat::Mean),
    };
    let judgement = judged(evening(
        &[],
        line(subject, Below, 1.0, Unit::Time, vec![Scope::IfProbed]),
    ));
    assert_eq!(
        (judgement.verdict, judgement.measured.as_str()),
        (None, "not probed")
    );
}

#[test]
fn a_command_group_has_a_latency_too() {
    let subject = Subject::Time {
        operations: vec![COMMAND],
        of: TimeOf::Latency,
        stat: Stat::Percentile(99.0),
    };
    let mut stage = Stage::new(with(&[], line(subject, Below, 2e6, Unit::Time, vec![])));
    stage.command(1, 1.0, 0.5);
    stage.finish_at(70.0);
    close(&stage.judged(), 0.5e6);
}

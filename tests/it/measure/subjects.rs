//! Every subject on seconds told by hand, with the value pinned; and that no data is never a pass.

use super::judging::{close, drop, evening, is, judged, latency, success, with};
use super::stage::{COMMAND, CONNECT, ISSUE, START, Stage, UNLOCK, ZERO, at, line};
use rushhour::event::{Cause, CommandStep, Event, HubChange, Outcome};
use rushhour::plan::expect::{
    CommandState, Comparison, Expectation, HubRate, HubState, Scope, Share, Stat, Subject, TimeOf,
    Unit,
};
use std::time::Duration;

use Comparison::{AtLeast, AtMost, Below, Equal};

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
        stage.hubs(HubChange::Lost(Cause::Closed), 3, 5.0);
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

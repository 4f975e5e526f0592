//! Lines about what only the whole run tells: alerts, drain, synchronisation, an earlier run; and what became of those who were not hit.

use super::stage::{Stage, drop_at, line, plan};
use rushhour::event::{Cause, HubChange, MarkId};
use rushhour::measure::recovery::Ending;
use rushhour::measure::{Judge, Judgement, Verdict};
use rushhour::plan::Plan;
use rushhour::plan::expect::{
    Against, Alert, Comparison, Expectation, HubState, Limit, Scope, Subject, Unit, What, key,
};
use std::collections::BTreeMap;
use std::time::Duration;

const AFTER_DROP: Scope = Scope::After(What::One(MarkId(0)));

fn connected(below: f64, seconds: u64) -> Expectation {
    let subject = Subject::Hubs {
        groups: vec![0],
        of: HubState::Connected,
    };
    let scopes = vec![Scope::For(Duration::from_secs(seconds))];
    line(subject, Comparison::Below, below, Unit::Share, scopes)
}

/// Hubs away (below 95 % for 3 s) and hubs gone (below 10 %); commands are judged by one line.
fn plan_with(expect: Expectation) -> Plan {
    let mut plan = Plan {
        triggers: vec![drop_at("drop", 20)],
        expect: vec![expect],
        ..plan()
    };
    let alert = |name: &str, line| Alert {
        name: name.to_owned(),
        rule: name.to_owned(),
        line: Ok(line),
    };
    plan.target.alerts = vec![
        alert("away", connected(0.95, 3)),
        alert("gone", connected(0.10, 3)),
        Alert {
            line: Err("nothing is called `unlokc` here".to_owned()),
            ..alert("elsewhere", connected(0.5, 1))
        },
    ];
    plan
}

/// Half of ten hubs are away from 0:20 to 0:30.
fn evening(plan: Plan) -> Stage {
    let mut stage = Stage::new(plan);
    for change in [HubChange::Opened, HubChange::Accepted, HubChange::Connected] {
        stage.hubs(change, 10, -3.0);
    }
    for second in 0..60_u32 {
        stage.command(u64::from(second) + 1, f64::from(second) + 0.5, 0.3);
    }
    stage.mark(0, 20.0, 21.0);
    stage.hubs(HubChange::Lost(Cause::Reset), 5, 20.4);
    for change in [HubChange::Opened, HubChange::Accepted, HubChange::Connected] {
        stage.hubs(change, 5, 30.5);
    }
    // The same five once more, for less than a second.
    stage.hubs(HubChange::Lost(Cause::Reset), 5, 45.1);
    stage.hubs(HubChange::Connected, 5, 45.3);
    stage.finish_at(70.0);
    stage
}

fn judged(plan: Plan) -> Judgement {
    let stage = evening(plan);
    let recoveries = stage.collector.recoveries(&[], Ending::Settled);
    let judge = Judge::new(&stage.collector, &[], &recoveries);
    judge.verdict().judgements.swap_remove(0)
}

fn alert_within(alert: usize, seconds: u64) -> Judgement {
    let subject = Subject::Alert { alert };
    let limit = Duration::from_secs(seconds).as_micros() as f64;
    judged(plan_with(line(
        subject,
        Comparison::AtMost,
        limit,
        Unit::Time,
        vec![AFTER_DROP],
    )))
}

#[test]
fn alerts_are_rehearsed() {
    let stage = evening(plan_with(connected(0.5, 1)));
    let judge = Judge::new(&stage.collector, &[], &[]);
    let rehearsals = judge.rehearsals();
    let [away, gone] = rehearsals.as_slice() else {
        panic!("{rehearsals:?}")
    };
    // Three seconds without a break: 0:20, 0:21 and 0:22, known at their end.
    assert_eq!(
        (away.name.as_str(), away.fired),
        ("away", Some(super::stage::at(23.0)))
    );
    assert!(!away.before);
    assert_eq!((gone.name.as_str(), gone.fired), ("gone", None));
    let told = judge.unrehearsed();
    assert!(told[0].contains("unlokc"), "{told:?}");
}

#[test]
fn an_alert_is_judged_from_the_begin_of_the_mark() {
    let in_time = alert_within(0, 3);
    assert_eq!(in_time.verdict, Some(Verdict::Pass), "{in_time:?}");
    assert_eq!(in_time.value, Some(3e6));
    assert!(matches!(
        alert_within(0, 2).verdict,
        Some(Verdict::Fail { .. })
    ));
    let never = alert_within(1, 600);
    assert!(
        matches!(&never.verdict, Some(Verdict::Fail { why }) if why.contains("never fired")),
        "{never:?}"
    );
    let unknown = alert_within(2, 600);
    assert!(
        matches!(unknown.verdict, Some(Verdict::Inconclusive { .. })),
        "{unknown:?}"
    );
}

#[test]
fn the_drain_of_hubs_is_the_time_until_they_are_back() {
    let drain = judged(plan_with(line(
        Subject::Drain,
        Comparison::AtMost,
        9e6,
        Unit::Time,
        vec![AFTER_DROP],
    )));
    assert_eq!(drain.value, Some(9e6), "from 0:21 to 0:30: {drain:?}");
    assert_eq!(drain.verdict, Some(Verdict::Pass));
}

#[test]
fn a_multiple_of_an_earlier_run_needs_that_run() {
    let with = |text: &str, last: Option<f64>| {
        let recovery = Expectation {
            text: text.to_owned(),
            limit: Limit {
                value: 1.2,
                unit: Unit::TimesLast,
            },
            ..line(
                Subject::Recovery,
                Comparison::AtMost,
                1.2,
                Unit::TimesLast,
                vec![AFTER_DROP],
            )
        };
        let values = BTreeMap::from([(key("recovery <= 60s after drop"), last)]);
        judged(Plan {
            against: Some(Against {
                run: "20261204-0630-k3".to_owned(),
                values,
            }),
            ..plan_with(recovery)
        })
    };
    // Recovered at 0:31: in the second before, five attempts to connect were made for no more than one action.
    let near = with("recovery <= 1.2x last after drop", Some(10e6));
    assert_eq!(near.verdict, Some(Verdict::Pass), "{near:?}");
    assert!(near.limit.contains("1.2x last = 12.0"), "{near:?}");
    let slower = with("recovery <= 1.2x last after drop", Some(5e6));
    assert!(
        matches!(slower.verdict, Some(Verdict::Fail { .. })),
        "{slower:?}"
    );
    for unknown in [
        with("recovery <= 1.2x last after drop", None),
        with("recovery <= 1.2x last after another", Some(9e6)),
    ] {
        assert!(
            matches!(&unknown.verdict, Some(Verdict::Inconclusive { why }) if why.contains("--against")),
            "{unknown:?}"
        );
        assert_eq!(
            unknown.value,
            Some(11e6),
            "kept for the next run to compare with"
        );
    }
}

#[test]
fn a_line_without_its_limit_is_the_same_line() {
    assert_eq!(
        key("recovery <= 60s after drop"),
        key("recovery  <=  1.2x last after drop")
    );
    assert_eq!(key("unlock latency p95<2s"), "unlock latency p95");
    assert_eq!(key("reconnects > 3x baseline for 1m"), "reconnects for 1m");
}

#[test]
fn every_hub_counts_once_and_commands_of_a_shard_that_was_hit_are_no_others() {
    let stage = evening(plan_with(connected(0.5, 1)));
    assert_eq!(stage.collector.affected_hubs(MarkId(0)), Some(5));
    let recoveries = stage.collector.recoveries(&[], Ending::Settled);
    let rows = stage.collector.interference(&recoveries);
    assert_eq!((rows[0].hit, rows[0].others), (1, 0), "there is one shard");
    assert_eq!(rows[0].before, None);
}

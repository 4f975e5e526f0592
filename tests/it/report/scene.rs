//! One run told by hand from start to report: hubs drop, some commands are late or lost, one line fails.

use crate::measure::stage::{ISSUE, JOURNEY, Stage, UNLOCK, drop_at, line, plan};
use rushhour::event::{
    Cause, CommandStep, Event, HubChange, Mark, MarkId, MarkPhase, Outcome, PacketKind, TlsTrouble,
};
use rushhour::measure::recovery::Ending;
use rushhour::plan::Plan;
use rushhour::plan::expect::{
    CommandState, Comparison, Expectation, HubState, Scope, Share, Stat, Subject, TimeOf, Unit,
    What,
};
use rushhour::report::{Facts, Report, build};
use std::time::Duration;

fn named(text: &str, expectation: Expectation) -> Expectation {
    Expectation {
        text: text.to_owned(),
        ..expectation
    }
}

pub fn plan_with_a_drop() -> Plan {
    let latency = Subject::Time {
        operations: vec![UNLOCK],
        of: TimeOf::Latency,
        stat: Stat::Percentile(95.0),
    };
    let success = Subject::Share {
        operations: vec![UNLOCK],
        of: Share::Success,
    };
    let connected = Subject::Hubs {
        groups: vec![0],
        of: HubState::Connected,
    };
    let lost = Subject::Commands {
        issuers: vec![0],
        of: CommandState::Lost,
    };
    let drop = What::One(MarkId(0));
    let back = vec![Scope::Within {
        time: Duration::from_secs(10),
        after: drop,
    }];
    let during = vec![Scope::During(drop)];
    let expect = vec![
        named(
            "unlock latency p95 < 2s",
            line(latency, Comparison::Below, 2e6, Unit::Time, vec![]),
        ),
        named(
            "unlock success >= 99% during drop",
            line(success, Comparison::AtLeast, 0.99, Unit::Share, during),
        ),
        named(
            "hubs connected >= 99% within 10s after drop",
            line(connected, Comparison::AtLeast, 0.99, Unit::Share, back),
        ),
        named(
            "commands lost == 0",
            line(lost, Comparison::Equal, 0.0, Unit::Count, vec![]),
        ),
        named(
            "recovery <= 30s after drop",
            line(
                Subject::Recovery,
                Comparison::AtMost,
                30e6,
                Unit::Time,
                vec![Scope::After(drop)],
            ),
        ),
    ];
    Plan {
        triggers: vec![drop_at("drop", 20)],
        expect,
        ..plan()
    }
}

/// Twice the same, the later one told first.
fn troubles(stage: &mut Stage) {
    for (second, text) in [
        (31.0, "hub 8: the later one"),
        (
            30.0,
            "hub 7: the certificate of localhost:8883 expired on 2026-11-02 14:03:07 UTC",
        ),
    ] {
        stage.tell(Event::Explained {
            operation: UNLOCK,
            outcome: Outcome::Tls(TlsTrouble::Expired),
            text: text.to_owned(),
            at: crate::measure::stage::at(second),
        });
    }
}

/// The finished stage.
pub fn evening() -> Stage {
    let mut stage = Stage::new(plan_with_a_drop());
    for change in [HubChange::Opened, HubChange::Accepted, HubChange::Connected] {
        stage.hubs(change, 10, -3.0);
    }
    let mut number = 0;
    for second in 0..60 {
        for tenth in 0..10 {
            let due = f64::from(second) + f64::from(tenth) / 10.0 + 0.01;
            let bad = (20..26).contains(&second);
            let slow = if bad {
                1.2
            } else {
                0.05 + f64::from(tenth) / 100.0
            };
            stage.action(JOURNEY, due, slow, Outcome::Ok);
            let refused = bad && tenth == 3;
            stage.action(
                UNLOCK,
                due,
                slow,
                if refused {
                    Outcome::Refused(503)
                } else {
                    Outcome::Ok
                },
            );
        }
        number += 1;
        let due = f64::from(second) + 0.5;
        if second == 22 {
            stage.step(number, CommandStep::Due, due);
            stage.action(ISSUE, due, 0.02, Outcome::Ok);
            stage.step(number, CommandStep::Sent, due);
            stage.step(number, CommandStep::Accepted, due + 0.02);
        } else {
            stage.command(number, due, if second == 21 { 3.0 } else { 0.3 });
        }
    }
    stage.mark(0, 20.0, 22.0);
    let seen = MarkPhase::Observed("5 of 10 sessions ended".to_owned());
    stage.tell(Event::Mark(Mark {
        id: MarkId(0),
        phase: seen,
        at: crate::measure::stage::at(20.4),
    }));
    stage.hubs(HubChange::Lost(Cause::Reset), 5, 20.4);
    for change in [HubChange::Opened, HubChange::Accepted, HubChange::Connected] {
        stage.hubs(change, 5, 26.5);
    }
    troubles(&mut stage);
    for kind in [PacketKind::Connect, PacketKind::Subscribe] {
        stage.tell(Event::Packet {
            group: 0,
            kind,
            sent: true,
            at: crate::measure::stage::at(1.0),
        });
    }
    stage.finish_at(85.0);
    stage
}

/// Its report.
pub fn report() -> Report {
    let stage = evening();
    let recoveries = stage.collector.recoveries(&[], Ending::Settled);
    let judged = rushhour::measure::Judge::new(&stage.collector, &[], &recoveries).verdict();
    let facts = Facts {
        run_id: "20261204-0630-k3".to_owned(),
        folder: "runs/20261204-0630-k3".to_owned(),
        started: "2026-12-04T06:30:00Z".to_owned(),
        replay: "rushhour run profiles/evening.yaml --seed 42".to_owned(),
        exit_code: 3,
        exit_text: "an expectation failed, or a guard stopped the run".to_owned(),
        workers: 2,
        cpu_share: Some(0.61),
        resident_bytes: Some(96 * 1_048_576),
        notes: vec![
            "the target's certificates are renewed every 24h; this profile does not cover it"
                .to_owned(),
        ],
        ..Facts::default()
    };
    let mut report = build(&stage.collector, &judged, &[], &recoveries, facts);
    report.run.version = "0.0.0".to_owned();
    report
}

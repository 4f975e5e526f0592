//! What is told is what is counted, whoever tells it and whenever the collector comes.

use super::stage::{CONNECT, Stage, UNLOCK, ZERO, at, plan};
use proptest::prelude::*;
use rushhour::event::{Cause, Event, HubChange, Offset, Outcome, PacketKind};
use rushhour::measure::Collector;
use rushhour::measure::interval::INTERVAL_SECONDS;
use std::sync::Arc;

const OUTCOMES: [Outcome; 8] = [
    Outcome::Ok,
    Outcome::Declined,
    Outcome::Refused(503),
    Outcome::TimedOut,
    Outcome::Unreachable,
    Outcome::Reset,
    Outcome::Protocol,
    Outcome::NotSent,
];

#[derive(Debug, Clone)]
struct Told {
    worker: usize,
    due_us: u64,
    late_us: u64,
    took_us: u64,
    /// `None`: it never ends.
    outcome: Option<Outcome>,
}

fn told() -> impl Strategy<Value = Told> {
    let outcome = prop::option::weighted(0.9, prop::sample::select(OUTCOMES.to_vec()));
    (
        0..3_usize,
        0..70_000_000_u64,
        0..2_000_000_u64,
        0..9_000_000_u64,
        outcome,
    )
        .prop_map(|(worker, due_us, late_us, took_us, outcome)| Told {
            worker,
            due_us,
            late_us,
            took_us,
            outcome,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Events in the order of time, seconds closed as the time goes: at every moment started = ok + declined + failed + timed out +
    /// unfinished, and at the end every sum equals what was told, whole, by second and by class.
    #[test]
    fn sums_are_what_was_told(actions in prop::collection::vec(told(), 1..120)) {
        let (mut collector, shards) = Collector::new(&Arc::new(plan()), 3);
        let mut events = vec![(0, 0, Event::Zero { at: at(0.0) })];
        for action in &actions {
            let due = at(action.due_us as f64 / 1e6);
            let started = Offset(due.0 + action.late_us);
            let end = Offset(started.0 + action.took_us);
            events.push((action.worker, started.0, Event::Started { operation: UNLOCK, due, at: started }));
            events.push((action.worker, started.0, Event::Attempted { operation: UNLOCK, at: started }));
            if let Some(outcome) = action.outcome {
                events.push((action.worker, end.0, Event::Answered { operation: UNLOCK, sent: started, at: end, outcome }));
                let finished = Event::Finished { operation: UNLOCK, due, started, at: end, outcome, attempts: 1 };
                events.push((action.worker, end.0, finished));
            }
        }
        events.sort_by_key(|(_, at, _)| *at);
        let mut seconds = Vec::new();
        for (worker, at, event) in &events {
            seconds.extend(collector.advance(Offset(*at)));
            shards[*worker].record(event);
            let total = &collector.totals().operations[2];
            let ended = total.ok + total.declined + total.failed + total.timed_out;
            prop_assert_eq!(total.started, ended + total.unfinished());
        }
        seconds.extend(collector.finish(Offset(100_000_000)));
        let total = collector.totals().operations[2].clone();
        let count = |outcome| actions.iter().filter(|action| action.outcome == Some(outcome)).count() as u64;
        prop_assert_eq!(total.started, actions.len() as u64);
        prop_assert_eq!(total.attempted, actions.len() as u64);
        prop_assert_eq!(total.ok, count(Outcome::Ok));
        prop_assert_eq!(total.not_sent, count(Outcome::NotSent));
        prop_assert_eq!(total.timed_out, count(Outcome::TimedOut));
        let unended = actions.iter().filter(|action| action.outcome.is_none()).count() as u64;
        prop_assert_eq!(total.unfinished(), unended);
        for outcome in OUTCOMES {
            let tally = total.outcomes.get(&outcome).copied().unwrap_or_default();
            prop_assert_eq!((tally.attempts, tally.actions), (count(outcome), count(outcome)));
        }
        prop_assert_eq!(total.lag.count(), actions.len() as u64);
        prop_assert_eq!(total.latency.count(), total.ok + total.declined + total.timed_out);
        let by_second: u64 = seconds.iter().map(|second| u64::from(second.operations[2].started)).sum();
        prop_assert_eq!(by_second, total.started);
        let carried = u64::from(collector.carried().operations[2].finished());
        let finished: u64 = seconds.iter().map(|second| u64::from(second.operations[2].finished())).sum();
        prop_assert_eq!(finished + carried + unended, total.started);
        let logged: u64 = collector.take_intervals().iter().map(|interval| interval.latency.count()).sum();
        prop_assert_eq!(logged, total.latency.count());
    }
}

#[test]
fn an_event_counts_in_its_own_second_and_one_told_too_late_in_the_oldest_open_one() {
    let mut stage = Stage::new(plan());
    stage.action(UNLOCK, 1.2, 0.1, Outcome::Ok);
    stage.advance_to(5.0);
    stage.action(UNLOCK, 1.3, 0.1, Outcome::Ok);
    stage.finish_at(9.0);
    let started: Vec<u32> = stage
        .seconds
        .iter()
        .map(|second| second.operations[2].started)
        .collect();
    assert_eq!(stage.seconds[ZERO as usize + 1].index, ZERO + 1);
    assert_eq!(started[ZERO as usize + 1], 1);
    assert_eq!(
        started[ZERO as usize + 4],
        1,
        "second 4 was the oldest open one"
    );
    assert_eq!(started.iter().sum::<u32>(), 2);
}

#[test]
fn a_second_is_closed_only_when_it_has_been_over_for_a_second() {
    let mut stage = Stage::new(plan());
    stage.advance_to(1.999);
    assert_eq!(
        stage.seconds.last().map(|second| second.index),
        Some(ZERO - 1),
        "0:00 to 0:01 is not yet closed"
    );
    stage.advance_to(2.0);
    assert_eq!(stage.seconds.last().map(|second| second.index), Some(ZERO));
}

#[test]
fn what_was_due_in_the_load_and_ended_after_it_is_carried_and_nothing_else_is() {
    let mut stage = Stage::new(plan());
    stage.action(UNLOCK, 59.0, 3.0, Outcome::TimedOut);
    stage.action(UNLOCK, 61.0, 0.5, Outcome::Ok);
    stage.finish_at(70.0);
    let carried = &stage.collector.carried().operations[2];
    assert_eq!((carried.timed_out, carried.ok), (1, 0));
    assert_eq!(stage.collector.totals().operations[2].ok, 1);
}

#[test]
fn hubs_standing_is_what_connected_less_what_ended() {
    let mut stage = Stage::new(plan());
    for change in [HubChange::Opened, HubChange::Accepted, HubChange::Connected] {
        stage.hubs(change, 10, -2.0);
    }
    stage.hubs(HubChange::Lost(Cause::Closed), 4, 3.5);
    for change in [HubChange::Opened, HubChange::Accepted, HubChange::Connected] {
        stage.hubs(change, 3, 6.1);
    }
    stage.finish_at(10.0);
    let standing = |second: u64| stage.seconds[(ZERO + second) as usize].hubs[0].standing;
    assert_eq!((standing(2), standing(3), standing(6)), (10, 6, 9));
    let total = stage.collector.totals().hubs[0];
    assert_eq!(
        (
            total.accepted,
            total.reconnects,
            total.lost,
            total.standing()
        ),
        (13, 3, 4, 9)
    );
}

#[test]
fn packets_and_refusals_are_counted_by_kind_and_code() {
    let mut stage = Stage::new(plan());
    for sent in [true, true, false] {
        stage.tell(Event::Packet {
            group: 0,
            kind: PacketKind::Publish,
            sent,
            at: at(1.0),
        });
    }
    stage.action(CONNECT, 2.0, 0.1, Outcome::Refused(135));
    stage.action(CONNECT, 2.0, 0.1, Outcome::Refused(151));
    stage.action(CONNECT, 2.0, 0.1, Outcome::Refused(151));
    stage.finish_at(10.0);
    let totals = stage.collector.totals();
    let publish = totals.hubs[0].packets[PacketKind::Publish as usize];
    assert_eq!((publish.sent, publish.received), (2, 1));
    assert_eq!(
        totals.operations[0].outcomes[&Outcome::Refused(151)].attempts,
        2
    );
    assert_eq!(
        totals.operations[0].outcomes[&Outcome::Refused(135)].attempts,
        1
    );
    assert_eq!(stage.seconds[(ZERO + 2) as usize].operations[0].refused, 3);
}

#[test]
fn what_is_under_way_at_the_end_is_told_with_its_age() {
    let mut stage = Stage::new(plan());
    stage.tell(Event::Started {
        operation: UNLOCK,
        due: at(50.0),
        at: at(50.0),
    });
    stage.tell(Event::Unfinished {
        operation: UNLOCK,
        due: at(50.0),
        at: at(65.0),
    });
    stage.finish_at(65.0);
    let total = &stage.collector.totals().operations[2];
    assert_eq!(
        (total.unfinished(), total.unfinished_ages.max_us()),
        (1, Some(15_000_000))
    );
}

#[test]
fn steps_beyond_the_room_are_counted_as_lost() {
    let mut stage = Stage::new(plan());
    for number in 0..70_000 {
        stage.step(number, rushhour::event::CommandStep::Sent, 1.0);
    }
    stage.finish_at(10.0);
    assert_eq!(stage.collector.totals().lost_steps, 70_000 - 65_536);
}

#[test]
fn an_interval_holds_ten_seconds_of_one_operation() {
    let mut stage = Stage::new(plan());
    for second in 0..25 {
        stage.action(UNLOCK, f64::from(second) + 0.2, 0.1, Outcome::Ok);
    }
    stage.finish_at(25.0);
    let intervals = stage.collector.take_intervals();
    assert_eq!(intervals[0].tag, "commuters/unlock");
    assert!(
        intervals
            .iter()
            .all(|interval| interval.length_s <= INTERVAL_SECONDS)
    );
    assert_eq!(
        intervals
            .iter()
            .map(|interval| interval.latency.count())
            .sum::<u64>(),
        25
    );
    assert!(
        stage.collector.take_intervals().is_empty(),
        "each is given once"
    );
}

//! What riders decide: how a journey goes on, is retried, is declined and fails.

use super::plans::{TAG, fixed, millis, plan, seconds};
use rushhour::agents::{
    Action, Agent, Context, Input, Order, Reply, ReplyResult, Rider, RiderConfig, Timer,
};
use rushhour::dice::Dice;
use rushhour::event::{Event, Offset, OperationId, Outcome};
use rushhour::plan::OperationKind;
use rushhour::retry::Budget;
use std::sync::Arc;

const BIKES: &str = r#"{"bikes":[{"id":"bike-7"}]}"#;
const TRIP: &str = r#"{"trip_id":9}"#;
const START: Offset = Offset(5_000_000);

/// A rider with its dice, its clock and everything that it wanted so far.
struct Story {
    rider: Rider,
    dice: Dice,
    now: Offset,
    wants: Vec<Action>,
}

impl Story {
    fn begin() -> Story {
        let config = Arc::new(RiderConfig::of(&plan(1), 0, TAG));
        let mut story = Story {
            rider: Rider::new(&config, 17),
            dice: Dice::named(1, 1, 1),
            now: START,
            wants: Vec::new(),
        };
        story.give(Input::Due {
            due: Offset(4_000_000),
        });
        story
    }

    fn give(&mut self, input: Input<'_>) {
        self.rider.on(
            self.now,
            input,
            &mut Context {
                dice: &mut self.dice,
                budget: &Budget::unlimited(),
            },
            &mut self.wants,
        );
    }

    fn reply(&mut self, result: ReplyResult, body: &str) -> &mut Story {
        self.now = self.now.after(millis(10));
        self.give(Input::Reply(Reply {
            result,
            body: body.as_bytes(),
            retry_after: None,
        }));
        self
    }

    fn status(&mut self, status: u16, body: &str) -> &mut Story {
        self.reply(ReplyResult::Status(status), body)
    }

    /// Lets the timer run out that was asked for last.
    fn wake(&mut self) -> &mut Story {
        let Some(Action::WakeAt(Timer::Wait, at)) = self.wants.last() else {
            panic!("no timer was asked for: {:?}", self.wants.last());
        };
        self.now = *at;
        self.give(Input::Timer(Timer::Wait));
        self
    }

    fn value(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        self.rider.value(name, &mut text).then_some(text)
    }

    fn ends(&self) -> Vec<(u16, Outcome, u32)> {
        let of = |action: &Action| match action {
            Action::Tell(Event::Finished {
                operation,
                outcome,
                attempts,
                ..
            }) => Some((operation.0, *outcome, *attempts)),
            _ => None,
        };
        self.wants.iter().filter_map(of).collect()
    }

    fn requests(&self) -> usize {
        self.wants
            .iter()
            .filter(|action| matches!(action, Action::Request { .. }))
            .count()
    }

    fn is_done(&self) -> bool {
        self.wants.last() == Some(&Action::Done)
    }
}

fn operation(step: Option<usize>) -> u16 {
    let kind = match step {
        None => OperationKind::Journey { riders: 0 },
        Some(step) => OperationKind::Step { riders: 0, step },
    };
    plan(1).operation(kind).expect("the plan has such a step").0
}

#[test]
fn a_journey_keeps_what_it_needs_and_ends_well() {
    let mut story = Story::begin();
    assert_eq!(story.value("rider").unwrap(), "000017");
    assert_eq!(story.value("bike"), None);
    story.status(200, BIKES);
    assert_eq!(story.value("bike").unwrap(), "bike-7");
    story.status(202, TRIP);
    assert_eq!(story.value("trip").unwrap(), "9");
    assert!(story.rider.request().is_none(), "it thinks");
    let began_to_think = story.now;
    story.wake();
    let thought = story.now.since(began_to_think);
    assert!(thought >= seconds(3) && thought < seconds(9), "{thought:?}");
    story.status(200, "");
    let [near, unlock, back] = [0, 1, 3].map(|step| (operation(Some(step)), Outcome::Ok, 1));
    assert_eq!(
        story.ends(),
        [near, unlock, back, (operation(None), Outcome::Ok, 3)]
    );
    assert!(story.is_done());
}

#[test]
fn due_times_run_from_the_schedule_then_from_step_to_step() {
    let mut story = Story::begin();
    story.status(200, BIKES).status(202, TRIP);
    let Some(Action::WakeAt(Timer::Wait, planned)) = story.wants.last().cloned() else {
        panic!()
    };
    // The timer fires late: the step after it was due when the thinking should have ended.
    story.now = planned.after(seconds(1));
    story.give(Input::Timer(Timer::Wait));
    let starts: Vec<(u16, Offset, Offset)> = story
        .wants
        .iter()
        .filter_map(|action| match action {
            Action::Tell(Event::Started { operation, due, at }) => Some((operation.0, *due, *at)),
            _ => None,
        })
        .collect();
    let after_near = START.after(millis(10));
    assert_eq!(
        starts,
        [
            (operation(None), Offset(4_000_000), START),
            (operation(Some(0)), Offset(4_000_000), START),
            (operation(Some(1)), after_near, after_near),
            (operation(Some(3)), planned, planned.after(seconds(1))),
        ]
    );
}

#[test]
fn a_step_is_tried_again_with_the_same_intent_and_the_next_step_has_another() {
    let mut story = Story::begin();
    let first = story.value("intent").unwrap();
    story
        .reply(ReplyResult::Failed(Outcome::TimedOut), "")
        .wake();
    story.status(503, "").wake();
    story.status(429, "").wake();
    assert_eq!(story.value("intent").unwrap(), first);
    story.status(200, BIKES);
    let second = story.value("intent").unwrap();
    assert_ne!(first, second);
    assert_eq!(story.requests(), 5);
    assert_eq!(story.ends(), [(operation(Some(0)), Outcome::Ok, 4)]);
}

#[test]
fn attempts_used_up_fail_the_journey_with_the_last_outcome() {
    let mut story = Story::begin();
    for _ in 0..3 {
        story
            .reply(ReplyResult::Failed(Outcome::Unreachable), "")
            .wake();
    }
    story.status(500, "");
    let refused = Outcome::Refused(500);
    assert_eq!(
        story.ends(),
        [
            (operation(Some(0)), refused, 4),
            (operation(None), refused, 4)
        ]
    );
    assert!(story.is_done());
}

#[test]
fn only_what_may_pass_is_tried_again() {
    use Outcome::{NotSent, Protocol, Refused, Reset, TimedOut, Unreachable};
    use ReplyResult::{Failed, Status};
    for result in [
        Failed(TimedOut),
        Failed(Unreachable),
        Failed(Reset),
        Status(429),
        Status(500),
        Status(503),
        Status(599),
    ] {
        let mut story = Story::begin();
        story.reply(result, "");
        assert!(
            matches!(story.wants.last(), Some(Action::WakeAt(Timer::Wait, _))),
            "{result:?}"
        );
    }
    for (result, outcome) in [
        (Failed(NotSent), NotSent),
        (Failed(Protocol), Protocol),
        (Status(400), Refused(400)),
        (Status(404), Refused(404)),
        (Status(302), Refused(302)),
    ] {
        let mut story = Story::begin();
        story.reply(result, "");
        assert_eq!(
            story.ends(),
            [
                (operation(Some(0)), outcome, 1),
                (operation(None), outcome, 1)
            ]
        );
        assert!(story.is_done(), "{result:?}");
    }
}

#[test]
fn no_bike_and_a_taken_bike_are_declined_and_a_missing_trip_is_a_broken_answer() {
    let last = |story: &Story| story.ends().last().map(|(_, outcome, _)| *outcome).unwrap();
    let mut no_bike = Story::begin();
    assert_eq!(
        last(no_bike.status(200, r#"{"bikes":[]}"#)),
        Outcome::Declined
    );
    let mut taken = Story::begin();
    assert_eq!(
        last(taken.status(200, BIKES).status(409, "")),
        Outcome::Declined
    );
    let mut no_trip = Story::begin();
    assert_eq!(
        last(no_trip.status(200, BIKES).status(202, "{}")),
        Outcome::Protocol
    );
    let mut no_json = Story::begin();
    assert_eq!(last(no_json.status(200, "<html>")), Outcome::Protocol);
}

#[test]
fn a_stopped_journey_is_unfinished_and_silent_from_then_on() {
    let unfinished = |story: &Story| {
        let of = |action: &Action| match action {
            Action::Tell(Event::Unfinished {
                operation: OperationId(row),
                ..
            }) => Some(*row),
            _ => None,
        };
        story.wants.iter().filter_map(of).collect::<Vec<u16>>()
    };
    let mut waiting = Story::begin();
    waiting.give(Input::Told(Order::Stop));
    assert_eq!(unfinished(&waiting), [operation(Some(0)), operation(None)]);
    assert!(waiting.is_done());
    let wanted = waiting.wants.len();
    waiting.status(200, BIKES);
    assert_eq!(waiting.wants.len(), wanted);

    let mut thinking = Story::begin();
    thinking
        .status(200, BIKES)
        .status(202, TRIP)
        .give(Input::Told(Order::Stop));
    assert_eq!(unfinished(&thinking), [operation(None)]);
}

#[test]
fn one_attempt_means_no_retry() {
    let mut plan = plan(1);
    plan.riders[0].retry = fixed(seconds(1), 1);
    let config = Arc::new(RiderConfig::of(&plan, 0, TAG));
    let mut story = Story {
        rider: Rider::new(&config, 1),
        ..Story::begin()
    };
    story.give(Input::Due { due: START });
    story.reply(ReplyResult::Failed(Outcome::TimedOut), "");
    assert!(story.is_done());
}

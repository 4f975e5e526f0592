//! Journeys that poll, try candidates, are measured in spans and always end with a last request: what riders make of them.

use super::plans::{TAG, seconds};
use super::whole::{STARTED, UNLOCK, whole_plan};
use rushhour::agents::{
    Action, Agent, Context, Input, Order, Reply, ReplyResult, Rider, RiderConfig, Timer,
};
use rushhour::dice::Dice;
use rushhour::event::{Event, Offset, Outcome};
use rushhour::plan::places::Choice;
use rushhour::plan::target::Repeat;
use rushhour::plan::{OperationKind, Plan};
use rushhour::retry::Budget;
use std::sync::Arc;

const BIKES: &str = r#"{"bikes":[{"id":"b-1"},{"id":"b-2"},{"id":"b-3"}]}"#;
const TRIP: &str = r#"{"trip_id":"t-1"}"#;
const START: Offset = Offset(5_000_000);

struct Story {
    plan: Plan,
    rider: Rider,
    dice: Dice,
    budget: Budget,
    now: Offset,
    wants: Vec<Action>,
}

impl Story {
    fn begin() -> Story {
        Story::of(whole_plan(), 17)
    }

    fn of(plan: Plan, number: u64) -> Story {
        let config = Arc::new(RiderConfig::of(&plan, 0, TAG));
        let rider = Rider::new(&config, number);
        let mut story = Story {
            budget: plan.budget(rushhour::event::AgentKind::Rider, 0),
            plan,
            rider,
            dice: Dice::named(1, 1, 1),
            now: START,
            wants: Vec::new(),
        };
        story.give(Input::Due { due: START });
        story
    }

    fn give(&mut self, input: Input<'_>) {
        let mut context = Context {
            dice: &mut self.dice,
            budget: &self.budget,
        };
        self.rider
            .on(self.now, input, &mut context, &mut self.wants);
    }

    fn reply(&mut self, result: ReplyResult, body: &str) -> &mut Story {
        self.now = Offset(self.now.0 + 10_000);
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

    fn fails(&mut self, outcome: Outcome) -> &mut Story {
        self.reply(ReplyResult::Failed(outcome), "")
    }

    /// To the trip, at the first candidate.
    fn unlocked() -> Story {
        let mut story = Story::begin();
        story.status(200, BIKES).status(202, TRIP);
        story
    }

    fn wake(&mut self) -> &mut Story {
        let Some(Action::WakeAt(Timer::Wait, at)) = self.wants.last() else {
            panic!("no timer was asked for: {:?}", self.wants.last());
        };
        self.now = *at;
        self.give(Input::Timer(Timer::Wait));
        self
    }

    fn url(&self) -> String {
        let mut text = String::new();
        let request = self.rider.request().expect("it asks something");
        request
            .url
            .render_into(&mut text, |name, out| self.rider.value(name, out))
            .expect("every name is known");
        text.trim_start_matches("http://127.0.0.1:80").to_owned()
    }

    fn intent(&self) -> String {
        let mut text = String::new();
        assert!(self.rider.value("intent", &mut text));
        text
    }

    fn count(&self, kind: OperationKind, is: impl Fn(&Event) -> bool) -> usize {
        let row = self.plan.operation(kind).expect("the plan has it");
        let of = |event: &Event| match event {
            Event::Started { operation, .. }
            | Event::Attempted { operation, .. }
            | Event::Continued { operation, .. }
            | Event::Answered { operation, .. }
            | Event::Duplicated { operation, .. }
            | Event::Unfinished { operation, .. }
            | Event::Finished { operation, .. } => *operation == row,
            _ => false,
        };
        let told = self.wants.iter().filter_map(|action| match action {
            Action::Tell(event) => Some(event),
            _ => None,
        });
        told.filter(|event| of(event) && is(event)).count()
    }

    fn ended(&self, kind: OperationKind, with: Outcome) -> bool {
        let is =
            |event: &Event| matches!(event, Event::Finished { outcome, .. } if *outcome == with);
        self.count(kind, is) == 1
    }

    fn is_done(&self) -> bool {
        self.wants.last() == Some(&Action::Done)
    }
}

fn step(step: usize) -> OperationKind {
    OperationKind::Step { riders: 0, step }
}

const WHOLE: OperationKind = OperationKind::Journey { riders: 0 };
const SPAN: OperationKind = OperationKind::Span { riders: 0, span: 0 };
const GIVE_BACK: OperationKind = OperationKind::Closing {
    riders: 0,
    closing: 0,
};

fn attempted(event: &Event) -> bool {
    matches!(event, Event::Attempted { .. })
}

fn continued(event: &Event) -> bool {
    matches!(event, Event::Continued { .. })
}

#[test]
fn candidates_are_tried_in_turn_each_with_an_intent_of_its_own() {
    let mut story = Story::begin();
    story.status(200, BIKES);
    assert_eq!(story.url(), "/bikes/b-1/unlock");
    let first = story.intent();
    story.status(409, "");
    assert_eq!(story.url(), "/bikes/b-2/unlock");
    let second = story.intent();
    assert_ne!(first, second);
    // A retry of the second is the second.
    story.fails(Outcome::Unreachable).wake();
    assert_eq!(
        (story.url(), story.intent()),
        ("/bikes/b-2/unlock".to_owned(), second)
    );
    story.status(409, "").status(202, TRIP);
    assert!(story.ended(step(UNLOCK), Outcome::Ok));
    assert_eq!(
        story.count(step(UNLOCK), attempted),
        2,
        "the first and its retry"
    );
    assert_eq!(
        story.count(step(UNLOCK), continued),
        2,
        "two more candidates"
    );
    assert_eq!(story.url(), "/trips/t-1");
}

#[test]
fn when_every_candidate_is_taken_the_journey_is_declined_and_has_nothing_to_give_back() {
    let mut story = Story::begin();
    story.status(200, BIKES);
    for _ in 0..3 {
        story.status(409, "");
    }
    assert!(story.ended(step(UNLOCK), Outcome::Declined));
    assert!(story.ended(WHOLE, Outcome::Declined));
    assert!(story.ended(SPAN, Outcome::Declined));
    assert!(story.is_done(), "no trip is known");
}

#[test]
fn polls_are_meant_and_no_retries_and_the_span_is_measured_from_its_first_step() {
    let mut story = Story::unlocked();
    let began = story.now;
    for _ in 0..3 {
        story.status(200, r#"{"state":"starting"}"#).wake();
    }
    // From one poll to the next, not from an answer to the next poll.
    assert_eq!(story.now.since(began), seconds(3));
    story.status(200, r#"{"state":"started"}"#);
    assert_eq!(story.count(step(STARTED), attempted), 1);
    assert_eq!(story.count(step(STARTED), continued), 3);
    assert!(story.ended(step(STARTED), Outcome::Ok));
    let span = story.plan.operation(SPAN).unwrap();
    let times = story.wants.iter().find_map(|action| match action {
        Action::Tell(Event::Finished {
            operation,
            due,
            at,
            outcome: Outcome::Ok,
            attempts,
            ..
        }) if *operation == span => Some((at.since(*due), *attempts)),
        _ => None,
    });
    // Unlock took 10 ms, three polls of a second each, the last answer 10 ms; two requests that were no polls.
    assert_eq!(times, Some((std::time::Duration::from_millis(3_020), 2)));
}

#[test]
fn who_polls_in_vain_gives_up_in_time_and_gives_the_trip_back() {
    let mut story = Story::unlocked();
    let began = story.now;
    while !story.ended(step(STARTED), Outcome::TimedOut) {
        story.status(200, r#"{"state":"starting"}"#).wake();
    }
    assert_eq!(story.now.since(began), seconds(10));
    assert!(story.ended(WHOLE, Outcome::TimedOut) && story.ended(SPAN, Outcome::TimedOut));
    assert_eq!(story.url(), "/trips/t-1/back");
    story.fails(Outcome::Reset).wake();
    story.status(200, "");
    assert!(story.ended(GIVE_BACK, Outcome::Ok));
    assert!(story.is_done());
}

#[test]
fn a_poll_that_hangs_ends_with_the_patience_of_the_step() {
    let mut story = Story::unlocked();
    for _ in 0..8 {
        story.status(200, r#"{"state":"starting"}"#).wake();
    }
    let Some(Action::Request { timeout }) = story.wants.last() else {
        panic!("it polls");
    };
    assert_eq!(
        *timeout,
        seconds(2),
        "8 of 10 s are over, and an attempt may take 5 s"
    );
}

#[test]
fn a_failed_poll_is_retried_by_the_policy_whose_count_begins_anew_with_each_poll() {
    let mut plan = whole_plan();
    if let Repeat::Until(poll) = &mut plan.target.journeys[0].steps[STARTED].repeat {
        poll.give_up = seconds(60);
    }
    let mut story = Story::of(plan, 17);
    story.status(200, BIKES).status(202, TRIP);
    for _ in 0..2 {
        for _ in 0..3 {
            story.status(503, "").wake();
        }
        story.status(200, r#"{"state":"starting"}"#).wake();
    }
    assert_eq!(story.count(step(STARTED), attempted), 7);
    assert_eq!(story.count(step(STARTED), continued), 2);
    for _ in 0..3 {
        story.status(503, "").wake();
    }
    story.status(503, "");
    assert!(
        story.ended(WHOLE, Outcome::Refused(503)),
        "four attempts at one poll"
    );
}

#[test]
fn what_went_well_is_not_given_back() {
    let mut story = Story::unlocked();
    story.status(200, r#"{"state":"started"}"#).wake();
    assert_eq!(story.url(), "/trips/t-1/end");
    story.status(200, "");
    assert!(story.ended(WHOLE, Outcome::Ok));
    assert_eq!(story.count(GIVE_BACK, |_| true), 0);
    assert!(story.is_done());
}

#[test]
fn who_is_told_to_leave_is_unfinished_and_gives_back_what_it_has() {
    for thinking in [false, true] {
        let mut story = Story::unlocked();
        if thinking {
            story.status(200, r#"{"state":"started"}"#);
        }
        story.give(Input::Told(Order::Leave));
        let unfinished = |event: &Event| matches!(event, Event::Unfinished { .. });
        assert_eq!(story.count(WHOLE, unfinished), 1);
        assert_eq!(story.count(SPAN, unfinished), usize::from(!thinking));
        assert_eq!(story.url(), "/trips/t-1/back");
        // Told again it goes on with what it does.
        story.give(Input::Told(Order::Leave));
        story.status(200, "");
        assert!(story.ended(GIVE_BACK, Outcome::Ok));
        assert!(story.is_done());
    }
    let mut early = Story::begin();
    early.give(Input::Told(Order::Leave));
    assert!(early.is_done(), "there is nothing to give back");
    let mut stopped = Story::unlocked();
    stopped.give(Input::Told(Order::Leave));
    stopped.give(Input::Told(Order::Stop));
    let unfinished = |event: &Event| matches!(event, Event::Unfinished { .. });
    assert_eq!(stopped.count(GIVE_BACK, unfinished), 1);
    assert!(stopped.is_done());
}

#[test]
fn without_idempotency_a_repeated_unlock_may_have_happened_twice() {
    let twice = |story: &Story, known: bool| {
        let is = move |event: &Event| matches!(event, Event::Duplicated { known: told, .. } if *told == known);
        story.count(step(UNLOCK), is)
    };
    let without = || {
        let mut plan = whole_plan();
        plan.riders[0].idempotency = false;
        Story::of(plan, 17)
    };
    let mut story = without();
    story.status(200, BIKES);
    assert!(story.rider.request().unwrap().headers.is_empty());
    let first = story.intent();
    story.fails(Outcome::TimedOut).wake();
    assert_ne!(first, story.intent());
    story.status(202, TRIP);
    assert_eq!((twice(&story, false), twice(&story, true)), (1, 0));

    // The gateway gave up, but not before it had made a trip, as it says.
    let mut story = without();
    story.status(200, BIKES);
    story.status(504, r#"{"trip_id":"t-0"}"#).wake();
    story.status(202, TRIP);
    assert_eq!((twice(&story, false), twice(&story, true)), (0, 1));

    // Nothing was done, so nothing was done twice.
    let mut story = without();
    story.status(200, BIKES);
    story.fails(Outcome::Unreachable).wake();
    story.status(503, "").wake();
    story.status(202, TRIP);
    assert_eq!((twice(&story, false), twice(&story, true)), (0, 0));

    // With the key the target knows the second attempt; a second trip all the same is known.
    let mut story = Story::begin();
    story.status(200, BIKES);
    story.fails(Outcome::TimedOut).wake();
    story.status(202, TRIP);
    assert_eq!((twice(&story, false), twice(&story, true)), (0, 0));
    let mut story = Story::begin();
    story.status(200, BIKES);
    story.status(504, r#"{"trip_id":"t-0"}"#).wake();
    story.status(202, TRIP);
    assert_eq!(twice(&story, true), 1);
}

#[test]
fn places_come_from_the_seed_and_the_number_and_have_their_shares() {
    let place = |plan: &Plan, number| Story::of(plan.clone(), number).url();
    let mut plan = whole_plan();
    plan.riders[0].places = Choice::Zipf(1.0);
    let all: Vec<String> = (1..=2_000).map(|number| place(&plan, number)).collect();
    let again: Vec<String> = (1..=2_000)
        .rev()
        .map(|number| place(&plan, number))
        .collect();
    assert!(
        all.iter().eq(again.iter().rev()),
        "the order does not matter"
    );
    let share = |all: &[String], station: usize| {
        let url = format!("/stations/st-{station}");
        all.iter().filter(|one| **one == url).count() as f64 / all.len() as f64
    };
    // 1/k ÷ (1 + 1/2 + … + 1/10) = 0.341 / k; four standard deviations of 2 000 draws are at most 0.042.
    for station in [1, 2, 5, 10] {
        let expected = 0.3414 / station as f64;
        assert!((share(&all, station) - expected).abs() < 0.042, "{station}");
    }
    plan.riders[0].places =
        Choice::Weighted(vec![0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let all: Vec<String> = (1..=2_000).map(|number| place(&plan, number)).collect();
    assert!((share(&all, 2) - 0.75).abs() < 0.042);
    assert!((share(&all, 3) - 0.25).abs() < 0.042);
    plan.riders[0].places = Choice::Even;
    plan.seed += 1;
    let all: Vec<String> = (1..=2_000).map(|number| place(&plan, number)).collect();
    assert!((1..=10).all(|station| (share(&all, station) - 0.1).abs() < 0.042));
}

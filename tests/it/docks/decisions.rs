//! One dock by hand: what leaves it, in which order, and what it tells of each return.

use rushhour::agents::{
    Action, Agent, Context, Dock, DockConfig, Handed, Input, Left, Order, Post, Reply, ReplyResult,
    Timer,
};
use rushhour::dice::Dice;
use rushhour::event::{Event, LeftOut, Offset, Outcome, ReturnId, ReturnState, ReturnStep};
use rushhour::plan::dock::Booked;
use rushhour::retry::Budget;
use rushhour::spec::{Sources, read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A dock of the shipped profile, its dice, and what it wanted so far.
struct Stage {
    dock: Dock,
    dice: Dice,
    budget: Budget,
    now: Offset,
}

impl Stage {
    fn new() -> Stage {
        let profile =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("profiles/station-outage.yaml");
        let plan = read(&Sources {
            profile,
            ..Sources::default()
        })
        .unwrap();
        let config = Arc::new(DockConfig::of(&plan, 0, "run"));
        Stage {
            dock: Dock::new(&config, 6),
            dice: Dice::named(1, 2, 3),
            budget: Budget::unlimited(),
            now: Offset::ZERO,
        }
    }

    fn on(&mut self, input: Input<'_>) -> Vec<Action> {
        let mut out = Vec::new();
        let mut context = Context {
            dice: &mut self.dice,
            budget: &self.budget,
        };
        self.dock.on(self.now, input, &mut context, &mut out);
        out
    }

    fn hand(&mut self, number: u64) -> Vec<Action> {
        self.on(Input::Handed(Handed {
            id: id(number),
            sends: 0,
            values: [("trip".to_owned(), format!("trip-{number}"))].into(),
        }))
    }

    fn answer(&mut self, token: u64, result: ReplyResult) -> Vec<Action> {
        let reply = Reply {
            result,
            body: &[],
            retry_after: None,
        };
        self.on(Input::Answered { token, reply })
    }

    fn says(&self, name: &str) -> String {
        let mut text = String::new();
        assert!(self.dock.value(Post::Return, name, &mut text), "{name}");
        text
    }
}

fn id(number: u64) -> ReturnId {
    ReturnId {
        riders: 0,
        number,
        step: 3,
    }
}

/// The token of the one post of this kind among the actions.
#[track_caller]
fn posted(actions: &[Action], wanted: Post) -> u64 {
    let tokens: Vec<u64> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Post { token, post, .. } if *post == wanted => Some(*token),
            _ => None,
        })
        .collect();
    assert_eq!(tokens.len(), 1, "{actions:?}");
    tokens[0]
}

fn posts(actions: &[Action]) -> usize {
    let is_post = |action: &&Action| matches!(action, Action::Post { .. });
    actions.iter().filter(is_post).count()
}

fn steps(actions: &[Action]) -> Vec<(u64, ReturnStep)> {
    let step = |action: &Action| match action {
        Action::Tell(Event::Return { id, step, .. }) => Some((id.number, *step)),
        _ => None,
    };
    actions.iter().filter_map(step).collect()
}

#[test]
fn what_was_under_way_when_the_network_went_leaves_again_with_its_id_and_in_its_order() {
    let mut stage = Stage::new();
    let first = posted(&stage.hand(1), Post::Return);
    assert_eq!(stage.says("return"), "run-r0-1-3");
    assert_eq!(stage.says("station"), "station-7");
    assert_eq!(posts(&stage.hand(2)), 0, "one after the other");

    let gone = stage.on(Input::Told(Order::Offline));
    assert!(gone.contains(&Action::Abandon { token: first }));
    assert_eq!(posts(&stage.hand(3)), 0, "without a network nothing leaves");
    assert_eq!(stage.dock.stored(), 3);
    let late = stage.answer(first, ReplyResult::Status(202));
    assert!(
        late.is_empty(),
        "an answer that the dock can't have seen: {late:?}"
    );

    let back = stage.on(Input::Told(Order::Online));
    let wait = back.iter().find_map(|action| match action {
        Action::WakeAt(Timer::Wait, at) => Some(*at),
        _ => None,
    });
    let wait = wait.expect("the first return after an outage is spread");
    assert!(
        wait <= Offset::ZERO.after(Duration::from_secs(5)),
        "{wait:?}"
    );
    stage.now = wait;
    let mut token = posted(&stage.on(Input::Timer(Timer::Wait)), Post::Return);
    assert_eq!(stage.says("return"), "run-r0-1-3", "the same id again");
    for (number, status) in [(1, 409), (2, 202), (3, 202)] {
        assert_eq!(stage.says("trip"), format!("trip-{number}"));
        let done = stage.answer(token, ReplyResult::Status(status));
        assert_eq!(
            steps(&done),
            [(number, ReturnStep::Settled(ReturnState::Delivered))]
        );
        if number < 3 {
            token = posted(&done, Post::Return);
        }
    }
    assert_eq!(stage.dock.stored(), 0);
}

#[test]
fn a_return_that_is_refused_for_good_is_lost_and_the_next_one_leaves() {
    let mut stage = Stage::new();
    let token = posted(&stage.hand(1), Post::Return);
    stage.hand(2);
    let refused = stage.answer(token, ReplyResult::Status(400));
    assert_eq!(
        steps(&refused),
        [(1, ReturnStep::Settled(ReturnState::Lost))]
    );
    let token = posted(&refused, Post::Return);
    let failed = stage.answer(token, ReplyResult::Failed(Outcome::TimedOut));
    assert_eq!(steps(&failed), [], "it is held, and tried again");
    assert!(
        failed
            .iter()
            .any(|action| matches!(action, Action::WakeAt(Timer::Wait, _)))
    );
    let end = stage.on(Input::Told(Order::Stop));
    let left = end.iter().find_map(|action| match action {
        Action::Left(Left { handed, state, .. }) => Some((handed.id.number, *state)),
        _ => None,
    });
    assert_eq!(left, Some((2, ReturnState::Stored)), "{end:?}");
}

#[test]
fn refreshes_follow_their_schedule_and_are_left_out_when_shed_or_offline() {
    let mut stage = Stage::new();
    let begun = stage.on(Input::Due { due: Offset::ZERO });
    let [Action::WakeAt(Timer::Status, first)] = begun[..] else {
        panic!("{begun:?}");
    };
    assert!(first < Offset::ZERO.after(Duration::from_secs(10)));
    stage.now = first;
    let token = posted(&stage.on(Input::Timer(Timer::Status)), Post::Status);
    // The answer is not waited for: the next one leaves in its time all the same.
    stage.now = first.after(Duration::from_secs(10));
    let second = stage.on(Input::Timer(Timer::Status));
    posted(&second, Post::Status);
    stage.answer(token, ReplyResult::Status(204));
    let mut left_out = Vec::new();
    for (times, order) in [(2, Order::Shed(true)), (3, Order::Offline)] {
        stage.on(Input::Told(order));
        stage.now = first.after(Duration::from_secs(10 * times));
        let actions = stage.on(Input::Timer(Timer::Status));
        assert_eq!(posts(&actions), 0, "{actions:?}");
        left_out.extend(actions.iter().filter_map(|action| match action {
            Action::Tell(Event::LeftOut { why, .. }) => Some(*why),
            _ => None,
        }));
    }
    assert_eq!(left_out, [LeftOut::Shed, LeftOut::Offline]);
    stage.on(Input::Told(Order::Online));
    stage.on(Input::Told(Order::Shed(false)));
    stage.now = first.after(Duration::from_secs(40));
    posted(&stage.on(Input::Timer(Timer::Status)), Post::Status);
}

#[test]
fn the_target_has_the_last_word_on_what_left_the_dock() {
    let booked = |times, is_active| Booked { times, is_active };
    let rows = [
        (
            ReturnState::Delivered,
            booked(Some(1), false),
            ReturnState::Delivered,
        ),
        (
            ReturnState::Delivered,
            booked(Some(0), true),
            ReturnState::Lost,
        ),
        (
            ReturnState::Delivered,
            booked(Some(2), false),
            ReturnState::Duplicated,
        ),
        (
            ReturnState::InDoubt,
            booked(Some(1), false),
            ReturnState::Delivered,
        ),
        (
            ReturnState::InDoubt,
            booked(None, true),
            ReturnState::InDoubt,
        ),
        (
            ReturnState::Lost,
            booked(Some(1), false),
            ReturnState::Delivered,
        ),
        (
            ReturnState::Stored,
            booked(Some(1), false),
            ReturnState::Stored,
        ),
    ];
    for (was, booked, now) in rows {
        assert_eq!(booked.state(was), now, "{was:?} and {booked:?}");
    }
}

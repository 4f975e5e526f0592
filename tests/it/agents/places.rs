//! Where hubs go: in turn, by asking, by Server Reference; and with which certificate.

use super::given::Given;
use super::plans::{doubling, millis, plan, seconds};
use super::target::{Connect, Target};
use super::world::{World, ZERO, at};
use proptest::prelude::*;
use rushhour::agents::whereabouts::{Finding, Next, Whereabouts};
use rushhour::agents::{Order, Reference};
use rushhour::event::{Cause, Event, HubChange, Outcome, ReferenceVerdict};
use rushhour::plan::fault::How;
use rushhour::plan::json_path::JsonPath;
use rushhour::plan::target::{Answer, Ask, Find, Method, Request};
use rushhour::plan::wave::{Jitter, Wave};
use rushhour::plan::{OperationKind, Plan, Template, operation};
use std::collections::BTreeSet;
use std::time::Duration;

/// Hubs of a device with three shards that they find this way.
fn hubs(count: u32, find: Find) -> Plan {
    let mut plan = plan(count);
    plan.riders.clear();
    plan.issuers.clear();
    plan.hubs[0].reconnect.retry = doubling(seconds(1), seconds(16));
    let device = &mut plan.target.devices[0];
    device.shards = ["one", "two", "three"]
        .map(|name| (name.to_owned(), Template::literal("mqtt://127.0.0.1:1883")))
        .to_vec();
    device.find = find;
    plan.operations = operation::table(&plan.hubs, &plan.riders, &plan.issuers, &plan.target);
    plan
}

fn ask() -> Find {
    Find::Ask(Box::new(Ask {
        request: Request {
            method: Method::Get,
            url: Template::literal("http://127.0.0.1:80/"),
            headers: Vec::new(),
            bearer: None,
            json: None,
            answer: Answer::default(),
        },
        keep: JsonPath::parse("$.host").expect("a path"),
    }))
}

fn shards_of(world: &World) -> Vec<u16> {
    world.connects.iter().map(|(_, _, shard)| *shard).collect()
}

fn outcomes(world: &World, plan: &Plan, kind: OperationKind) -> Vec<Outcome> {
    let wanted = plan.operation(kind).expect("the operation");
    let of = |event: &Event| match event {
        Event::Finished {
            operation, outcome, ..
        } if *operation == wanted => Some(*outcome),
        _ => None,
    };
    world
        .told
        .iter()
        .filter_map(|(_, event)| of(event))
        .collect()
}

/// The first two attempts fail: the hub goes on to the next shard each time, and stays where it was let in.
#[test]
fn a_list_is_tried_in_turn() {
    let mut target = Target::healthy(1);
    let mut attempts = 0;
    target.connect = Box::new(move |_, _| {
        attempts += 1;
        match attempts {
            1 | 2 => Connect::Fails(Outcome::Unreachable),
            _ => Connect::Works,
        }
    });
    let mut world = World::new(hubs(1, Find::List(None)), target);
    world.run_until(at(5));
    world.order(0, How::Close, Duration::ZERO);
    world.run_until(at(30));
    assert_eq!(shards_of(&world), [0, 1, 2, 2]);
    world.stop();
}

/// Each attempt to connect is preceded by a question, and a question that fails counts as none: the broker saw one connection fewer.
#[test]
fn a_hub_asks_before_each_attempt() {
    let plan = hubs(1, ask());
    let mut target = Target::healthy(1);
    let mut questions = 0;
    target.find = Box::new(move |_, _| {
        questions += 1;
        match questions {
            1 => Err(Outcome::Refused(503)),
            2 => Ok(1),
            _ => Ok(2),
        }
    });
    let mut world = World::new(plan.clone(), target);
    world.run_until(at(5));
    world.order(0, How::Close, Duration::ZERO);
    world.run_until(at(30));
    assert_eq!(shards_of(&world), [1, 2]);
    assert_eq!(
        outcomes(&world, &plan, OperationKind::Find { hubs: 0 }),
        [Outcome::Refused(503), Outcome::Ok, Outcome::Ok]
    );
    assert_eq!(
        outcomes(&world, &plan, OperationKind::Connect { hubs: 0 }),
        [Outcome::Ok, Outcome::Ok]
    );
    let standing: Vec<_> = world
        .told
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Standing { shard, stands, .. } => Some((*shard, *stands)),
            _ => None,
        })
        .collect();
    assert_eq!(standing, [(1, true), (1, false), (2, true)]);
    world.stop();
}

/// A question without an answer ends after the group's timeout of 5 s; then the backoff's first second passes.
#[test]
fn a_question_without_an_answer_times_out() {
    let plan = hubs(1, ask());
    let mut target = Target::healthy(1);
    target.latency = (seconds(3_000), seconds(3_000));
    let mut world = World::new(plan.clone(), target);
    world.run_until(rushhour::event::Offset::ZERO.after(millis(10_500)));
    assert_eq!(
        outcomes(&world, &plan, OperationKind::Find { hubs: 0 }),
        [Outcome::TimedOut]
    );
    assert_eq!(world.connects, []);
    world.run_until(ZERO);
    assert!(outcomes(&world, &plan, OperationKind::Find { hubs: 0 }).len() >= 4);
    world.stop();
}

/// Sent away from a session by Server Reference, a hub that had lived long goes at once, without the policy's 5 s of `first`.
#[test]
fn a_reference_is_followed_at_once() {
    let mut world = World::new(hubs(1, Find::Redirect), Target::healthy(1));
    world.run_until(at(5));
    let elsewhere = Reference {
        shard: 2,
        for_good: false,
    };
    world.give(0, &Given::Pointed(elsewhere));
    world.give(
        0,
        &Given::Lost(Outcome::Refused(0x9c), Cause::Disconnected(0x9c)),
    );
    world.run_until(at(6));
    assert_eq!(shards_of(&world), [0, 2]);
    assert!(world.connects[1].0.since(at(5)) < millis(1));
    assert!(world.told.iter().any(|(_, event)| matches!(
        event,
        Event::Reference {
            verdict: ReferenceVerdict::Followed,
            ..
        }
    )));
    // Only for the time being: when that session ends it goes home.
    world.run_until(at(20));
    world.order(0, How::Close, Duration::ZERO);
    world.run_until(at(30));
    assert_eq!(shards_of(&world), [0, 2, 0]);
    world.stop();
}

/// Two servers that send a hub to each other for ever: from the second time on it waits by its policy, so 60 s hold few attempts.
#[test]
fn servers_that_send_a_hub_to_each_other_are_met_with_backoff() {
    let mut world = World::new(hubs(1, Find::Redirect), Target::healthy(1));
    world.run_until(at(5));
    let mut sent = 0;
    for tenth in 50..650 {
        world.run_until(ZERO.after(millis(tenth * 100)));
        if world.connected() == 1 {
            sent += 1;
            let shard = 1 + (sent % 2);
            world.give(
                0,
                &Given::Pointed(Reference {
                    shard,
                    for_good: true,
                }),
            );
            world.give(
                0,
                &Given::Lost(Outcome::Refused(0x9d), Cause::Disconnected(0x9d)),
            );
        }
    }
    // At once, then 1, 2, 4, 8, 16, 16, 16 s, each with what the way takes.
    assert!((6..=9).contains(&sent), "{sent}");
    world.stop();
}

/// Renewal ends a session without losing it, and connects at once; a hub that keeps its session only takes the certificate.
#[test]
fn renewal_is_no_loss() {
    for (end, connects, left) in [(Some(How::Disconnect), 2, 1), (None, 1, 0)] {
        let mut world = World::new(hubs(1, Find::Balancer), Target::healthy(1));
        world.run_until(at(5));
        world.give(0, &Given::Told(Order::Renew { end }));
        world.run_until(at(6));
        assert_eq!(world.renewals.len(), 1);
        assert_eq!(world.connects.len(), connects);
        assert_eq!(world.lost().len(), 0);
        assert_eq!(world.changes(HubChange::Left).len(), left);
        assert_eq!(world.connected(), 1);
        world.stop();
    }
}

proptest! {
    /// Whatever happens, a hub goes to a shard of its device; only a device that follows references is ever moved by one; and it
    /// goes at once only when one has just come.
    #[test]
    fn a_hub_never_leaves_its_shards(
        steps in prop::collection::vec((0_u8..4, 0_u16..3, any::<bool>()), 0..60),
        finding in prop::sample::select(vec![
            Finding::Fixed, Finding::InTurn(3), Finding::Ask, Finding::Redirect,
        ]),
        home in 0_u16..3,
    ) {
        let mut place = Whereabouts::new(home);
        let mut pointed = false;
        for (what, shard, for_good) in steps {
            match what {
                0 => {
                    let next = place.next(finding);
                    pointed = false;
                    prop_assert_eq!(next == Next::Ask, finding == Finding::Ask);
                }
                1 => {
                    let followed = place.pointed(finding, Reference { shard, for_good });
                    prop_assert_eq!(followed, finding == Finding::Redirect);
                    pointed |= followed;
                    prop_assert!(!followed || place.shard() == shard);
                }
                2 => prop_assert_eq!(place.attempt_failed(finding), pointed),
                _ => prop_assert_eq!(place.session_ended(), pointed),
            }
            prop_assert!(place.shard() < 3);
            if finding == Finding::Fixed {
                prop_assert_eq!(place.shard(), home);
            }
        }
    }

    /// Exactly the share takes part, each hub once, all within the window, the same under the same seed.
    #[test]
    fn a_wave_holds_its_share_and_window(
        seed in any::<u64>(),
        count in 1_u32..400,
        percent in 0_u32..=100,
        within_ms in 0_u64..20_000,
        full in any::<bool>(),
    ) {
        let wave = Wave {
            group: 0,
            share: f64::from(percent) / 100.0,
            within: millis(within_ms),
            jitter: if full { Jitter::Full } else { Jitter::None },
        };
        let turns = wave.turns(seed, count);
        prop_assert_eq!(turns.len(), (f64::from(count) * wave.share).round() as usize);
        let hubs: BTreeSet<u32> = turns.iter().map(|(index, _)| *index).collect();
        prop_assert_eq!(hubs.len(), turns.len());
        prop_assert!(turns.iter().all(|(index, at)| *index < count && *at <= wave.within));
        prop_assert!(turns.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        prop_assert_eq!(wave.turns(seed, count), turns);
    }
}

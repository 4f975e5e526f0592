//! What hubs decide: when they come back, that they are alive, what they answer.

use super::plans::{doubling, millis, plan, seconds, with_drop};
use super::target::{Connect, Target};
use super::world::{World, ZERO, at};
use rushhour::agents::{Hub, HubConfig};
use rushhour::event::{CommandId, CommandStep, Event, HubChange, Offset, OperationId, Outcome};
use rushhour::plan::fault::How;
use rushhour::plan::{OperationKind, Plan};
use std::sync::Arc;
use std::time::Duration;

/// Only hubs, with these reconnect times to the microsecond: no jitter but in the first reconnect.
fn hubs(count: u32) -> Plan {
    let mut plan = plan(count);
    plan.riders.clear();
    plan.issuers.clear();
    plan.hubs[0].reconnect.retry = doubling(seconds(1), seconds(16));
    plan
}

fn quick(target: Target) -> Target {
    Target {
        latency: (Duration::ZERO, Duration::ZERO),
        ..target
    }
}

fn finished(world: &World, wanted: OperationId) -> Vec<(Outcome, u32)> {
    let of = |event: &Event| match event {
        Event::Finished {
            operation,
            outcome,
            attempts,
            ..
        } if *operation == wanted => Some((*outcome, *attempts)),
        _ => None,
    };
    world
        .told
        .iter()
        .filter_map(|(_, event)| of(event))
        .collect()
}

fn connects(world: &World, plan: &Plan) -> Vec<(Outcome, u32)> {
    finished(
        world,
        plan.operation(OperationKind::Connect { hubs: 0 })
            .expect("hubs connect"),
    )
}

/// Times between the first entries of a hub's changes, in whole milliseconds.
fn gaps(times: &[Offset]) -> Vec<u128> {
    times
        .windows(2)
        .map(|pair| pair[1].since(pair[0]).as_millis())
        .collect()
}

#[test]
fn a_hub_is_small() {
    assert!(size_of::<Hub>() <= 200, "{} bytes", size_of::<Hub>());
}

#[test]
fn first_connects_are_spread_evenly() {
    let config = HubConfig::of(&hubs(4), 0);
    let due: Vec<_> = (0..4)
        .map(|index| config.first_connect(index).as_millis())
        .collect();
    assert_eq!(due, [0, 2500, 5000, 7500]);
}

/// A broker that accepts and throws out after 1 s: with a reset of the backoff on CONNACK every wait would be 1 s or the first
/// reconnect's, for ever. Sessions live 1 s, so the times between two connects are 1 s more than the waits of the policy.
#[test]
fn a_session_that_dies_young_does_not_reset_the_backoff() {
    let plan = hubs(1);
    let mut target = quick(Target::healthy(1));
    target.session = Box::new(|_, _| Some(seconds(1)));
    let mut world = World::new(plan, target);
    world.run_until(at(60));
    let connected = &world.changes(HubChange::Connected)[&0];
    assert_eq!(
        gaps(&connected[..7]),
        [2000, 3000, 5000, 9000, 17_000, 17_000]
    );
    world.stop();
}

/// The same, but the third session lives for `healthy_after` (10 s): after it the hub starts anew, with the first reconnect's jitter below
/// 5 s, and then with the shortest wait.
#[test]
fn a_healthy_session_resets_the_backoff() {
    let mut target = quick(Target::healthy(1));
    let mut sessions = 0;
    target.session = Box::new(move |_, _| {
        sessions += 1;
        Some(if sessions == 3 {
            seconds(10)
        } else {
            seconds(1)
        })
    });
    let mut world = World::new(hubs(1), target);
    world.run_until(at(60));
    let gaps = gaps(&world.changes(HubChange::Connected)[&0][..6]);
    assert_eq!(gaps[..2], [2000, 3000]);
    assert!((10_000..15_000).contains(&gaps[2]), "{gaps:?}");
    assert_eq!(gaps[3..], [2000, 3000]);
    world.stop();
}

/// 5000 hubs lose their sessions in the same microsecond. Reconnects due uniformly in [0, 5 s) put 1000 into each second; five standard
/// deviations are 141.
#[test]
fn the_first_reconnect_after_a_loss_is_spread_over_first() {
    let plan = with_drop(hubs(5000), seconds(30), 1.0, Duration::ZERO);
    let mut world = World::new(plan, quick(Target::healthy(1)));
    world.run_until(at(60));
    let mut by_second = [0_i32; 5];
    for times in world.changes(HubChange::Connected).values() {
        by_second[usize::try_from(times[1].since(at(30)).as_secs()).unwrap()] += 1;
    }
    assert!(
        by_second.iter().all(|count| (count - 1000).abs() < 141),
        "{by_second:?}"
    );
    assert!(
        world
            .closes
            .iter()
            .all(|(when, _, how)| (*when, *how) == (at(30), How::Reset))
    );
    world.stop();
}

#[test]
fn a_dropped_hub_stays_away_and_has_left_of_its_own_will() {
    let plan = with_drop(hubs(20), seconds(30), 0.5, seconds(8));
    let mut world = World::new(plan, quick(Target::healthy(1)));
    world.run_until(at(60));
    let back = world.changes(HubChange::Connected);
    let left = world.changes(HubChange::Left);
    assert_eq!(left.len(), 10, "half of 20");
    assert!(world.lost().is_empty());
    for hub in left.keys() {
        let away = back[hub][1].since(at(30));
        assert!(away >= seconds(8) && away < seconds(13), "{away:?}");
    }
    world.stop();
}

#[test]
fn one_outage_is_one_action_with_all_its_attempts() {
    let mut attempts = 0;
    let mut target = quick(Target::healthy(1));
    target.connect = Box::new(move |_, _| {
        attempts += 1;
        match attempts {
            1 => Connect::Fails(Outcome::Unreachable),
            2 => Connect::RefusesLogin(5),
            3 => Connect::Silence,
            _ => Connect::Works,
        }
    });
    let plan = hubs(1);
    let mut world = World::new(plan.clone(), target);
    world.run_until(ZERO);
    assert_eq!(connects(&world, &plan), [(Outcome::Ok, 4)]);
    let answers: Vec<Outcome> = world
        .told
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Answered {
                operation: OperationId(0),
                outcome,
                ..
            } => Some(*outcome),
            _ => None,
        })
        .collect();
    assert_eq!(
        answers,
        [
            Outcome::Unreachable,
            Outcome::Refused(5),
            Outcome::TimedOut,
            Outcome::Ok
        ]
    );
    // Waits of 1 s and 2 s, the silent attempt's timeout of 5 s, a wait of 4 s.
    assert_eq!(
        world.changes(HubChange::Connected)[&0],
        [Offset(12_000_000)]
    );
    assert_eq!(
        world.closes[0].2,
        How::Close,
        "the silent connection is closed by the hub"
    );
    assert_eq!(
        world.changes(HubChange::Opened)[&0].len(),
        3,
        "the first one was not reached"
    );
    assert_eq!(world.changes(HubChange::Accepted)[&0].len(), 1);
    world.stop();
}

#[test]
fn a_hub_whose_attempts_are_used_up_gives_up() {
    let mut plan = hubs(3);
    plan.hubs[0].reconnect.retry.attempts = Some(3);
    let mut target = quick(Target::healthy(1));
    target.connect = Box::new(|_, _| Connect::RefusesLogin(5));
    let world = World::run(plan.clone(), target);
    assert_eq!(connects(&world, &plan), [(Outcome::Refused(5), 3); 3]);
}

#[test]
fn pings_are_spread_from_the_first_on() {
    let mut plan = hubs(3000);
    plan.hubs[0].connect_over = Duration::ZERO;
    let mut world = World::new(plan, quick(Target::healthy(1)));
    world.run_until(Offset(29_999_999));
    // 3000 hubs that connected together, keep-alive 30 s: 100 a second, with a standard deviation of 10.
    assert_eq!(world.pings.len(), 3000);
    for second in 0..30 {
        let pings = world
            .pings
            .iter()
            .filter(|(when, _)| when.second() == second)
            .count();
        assert!((50..150).contains(&pings), "{pings} in second {second}");
    }
    world.stop();
}

#[test]
fn a_ping_without_an_answer_ends_the_session() {
    let mut target = quick(Target::healthy(1));
    target.pong = Box::new(|when, _| when < ZERO);
    let plan = hubs(5);
    let mut world = World::new(plan, target);
    world.run_until(at(40));
    for (hub, lost) in world.lost() {
        let ping = world
            .pings
            .iter()
            .find(|(when, id)| id.index == hub && *when >= ZERO)
            .unwrap()
            .0;
        assert_eq!(lost[0].since(ping), seconds(5), "the group's timeout");
    }
    assert_eq!(world.lost().len(), 5);
    assert!(world.closes.iter().all(|(_, _, how)| *how == How::Close));
    world.stop();
}

#[test]
fn a_publish_without_an_answer_times_out_and_the_session_stays() {
    let mut target = quick(Target::healthy(1));
    target.acknowledge = Box::new(|_, _| false);
    let plan = hubs(5);
    let telemetry = plan
        .operation(OperationKind::Telemetry { hubs: 0 })
        .unwrap();
    let mut world = World::new(plan, target);
    world.run_until(at(60));
    let ends = finished(&world, telemetry);
    // Two minutes, less up to 10 s of connecting and up to 20 s of phase, at one in 20 s.
    assert!(
        ends.len() >= 5 * 4 && ends.iter().all(|end| *end == (Outcome::TimedOut, 1)),
        "{ends:?}"
    );
    assert!(world.lost().is_empty());
    world.stop();
}

/// The commands of this plan whose hub is the first one, with the plan's only group of issuers.
fn for_hub(plan: &Plan, hub: u64) -> impl Iterator<Item = CommandId> {
    let config = Arc::new(rushhour::agents::IssuerConfig::of(plan, 0, "t1"));
    (1..)
        .map(move |n| rushhour::agents::Issuer::new(&config, n))
        .filter_map(move |issuer| (issuer.hub() == hub).then(|| issuer.command()))
}

fn one_hub_of_three() -> (Plan, World, Vec<CommandId>) {
    let mut commanded = plan(3);
    commanded.riders.clear();
    commanded.issuers[0].arrivals = super::plans::even(0.0, seconds(1));
    let ids = for_hub(&commanded, 0).take(100).collect();
    let mut world = World::new(commanded.clone(), quick(Target::healthy(1)));
    world.run_until(ZERO);
    (commanded, world, ids)
}

fn steps(world: &World) -> Vec<(CommandStep, CommandId, Duration)> {
    let of = |event: &Event| match event {
        Event::Command { id, step, at } => Some((*step, *id, at.since(ZERO))),
        _ => None,
    };
    world
        .told
        .iter()
        .filter_map(|(_, event)| of(event))
        .collect()
}

#[test]
fn commands_are_answered_one_by_one_after_their_actuation() {
    let (_, mut world, ids) = one_hub_of_three();
    world.deliver(0, Some(ids[0]));
    world.run_until(ZERO.after(millis(100)));
    world.deliver(0, Some(ids[1]));
    world.deliver(0, Some(ids[0]));
    world.run_until(at(1));
    use CommandStep::{Acknowledged, Delivered};
    let expected = [
        (Delivered, ids[0], 0),
        (Delivered, ids[1], 100),
        (Delivered, ids[0], 100),
        (Acknowledged, ids[0], 150),
        (Acknowledged, ids[1], 250),
        (Acknowledged, ids[0], 250),
    ];
    assert_eq!(
        steps(&world),
        expected.map(|(step, id, after)| (step, id, millis(after)))
    );
    world.stop();
}

#[test]
fn a_device_acts_on_64_commands_at_once_and_no_more() {
    let (_, mut world, ids) = one_hub_of_three();
    ids.iter().for_each(|id| world.deliver(0, Some(*id)));
    world.run_until(at(5));
    let count = |wanted| {
        steps(&world)
            .iter()
            .filter(|(step, ..)| *step == wanted)
            .count()
    };
    assert_eq!(
        (
            count(CommandStep::Delivered),
            count(CommandStep::Acknowledged)
        ),
        (100, 64)
    );
    world.stop();
}

#[test]
fn a_command_of_another_run_or_for_another_hub_is_foreign() {
    let (commanded, mut world, ids) = one_hub_of_three();
    let of_nobody = CommandId {
        issuer: 7,
        number: 1,
    };
    let of_another = for_hub(&commanded, 1).next().unwrap();
    for id in [None, Some(of_nobody), Some(of_another), Some(ids[0])] {
        world.deliver(0, id);
    }
    let foreign = world
        .told
        .iter()
        .filter(|(_, event)| matches!(event, Event::Foreign { group: 0, .. }))
        .count();
    assert_eq!((foreign, steps(&world).len()), (3, 1));
    world.stop();
}

#[test]
fn a_command_that_came_before_the_drop_is_answered_after_the_return() {
    let (commanded, mut world, ids) = one_hub_of_three();
    world.deliver(0, Some(ids[0]));
    world.order(0, How::Reset, Duration::ZERO);
    world.run_until(at(10));
    let back = world.changes(HubChange::Connected)[&0][1];
    assert_eq!(
        steps(&world)[1],
        (
            CommandStep::Acknowledged,
            ids[0],
            back.since(ZERO).max(millis(150))
        )
    );
    let answer = commanded
        .operation(OperationKind::Answer { hubs: 0 })
        .unwrap();
    assert_eq!(finished(&world, answer), [(Outcome::Ok, 1)]);
    world.stop();
}

#[test]
fn at_the_end_a_hub_says_goodbye_and_tells_what_is_unfinished() {
    let (_, mut world, ids) = one_hub_of_three();
    world.no_more_acknowledgements();
    world.deliver(0, Some(ids[0]));
    world.run_until(ZERO.after(millis(200)));
    let before = world.sums().2;
    world.stop();
    assert!(world.sums().2 > before, "the answer waits for its PUBACK");
    assert_eq!(world.changes(HubChange::Left).len(), 3);
    assert_eq!(
        world
            .closes
            .iter()
            .filter(|(_, _, how)| *how == How::Disconnect)
            .count(),
        3
    );
}

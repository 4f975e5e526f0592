//! Whole plans, the shipped ones among them, in virtual time: whatever the target does, the accounts add up, and the same seed tells the
//! same story.

use super::plans::{plan, seconds, with_drop};
use super::target::Target;
use super::world::{World, ZERO, at};
use rushhour::event::{AgentKind, CommandStep, Event, HubChange, Outcome};
use rushhour::plan::Plan;
use rushhour::spec::{self, Sources};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Every profile in the folder with its own target, and one against a bare broker; fleets are cut down to 300 hubs, which
/// changes nothing about what a hub decides.
fn shipped() -> Vec<Plan> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let files = std::fs::read_dir(&folder)
        .expect("profiles are shipped")
        .map(|entry| entry.expect("readable").path());
    let mut sources: Vec<(PathBuf, Option<PathBuf>)> = files
        .filter(|path| path.extension().is_some_and(|is| is == "yaml"))
        .map(|path| (path, None))
        .collect();
    sources.sort();
    assert!(sources.len() >= 3, "{sources:?}");
    sources.push((
        folder.join("mass-reconnect.yaml"),
        Some(folder.join("targets/mosquitto.yaml")),
    ));
    let read = |(profile, target)| {
        spec::read(&Sources {
            profile,
            target,
            ..Sources::default()
        })
        .expect("shipped profiles can be read")
    };
    let mut plans: Vec<Plan> = sources.into_iter().map(read).collect();
    for hubs in plans.iter_mut().flat_map(|plan| &mut plan.hubs) {
        hubs.count = hubs.count.min(300);
    }
    plans
}

fn failures(world: &World) -> Vec<&Event> {
    let failed = |event: &&Event| matches!(event, Event::Finished { outcome, .. } if *outcome != Outcome::Ok);
    world
        .told
        .iter()
        .map(|(_, event)| event)
        .filter(failed)
        .collect()
}

#[test]
fn shipped_profiles_succeed_against_a_healthy_target() {
    for plan in shipped() {
        let name = plan.profile.display().to_string();
        let hubs: u32 = plan.hubs.iter().map(|group| group.count).sum();
        let due: u64 = plan
            .issuers
            .iter()
            .map(|group| group.arrivals.total())
            .sum();
        let mut world = World::new(plan.clone(), Target::healthy(1));
        world.run_until(ZERO.after(plan.duration + plan.drain));
        // What a drop interrupts is reset; nothing else may fail.
        let failures = failures(&world);
        let reset = |event: &&Event| {
            matches!(
                event,
                Event::Finished {
                    outcome: Outcome::Reset,
                    ..
                }
            )
        };
        assert!(failures.iter().all(reset), "{name}: {failures:?}");
        assert_eq!(world.connected(), i32::try_from(hubs).unwrap(), "{name}");
        assert_eq!(
            commands(&world, CommandStep::Due),
            usize::try_from(due).unwrap(),
            "{name}"
        );
        assert_eq!(
            commands(&world, CommandStep::Accepted),
            usize::try_from(due).unwrap(),
            "{name}"
        );
        world.stop();
    }
}

#[test]
fn shipped_profiles_add_up_against_an_unreliable_target() {
    for (seed, plan) in (1..).zip(shipped()) {
        let name = plan.profile.display().to_string();
        // Hubs alone try until they are in.
        let may_give_up = !plan.riders.is_empty() || !plan.issuers.is_empty();
        let world = World::run(plan, Target::unreliable(seed));
        let (started, finished, unfinished) = world.sums();
        assert_eq!(started, finished + unfinished, "{name}");
        assert!(
            finished > 1000 && may_give_up != failures(&world).is_empty(),
            "{name}: {finished} finished"
        );
    }
}

fn commands(world: &World, wanted: CommandStep) -> usize {
    let is = |event: &Event| matches!(event, Event::Command { step, .. } if *step == wanted);
    world.told.iter().filter(|(_, event)| is(event)).count()
}

#[test]
fn against_a_healthy_target_everything_succeeds() {
    let world = World::run(plan(50), Target::healthy(1));
    let failures: Vec<_> = world
        .told
        .iter()
        .filter(|(_, event)| matches!(event, Event::Finished { outcome, .. } if *outcome != Outcome::Ok))
        .collect();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(world.changes(HubChange::Connected).len(), 50);
    assert_eq!(
        world.changes(HubChange::Left).len(),
        50,
        "told to stop at the end"
    );
    assert!(world.lost().is_empty());
    for step in [
        CommandStep::Due,
        CommandStep::Accepted,
        CommandStep::Delivered,
        CommandStep::Acknowledged,
    ] {
        assert_eq!(commands(&world, step), 240, "{step:?}: 4/s for 60 s");
    }
    // 5/s for 60 s make 300 journeys of three requests; each command is one.
    let by_riders = world
        .requests
        .iter()
        .filter(|(_, id, _)| id.kind == AgentKind::Rider)
        .count();
    assert_eq!((by_riders, world.requests.len()), (900, 1140));
    let (started, finished, unfinished) = world.sums();
    assert_eq!(started, finished + unfinished);
}

/// The account of every agent is checked with every event, and at the end nothing may be under way: see `account` and `world`.
#[test]
fn against_an_unreliable_target_every_account_adds_up() {
    for seed in 0..8 {
        let mut plan = with_drop(plan(40), seconds(20), 0.5, seconds(3));
        plan.seed = seed;
        let world = World::run(plan, Target::unreliable(seed));
        let (started, finished, unfinished) = world.sums();
        assert_eq!(started, finished + unfinished);
        assert!(
            finished > 1000 && unfinished > 0,
            "{finished} finished, {unfinished} not"
        );
        assert_eq!(commands(&world, CommandStep::Due), 240);
    }
}

#[test]
fn the_same_seed_tells_the_same_story_and_another_seed_another() {
    let story = |seed| {
        let mut plan = with_drop(plan(40), seconds(20), 0.5, Duration::ZERO);
        plan.seed = seed;
        World::run(plan, Target::unreliable(7)).told
    };
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}

#[test]
fn all_return_after_a_mass_drop_although_half_the_attempts_fail() {
    let mut target = Target::healthy(3);
    target.connect = Box::new(|_, dice| {
        if dice.below(2) == 0 {
            super::target::Connect::Fails(Outcome::Unreachable)
        } else {
            super::target::Connect::Works
        }
    });
    let mut world = World::new(
        with_drop(plan(2000), seconds(20), 1.0, Duration::ZERO),
        target,
    );
    world.run_until(at(20));
    assert_eq!(
        world.connected(),
        0,
        "all are dropped in the same microsecond"
    );
    // 5 s for the first reconnect; a hub that has failed k times has waited at most 1 + 2 + 4 + 8 + 15·(k − 4) s, and of 2000 hubs
    // that fail half of the time one in a million fails 31 times.
    world.run_until(at(20 + 5 + 15 + 27 * 15));
    assert_eq!(world.connected(), 2000);
    world.stop();
}

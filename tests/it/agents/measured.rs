//! What agents tell, measured: the sums of invariant 7 and of the ledger, for runs in which everything goes wrong now and then.

use super::plans::{plan, seconds, with_drop};
use super::target::Target;
use super::world::{World, ZERO};
use rushhour::event::{AgentKind, Event};
use rushhour::measure::Collector;
use rushhour::plan::{OperationKind, Plan};
use std::sync::Arc;

/// The run of the plan as the collector of a driver would have seen it.
fn measured(plan: &Plan, world: &World) -> Collector {
    let (mut collector, shards) = Collector::new(&Arc::new(plan.clone()), 1);
    let end = ZERO.after(plan.duration);
    shards[0].record(&Event::Zero { at: ZERO });
    world
        .told
        .iter()
        .for_each(|(_, event)| shards[0].record(event));
    shards[0].record(&Event::LoadEnd { at: end });
    // Long enough for every command's time to live and the ledger's grace.
    for second in 0..200 {
        collector.advance(ZERO.after(seconds(second)));
    }
    collector.finish(ZERO.after(seconds(200)));
    collector
}

#[test]
fn started_is_finished_and_unfinished_for_every_operation() {
    for seed in 0..4 {
        let plan = with_drop(plan(40), seconds(20), 0.5, seconds(3));
        let world = World::run(plan.clone(), Target::unreliable(seed));
        let collector = measured(&plan, &world);
        let (mut started, mut ended) = (0, 0);
        for (row, total) in plan.operations.iter().zip(&collector.totals().operations) {
            // The ledger makes this one out of the steps of commands.
            if !matches!(row.kind, OperationKind::Command { .. }) {
                started += total.started;
                ended += total.ok + total.declined + total.failed + total.timed_out;
            }
        }
        let (told, finished, unfinished) = world.sums();
        assert_eq!((started, ended), (told as u64, finished as u64));
        assert_eq!(started - ended, unfinished as u64);
    }
}

#[test]
fn the_ledger_adds_up_over_every_command() {
    for seed in 0..4 {
        let plan = with_drop(plan(40), seconds(20), 0.5, seconds(3));
        let world = World::run(plan.clone(), Target::unreliable(seed));
        let collector = measured(&plan, &world);
        let account = collector.ledger().total(0);
        assert!(account.adds_up(), "{account:?}");
        assert_eq!(
            (account.due, account.unexpected, account.duplicated),
            (240, 0, 0),
            "{account:?}"
        );
    }
}

#[test]
fn the_attempts_of_a_journey_are_its_requests() {
    let mut plan = plan(40);
    plan.drain = seconds(60);
    let world = World::run(plan.clone(), Target::unreliable(3));
    let collector = measured(&plan, &world);
    let sent = world
        .requests
        .iter()
        .filter(|(_, id, _)| id.kind == AgentKind::Rider)
        .count();
    let attempted = |kind| {
        let id = plan.operation(kind).unwrap();
        collector.totals().operations[usize::from(id.0)].attempted
    };
    assert_eq!(attempted(OperationKind::Journey { riders: 0 }), sent as u64);
    let steps: u64 = [0, 1, 3]
        .map(|step| attempted(OperationKind::Step { riders: 0, step }))
        .iter()
        .sum();
    assert_eq!(steps, sent as u64);
}

//! A broker that ends the sessions of ghosts: that one does not watch is told, and so is that it is back.

use super::broker::{Broker, SUBSCRIBE, arrived};
use super::peer::{Move, Seen};
use super::stage::{LIMIT, plan};
use crate::live_hubs::fleet::{RUN, Told};
use rushhour::event::Event;
use rushhour::live::ghosts::Ghosts;
use rushhour::live::seats::Seats;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ghost_that_loses_its_connection_tells_from_when_to_when_it_did_not_watch() {
    let steady = Broker::right5().serve().await;
    let unsteady = Broker::session5(vec![Move::Wait(Duration::from_millis(200)), Move::Close])
        .serve()
        .await;
    let target = format!(
        "environment: test\ndevices:\n  lock: {{ mqtt: 5, shards: {{ one: \"mqtt://{}\", two: \"mqtt://{}\" }}, find: redirect, \
         ghost: true, command: {{ topic: d/<serial>/cmd, id: {{ json: $.id }} }} }}\n",
        steady.address, unsteady.address
    );
    let profile = "target: target.yaml\nduration: 60s\nexpect: [ hubs connected >= 0% ]\nhubs: { doors: { device: lock, count: 1 } }\n";
    let plan = Arc::new(plan(profile, &target));
    let (hosts, seats) = (Hosts::of(&plan.target).unwrap(), Arc::new(Seats::of(&plan)));
    let told = Told::default();
    let ghosts = Ghosts::start(&plan, &hosts, Clock::start(), RUN, &seats, &told.sink()).await;
    assert_eq!(
        ghosts
            .as_ref()
            .map_err(ToString::to_string)
            .unwrap()
            .count(),
        2
    );
    let watching = |told: &Told, wanted: u16| -> Vec<bool> {
        let events = told.all();
        let of_shard = events.iter().filter_map(|event| match event {
            Event::Ghost { shard, watches, .. } if *shard == wanted => Some(*watches),
            _ => None,
        });
        of_shard.collect()
    };
    told.until(LIMIT, "it was lost twice", |told| {
        watching(told, 1).len() >= 4
    })
    .await;
    assert_eq!(watching(&told, 0), [true]);
    assert_eq!(watching(&told, 1)[..4], [true, false, true, false]);
    // Each time it had subscribed and the broker had closed.
    let closed = unsteady.count(|seen| *seen == Seen::Ended);
    assert!(closed >= 2 && arrived(&unsteady, SUBSCRIBE) >= closed);
    let others = told.count(|event| !matches!(event, Event::Ghost { .. }));
    assert_eq!(others, 0, "ghosts are no publishers");
}

//! Commands end to end over a broker: published by issuers, acted on and answered by hubs.

use super::fleet::{RUN, Told, plan, template};
use crate::support::service::mosquitto;
use rushhour::arrivals::{Piece, Schedule, Spread};
use rushhour::event::{CommandStep, Event, Outcome, PacketKind};
use rushhour::live::hubs;
use rushhour::live::issuers::IssuerFleet;
use rushhour::live::tokens::Tokens;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::command::{IdOwner, Publishing};
use rushhour::plan::payload::Payload;
use rushhour::plan::target::{CommandSend, CommandSpec};
use rushhour::plan::template::JsonTemplate;
use rushhour::plan::{IssuerGroup, Plan, operation};
use rushhour::retry::{Backoff, Retry};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// 100 commands a second for one second, to 20 hubs on two brokers.
fn commanding(ports: &[u16]) -> Plan {
    let mut plan = plan(ports, 20);
    plan.duration = Duration::from_secs(1);
    let json = ("id".to_owned(), JsonTemplate::Text(template("<command>")));
    plan.target.commands.push(CommandSpec {
        name: "switch".to_owned(),
        to: 0,
        tls: None,
        send: CommandSend::Publish(Publishing {
            topic: template("d/<serial>/cmd"),
            qos: 1,
            payload: Payload::Json(JsonTemplate::Map(vec![json])),
            properties: Vec::new(),
        }),
        id: IdOwner::Ours,
    });
    let piece = Piece {
        from_per_second: 100.0,
        to_per_second: 100.0,
        lasts: Duration::from_secs(1),
    };
    plan.issuers.push(IssuerGroup {
        name: "app".to_owned(),
        command: 0,
        to: 0,
        arrivals: Schedule::new(Spread::Even, vec![piece]),
        in_time: Duration::from_secs(2),
        ttl: Duration::from_secs(10),
        timeout: Duration::from_secs(5),
        retry: Retry {
            backoff: Backoff::Immediate,
            attempts: Some(1),
            ..Retry::NEVER
        },
        max_in_flight: 100,
        idempotency: true,
    });
    plan.operations = operation::table(&plan.hubs, &[], &plan.issuers, &plan.target);
    plan
}

fn commands(told: &Told, wanted: CommandStep) -> usize {
    let ids: Vec<_> = told
        .all()
        .into_iter()
        .filter_map(|event| match event {
            Event::Command { id, step, .. } if step == wanted => Some(id),
            _ => None,
        })
        .collect();
    let distinct: BTreeSet<_> = ids.iter().collect();
    assert_eq!(
        distinct.len(),
        ids.len(),
        "{wanted:?} once for each command"
    );
    ids.len()
}

/// Every command reaches the one hub that it is for, on the shard where that hub is, and is answered with its own id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_is_delivered_once_and_answered() {
    let (Some(one), Some(two)) = (mosquitto(), mosquitto()) else {
        return;
    };
    let told = Told::default();
    let plan = Arc::new(commanding(&[one.port, two.port]));
    let hosts = Arc::new(Hosts::of(&plan.target).unwrap());
    let clock = Clock::start();
    let sinks = [told.sink()];
    let fleet = hubs::start(&plan, &hosts, clock, RUN, &sinks)
        .await
        .unwrap();
    let issuers = IssuerFleet::start(
        &plan,
        &hosts,
        clock,
        RUN,
        fleet.seats(),
        &sinks,
        &Tokens::default(),
    )
    .await
    .unwrap();
    assert!(fleet.all_stand(LIMIT).await);
    issuers.begin(clock.now());
    told.until(LIMIT, "100 commands are acknowledged", |told| {
        commands(told, CommandStep::Acknowledged) == 100
    })
    .await;
    issuers.stop(clock.now()).await;
    assert_eq!(fleet.stop(LIMIT).await, 0);
    for step in [
        CommandStep::Sent,
        CommandStep::Accepted,
        CommandStep::Delivered,
    ] {
        assert_eq!(commands(&told, step), 100, "{step:?}");
    }
    let foreign = told.count(|event| matches!(event, Event::Foreign { .. }));
    assert_eq!(foreign, 0);
    // One PUBLISH and one PUBACK of each hub for each command, in each direction.
    for sent in [true, false] {
        assert_eq!(told.packets(PacketKind::Publish, sent), 100);
        assert_eq!(told.packets(PacketKind::PubAck, sent), 100);
    }
    let lost = told.answered(Outcome::Reset) + told.answered(Outcome::TimedOut);
    assert_eq!(lost, 0);
    let answers = |broker: &crate::support::service::Mosquitto| {
        broker
            .log()
            .lines()
            .filter(|line| line.contains("Received PUBLISH from homes-") && line.contains("/evt'"))
            .count()
    };
    assert_eq!(answers(&one) + answers(&two), 100);
    assert!(answers(&one) > 0 && answers(&two) > 0);
}

//! Commands by HTTP and by publish: one id for all attempts, to the hub that the command is for.

use super::stage::{NO_RETRY, Told, plan, request, template};
use crate::support::service;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::post;
use rushhour::arrivals::{Piece, Schedule, Spread};
use rushhour::event::{CommandId, CommandStep, Event, Outcome};
use rushhour::live::issuers::{IssuerError, IssuerFleet};
use rushhour::live::seats::Seats;
use rushhour::live::tokens::Tokens;
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::command::{IdOwner, Publishing};
use rushhour::plan::fleet::Reconnect;
use rushhour::plan::payload::Payload;
use rushhour::plan::target::{CommandSend, CommandSpec, Device, Find, Method};
use rushhour::plan::template::JsonTemplate;
use rushhour::plan::{HubGroup, IssuerGroup, Plan, operation};
use rushhour::retry::{Backoff, Retry};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A plan in which 50 commands a second go out for one second, to 20 hubs of a broker on `broker_port`.
fn issuing(send: CommandSend, broker_port: u16) -> Plan {
    let mut plan = plan(Vec::new(), 0.0, Duration::from_secs(1));
    plan.riders.clear();
    plan.target.journeys.clear();
    plan.target.devices.push(Device {
        name: "lock".to_owned(),
        shards: vec![(
            "one".to_owned(),
            template(&format!("mqtt://127.0.0.1:{broker_port}")),
        )],
        find: Find::Balancer,
        client_id: template("<serial>"),
        username: None,
        password: None,
        telemetry: None,
        command: None,
        answer: None,
        ..Device::default()
    });
    plan.target.commands.push(CommandSpec {
        name: "switch".to_owned(),
        to: 0,
        send,
        tls: None,
        id: IdOwner::Ours,
    });
    plan.hubs.push(HubGroup {
        name: "homes".to_owned(),
        device: 0,
        count: 20,
        connect_over: Duration::ZERO,
        keep_alive: Duration::from_secs(60),
        timeout: Duration::from_secs(5),
        telemetry: None,
        actuation: Duration::ZERO,
        reconnect: Reconnect {
            retry: NO_RETRY,
            first: Duration::ZERO,
            healthy_after: Duration::ZERO,
        },
        identity: None,
    });
    let piece = Piece {
        from_per_second: 50.0,
        to_per_second: 50.0,
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
        retry: NO_RETRY,
        max_in_flight: 100,
        idempotency: true,
    });
    plan.operations = operation::table(&plan.hubs, &plan.riders, &plan.issuers, &plan.target);
    plan.drain = Duration::from_secs(5);
    plan
}

async fn run(plan: Plan, told: &Told) {
    let plan = Arc::new(plan);
    let hosts = Arc::new(Hosts::of(&plan.target).unwrap());
    let clock = Clock::start();
    let seats = Arc::new(Seats::of(&plan));
    let fleet = IssuerFleet::start(
        &plan,
        &hosts,
        clock,
        "run",
        &seats,
        &[told.sink()],
        &Tokens::default(),
    )
    .await
    .unwrap();
    let zero = clock.now();
    fleet.begin(zero);
    tokio::time::sleep_until(clock.instant(zero.after(plan.duration))).await;
    fleet.stop(clock.now().after(plan.drain)).await;
}

/// How often a step was told, and of how many commands.
fn steps(told: &Told, wanted: CommandStep) -> (usize, usize) {
    let events = told.events();
    let ids: Vec<CommandId> = events
        .iter()
        .filter_map(|event| match event {
            Event::Command { id, step, .. } if *step == wanted => Some(*id),
            _ => None,
        })
        .collect();
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    (ids.len(), distinct.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_by_http_keeps_its_id_and_its_hub_over_its_attempts() {
    // By id: the hubs in whose address it came. The first attempt of each is refused.
    let seen: Arc<Mutex<BTreeMap<String, Vec<String>>>> = Arc::default();
    let record = Arc::clone(&seen);
    let command = post(move |Path(serial): Path<String>, body: String| {
        let record = Arc::clone(&record);
        async move {
            let body: serde_json::Value = serde_json::from_str(&body).unwrap();
            let mut seen = record.lock().unwrap();
            let serials = seen
                .entry(body["id"].as_str().unwrap().to_owned())
                .or_default();
            serials.push(serial);
            if serials.len() == 1 {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::ACCEPTED
            }
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/hubs/{serial}/commands", command);
    tokio::spawn(async move { axum::serve(listener, router).await });

    let mut send = request(
        Method::Post,
        &format!("http://{address}/hubs/<serial>/commands"),
    );
    send.json = Some(JsonTemplate::Map(vec![(
        "id".to_owned(),
        JsonTemplate::Text(template("<command>")),
    )]));
    let mut plan = issuing(CommandSend::Http(send), 9);
    plan.issuers[0].retry = Retry {
        backoff: Backoff::Fixed {
            every: Duration::from_millis(20),
        },
        attempts: Some(3),
        ..Retry::NEVER
    };
    let told = Told::default();
    run(plan, &told).await;

    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 50);
    for (id, serials) in seen.iter() {
        assert!(CommandId::from_wire(id, "run").is_some(), "{id}");
        assert_eq!(serials.len(), 2, "{id}");
        assert_eq!(serials[0], serials[1], "{id}");
        assert!(serials[0].starts_with("homes-0000"), "{id}");
    }
    assert_eq!(steps(&told, CommandStep::Due), (50, 50));
    assert_eq!(steps(&told, CommandStep::Sent), (100, 50));
    assert_eq!(steps(&told, CommandStep::Refused), (50, 50));
    assert_eq!(steps(&told, CommandStep::Accepted), (50, 50));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_published_to_a_bare_broker_as_it_counts_them() {
    let Some(broker) = service::mosquitto() else {
        return;
    };
    let send = CommandSend::Publish(Publishing {
        topic: template("d/<serial>/cmd"),
        qos: 1,
        payload: Payload::Json(JsonTemplate::Map(vec![(
            "id".to_owned(),
            JsonTemplate::Text(template("<command>")),
        )])),
        properties: Vec::new(),
    });
    let told = Told::default();
    let mut plan = issuing(send, broker.port);
    let row = plan
        .operations
        .iter()
        .position(|row| row.name == "app")
        .unwrap();
    plan.issuers[0].retry = NO_RETRY;
    run(plan, &told).await;
    let row = u16::try_from(row).unwrap();
    assert_eq!(told.finished(row, Outcome::Ok), 50);
    assert_eq!(steps(&told, CommandStep::Accepted), (50, 50));
    assert_eq!(broker.logged("Received PUBLISH"), 50);
    assert_eq!(broker.logged("'d/homes-0000"), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_for_a_broker_that_is_not_there_are_refused_before_the_load() {
    let send = CommandSend::Publish(Publishing {
        topic: template("d/<serial>/cmd"),
        qos: 0,
        payload: Payload::Json(JsonTemplate::Map(Vec::new())),
        properties: Vec::new(),
    });
    let plan = Arc::new(issuing(send, service::free_port()));
    let hosts = Arc::new(Hosts::of(&plan.target).unwrap());
    let sinks = [Told::default().sink()];
    let seats = Arc::new(Seats::of(&plan));
    let started = IssuerFleet::start(
        &plan,
        &hosts,
        Clock::start(),
        "run",
        &seats,
        &sinks,
        &Tokens::default(),
    )
    .await;
    let Err(error) = started else {
        panic!("nobody listens there")
    };
    assert!(
        matches!(&error, IssuerError::NoBroker { device, addresses, why } if device == "lock" && addresses.contains("127.0.0.1") && why == "unreachable"),
        "{error}"
    );
}

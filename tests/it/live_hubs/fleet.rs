//! A small plan of hubs, the fleet that runs it, and everything that it tells.

use rushhour::event::{Event, HubChange, Outcome, PacketKind, Sink};
use rushhour::live::hubs::{self, HubFleet};
use rushhour::net::clock::Clock;
use rushhour::net::hosts::Hosts;
use rushhour::plan::command::{IdPlace, Publishing};
use rushhour::plan::fleet::{Reconnect, Telemetry};
use rushhour::plan::json_path::JsonPath;
use rushhour::plan::payload::Payload;
use rushhour::plan::target::{CommandTopic, Device, Find, Target, Topic};
use rushhour::plan::template::JsonTemplate;
use rushhour::plan::{HubGroup, Plan, Template, operation};
use rushhour::retry::{Backoff, Retry};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const RUN: &str = "rtest";

pub fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

/// `count` hubs that connect over half a second and come back by full jitter below a second.
pub fn plan(ports: &[u16], count: u32) -> Plan {
    let shards = ports.iter().zip(1..).map(|(port, number)| {
        (
            format!("shard-{number}"),
            template(&format!("mqtt://127.0.0.1:{port}")),
        )
    });
    let device = Device {
        name: "hub".to_owned(),
        shards: shards.collect(),
        find: Find::Hash(template("<serial>")),
        client_id: template("<serial>"),
        username: None,
        password: None,
        telemetry: Some(Topic {
            topic: template("d/<serial>/state"),
            qos: 0,
        }),
        command: Some(CommandTopic {
            topic: template("d/<serial>/cmd"),
            qos: 1,
            id: IdPlace::Json(JsonPath::parse("$.id").unwrap()),
        }),
        answer: Some(Publishing {
            topic: template("d/<serial>/evt"),
            qos: 1,
            payload: Payload::Json(JsonTemplate::Map(vec![(
                "id".to_owned(),
                JsonTemplate::Text(template("<command>")),
            )])),
            properties: Vec::new(),
        }),
        ..Device::default()
    };
    let backoff = Backoff::FullJitter {
        base: Duration::from_millis(200),
        cap: Duration::from_secs(1),
        factor: 2.0,
    };
    let group = HubGroup {
        name: "homes".to_owned(),
        device: 0,
        count,
        connect_over: Duration::from_millis(500),
        keep_alive: Duration::from_secs(60),
        timeout: Duration::from_secs(10),
        telemetry: None,
        actuation: Duration::from_millis(10),
        reconnect: Reconnect {
            retry: Retry {
                backoff,
                attempts: None,
                ..Retry::NEVER
            },
            first: Duration::from_millis(500),
            healthy_after: Duration::from_secs(1),
        },
        identity: None,
    };
    with_target(
        vec![group],
        Target {
            file: PathBuf::from("test.yaml"),
            devices: vec![device],
            ..Target::default()
        },
    )
}

fn with_target(hubs: Vec<HubGroup>, target: Target) -> Plan {
    Plan {
        profile: PathBuf::from("test-profile.yaml"),
        about: String::new(),
        series: None,
        seed: 42,
        duration: Duration::from_secs(10),
        baseline: Duration::ZERO,
        sustain: Duration::ZERO,
        settle: Duration::ZERO,
        drain: Duration::ZERO,
        operations: operation::table(&hubs, &[], &[], &target),
        target,
        hubs,
        riders: Vec::new(),
        issuers: Vec::new(),
        docks: Vec::new(),
        triggers: Vec::new(),
        faults: Vec::new(),
        steady: Vec::new(),
        stop_if: Vec::new(),
        against: None,
        pause_while: Vec::new(),
        expect: Vec::new(),
    }
}

/// With 120 bytes of telemetry every so often.
pub fn with_telemetry(mut plan: Plan, every: Duration, bytes: usize) -> Plan {
    plan.hubs[0].telemetry = Some(Telemetry { every, bytes });
    plan.operations = operation::table(&plan.hubs, &[], &[], &plan.target);
    plan
}

/// Everything that was told.
#[derive(Clone, Default)]
pub struct Told(Arc<Mutex<Vec<Event>>>);

impl Told {
    pub fn sink(&self) -> Sink {
        let told = Arc::clone(&self.0);
        Arc::new(move |event| told.lock().unwrap().push(event))
    }

    pub fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|event| wanted(event))
            .count()
    }

    pub fn hubs(&self, wanted: HubChange) -> usize {
        self.count(|event| matches!(event, Event::Hub { change, .. } if *change == wanted))
    }

    /// Sessions that were lost, for whatever cause.
    pub fn lost(&self) -> usize {
        self.count(|event| matches!(event, Event::Hub { change, .. } if change.is_lost()))
    }

    pub fn packets(&self, wanted: PacketKind, was_sent: bool) -> usize {
        self.count(|event| matches!(event, Event::Packet { kind, sent, .. } if *kind == wanted && *sent == was_sent))
    }

    pub fn answered(&self, wanted: Outcome) -> usize {
        self.count(|event| matches!(event, Event::Answered { outcome, .. } if *outcome == wanted))
    }

    /// Waits until so many events are as wanted.
    pub async fn until(&self, limit: Duration, what: &str, enough: impl Fn(&Told) -> bool) {
        let end = tokio::time::Instant::now() + limit;
        while !enough(self) {
            assert!(
                tokio::time::Instant::now() < end,
                "not within {limit:?}: {what}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub async fn start(plan: Plan) -> (HubFleet, Told) {
    let told = Told::default();
    let fleet = run(plan, &[told.sink(), told.sink()]).await;
    (fleet, told)
}

/// The same with what each hub tells by itself.
pub async fn start_each(plan: Plan) -> (HubFleet, Vec<Told>) {
    let count = plan.hubs[0].count;
    let hubs: Vec<Told> = (0..count).map(|_| Told::default()).collect();
    let sinks: Vec<Sink> = hubs.iter().map(Told::sink).collect();
    (run(plan, &sinks).await, hubs)
}

async fn run(plan: Plan, sinks: &[Sink]) -> HubFleet {
    let plan = Arc::new(plan);
    let hosts = Arc::new(Hosts::of(&plan.target).unwrap());
    let fleet = hubs::start(&plan, &hosts, Clock::start(), RUN, sinks).await;
    fleet.unwrap()
}

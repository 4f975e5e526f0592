//! The plan of the fleets that are measured.

use super::machine::LIMIT;
use rushhour::plan::fleet::Reconnect;
use rushhour::plan::json_path::JsonPath;
use rushhour::plan::target::{CommandTopic, Device, Find, IdPlace};
use rushhour::plan::{HubGroup, Plan, Target, Template, operation};
use rushhour::retry::{Backoff, Retry};
use std::path::PathBuf;
use std::time::Duration;

pub const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Idle hubs that connect at once, on these shards.
pub fn plan(count: usize, shards: impl Iterator<Item = String>) -> Plan {
    let template = |text: &str| Template::parse(text).expect("a template");
    let device = Device {
        name: "hub".to_owned(),
        shards: (1..)
            .zip(shards)
            .map(|(number, address)| (format!("shard-{number}"), template(&address)))
            .collect(),
        find: Find::Hash(template("<serial>")),
        client_id: template("<serial>"),
        command: Some(CommandTopic {
            topic: template("d/<serial>/cmd"),
            qos: 1,
            id: IdPlace::Json(JsonPath::parse("$.id").expect("a path")),
        }),
        answer: None,
        ..Device::default()
    };
    let target = Target {
        devices: vec![device],
        ..Target::default()
    };
    let hubs = vec![HubGroup {
        name: "homes".to_owned(),
        device: 0,
        count: u32::try_from(count).expect("a number of hubs"),
        connect_over: Duration::ZERO,
        keep_alive: KEEP_ALIVE,
        timeout: LIMIT,
        telemetry: None,
        actuation: Duration::ZERO,
        reconnect: Reconnect {
            retry: Retry {
                backoff: Backoff::Immediate,
                attempts: None,
                ..Retry::NEVER
            },
            first: Duration::ZERO,
            healthy_after: Duration::ZERO,
        },
        identity: None,
    }];
    Plan {
        profile: PathBuf::new(),
        about: String::new(),
        series: None,
        seed: 1,
        duration: Duration::ZERO,
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
        pause_while: Vec::new(),
        expect: Vec::new(),
        against: None,
    }
}

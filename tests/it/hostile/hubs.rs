//! A group of hubs for each broker that misbehaves, and what each group tells.

use super::broker::Broker;
use super::peer::Peer;
use super::stage::plan;
use crate::live_hubs::fleet::Told;
use rushhour::event::{Event, HubChange, Outcome, PacketKind};
use rushhour::plan::{OperationKind, Plan};
use std::time::Duration;

/// Hubs of each group.
pub const HUBS: usize = 3;
pub const TIMEOUT: Duration = Duration::from_millis(400);

/// What a broker does, by name.
pub type Row<E> = (&'static str, Broker, E);

/// The brokers of these rows, and a plan with a group of hubs for each. `hubs` are more keys of each group.
pub async fn stage<E>(rows: Vec<Row<E>>, hubs: &str) -> (Plan, Vec<(&'static str, Peer, E)>) {
    stage_as("mqtt: 3.1.1", rows, hubs).await
}

/// The same for devices with these keys.
pub async fn stage_as<E>(
    device: &str,
    rows: Vec<Row<E>>,
    hubs: &str,
) -> (Plan, Vec<(&'static str, Peer, E)>) {
    let timeout = match hubs.contains("timeout:") {
        true => String::new(),
        false => format!("timeout: {}ms, ", TIMEOUT.as_millis()),
    };
    let mut served = Vec::new();
    let mut target = "environment: test\ndevices:\n".to_owned();
    let mut profile =
        "target: target.yaml\nduration: 60s\nexpect: [ hubs connected >= 0% ]\nhubs:\n".to_owned();
    for (name, broker, expected) in rows {
        let peer = broker.serve().await;
        target += &format!(
            "  d-{name}: {{ {device}, shards: {{ only: \"mqtt://{}\" }}, telemetry: {{ topic: d/<serial>/state, qos: 1 }}, \
             command: {{ topic: d/<serial>/cmd, qos: 1, id: {{ json: $.id }} }} }}\n",
            peer.address
        );
        profile += &format!(
            "  g-{name}: {{ device: d-{name}, count: {HUBS}, connect: {{ over: 0s }}, {timeout}{hubs} }}\n"
        );
        served.push((name, peer, expected));
    }
    (plan(&profile, &target), served)
}

/// What a group told of its session.
pub fn changes(told: &Told, row: usize, wanted: HubChange) -> usize {
    told.count(|event| matches!(event, Event::Hub { group, change, .. } if usize::from(*group) == row && *change == wanted))
}

/// Sessions of a group that were lost, for whatever cause.
pub fn lost(told: &Told, row: usize) -> usize {
    told.count(|event| matches!(event, Event::Hub { group, change, .. } if usize::from(*group) == row && change.is_lost()))
}

pub fn packets(told: &Told, row: usize, wanted: PacketKind, was_sent: bool) -> usize {
    told.count(|event| {
        matches!(event, Event::Packet { group, kind, sent, .. }
            if usize::from(*group) == row && *kind == wanted && *sent == was_sent)
    })
}

/// How the attempts of an operation ended.
pub fn outcomes(told: &Told, plan: &Plan, kind: OperationKind) -> Vec<Outcome> {
    let wanted = plan.operation(kind).unwrap();
    let events = told.all();
    let outcomes = events.iter().filter_map(|event| match event {
        Event::Answered {
            operation, outcome, ..
        } if *operation == wanted => Some(*outcome),
        _ => None,
    });
    outcomes.collect()
}

//! What all hubs of a group share, worked out from the plan once.

use crate::agents::whereabouts::{Finding, ShardRow};
use crate::event::OperationId;
use crate::plan::fleet::Reconnect;
use crate::plan::routing::shard_of;
use crate::plan::{OperationKind, Plan};
use std::time::Duration;

/// One kind of message that hubs publish.
#[derive(Debug, Clone, Copy)]
pub(in crate::agents) struct Publishing {
    pub operation: OperationId,
    /// QoS 1.
    pub is_acknowledged: bool,
}

/// What all hubs of a group share.
#[derive(Debug)]
pub struct HubConfig {
    pub(super) group: u16,
    pub(super) seed: u64,
    pub(super) count: u32,
    pub(super) connect: OperationId,
    pub(super) handshake: Option<OperationId>,
    pub(in crate::agents) telemetry: Option<Publishing>,
    pub(in crate::agents) answer: Option<Publishing>,
    pub(super) reauthenticate: Option<OperationId>,
    pub(super) telemetry_every: Duration,
    pub(super) subscribes: bool,
    pub(super) clean_start: bool,
    connect_over: Duration,
    pub(super) keep_alive: Duration,
    pub(in crate::agents) timeout: Duration,
    pub(super) actuation: Duration,
    pub(super) reconnect: Reconnect,
    /// By row of `Plan::issuers`: whether that group sends to this one.
    pub(super) issuers: Vec<bool>,
    pub(super) find: Option<OperationId>,
    pub(super) finding: Finding,
    /// By hub.
    pub(super) homes: Vec<ShardRow>,
}

impl HubConfig {
    /// The hubs of row `group` of `plan.hubs`.
    #[must_use]
    pub fn of(plan: &Plan, group: usize) -> HubConfig {
        let hubs = &plan.hubs[group];
        let device = &plan.target.devices[hubs.device];
        let shards = device.shards.len();
        let home = |index| {
            let row = shard_of(device, hubs, index);
            ShardRow::try_from(row).unwrap_or_default()
        };
        let publishing = |kind, qos: Option<u8>| {
            Some(Publishing {
                operation: plan.operation(kind)?,
                is_acknowledged: qos? > 0,
            })
        };
        HubConfig {
            group: u16::try_from(group).expect("a plan has fewer than 65,536 groups"),
            seed: plan.seed,
            count: hubs.count,
            connect: plan
                .operation(OperationKind::Connect { hubs: group })
                .expect("the table of operations has `connect` for every group of hubs"),
            handshake: plan.operation(OperationKind::Handshake { hubs: group }),
            telemetry: publishing(
                OperationKind::Telemetry { hubs: group },
                device.telemetry.as_ref().map(|topic| topic.qos),
            ),
            answer: publishing(
                OperationKind::Answer { hubs: group },
                device.answer.as_ref().map(|topic| topic.qos),
            ),
            reauthenticate: plan.operation(OperationKind::Reauthenticate { hubs: group }),
            telemetry_every: hubs
                .telemetry
                .map_or(Duration::ZERO, |telemetry| telemetry.every),
            subscribes: device.command.is_some(),
            clean_start: device.session.clean_start,
            connect_over: hubs.connect_over,
            keep_alive: hubs.keep_alive,
            timeout: hubs.timeout,
            actuation: hubs.actuation,
            reconnect: hubs.reconnect,
            issuers: plan
                .issuers
                .iter()
                .map(|issuers| issuers.to == group)
                .collect(),
            find: plan.operation(OperationKind::Find { hubs: group }),
            finding: Finding::of(&device.find, shards),
            homes: match shards {
                0 | 1 => Vec::new(),
                _ => (0..u64::from(hubs.count)).map(home).collect(),
            },
        }
    }

    /// The shard where hub `index` connects first, unless it asks for it.
    #[must_use]
    pub fn home(&self, index: u32) -> ShardRow {
        self.homes.get(index as usize).copied().unwrap_or_default()
    }

    /// The operation of (re)connecting.
    #[must_use]
    pub fn connect(&self) -> OperationId {
        self.connect
    }

    /// When hub `index` first connects, from the moment at which the fleet begins to: evenly over `connect_over`.
    #[must_use]
    pub fn first_connect(&self, index: u64) -> Duration {
        let total_us = self.connect_over.as_micros();
        let at_us = total_us * u128::from(index) / u128::from(self.count.max(1));
        Duration::from_micros(u64::try_from(at_us).unwrap_or(u64::MAX))
    }
}

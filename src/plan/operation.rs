//! The table of everything that is measured by name.

use super::Plan;
use super::dock::DockGroup;
use super::fleet::{HubGroup, IssuerGroup, RiderGroup};
use super::target::{CommandSend, Device, Find, StepAction, Target};
use crate::event::OperationId;

/// The group under which tokens stand in reports: they belong to nobody.
const TOKENS: &str = "tokens";

/// One measured kind of action of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// As expectations and reports call it: a step, a journey, `connect`, an issuer group, `command`.
    pub name: String,
    /// The group that does it.
    pub group: String,
    pub kind: OperationKind,
}

/// What an operation is, with rows of the plan's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Asking the target over HTTP for a hub's shard; one attempt each.
    Find { hubs: usize },
    /// From the due time of a (re)connect to SUBACK; attempts are the tries of one outage.
    Connect { hubs: usize },
    /// One TLS handshake: from TCP to TLS.
    Handshake { hubs: usize },
    /// One publish of telemetry (QoS 1: to its PUBACK).
    Telemetry { hubs: usize },
    /// One publish of an answer (QoS 1: to its PUBACK).
    Answer { hubs: usize },
    /// MQTT 5: one re-authentication of a live session, from the order to AUTH 0x00.
    Reauthenticate { hubs: usize },
    /// One request step of a rider group's journey.
    Step { riders: usize, step: usize },
    /// A whole journey, thinking left out of no latency.
    Journey { riders: usize },
    /// A stretch of a journey from one step to another.
    Span { riders: usize, span: usize },
    /// One request that follows the end of a journey, however it ended.
    Closing { riders: usize, closing: usize },
    /// Handing a command to the target: due time to "accepted".
    Issue { issuers: usize },
    /// A command end to end: due time to the hub's answer.
    Command { issuers: usize },
    /// One refresh of a dock's status.
    Status { docks: usize },
    /// One return, from its hand-over to the target's yes; attempts are those of the dock.
    Return { docks: usize },
    /// Asking for a token that requests carry; row in `Target::tokens`.
    Token { token: usize },
}

/// The operations of docks: for each group its refreshes and its returns.
pub fn dock_rows(docks: &[DockGroup]) -> impl Iterator<Item = Operation> {
    let row = |name: &str, group: &DockGroup, kind| Operation {
        name: name.to_owned(),
        group: group.name.clone(),
        kind,
    };
    docks.iter().enumerate().flat_map(move |(docks, group)| {
        let status = group.status_every.is_some();
        let status = status.then(|| row("status", group, OperationKind::Status { docks }));
        let returns = row("returns", group, OperationKind::Return { docks });
        status.into_iter().chain([returns])
    })
}

fn hub_rows(
    hubs: usize,
    group: &HubGroup,
    device: &Device,
    row: &mut impl FnMut(&str, &str, OperationKind),
) {
    if matches!(device.find, Find::Ask(_)) {
        row("find", &group.name, OperationKind::Find { hubs });
    }
    row("connect", &group.name, OperationKind::Connect { hubs });
    if device.is_secured() {
        row("handshake", &group.name, OperationKind::Handshake { hubs });
    }
    if group.telemetry.is_some() && device.telemetry.is_some() {
        row("telemetry", &group.name, OperationKind::Telemetry { hubs });
    }
    if device.answer.is_some() {
        row("answer", &group.name, OperationKind::Answer { hubs });
    }
    if device.authentication.is_some() {
        row(
            "reauthenticate",
            &group.name,
            OperationKind::Reauthenticate { hubs },
        );
    }
}

/// Builds the table: for each group its operations, in the order hubs, riders, issuers; then the tokens that they carry. Those of docks follow: [`dock_rows`].
#[must_use]
pub fn table(
    hubs: &[HubGroup],
    riders: &[RiderGroup],
    issuers: &[IssuerGroup],
    target: &Target,
) -> Vec<Operation> {
    let mut rows = Vec::new();
    let mut row = |name: &str, group: &str, kind| {
        rows.push(Operation {
            name: name.to_owned(),
            group: group.to_owned(),
            kind,
        });
    };
    for (hubs, group) in hubs.iter().enumerate() {
        hub_rows(hubs, group, &target.devices[group.device], &mut row);
    }
    for (riders, group) in riders.iter().enumerate() {
        let journey = &target.journeys[group.journey];
        row(
            &journey.name,
            &group.name,
            OperationKind::Journey { riders },
        );
        for (step, described) in journey.steps.iter().enumerate() {
            if matches!(described.action, StepAction::Request(_)) {
                row(
                    &described.name,
                    &group.name,
                    OperationKind::Step { riders, step },
                );
            }
        }
        for (span, described) in journey.spans.iter().enumerate() {
            let kind = OperationKind::Span { riders, span };
            row(&described.name, &group.name, kind);
        }
        for (closing, described) in journey.always.iter().enumerate() {
            let kind = OperationKind::Closing { riders, closing };
            row(&described.name, &group.name, kind);
        }
    }
    for (issuers, group) in issuers.iter().enumerate() {
        row(&group.name, &group.name, OperationKind::Issue { issuers });
        row("command", &group.name, OperationKind::Command { issuers });
    }
    let journeys: Vec<usize> = riders.iter().map(|group| group.journey).collect();
    let commands: Vec<usize> = issuers.iter().map(|group| group.command).collect();
    for token in target.tokens_of(&journeys, &commands) {
        let name = &target.tokens[token].name;
        row(name, TOKENS, OperationKind::Token { token });
    }
    rows
}

impl super::Plan {
    /// The row of an operation of this kind, if the plan has one.
    #[must_use]
    pub fn operation(&self, kind: OperationKind) -> Option<OperationId> {
        let row = self
            .operations
            .iter()
            .position(|operation| operation.kind == kind)?;
        u16::try_from(row).ok().map(OperationId)
    }

    /// The row in `Plan::hubs` of the group whose connecting this operation is.
    #[must_use]
    pub fn connecting_hubs(&self, id: OperationId) -> Option<u16> {
        match self.operations.get(usize::from(id.0))?.kind {
            OperationKind::Connect { hubs } => u16::try_from(hubs).ok(),
            _ => None,
        }
    }

    /// Whether the operation is a journey or a span of one, whose attempts are the requests of its steps.
    #[must_use]
    pub fn is_made_of_steps(&self, id: OperationId) -> bool {
        let row = self.operations.get(usize::from(id.0));
        row.is_some_and(|row| row.kind.is_made_of_steps())
    }
}

impl OperationKind {
    /// Whether it is a journey or a span of one: it has no attempts of its own.
    #[must_use]
    pub fn is_made_of_steps(self) -> bool {
        matches!(
            self,
            OperationKind::Journey { .. } | OperationKind::Span { .. }
        )
    }
}

impl Plan {
    /// Whether actions of this kind are HTTP requests.
    #[must_use]
    pub fn asks_over_http(&self, kind: OperationKind) -> bool {
        match kind {
            OperationKind::Step { .. }
            | OperationKind::Closing { .. }
            | OperationKind::Find { .. }
            | OperationKind::Status { .. }
            | OperationKind::Return { .. } => true,
            OperationKind::Issue { issuers } => {
                let command = self
                    .issuers
                    .get(issuers)
                    .and_then(|group| self.target.commands.get(group.command));
                command.is_some_and(|command| matches!(command.send, CommandSend::Http(_)))
            }
            _ => false,
        }
    }
}

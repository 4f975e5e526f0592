//! The room around triggers and faults: quiet time to compare with before them, time to see a recovery hold after them.

use crate::event::MarkId;
use crate::plan::Plan;
use crate::plan::fault::{Edge, Fault, Trigger, TriggerKind};
use std::time::Duration;

/// A trigger or fault with the quiet time around it.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkRoom {
    pub name: String,
    /// Where it stands in its file: the name without the number of a repetition.
    pub entry: String,
    pub is_fault: bool,
    /// Of a fault that waits for something, the earliest time.
    pub at: Duration,
    /// The mark whose quiet time it is compared with, if it begins in the course of that one.
    pub within: Option<String>,
    /// When it stops to act; the end of the load for a fault without `for`.
    pub ends: Duration,
    /// From the end of the mark before, or from 0:00.
    pub quiet_before: Duration,
    /// The baseline, and after another mark the time that its recovery must hold.
    pub needs_before: Duration,
    /// To the next mark, or to the end of load and `settle`.
    pub quiet_after: Duration,
    /// The time that its recovery must hold.
    pub needs_after: Duration,
}

/// Triggers and faults in the order of their time, each with the room around it. What begins in the course of another needs no quiet
/// time of its own.
#[must_use]
pub fn rooms(plan: &Plan) -> Vec<MarkRoom> {
    let marks = (0..).map(MarkId);
    let triggers = plan
        .triggers
        .iter()
        .map(|trigger| (trigger.at, ends_of(trigger)));
    let faults = plan.faults.iter().map(|fault| {
        let ends = fault
            .lasts
            .map_or(plan.duration.max(fault.at), |lasts| fault.at + lasts);
        (fault.at, ends)
    });
    let mut marks: Vec<_> = marks.zip(triggers.chain(faults)).collect();
    marks.sort_by_key(|(_, (at, _))| *at);
    let mut before = Duration::ZERO;
    let mut rooms = Vec::new();
    for (row, (id, (at, ends))) in marks.iter().enumerate() {
        let next = marks
            .get(row + 1)
            .map_or(plan.duration + plan.settle, |(_, (at, _))| *at);
        let held = if row > 0 {
            plan.sustain
        } else {
            Duration::ZERO
        };
        let fault = plan.fault_of(*id);
        let room = MarkRoom {
            name: plan.mark_name(*id).to_owned(),
            entry: fault
                .and_then(|fault| fault.repeats.clone())
                .unwrap_or_else(|| plan.mark_name(*id).to_owned()),
            is_fault: fault.is_some(),
            at: *at,
            within: None,
            ends: *ends,
            quiet_before: at.saturating_sub(before),
            needs_before: plan.baseline + held,
            quiet_after: next.saturating_sub(*ends),
            needs_after: plan.sustain,
        };
        rooms.push(match fault {
            Some(fault) => of_fault(plan, *id, fault, room),
            None => room,
        });
        before = before.max(*ends);
    }
    rooms
}

fn ends_of(trigger: &Trigger) -> Duration {
    let away = match trigger.kind {
        TriggerKind::Disconnect(disconnect) => disconnect.away,
        TriggerKind::Renew(_)
        | TriggerKind::Reauthenticate(_)
        | TriggerKind::Operate { .. }
        | TriggerKind::Offline(_)
        | TriggerKind::Shed(_) => Duration::ZERO,
    };
    trigger.at + trigger.lasts + away
}

fn of_fault(plan: &Plan, id: MarkId, fault: &Fault, room: MarkRoom) -> MarkRoom {
    let name = |id| Some(plan.mark_name(id).to_owned());
    let first = plan.first_of(id);
    match fault.after {
        // All is quiet from the recovery on.
        Some(after) if after.edge == Edge::Recovery => MarkRoom {
            quiet_before: after.wait.max(plan.sustain),
            needs_before: plan.baseline,
            ..room
        },
        Some(after) => MarkRoom {
            within: name(after.mark),
            needs_before: Duration::ZERO,
            ..room
        },
        None if first != id && room.quiet_before < room.needs_before => MarkRoom {
            within: name(first),
            needs_before: Duration::ZERO,
            ..room
        },
        None => room,
    }
}

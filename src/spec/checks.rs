//! Rules that span several parts of the files. They are asked only of a plan whose parts are right.

use super::dock;
use super::reader::At;
use crate::plan::fault::{Trigger, TriggerKind};
use crate::plan::identity::IdentitySource;
use crate::plan::outlook::{self, MarkRoom};
use crate::plan::quantity::{count, duration, rate};
use crate::plan::routing::unknown_shard;
use crate::plan::{OperationKind, Plan, SHORTEST_BASELINE};
use std::time::Duration;

/// The files of a run, for pointing into them.
pub(super) struct Files<'a, 'b> {
    pub profile: &'b At<'a>,
    pub target: &'b At<'a>,
    pub chaos: &'b [At<'a>],
}

/// Puts everything that does not fit together into the log.
pub(super) fn check(plan: &Plan, files: &Files<'_, '_>) {
    names(plan, files.profile);
    dock::check_hand_overs(plan, files.profile);
    in_flight(plan, files.profile);
    ceilings(plan, files);
    listed_shards(plan, files.target);
    plan.triggers
        .iter()
        .for_each(|trigger| waves(trigger, plan, files.profile));
    if !plan.triggers.is_empty() || !plan.faults.is_empty() {
        sustain(plan, files.profile);
        baseline(plan, files.profile);
        outlook::rooms(plan)
            .iter()
            .for_each(|room| room_for(room, plan, files));
    }
}

/// Groups, steps and journeys must be told apart in expectations and reports.
fn names(plan: &Plan, profile: &At<'_>) {
    let groups = plan.hubs.iter().map(|group| ("hubs", &group.name));
    let groups = groups.chain(plan.riders.iter().map(|group| ("riders", &group.name)));
    let groups: Vec<_> = groups
        .chain(plan.issuers.iter().map(|group| ("issuers", &group.name)))
        .chain(plan.docks.iter().map(|group| ("docks", &group.name)))
        .collect();
    for (row, (kind, name)) in groups.iter().enumerate() {
        let at = profile.find(&[kind, name]);
        if groups[..row].iter().any(|(_, other)| other == name) {
            at.wrong_key(
                format!("another group is called `{name}`"),
                "give one of them another name",
            );
        }
        let is_action = plan.operations.iter().any(|operation| {
            let is_step = matches!(
                operation.kind,
                OperationKind::Step { .. }
                    | OperationKind::Journey { .. }
                    | OperationKind::Span { .. }
                    | OperationKind::Closing { .. }
            );
            is_step && operation.name == **name
        });
        if is_action && *kind == "issuers" {
            at.wrong_key(
                format!("a step or journey is called `{name}` too, and expectations could not tell them apart"),
                "give the group another name",
            );
        }
    }
}

/// A hub that begins with a shard of a name needs one of that name.
fn listed_shards(plan: &Plan, target: &At<'_>) {
    for group in &plan.hubs {
        let device = &plan.target.devices[group.device];
        if let Some((index, text)) = unknown_shard(device, group) {
            let serial = group.serial(index);
            target.find(&["devices", &device.name, "find"]).wrong(
                format!("hub {serial} is to begin with the shard `{text}`, and the device has none of that name"),
                "name a column that holds names of `shards:`, or write `find: list`",
            );
        }
    }
}

/// Hubs can renew only certificates that they have, and authenticate anew only where the protocol knows how.
fn waves(trigger: &Trigger, plan: &Plan, profile: &At<'_>) {
    let Some(group) = trigger.kind.group().and_then(|row| plan.hubs.get(row)) else {
        return;
    };
    let device = &plan.target.devices[group.device];
    let issues = device
        .identity
        .and_then(|row| plan.target.identities.get(row))
        .is_some_and(|set| matches!(set.source, IdentitySource::Issue(_)));
    let at = |key: &str| profile.find(&["timeline", &trigger.name, key]);
    match trigger.kind {
        TriggerKind::Renew(_) if !issues && device.tls.next_files.is_none() => {
            at("renew").wrong_key(
                format!(
                    "the hubs of `{}` have no certificate to renew to",
                    group.name
                ),
                "give the device `identity:` with `issue:`, or with columns `next_cert` and `next_key`",
            );
        }
        TriggerKind::Reauthenticate(_) if device.authentication.is_none() => {
            at("reauthenticate").wrong_key(
                format!(
                    "the hubs of `{}` have nothing to authenticate with again",
                    group.name
                ),
                "give the device `mqtt: 5` and `auth: { method: …, data: … }` in the target file",
            );
        }
        TriggerKind::Reauthenticate(_)
        | TriggerKind::Renew(_)
        | TriggerKind::Disconnect(_)
        | TriggerKind::Operate { .. }
        | TriggerKind::Offline(_)
        | TriggerKind::Shed(_) => {}
    }
}

fn in_flight(plan: &Plan, profile: &At<'_>) {
    let riders = plan.riders.len();
    for (row, group) in outlook::arriving(plan).iter().enumerate() {
        if u64::from(group.max_in_flight) >= group.needed_in_flight {
            continue;
        }
        let kind = if row < riders { "riders" } else { "issuers" };
        profile.find(&[kind, &group.group, "max_in_flight"]).wrong(
            format!(
                "`max_in_flight` is below the peak rate × the worst wait of a request: {} × {} = {}",
                rate(group.peak_per_second),
                duration(group.worst_wait),
                count(group.needed_in_flight)
            ),
            format!("write at least {}, or leave it out", count(group.needed_in_flight)),
        );
    }
}

/// The target's owner allows so much and no more.
fn ceilings(plan: &Plan, files: &Files<'_, '_>) {
    let max = plan.target.max;
    let over = |key: &str, asked: String, allowed: String| {
        files.target.find(&["max", key]).wrong(
            format!("the profile asks for {asked}, and this target allows {allowed}"),
            "lower the load of the profile, or ask the target's owner for more",
        );
    };
    let hubs: u64 = plan.hubs.iter().map(|group| u64::from(group.count)).sum();
    if let Some(allowed) = max.hubs.filter(|allowed| hubs > *allowed) {
        over("hubs", format!("{} hubs", count(hubs)), count(allowed));
    }
    let connects = outlook::peak_connects_per_second(plan);
    if let Some(allowed) = max
        .connects_per_second
        .filter(|allowed| connects > *allowed)
    {
        over(
            "connects",
            format!("{} connects", rate(connects)),
            rate(allowed),
        );
    }
    let requests = outlook::peak_requests_per_second(plan);
    if let Some(allowed) = max
        .requests_per_second
        .filter(|allowed| requests > *allowed)
    {
        over(
            "requests",
            format!("{} requests", rate(requests)),
            rate(allowed),
        );
    }
}

/// "Recovered" must hold longer than a failure can hide in a timeout and the wait after it.
fn sustain(plan: &Plan, profile: &At<'_>) {
    let Some((group, echo)) = outlook::longest_echo(plan) else {
        return;
    };
    if plan.sustain <= echo {
        let (sustain, echo) = (duration(plan.sustain), duration(echo));
        profile.find(&["sustain"]).wrong(
            format!("`sustain` of {sustain} is not longer than timeout + longest wait of `{group}`: {echo}"),
            format!("make it longer than {echo}, or the timeout or wait of `{group}` shorter"),
        );
    }
}

/// A baseline that is too short to compare with would leave every recovery unknown.
fn baseline(plan: &Plan, profile: &At<'_>) {
    if plan.baseline < SHORTEST_BASELINE {
        profile.find(&["baseline"]).wrong(
            format!(
                "`baseline` of {} is too short to compare a recovery with",
                duration(plan.baseline)
            ),
            format!("make it {} or longer", duration(SHORTEST_BASELINE)),
        );
    }
}

fn remedy(room: &MarkRoom, plan: &Plan, earliest: Duration) -> String {
    let waits = plan.faults.iter().find(|fault| fault.name == room.name);
    if let Some(after) = waits.and_then(|fault| fault.after) {
        let waited_for = plan.mark_name(after.mark);
        return format!(
            "write `at: {} after {waited_for} recovers`, or make `baseline` shorter",
            duration(plan.baseline)
        );
    }
    let later = format!(
        "write `at: {}` or later, or make `baseline` shorter",
        duration(earliest)
    );
    let rooms = outlook::rooms(plan);
    let before = rooms
        .iter()
        .rev()
        .find(|other| other.at < room.at && other.name != room.name);
    match before {
        Some(before) if room.is_fault => format!(
            "{later}; to hit while `{name}` acts or is recovered from, write `at: 10s into {name}` or `10s after {name}`",
            name = before.name
        ),
        _ => later,
    }
}

fn room_for(room: &MarkRoom, plan: &Plan, files: &Files<'_, '_>) {
    let list = if room.is_fault { "faults" } else { "timeline" };
    let found = files
        .chaos
        .iter()
        .map(|root| root.find(&["faults", &room.entry]))
        .find(|at| at.has_key(&room.entry));
    let entry = match found {
        Some(at) if room.is_fault => at,
        _ => files.profile.find(&[list, &room.name]),
    };
    let at = entry.find(&["at"]);
    if room.quiet_before < room.needs_before {
        let first = room.needs_before == plan.baseline;
        let why = if first {
            "`baseline`"
        } else {
            "`sustain` of the one before and `baseline`"
        };
        let earliest = room.at + (room.needs_before - room.quiet_before);
        at.wrong(
            format!(
                "no room for {why}: {} of quiet before `{}`, and {} are needed",
                duration(room.quiet_before),
                room.name,
                duration(room.needs_before)
            ),
            remedy(room, plan, earliest),
        );
    }
    let is_last = room.quiet_after + room.ends == plan.duration + plan.settle
        || room.ends >= plan.duration + plan.settle;
    if is_last && room.quiet_after < room.needs_after {
        at.wrong(
            format!(
                "no room for `sustain` after `{}`: {} to the end of `settle`, and {} are needed",
                room.name,
                duration(room.quiet_after),
                duration(room.needs_after)
            ),
            "let it end earlier, or make `duration` or `settle` longer",
        );
    }
}

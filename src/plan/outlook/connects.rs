//! How many hubs will connect at the same time by plan, laid against what the target says that it takes.

use crate::plan::Plan;
use crate::plan::fault::{Disconnect, TriggerKind};
use crate::plan::quantity;
use crate::plan::readmission::Pace;
use crate::plan::wave::{OldSessions, Renew};
use std::time::Duration;

/// Hubs that connect together by plan.
struct Burst {
    /// `coming up`, or the name of a trigger.
    when: String,
    hubs: f64,
    over: Duration,
}

impl Burst {
    /// In the second with the most of them.
    fn per_second(&self) -> f64 {
        self.hubs / self.over.as_secs_f64().max(1.0)
    }
}

/// Connects per second at worst: while the groups come up, or while those come back that the timeline drops.
#[must_use]
pub fn peak_connects_per_second(plan: &Plan) -> f64 {
    let all = |_: usize| true;
    let coming_back = coming_back(plan, all).map(|burst| burst.per_second());
    coming_back.fold(coming_up(plan, all), f64::max)
}

/// Where the plan's connects go beyond the throttle of a device.
pub(super) fn warnings(plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    for (row, device) in plan.target.devices.iter().enumerate() {
        let Some(limit) = device.throttle else {
            continue;
        };
        let of_device = |group: usize| plan.hubs.get(group).is_some_and(|hubs| hubs.device == row);
        let limit_text = quantity::rate(limit);
        let up = coming_up(plan, of_device);
        if up > limit {
            let hubs: u64 = groups(plan, of_device)
                .map(|group| u64::from(group.count))
                .sum();
            warnings.push(format!(
                "the hubs of `{}` come up at {}, and the target takes {limit_text}: the {} of them need `connect: {{ over: {} }}` or longer",
                device.name,
                quantity::rate(up),
                quantity::count(hubs),
                quantity::duration(whole_seconds(hubs as f64 / limit))
            ));
        }
        for burst in coming_back(plan, of_device).filter(|burst| burst.per_second() > limit) {
            warnings.push(format!(
                "after `{}` hubs of `{}` connect at {}, and the target takes {limit_text}: {} in {}, which need {}; those beyond it will count as throttled",
                burst.when,
                device.name,
                quantity::rate(burst.per_second()),
                quantity::count(burst.hubs.round() as u64),
                quantity::duration(burst.over),
                quantity::duration(whole_seconds(burst.hubs / limit))
            ));
        }
    }
    warnings
}

fn whole_seconds(seconds: f64) -> Duration {
    Duration::from_secs(seconds.ceil() as u64)
}

fn groups(
    plan: &Plan,
    which: impl Fn(usize) -> bool,
) -> impl Iterator<Item = &crate::plan::HubGroup> {
    let rows = plan.hubs.iter().enumerate();
    rows.filter(move |(row, _)| which(*row))
        .map(|(_, group)| group)
}

/// All groups come up at the same time.
fn coming_up(plan: &Plan, which: impl Fn(usize) -> bool) -> f64 {
    groups(plan, which)
        .map(|group| f64::from(group.count) / group.connect_over.as_secs_f64().max(1.0))
        .fold(0.0, |sum, rate| sum + rate)
}

fn coming_back(plan: &Plan, which: impl Fn(usize) -> bool) -> impl Iterator<Item = Burst> {
    plan.triggers.iter().filter_map(move |trigger| {
        let group = trigger.kind.group().filter(|group| which(*group))?;
        let hubs = plan.hubs.get(group)?;
        let count = f64::from(hubs.count);
        let (hubs, over) = match &trigger.kind {
            TriggerKind::Disconnect(drop) => dropped(drop, count, hubs.reconnect.first),
            TriggerKind::Renew(Renew {
                wave,
                sessions: OldSessions::End(_),
            }) => (count * wave.share, wave.within),
            TriggerKind::Renew(_)
            | TriggerKind::Reauthenticate(_)
            | TriggerKind::Operate { .. }
            | TriggerKind::Offline(_)
            | TriggerKind::Shed(_) => return None,
        };
        Some(Burst {
            when: trigger.name.clone(),
            hubs,
            over,
        })
    })
}

/// How many come back together, over which time.
fn dropped(drop: &Disconnect, count: f64, first: Duration) -> (f64, Duration) {
    let hubs = count * drop.share;
    match drop.readmit.map(|readmit| readmit.pace) {
        None => (hubs, drop.within.max(first)),
        Some(Pace::Rate(per_second)) => (hubs, Duration::from_secs_f64(hubs / per_second)),
        Some(Pace::Batches { share, .. }) => ((hubs * share).ceil(), Duration::ZERO),
    }
}

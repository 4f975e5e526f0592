//! Docks: the devices of a target file that are docks, and the groups of a profile.

use super::fields::Fields;
use super::fleet::Around;
use super::journey::{self, RequestContext, row_of};
use super::policy;
use super::reader::At;
use super::target::Names;
use crate::plan::Plan;
use crate::plan::dock::{DockDevice, DockGroup, Flush, Reconcile, Sent, SomeDocks};
use crate::plan::json_path::JsonPath;
use crate::plan::target::{Request, StepAction};
use crate::plan::template::Template;
use crate::retry::{Backoff, Retry};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a target may work through what it has accepted, unless the file says otherwise.
const WITHIN: Duration = Duration::from_secs(10);
const MOST_DOCKS: u32 = 100_000;

/// How a dock tries again unless the profile says otherwise: for ever, since it holds what it could not deliver.
const BACKOFF: Backoff = Backoff::FullJitter {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
    factor: 2.0,
};

/// One entry of `devices:` that is a dock.
pub(super) fn device(name: &str, at: &At<'_>, names: &Names) -> Option<DockDevice> {
    let mut fields = at.fields()?;
    let serial = match fields.get("serial") {
        Some(at) => {
            let template = at.template(&names.placeholders(&["n"]));
            if let Some(template) = &template
                && !template.names().any(|name| name == "n")
            {
                at.wrong(
                    "the same for every dock: nobody could tell them apart",
                    "put `<n>` into it, which is the dock's number",
                );
            }
            template
        }
        None => Template::parse(&format!("{name}-<n>")).ok(),
    };
    let status = fields.get("status").map(|at| {
        let mut fields = at.fields()?;
        let request = asked(&mut fields, names, &["station"]);
        fields.finish(&[]);
        request
    });
    let sends: Vec<Option<Sent>> = fields
        .need("sends")
        .and_then(|at| at.named())
        .unwrap_or_default()
        .iter()
        .map(|(name, at)| sent(name, at, names))
        .collect();
    fields.finish(&["identity", "tls"]);
    let sends: Option<Vec<Sent>> = sends.into_iter().collect();
    Some(DockDevice {
        name: name.to_owned(),
        serial: serial?,
        status: match status {
            Some(status) => Some(status?),
            None => None,
        },
        sends: sends?,
    })
}

fn asked(fields: &mut Fields<'_>, names: &Names, agent: &[&str]) -> Option<Request> {
    let context = RequestContext { names, base: None };
    journey::question(fields, &context, &names.placeholders(agent))
}

/// One entry of `sends:`. Beside its own names it may use whatever a journey keeps; whether the journey that hands over has kept it by
/// then is known only with the profile.
fn sent(name: &str, at: &At<'_>, names: &Names) -> Option<Sent> {
    let mut agent = vec!["station", "return"];
    agent.extend(names.kept.iter().map(String::as_str));
    let mut fields = at.fields()?;
    let request = asked(&mut fields, names, &agent);
    if let Some(request) = &request {
        let mut carries = false;
        request.names(&mut |name| carries |= name == "return");
        if !carries {
            at.wrong_key(
                "the return's id is nowhere in it, so a second attempt would be a second return",
                "add `id: <return>` to its `json:`",
            );
        }
    }
    // Whoever asks at the end stands at no station.
    agent.retain(|name| *name != "station");
    let reconcile = fields
        .get("reconcile")
        .map(|at| reconcile(&at, names, &agent));
    fields.finish(&[]);
    Some(Sent {
        name: name.to_owned(),
        request: request?,
        reconcile: match reconcile {
            Some(reconcile) => Some(reconcile?),
            None => None,
        },
    })
}

fn reconcile(at: &At<'_>, names: &Names, agent: &[&str]) -> Option<Reconcile> {
    let mut fields = at.fields()?;
    let request = asked(&mut fields, names, agent);
    let applied_at = fields.get("applied");
    let applied = applied_at.as_ref().and_then(super::device::json_path);
    let is = fields.get("is").map(|at| values(&at));
    let within = fields
        .get("within")
        .and_then(|at| at.duration())
        .unwrap_or(WITHIN);
    if applied_at.is_none() && is.is_none() {
        at.wrong_key(
            "nothing of the answer is looked at",
            "add `applied: $.applied` (how often it was booked), or `is: { $.state: ended }`",
        );
    }
    fields.finish(&[]);
    Some(Reconcile {
        request: request?,
        applied,
        is: is.unwrap_or_default(),
        within,
    })
}

/// `{ $.state: ended }`
fn values(at: &At<'_>) -> Vec<(JsonPath, String)> {
    let entries = at.entries().unwrap_or_default();
    let read = |(path, value): &(&str, At<'_>)| match JsonPath::parse(path) {
        Ok(path) => Some((path, value.setting()?.to_owned())),
        Err(error) => {
            value.wrong_key(
                error.to_string(),
                "write a path from the root: `$.state` or `$.trips[0].state`",
            );
            None
        }
    };
    entries.iter().filter_map(read).collect()
}

/// One entry of `docks:`.
pub(super) fn docks(name: &str, at: &At<'_>, around: &Around<'_>) -> Option<DockGroup> {
    let mut fields = at.fields()?;
    let device = fields
        .need("device")
        .and_then(|at| row_of(&at, &around.names.docks, "dock", "devices"));
    let count = fields
        .need("count")
        .and_then(|at| at.count32(1..=MOST_DOCKS));
    let status_at = fields.get("status");
    let status_every = status_at.as_ref().and_then(every);
    if let (Some(at), Some(device)) = (&status_at, device)
        && let Some(device) = around.dock(device)
        && device.status.is_none()
    {
        at.wrong_key(
            format!("the device `{}` has no status to refresh", device.name),
            "add `status: { post: … }` to the device in the target file, or leave it out here",
        );
    }
    let timeout = fields
        .get("timeout")
        .and_then(|at| at.time())
        .unwrap_or(TIMEOUT);
    let retry = match fields.get("retry") {
        Some(at) => policy::stubborn(&at),
        None => Some(Retry::of(BACKOFF)),
    };
    let flush = fields.get("flush").map(|at| flush(&at));
    fields.finish(&[]);
    Some(DockGroup {
        name: name.to_owned(),
        device: device?,
        count: count?,
        status_every: match status_at {
            Some(_) => Some(status_every?),
            None => None,
        },
        timeout,
        retry: retry?,
        flush: flush.unwrap_or_default(),
    })
}

fn every(at: &At<'_>) -> Option<Duration> {
    let mut fields = at.fields()?;
    let every = fields.need("every").and_then(|at| at.time());
    fields.finish(&[]);
    every
}

fn flush(at: &At<'_>) -> Flush {
    let Some(mut fields) = at.fields() else {
        return Flush::default();
    };
    let mut time = |key| {
        fields
            .get(key)
            .and_then(|at| at.duration())
            .unwrap_or_default()
    };
    let flush = Flush {
        first: time("first"),
        every: time("every"),
    };
    fields.finish(&[]);
    flush
}

/// `{ docks: stations, share: 50%, within: 2s }`
pub(super) fn some_docks(at: &At<'_>, groups: &[String]) -> Option<SomeDocks> {
    let mut fields = at.fields()?;
    let docks = fields
        .need("docks")
        .and_then(|at| row_of(&at, groups, "group of docks", "docks"));
    let share_at = fields.get("share");
    let share = share_at.as_ref().map_or(Some(1.0), |at| at.share());
    if let (Some(at), Some(0.0)) = (share_at, share) {
        at.wrong("no dock is meant", "write a share above zero");
    }
    let within = fields
        .get("within")
        .and_then(|at| at.duration())
        .unwrap_or_default();
    fields.finish(&[]);
    Some(SomeDocks {
        docks: docks?,
        share: share?,
        within,
    })
}

/// That every hand-over of a journey that somebody rides has a dock to go to, and brings what its request needs. Asked of a plan whose parts are right.
pub(super) fn check_hand_overs(plan: &Plan, profile: &At<'_>) {
    for riders in &plan.riders {
        let journey = &plan.target.journeys[riders.journey];
        for (row, step) in journey.steps.iter().enumerate() {
            let StepAction::HandOver { docks, sends } = &step.action else {
                continue;
            };
            let at = profile.find(&["riders", &riders.name, "journey"]);
            let Some(group) = plan.docks.iter().find(|group| group.name == *docks) else {
                at.wrong(
                    format!(
                        "its step `{}` hands over to the docks `{docks}`, and nobody is called so",
                        step.name
                    ),
                    format!("add `docks: {{ {docks}: {{ device: …, count: … }} }}`"),
                );
                continue;
            };
            let device = &plan.target.docks[group.device];
            let Some(sent) = device.sends.iter().find(|sent| sent.name == *sends) else {
                at.wrong(
                    format!(
                        "its step `{}` hands over `{sends}`, which the dock `{}` does not send",
                        step.name, device.name
                    ),
                    format!("add `{sends}:` to the `sends:` of the dock in the target file"),
                );
                continue;
            };
            let mut missing: Vec<String> = Vec::new();
            for name in sent.names() {
                if !journey.keeps_before(row, &name) && !missing.contains(&name) {
                    missing.push(name);
                }
            }
            if let Some(name) = missing.first() {
                at.wrong(
                    format!(
                        "`{sends}` needs <{name}>, which no step before `{}` keeps",
                        step.name
                    ),
                    format!("add `keep: {{ {name}: $.… }}` to a step before it"),
                );
            }
        }
    }
}

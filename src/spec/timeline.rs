//! What happens when: the triggers of a profile, the faults of an experiment.

use super::component;
use super::dock;
use super::journey::row_of;
use super::link_fault;
use super::moment::{self, Draft};
use super::reader::At;
use super::readmission;
use super::target::Names;
use super::wave::{self, Crowd, crowd};
use crate::plan::fault::{Disconnect, FaultKind, How, OperationSpec, Trigger, TriggerKind};
use crate::plan::quantity;
use crate::plan::target::Target;
use std::time::Duration;

pub(super) const HOW: [(&str, How); 3] = [
    ("disconnect", How::Disconnect),
    ("close", How::Close),
    ("reset", How::Reset),
];
const LATER_FAULTS: [&str; 3] = ["loss", "cpu", "memory"];

/// What triggers and faults refer to.
pub(super) struct Stage<'a> {
    pub target: &'a Target,
    pub names: &'a Names,
    pub duration: Duration,
    pub hub_groups: &'a [String],
    pub dock_groups: &'a [String],
}

/// One entry of `timeline:`.
pub(super) fn trigger(name: &str, at: &At<'_>, stage: &Stage<'_>) -> Option<Trigger> {
    let mut fields = at.fields()?;
    let moment = fields.need("at").and_then(|at| moment(&at, stage));
    let form = fields.one_of(&[
        "disconnect",
        "renew",
        "reauthenticate",
        "operate",
        "offline",
        "shed",
    ]);
    let of_docks = matches!(form, Some(("offline" | "shed", _)));
    let lasting = if of_docks { fields.need("for") } else { None };
    let lasting = lasting.and_then(|at| at.time());
    fields.finish(if of_docks { &[] } else { &["burst", "for"] });
    let (kind, at) = form?;
    let (kind, lasts) = match kind {
        "renew" => {
            let renew = wave::renew(&at, stage)?;
            (TriggerKind::Renew(renew), renew.wave.within)
        }
        "reauthenticate" => {
            let wave = wave::reauthenticate(&at, stage)?;
            (TriggerKind::Reauthenticate(wave), wave.within)
        }
        "disconnect" => {
            let disconnect = disconnect(&at, stage)?;
            (TriggerKind::Disconnect(disconnect), disconnect.within)
        }
        "offline" | "shed" => {
            let some = dock::some_docks(&at, stage.dock_groups)?;
            let kind = if kind == "shed" {
                TriggerKind::Shed(some)
            } else {
                TriggerKind::Offline(some)
            };
            (kind, lasting?)
        }
        _ => (
            TriggerKind::Operate {
                operation: operation(&at, stage)?,
            },
            Duration::ZERO,
        ),
    };
    Some(Trigger {
        name: name.to_owned(),
        at: moment?,
        lasts,
        kind,
    })
}

/// A time from 0:00 that lies within the load.
fn moment(at: &At<'_>, stage: &Stage<'_>) -> Option<Duration> {
    if let Some(text) = at.lone_word()
        && text.contains(" after ")
    {
        at.wrong(
            "a trigger of a profile has a time of its own",
            "write a time from 0:00, such as `90s`; faults of an experiment can wait for something",
        );
        return None;
    }
    let moment = at.duration()?;
    if moment >= stage.duration && !stage.duration.is_zero() {
        at.wrong(
            format!("the load ends at {}", quantity::duration(stage.duration)),
            "choose an earlier time, or make `duration` longer",
        );
        return None;
    }
    Some(moment)
}

fn disconnect(at: &At<'_>, stage: &Stage<'_>) -> Option<Disconnect> {
    let mut fields = at.fields()?;
    let Crowd {
        group,
        share,
        within,
    } = crowd(&mut fields, stage);
    let by = fields.need("by").and_then(|at| {
        if at.lone_word() == Some("silence") {
            at.wrong(
                "`silence` is not supported in this version",
                "write `disconnect`, `close` or `reset`",
            );
            return None;
        }
        at.word(&HOW)
    });
    let away_at = fields.get("away");
    let away = away_at.as_ref().and_then(|at| at.duration());
    let readmit_at = fields.get("readmit");
    if let (Some(at), Some(_)) = (&readmit_at, &away_at) {
        at.wrong_key(
            "`readmit` can't stand beside `away`",
            "keep one: hubs that have to be let back stay away until then; `after` says when that begins",
        );
    }
    let readmit = readmit_at.map(|at| readmission::readmit(&at));
    fields.finish(&[]);
    let readmit = match readmit {
        Some(readmit) => Some(readmit?),
        None => None,
    };
    Some(Disconnect {
        group: group?,
        share: share?,
        within,
        by: by?,
        away: away.unwrap_or_default(),
        readmit,
    })
}

fn operation(at: &At<'_>, stage: &Stage<'_>) -> Option<usize> {
    row_of(at, &stage.names.operations, "operation", "operations")
}

/// One entry of `faults:`.
pub(super) fn fault<'a>(name: &str, at: &At<'a>, stage: &Stage<'_>) -> Option<Draft<'a>> {
    let mut fields = at.fields()?;
    let forms: Vec<&'static str> = ["operate"]
        .into_iter()
        .chain(component::ACTS)
        .chain(link_fault::FORMS)
        .collect();
    let form = fields.one_of(&forms);
    let when = fields.need("at").and_then(|at| moment::when(&at));
    let lasts = fields.get("for").map(|at| at.time());
    let repeat_at = fields.get("repeat");
    fields.finish(&LATER_FAULTS);
    let (kind, form) = form?;
    let kind = match kind {
        "operate" => operate(&form, stage),
        act if component::ACTS.contains(&act) => component::fault(act, &form, stage),
        kind => link_fault::fault(kind, &form, stage.names),
    };
    let lasts = match lasts {
        Some(lasts) => Some(lasts?),
        None => None,
    };
    let kind = kind?;
    let lasts = match (&kind, lasts) {
        (FaultKind::Cut(_), Some(_)) => {
            at.find(&["for"]).wrong_key(
                "a cut is over when the connections are",
                "leave `for` out; `within` spreads it over a time",
            );
            return None;
        }
        (FaultKind::Cut(cut), None) => Some(cut.within),
        (_, lasts) => lasts,
    };
    let repeat = match repeat_at {
        Some(at) => Some(moment::repeat(&at, lasts)?),
        None => None,
    };
    Some(Draft {
        at: at.clone(),
        name: name.to_owned(),
        when: when?,
        lasts,
        repeat,
        kind,
    })
}

fn operate(at: &At<'_>, stage: &Stage<'_>) -> Option<FaultKind> {
    let operation = operation(at, stage)?;
    let name = &stage.names.operations[operation];
    let has_no_undo = |spec: &OperationSpec| spec.name == *name && spec.undo.is_none();
    if stage.target.operations.iter().any(has_no_undo) {
        at.wrong(
            format!("the operation `{name}` has no undo, and a fault must have one"),
            "add `undo: { … }` to the operation in the target file",
        );
        return None;
    }
    Some(FaultKind::Operate { operation })
}

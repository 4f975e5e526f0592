//! `readmit:` of a mass disconnect: how its hubs are let back.

use super::reader::At;
use super::resolve::{self, Role, Written};
use crate::plan::Plan;
use crate::plan::fault::{Trigger, TriggerKind};
use crate::plan::readmission::{Pace, Readmission};

/// `{ after: 10s, at_rate: 50/s }`, `{ batches: { of: 10%, every: 10s } }`, either with `pause_while: [ … ]`.
pub(super) fn readmit(at: &At<'_>) -> Option<Readmission> {
    let mut fields = at.fields()?;
    let after = fields.get("after").map(|at| at.duration());
    let pace = fields
        .one_of(&["at_rate", "batches"])
        .and_then(|(form, at)| match form {
            "at_rate" => rate(&at),
            _ => batches(&at),
        });
    // Its lines are read when the whole plan is known.
    fields.get("pause_while");
    fields.finish(&[]);
    let after = match after {
        Some(after) => after?,
        None => std::time::Duration::ZERO,
    };
    Some(Readmission { after, pace: pace? })
}

fn rate(at: &At<'_>) -> Option<Pace> {
    let rate = at.rate()?;
    if rate < 0.01 {
        at.wrong(
            "nobody would ever be let back",
            "write a rate such as `50/s`",
        );
        return None;
    }
    Some(Pace::Rate(rate))
}

fn batches(at: &At<'_>) -> Option<Pace> {
    let mut fields = at.fields()?;
    let of = fields.need("of");
    let share = of.as_ref().and_then(|at| at.share());
    if let (Some(at), Some(0.0)) = (of, share) {
        at.wrong(
            "nobody is let back",
            "write a share above zero, such as `10%`",
        );
    }
    let every = fields.need("every").and_then(|at| at.time());
    fields.finish(&[]);
    Some(Pace::Batches {
        share: share.filter(|share| *share > 0.0)?,
        every: every?,
    })
}

/// How long triggers last whose hubs are let back, which depends on how many there are.
pub(super) fn set_lasts(triggers: &mut [Trigger], counts: &[u32]) {
    for trigger in triggers {
        if let TriggerKind::Disconnect(disconnect) = &trigger.kind
            && let Some(count) = counts.get(disconnect.group)
        {
            trigger.lasts = disconnect.lasts(*count);
        }
    }
}

/// The lines of every `pause_while`, with the name of their trigger.
pub(super) fn pauses<'a>(profile: &At<'a>) -> Vec<(String, Vec<Written<'a>>)> {
    let timeline = profile.find(&["timeline"]);
    let mut pauses = Vec::new();
    for name in timeline.keys() {
        let at = timeline.find(&[&name, "disconnect", "readmit", "pause_while"]);
        if at.has_key("pause_while")
            && let Some(items) = at.items()
        {
            pauses.push((name, resolve::lines(items, Role::Guard)));
        }
    }
    pauses
}

/// The row of a trigger by its name.
pub(super) fn row_of(plan: &Plan, name: &str) -> Option<usize> {
    plan.triggers
        .iter()
        .position(|trigger| trigger.name == name)
}

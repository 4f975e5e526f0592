//! When the faults of experiments begin: at a time, or when something else has begun, ended or been recovered from; once or repeated.
//!
//! Decides what a fault waits for, once every trigger and fault has its name, and the earliest time by plan.

use super::reader::At;
use super::units;
use super::words;
use crate::event::MarkId;
use crate::plan::Plan;
use crate::plan::fault::{After, Edge, Fault, FaultKind};
use crate::plan::quantity::duration;
use std::time::Duration;

const FORMS: &str = "`2m`, `30s after NAME`, `5m after NAME recovers`, `30s into NAME`";
/// Repetitions of one fault.
const MOST_TIMES: u32 = 1_000;

/// `at:` as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum When {
    /// From 0:00.
    At(Duration),
    After {
        name: String,
        edge: Edge,
        wait: Duration,
    },
}

/// `repeat: { times: 3, every: 2m }`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeat {
    times: u32,
    /// From begin to begin.
    every: Duration,
}

/// A fault of an experiment before its time is known.
pub(super) struct Draft<'a> {
    pub at: At<'a>,
    pub name: String,
    pub when: When,
    pub lasts: Option<Duration>,
    pub repeat: Option<Repeat>,
    pub kind: FaultKind,
}

/// From the first begin to the last end, by plan.
#[derive(Debug, Clone, Copy)]
struct Planned {
    begin: Duration,
    /// `None`: with the run.
    end: Option<Duration>,
}

/// Reads `at:`.
pub(super) fn when(at: &At<'_>) -> Option<When> {
    let text = at.lone_word().unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    let (wait, edge, name) = match words.as_slice() {
        [wait, "after", name] => (wait, Edge::End, name),
        [wait, "after", name, "recovers"] => (wait, Edge::Recovery, name),
        [wait, "into", name] => (wait, Edge::Begin, name),
        [_, _, ..] => {
            at.wrong(
                format!("`{text}` is no time"),
                format!("write one of {FORMS}"),
            );
            return None;
        }
        _ => return at.duration().map(When::At),
    };
    match units::duration(wait) {
        Ok(wait) => Some(When::After {
            name: (*name).to_owned(),
            edge,
            wait,
        }),
        Err(wrong) => {
            at.wrong_within(0, wrong.message, wrong.help);
            None
        }
    }
}

/// Reads `repeat:` of a fault that lasts so long.
pub(super) fn repeat(at: &At<'_>, lasts: Option<Duration>) -> Option<Repeat> {
    let mut fields = at.fields()?;
    let times = fields
        .need("times")
        .and_then(|at| at.count32(2..=MOST_TIMES));
    let every = fields.need("every").and_then(|at| at.time());
    fields.finish(&[]);
    let repeat = Repeat {
        times: times?,
        every: every?,
    };
    match lasts {
        None => {
            at.wrong_key(
                "a fault that lasts to the end of the run can't come again",
                "say with `for` how long it lasts each time",
            );
            None
        }
        Some(lasts) if lasts >= repeat.every => {
            at.find(&["every"]).wrong(
                format!(
                    "it lasts {} each time, and would begin again before it has ended",
                    duration(lasts)
                ),
                format!("write more than {}", duration(lasts)),
            );
            None
        }
        Some(_) => Some(repeat),
    }
}

/// Gives every fault its time, the plan its faults, and each of those the mark that it waits for.
pub(super) fn settle(plan: &mut Plan, drafts: &[Draft<'_>]) {
    let mut rows = Vec::new();
    for draft in drafts {
        let planned = planned(plan, drafts, draft, &mut Vec::new());
        if let Some(planned) = planned
            && let Some(planned) = within_load(plan, draft, planned)
        {
            rows.extend(repetitions(draft, planned).map(|fault| (fault, draft)));
        }
    }
    rows.sort_by_key(|(fault, _)| fault.at);
    for (fault, draft) in rows.iter().filter(|(fault, _)| fault.repeats.is_some()) {
        let is_trigger = plan
            .triggers
            .iter()
            .any(|trigger| trigger.name == fault.name);
        if is_trigger || drafts.iter().any(|other| other.name == fault.name) {
            draft.at.wrong_key(
                format!(
                    "a repetition is called `{}`, and so is something else",
                    fault.name
                ),
                "give one of them another name",
            );
        }
    }
    let names: Vec<(String, Option<String>)> = rows
        .iter()
        .map(|(fault, _)| (fault.name.clone(), fault.repeats.clone()))
        .collect();
    for (mut fault, draft) in rows {
        fault.after = after(plan, &names, &fault, draft);
        plan.faults.push(fault);
    }
}

/// The time of a draft, found by way of whatever it waits for; `None` with the reason in the log.
fn planned(
    plan: &Plan,
    drafts: &[Draft<'_>],
    draft: &Draft<'_>,
    way: &mut Vec<String>,
) -> Option<Planned> {
    let at = draft.at.find(&["at"]);
    let begin = match &draft.when {
        When::At(begin) => *begin,
        When::After { name, edge, wait } => {
            way.push(draft.name.clone());
            if way.contains(name) {
                // Told once, at the first of the circle that is read.
                if way.len() == 1 || way.first() == Some(name) {
                    at.wrong(
                        format!(
                            "`{}` waits for itself: {} → {name}",
                            draft.name,
                            way.join(" → ")
                        ),
                        "give one of them a time from 0:00, such as `2m`",
                    );
                }
                return None;
            }
            let other = drafts.iter().find(|other| other.name == *name);
            let trigger = plan.triggers.iter().find(|trigger| trigger.name == *name);
            let waited_for = match (other, trigger) {
                (Some(other), _) => planned(plan, drafts, other, way)?,
                (None, Some(trigger)) => Planned {
                    begin: trigger.at,
                    end: Some(trigger.at + trigger.lasts),
                },
                (None, None) => {
                    unknown(plan, drafts, &at, name);
                    return None;
                }
            };
            match (edge, waited_for.end) {
                (Edge::Begin, _) => waited_for.begin + *wait,
                (Edge::End, Some(end)) => end + *wait,
                // A recovery is known only when it has held for so long.
                (Edge::Recovery, Some(end)) => end + plan.sustain.max(*wait),
                (_, None) => {
                    at.wrong(
                        format!(
                            "`{name}` lasts to the end of the run, and nothing comes after that"
                        ),
                        format!("give `{name}` an end with `for`"),
                    );
                    return None;
                }
            }
        }
    };
    let last = draft
        .repeat
        .map_or(Duration::ZERO, |repeat| repeat.every * (repeat.times - 1));
    Some(Planned {
        begin,
        end: draft.lasts.map(|lasts| begin + last + lasts),
    })
}

fn unknown(plan: &Plan, drafts: &[Draft<'_>], at: &At<'_>, name: &str) {
    let triggers = plan.triggers.iter().map(|trigger| trigger.name.as_str());
    let known = || {
        triggers
            .clone()
            .chain(drafts.iter().map(|draft| draft.name.as_str()))
    };
    let help = match words::nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", words::listed(known())),
    };
    at.wrong(format!("nothing is called `{name}` here"), help);
}

/// A fault must have begun for the last time before the load ends.
fn within_load(plan: &Plan, draft: &Draft<'_>, planned: Planned) -> Option<Planned> {
    let last = draft.repeat.map_or(planned.begin, |repeat| {
        planned.begin + repeat.every * (repeat.times - 1)
    });
    if last < plan.duration || plan.duration.is_zero() {
        return Some(planned);
    }
    let what = match (&draft.when, draft.repeat) {
        (_, Some(_)) => format!(
            ", and the last repetition begins at {} at the earliest",
            duration(last)
        ),
        (When::After { .. }, None) => {
            format!(", and it begins at {} at the earliest", duration(last))
        }
        (When::At(_), None) => String::new(),
    };
    let key = if draft.repeat.is_some() {
        "repeat"
    } else {
        "at"
    };
    draft.at.find(&[key]).wrong(
        format!("the load ends at {}{what}", duration(plan.duration)),
        "choose an earlier time, or make `duration` longer",
    );
    None
}

/// The draft as one fault, or one for each repetition: `NAME-1`, `NAME-2`, …
fn repetitions<'d>(draft: &'d Draft<'_>, planned: Planned) -> impl Iterator<Item = Fault> + 'd {
    let (times, every) = draft
        .repeat
        .map_or((1, Duration::ZERO), |repeat| (repeat.times, repeat.every));
    (0..times).map(move |row| Fault {
        name: match draft.repeat {
            Some(_) => format!("{}-{}", draft.name, row + 1),
            None => draft.name.clone(),
        },
        at: planned.begin + every * row,
        after: None,
        repeats: draft.repeat.map(|_| draft.name.clone()),
        lasts: draft.lasts,
        kind: draft.kind.clone(),
    })
}

/// What a fault waits for, by its mark. What comes after something repeated comes after its last time; a repetition of what waits
/// follows the first.
fn after(
    plan: &Plan,
    names: &[(String, Option<String>)],
    fault: &Fault,
    draft: &Draft<'_>,
) -> Option<After> {
    let When::After { name, edge, wait } = &draft.when else {
        return None;
    };
    let first = format!("{}-1", draft.name);
    let (wanted, edge, wait) = match draft.repeat {
        Some(repeat) if fault.name != first => {
            let number: u32 = fault.name.rsplit('-').next()?.parse().ok()?;
            (first.as_str(), Edge::Begin, repeat.every * (number - 1))
        }
        _ => (name.as_str(), *edge, *wait),
    };
    let triggers = plan.triggers.iter().map(|trigger| (&trigger.name, None));
    let known: Vec<(&String, Option<&String>)> = triggers
        .chain(names.iter().map(|(name, repeats)| (name, repeats.as_ref())))
        .collect();
    let is_meant = |(name, repeats): &(&String, Option<&String>)| {
        *name == wanted || repeats.is_some_and(|repeats| repeats == wanted)
    };
    let row = match edge {
        Edge::Begin => known.iter().position(is_meant),
        Edge::End | Edge::Recovery => known.iter().rposition(is_meant),
    };
    Some(After {
        mark: MarkId(u16::try_from(row?).ok()?),
        edge,
        wait,
    })
}

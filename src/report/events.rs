//! `events.jsonl`: one JSON object a line for each transition and mark, as they come.

use crate::event::{CommandId, MarkPhase, Offset, ReturnId};
use crate::measure::returns::BadReturn;
use crate::measure::{Marks, Transition};
use crate::plan::Plan;
use serde::Serialize;
use std::fmt::Write;

/// One line. `at_us` runs from 0:00 as far as that is known when the line is written, else from the clock's beginning.
#[derive(Serialize)]
struct Line<'a> {
    at_us: i64,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<u64>,
    /// The rider's group, the number of its arrival and the step, as in the id that travelled.
    #[serde(rename = "return", skip_serializing_if = "Option::is_none")]
    returned: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_us: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

/// The lines of these transitions, each with its line end.
#[must_use]
pub fn lines(transitions: &[Transition], plan: &Plan, marks: &Marks) -> String {
    let mut text = String::new();
    for transition in transitions {
        let line = line(transition, plan, marks);
        let json = serde_json::to_string(&line).expect("a line is text and whole numbers");
        let _ = writeln!(text, "{json}");
    }
    text
}

fn line<'a>(transition: &'a Transition, plan: &'a Plan, marks: &Marks) -> Line<'a> {
    let plain = |event: &'a str, at: Offset| Line {
        at_us: marks.from_zero_us(at),
        event,
        mark: None,
        phase: None,
        text: None,
        group: None,
        command: None,
        returned: None,
        due_us: None,
        count: None,
    };
    let command = |event: &'a str, id: &CommandId, at: Offset| Line {
        group: plan
            .issuers
            .get(usize::from(id.issuer))
            .map(|group| group.name.as_str()),
        command: Some(id.number),
        ..plain(event, at)
    };
    match transition {
        Transition::Zero { at } => plain("zero", *at),
        Transition::LoadEnd { at } => plain("load end", *at),
        Transition::Mark(mark) => {
            let (phase, text) = match &mark.phase {
                MarkPhase::Begin => ("begin", None),
                MarkPhase::Observed(how) => ("observed", Some(how.as_str())),
                MarkPhase::NotObserved(why) => ("not observed", Some(why.as_str())),
                MarkPhase::Admitted(_) => ("let back", None),
                MarkPhase::Paused(why) => ("paused", Some(why.as_str())),
                MarkPhase::Resumed => ("resumed", None),
                MarkPhase::End => ("end", None),
                MarkPhase::Failed(why) => ("failed", Some(why.as_str())),
            };
            Line {
                mark: Some(plan.mark_name(mark.id)),
                phase: Some(phase),
                text,
                count: match mark.phase {
                    MarkPhase::Admitted(hubs) => Some(u64::from(hubs)),
                    _ => None,
                },
                ..plain("mark", mark.at)
            }
        }
        Transition::Settled { id, state, due, at } => Line {
            text: Some(state.name()),
            due_us: due.map(|due| marks.from_zero_us(due)),
            ..command("command", id, *at)
        },
        Transition::Duplicated { id, at } => Line {
            text: Some("duplicated"),
            ..command("command", id, *at)
        },
        Transition::Unexpected { id, at } => Line {
            text: Some("unexpected"),
            ..command("command", id, *at)
        },
        Transition::AfterClosing { id, at } => Line {
            text: Some("delivered after its account was closed"),
            ..command("command", id, *at)
        },
        Transition::Return(bad) => returned(bad, plan, plain("return", bad.at)),
        Transition::LeftOut { count, at } => Line {
            count: Some(*count),
            ..plain("commands and returns without a line", *at)
        },
    }
}

fn returned<'a>(bad: &BadReturn, plan: &'a Plan, plain: Line<'a>) -> Line<'a> {
    let ReturnId {
        riders,
        number,
        step,
    } = bad.id;
    let group = plan.docks.get(usize::from(bad.docks));
    Line {
        group: group.map(|group| group.name.as_str()),
        returned: Some(format!("r{riders}-{number}-{step}")),
        text: Some(if bad.is_active {
            "its trip is still active"
        } else {
            bad.state.name()
        }),
        ..plain
    }
}

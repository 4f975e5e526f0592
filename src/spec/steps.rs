//! Journeys of a target file: their steps, what is always asked at the end, and the spans that are measured.

use super::address;
use super::fields::Fields;
use super::identities;
use super::journey::{RequestContext, Use, request, row_of};
use super::reader::At;
use super::target::Names;
use super::tls;
use super::units;
use super::words::{self, Placeholders};
use crate::plan::identity::IdentitySet;
use crate::plan::json_path::JsonPath;
use crate::plan::places::placeholder;
use crate::plan::quantity;
use crate::plan::target::{
    Answer, Candidates, Closing, Journey, Poll, Repeat, Span, Step, StepAction,
};
use crate::plan::tls::is_secured;
use std::time::Duration;

/// More candidates than an app would ever try.
const MOST_CANDIDATES: u32 = 100;

/// What the steps before have made known.
struct Known<'a> {
    placeholders: Placeholders<'a>,
    /// Names under which lists are kept.
    lists: Vec<String>,
}

/// One entry of `journeys:`.
pub(super) fn journey(
    name: &str,
    at: &At<'_>,
    names: &Names,
    identities: &[IdentitySet],
) -> Option<Journey> {
    let mut fields = at.fields()?;
    let host = names.host_placeholders();
    let base = fields.get("base").and_then(|at| {
        let template = at.template(&host)?;
        address::check_http(&at, &template, &host);
        Some(template)
    });
    let context = RequestContext {
        names,
        base: base.as_ref(),
    };
    let identity = fields
        .get("identity")
        .and_then(|at| identities::row(&at, names));
    let mut who = names.columns_of(identity);
    let tls = fields.get("tls");
    let own = tls::of_journey(tls.as_ref(), names, identity, (&who, identities));
    who.extend(["rider", "intent"]);
    let mut known = Known {
        placeholders: names.carried(&who),
        lists: Vec::new(),
    };
    let place = fields
        .get("place")
        .and_then(|at| row_of(&at, &names.places, "list of places", "places"));
    if let Some(row) = place {
        let one = placeholder(&names.places[row]).to_owned();
        known.placeholders.agent.push(one);
    }
    let entries = fields
        .need("steps")
        .and_then(|at| at.named())
        .unwrap_or_default();
    let steps = steps(&entries, &context, &mut known);
    let spans = spans(fields.get("spans"), &entries);
    let always = closings(fields.get("always"), &entries, &context, &known);
    if let Some(at) = tls
        && !speaks_tls(&steps, &always)
    {
        tls::nobody_speaks_it(&at);
    }
    check_names(name, at);
    check_asks(at, entries.len(), &steps);
    fields.finish(&[]);
    Some(Journey {
        name: name.to_owned(),
        identity,
        place,
        tls: own,
        steps,
        always,
        spans,
    })
}

fn steps(
    entries: &[(&str, At<'_>)],
    context: &RequestContext<'_>,
    known: &mut Known<'_>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (name, at) in entries {
        if let Some((action, repeat)) = step(at, context, known) {
            steps.push(Step {
                name: (*name).to_owned(),
                action,
                repeat,
            });
        }
    }
    steps
}

fn speaks_tls(steps: &[Step], always: &[Closing]) -> bool {
    let asked = steps.iter().filter_map(|step| match &step.action {
        StepAction::Request(request) => Some(request),
        StepAction::Think { .. } | StepAction::HandOver { .. } => None,
    });
    asked
        .chain(always.iter().map(|closing| &closing.request))
        .any(|request| is_secured(&request.url.to_string()))
}

/// Steps, spans and what is always asked are rows of one table, and the journey is one, too.
fn check_names(journey: &str, at: &At<'_>) {
    let mut taken = vec![journey.to_owned()];
    for list in ["steps", "always", "spans"] {
        let entries = at.find(&[list]);
        for name in entries.keys().iter().filter(|_| entries.has_key(list)) {
            let what = if list == "steps" && name == journey {
                format!("the step `{name}` is called like its journey")
            } else {
                format!("another part of this journey is called `{name}`")
            };
            if taken.contains(name) {
                entries
                    .find(&[name])
                    .wrong_key(what, "give one of them another name");
            }
            taken.push(name.clone());
        }
    }
}

fn check_asks(at: &At<'_>, entries: usize, steps: &[Step]) {
    let thinks = |step: &Step| matches!(step.action, StepAction::Think { .. });
    if entries > 0 && steps.len() == entries && steps.iter().all(thinks) {
        at.find(&["steps"]).wrong_key(
            "no step asks anything of the target",
            "add a step such as `near: { get: /bikes/near }`",
        );
    }
}

fn step(
    at: &At<'_>,
    context: &RequestContext<'_>,
    known: &mut Known<'_>,
) -> Option<(StepAction, Repeat)> {
    let mut fields = at.fields()?;
    if let Some(think) = fields.get("think") {
        let (low, high) = range(&think).unwrap_or_default();
        fields.finish(&[]);
        return Some((StepAction::Think { low, high }, Repeat::Once));
    }
    if let Some(docks) = fields.get("dock") {
        let docks = docks.text().map(str::to_owned);
        let sends = fields.need("sends").and_then(|at| at.text());
        let sends = sends.map(str::to_owned);
        fields.finish(&[]);
        let action = StepAction::HandOver {
            docks: docks?,
            sends: sends?,
        };
        return Some((action, Repeat::Once));
    }
    let candidates = candidates(&mut fields, known);
    let poll = poll(&mut fields);
    let request = request(&mut fields, context, &known.placeholders, Use::Step);
    check_repeat(&fields, request.as_ref().map(|request| &request.answer));
    fields.finish(&[]);
    // What it keeps is known to the steps after it, even if something else is wrong with it.
    keeps(&at.find(&["keep"]), known);
    let repeat = match (poll, candidates) {
        (Some(poll), _) => Repeat::Until(poll),
        (None, Some(candidates)) => Repeat::ForEach(candidates),
        (None, None) => Repeat::Once,
    };
    request.map(|request| (StepAction::Request(request), repeat))
}

/// Lists are tried item by item; only single values can stand in a text.
fn keeps(at: &At<'_>, known: &mut Known<'_>) {
    for name in at.keys() {
        let path = at.find(&[&name]);
        let is_list = path
            .lone_word()
            .and_then(|text| JsonPath::parse(text).ok())
            .is_some_and(|path| path.is_list());
        if is_list {
            known.lists.push(name);
        } else {
            known.placeholders.agent.push(name);
        }
    }
}

/// `for_each: bikes as bike`, with `up_to`.
fn candidates(fields: &mut Fields<'_>, known: &mut Known<'_>) -> Option<Candidates> {
    let Some(at) = fields.get("for_each") else {
        if let Some(up_to) = fields.get("up_to") {
            up_to.wrong_key(
                "`up_to` without `for_each`: there is nothing to try in turn",
                "add `for_each: bikes as bike`, or leave it out",
            );
        }
        return None;
    };
    let up_to = fields
        .need("up_to")
        .and_then(|at| at.count32(1..=MOST_CANDIDATES));
    let text = at.text()?;
    let Some((list, each)) = text.split_once(" as ") else {
        at.wrong(
            format!("`{text}` does not say what one of them is called"),
            "write `bikes as bike`; `<bike>` then stands for the one that is tried",
        );
        return None;
    };
    let (list, each) = (list.trim(), each.trim());
    if let Err(wrong) = words::check_name(each) {
        at.wrong(wrong.message, wrong.help.unwrap_or_default());
    }
    // It is known to this step and those after it, even if its list is not.
    known.placeholders.agent.push(each.to_owned());
    if !known.lists.iter().any(|name| name == list) {
        let near = words::nearest(list, known.lists.iter().map(String::as_str));
        let help = near.map_or(
            format!("let an earlier step keep one: `keep: {{ {list}: \"$.{list}[*].id\" }}`"),
            |near| format!("did you mean `{near}`?"),
        );
        at.wrong(format!("no step before keeps a list `{list}`"), help);
    }
    Some(Candidates {
        list: list.to_owned(),
        each: each.to_owned(),
        up_to: up_to?,
    })
}

/// `every`, `until` and `give_up` belong together.
fn poll(fields: &mut Fields<'_>) -> Option<Poll> {
    let keys = ["every", "until", "give_up"];
    if !keys.iter().any(|key| fields.has(key)) {
        // Now they are known, and show up where the keys that may stand here are listed.
        for key in keys {
            fields.get(key);
        }
        return None;
    }
    let every = fields.need("every").and_then(|at| at.time());
    let until = fields.need("until").and_then(|at| until(&at));
    let give_up_at = fields.need("give_up");
    let give_up = give_up_at.as_ref().and_then(|at| at.time());
    if let (Some(at), Some(every), Some(give_up)) = (give_up_at, every, give_up)
        && give_up < every
    {
        at.wrong(
            format!(
                "`give_up` of {} is shorter than `every` of {}: there would be one poll only",
                quantity::duration(give_up),
                quantity::duration(every)
            ),
            "make it longer",
        );
    }
    Some(Poll {
        every: every?,
        until: until?,
        give_up: give_up?,
    })
}

/// `{ $.state: started }`, or several texts of which one is wanted.
pub(super) fn until(at: &At<'_>) -> Option<Vec<(JsonPath, Vec<String>)>> {
    let mut wanted = Vec::new();
    for (key, at) in at.entries()? {
        let texts: Vec<String> = match at.lone_word() {
            Some(text) => vec![text.to_owned()],
            None => {
                let items = at.items().unwrap_or_default();
                items
                    .iter()
                    .filter_map(|item| item.setting().map(str::to_owned))
                    .collect()
            }
        };
        match JsonPath::parse(key) {
            Ok(path) => wanted.push((path, texts)),
            Err(error) => at.wrong_key(
                error.to_string(),
                "write a path from the root: `$.state` or `$.trip.state`",
            ),
        }
    }
    Some(wanted)
}

fn check_repeat(fields: &Fields<'_>, answer: Option<&Answer>) {
    if fields.has("for_each") && fields.has("until") {
        fields.at().find(&["until"]).wrong_key(
            "`until` can't stand beside `for_each`",
            "let a step of its own poll",
        );
    }
    let moves_on =
        answer.is_none_or(|answer| !answer.declined.is_empty() || answer.or_end.is_some());
    if fields.has("for_each") && !moves_on {
        fields.at().find(&["for_each"]).wrong_key(
            "no answer would lead to the next one",
            "say which status does: `declined: { 409: taken }`",
        );
    }
}

/// `always:`, requests with the step after which they are not needed.
fn closings(
    at: Option<At<'_>>,
    steps: &[(&str, At<'_>)],
    context: &RequestContext<'_>,
    known: &Known<'_>,
) -> Vec<Closing> {
    let entries = at.and_then(|at| at.named()).unwrap_or_default();
    let read = |(name, at): &(&str, At<'_>)| {
        let mut fields = at.fields()?;
        let unless = fields.get("unless").and_then(|at| {
            let step = at.text()?;
            step_row(&at, step, steps)
        });
        let request = request(&mut fields, context, &known.placeholders, Use::Closing);
        fields.finish(&[]);
        Some(Closing {
            name: (*name).to_owned(),
            request: request?,
            unless,
        })
    };
    entries.iter().filter_map(read).collect()
}

/// `spans:`, each from one step to another.
fn spans(at: Option<At<'_>>, steps: &[(&str, At<'_>)]) -> Vec<Span> {
    let entries = at.and_then(|at| at.named()).unwrap_or_default();
    let read = |(name, at): &(&str, At<'_>)| {
        let text = at.text()?;
        let Some((from, to)) = text.split_once(" to ") else {
            at.wrong(
                format!("`{text}` does not say from where to where"),
                "name its first and its last step: `unlock to started`",
            );
            return None;
        };
        let from = step_row(at, from.trim(), steps);
        let to = step_row(at, to.trim(), steps);
        let (from, to) = (from?, to?);
        if to < from {
            at.wrong(
                format!("`{}` comes before `{}`", steps[to].0, steps[from].0),
                "name the earlier step first",
            );
            return None;
        }
        Some(Span {
            name: (*name).to_owned(),
            from,
            to,
        })
    };
    entries.iter().filter_map(read).collect()
}

fn step_row(at: &At<'_>, name: &str, steps: &[(&str, At<'_>)]) -> Option<usize> {
    let row = steps.iter().position(|(step, _)| *step == name);
    if row.is_none() {
        let known = || steps.iter().map(|(step, _)| *step);
        let help = words::nearest(name, known()).map_or_else(
            || format!("known: {}", words::listed(known())),
            |near| format!("did you mean `{near}`?"),
        );
        at.wrong(format!("no step is called `{name}`"), help);
    }
    row
}

/// `3m to 12m`, or one duration.
fn range(at: &At<'_>) -> Option<(Duration, Duration)> {
    let text = at.text()?;
    let (low, high) = text.split_once(" to ").unwrap_or((text, text));
    match (units::duration(low.trim()), units::duration(high.trim())) {
        (Ok(low), Ok(high)) if low <= high => Some((low, high)),
        (Ok(low), Ok(high)) => {
            at.wrong(
                format!(
                    "{} is longer than {}",
                    quantity::duration(low),
                    quantity::duration(high)
                ),
                "write the shorter one first: `3m to 12m`",
            );
            None
        }
        (Err(wrong), _) | (_, Err(wrong)) => {
            at.wrong(wrong.message, wrong.help.unwrap_or_default());
            None
        }
    }
}

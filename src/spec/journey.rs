//! What is asked over HTTP: commands, the requests of journeys, operations.

use super::address;
use super::device::json_path;
use super::fields::Fields;
use super::reader::At;
use super::target::Names;
use super::words::{self, Placeholders};
use crate::plan::target::{Answer, Method, Request};
use crate::plan::template::Template;
use std::collections::BTreeMap;

const METHODS: [(&str, Method); 5] = [
    ("get", Method::Get),
    ("post", Method::Post),
    ("put", Method::Put),
    ("patch", Method::Patch),
    ("delete", Method::Delete),
];

/// Where a request stands.
pub(super) struct RequestContext<'a> {
    pub names: &'a Names,
    /// The `base:` of the journey.
    pub base: Option<&'a Template>,
}

/// Which keys beside address, headers and body a request may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Step,
    /// What is always asked when a journey is over.
    Closing,
    Command,
    Operation,
}

impl Use {
    /// What may be done, exactly one of which must be given.
    pub fn keys(self) -> Vec<&'static str> {
        let mut keys: Vec<&'static str> = METHODS.iter().map(|(key, _)| *key).collect();
        keys.extend(match self {
            Use::Step => Some("think"),
            Use::Command => Some("publish"),
            Use::Operation | Use::Closing => None,
        });
        keys
    }
}

/// The row of a name in a list of the target file.
pub(super) fn row_of(at: &At<'_>, names: &[String], what: &str, list: &str) -> Option<usize> {
    let name = at.text()?;
    if let Some(row) = names.iter().position(|known| known == name) {
        return Some(row);
    }
    let known = words::listed(names.iter().map(String::as_str));
    let help = match words::nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => format!("there is no {what} at all; add `{list}:`"),
        None => format!("known: {known}"),
    };
    at.wrong(format!("no {what} is called `{name}`"), help);
    None
}

/// What a hub or a dock asks of the target, with `known` names of its own.
pub(super) fn question(
    fields: &mut Fields<'_>,
    context: &RequestContext<'_>,
    known: &Placeholders<'_>,
) -> Option<Request> {
    request(fields, context, known, Use::Operation)
}

pub(super) fn request(
    fields: &mut Fields<'_>,
    context: &RequestContext<'_>,
    known: &Placeholders<'_>,
    usage: Use,
) -> Option<Request> {
    let method = fields.one_of(&usage.keys());
    let url = method.as_ref().and_then(|(_, at)| {
        address::http(at, known, &context.names.host_placeholders(), context.base)
    });
    let headers = fields
        .get("headers")
        .map(|at| headers(&at, known))
        .unwrap_or_default();
    let bearer = fields.get("bearer").and_then(|at| at.template(known));
    let json = fields.get("json").map(|at| at.json(known));
    let answer = answer(fields, usage);
    let json = match json {
        Some(json) => Some(json?),
        None => None,
    };
    let (key, _) = method?;
    let (_, method) = METHODS.iter().find(|(name, _)| *name == key)?;
    Some(Request {
        method: *method,
        url: url?,
        headers,
        bearer,
        json,
        answer,
    })
}

fn headers(at: &At<'_>, known: &Placeholders<'_>) -> Vec<(String, Template)> {
    let mut headers = Vec::new();
    for (name, at) in at.entries().unwrap_or_default() {
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        {
            at.wrong_key(
                format!("`{name}` is no name of a header"),
                "write a name such as `Idempotency-Key`",
            );
        }
        if let Some(value) = at.template(known) {
            headers.push((name.to_owned(), value));
        }
    }
    headers
}

fn answer(fields: &mut Fields<'_>, usage: Use) -> Answer {
    let mut answer = Answer {
        ok: fields.get("ok").map(|at| statuses(&at)).unwrap_or_default(),
        ..Answer::default()
    };
    match usage {
        Use::Operation | Use::Closing => {}
        Use::Command => {
            answer.expired = fields
                .get("expired")
                .map(|at| statuses(&at))
                .unwrap_or_default();
        }
        Use::Step => {
            answer.declined = fields
                .get("declined")
                .map(|at| declined(&at))
                .unwrap_or_default();
            for (name, at) in fields
                .get("keep")
                .and_then(|at| at.named())
                .unwrap_or_default()
            {
                if let Some(path) = json_path(&at) {
                    answer.keep.push((name.to_owned(), path));
                }
            }
            let or_end = fields.get("or_end");
            answer.or_end = or_end.as_ref().and_then(|at| at.text()).map(str::to_owned);
            if let Some(at) = or_end
                && !fields.has("keep")
            {
                at.wrong_key(
                    "`or_end` without `keep`: nothing could be missing",
                    "add `keep: { name: $.path }`, or leave it out",
                );
            }
        }
    }
    let given: Vec<u16> = answer
        .ok
        .iter()
        .chain(&answer.expired)
        .chain(answer.declined.keys())
        .copied()
        .collect();
    if let Some(twice) = given
        .iter()
        .enumerate()
        .find(|(row, status)| given[..*row].contains(status))
    {
        fields.at().wrong_key(
            format!("the status {} is given two meanings", twice.1),
            "name each status once",
        );
    }
    answer
}

fn status(at: &At<'_>, text: &str) -> Option<u16> {
    match text.parse::<u16>() {
        Ok(status) if (100..=599).contains(&status) && text.len() == 3 => Some(status),
        _ => {
            at.wrong(
                format!("`{text}` is no HTTP status"),
                "write a number from 100 to 599",
            );
            None
        }
    }
}

/// One status or a list of them.
fn statuses(at: &At<'_>) -> Vec<u16> {
    match at.lone_word() {
        Some(text) => status(at, text).into_iter().collect(),
        None => {
            let items = at.items().unwrap_or_default();
            items
                .iter()
                .filter_map(|item| item.count(100..=599))
                .filter_map(|status| u16::try_from(status).ok())
                .collect()
        }
    }
}

fn declined(at: &At<'_>) -> BTreeMap<u16, String> {
    let mut declined = BTreeMap::new();
    for (key, at) in at.entries().unwrap_or_default() {
        if let (Some(status), Some(reason)) = (status(&at, key), at.text()) {
            declined.insert(status, reason.to_owned());
        }
    }
    declined
}

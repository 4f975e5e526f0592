//! Retry policies as files write them.

use super::fields::Fields;
use super::reader::At;
use crate::retry::{Backoff, Retry};
use std::time::Duration;

/// Keys that a later version will know.
pub(super) const LATER: [&str; 2] = ["budget", "respect_retry_after"];
const FACTOR: f64 = 2.0;
const MOST_ATTEMPTS: u32 = 1_000;
const KINDS: [&str; 6] = [
    "immediate",
    "fixed",
    "exponential",
    "full_jitter",
    "equal_jitter",
    "decorrelated",
];

/// `retry:` of riders and issuers, who give up at some time.
pub(super) fn retry(at: &At<'_>) -> Option<Retry> {
    let mut fields = at.fields()?;
    let retry = backoff(&mut fields);
    fields.finish(&LATER);
    let retry = retry?;
    if retry.attempts.is_none() {
        at.wrong(
            "`attempts` is missing: people give up at some time",
            "add `attempts: 4`; it counts the first one",
        );
        return None;
    }
    Some(retry)
}

/// One policy among the keys of a map.
pub(super) fn backoff(fields: &mut Fields<'_>) -> Option<Retry> {
    let (kind, at) = fields.one_of(&KINDS)?;
    let mut fields = at.fields()?;
    let backoff = match kind {
        "immediate" => Some(Backoff::Immediate),
        "fixed" => fields
            .need("every")
            .and_then(|at| at.time())
            .map(|every| Backoff::Fixed { every }),
        _ => growing(kind, &mut fields),
    };
    let attempts = fields.get("attempts");
    let limit = attempts
        .as_ref()
        .and_then(|at| at.count32(1..=MOST_ATTEMPTS));
    fields.finish(&LATER);
    if attempts.is_some() && limit.is_none() {
        return None;
    }
    Some(Retry {
        backoff: backoff?,
        attempts: limit,
    })
}

fn growing(kind: &str, fields: &mut Fields<'_>) -> Option<Backoff> {
    let base = fields.need("base").and_then(|at| at.time());
    let cap = fields.need("cap").and_then(|at| at.time());
    let factor = if kind == "decorrelated" {
        FACTOR
    } else {
        factor(fields)
    };
    let (base, cap) = ordered(fields, base?, cap?)?;
    Some(match kind {
        "exponential" => Backoff::Exponential { base, cap, factor },
        "full_jitter" => Backoff::FullJitter { base, cap, factor },
        "equal_jitter" => Backoff::EqualJitter { base, cap, factor },
        _ => Backoff::Decorrelated { base, cap },
    })
}

fn factor(fields: &mut Fields<'_>) -> f64 {
    let Some(at) = fields.get("factor") else {
        return FACTOR;
    };
    match at.number() {
        Some(factor) if !(1.0..=100.0).contains(&factor) => {
            at.wrong(
                format!("{factor} is out of range"),
                "write a number from 1 to 100, such as `2`",
            );
            FACTOR
        }
        factor => factor.unwrap_or(FACTOR),
    }
}

fn ordered(fields: &Fields<'_>, base: Duration, cap: Duration) -> Option<(Duration, Duration)> {
    if base > cap {
        fields.at().find(&["cap"]).wrong(
            "`cap` is shorter than `base`",
            "the wait grows from `base` to `cap`",
        );
        return None;
    }
    Some((base, cap))
}

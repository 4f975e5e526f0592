//! Retry policies as files write them.

use super::fields::Fields;
use super::reader::At;
use crate::retry::{Backoff, Retry, RetryBudget};
use std::time::Duration;

/// A `Retry-After` is respected up to this long unless the file says otherwise: nobody holds an app open for longer.
const RETRY_AFTER: Duration = Duration::from_secs(60);
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
    let budget = fields.get("budget").map(|at| budget(&at));
    let retry_after = fields
        .get("respect_retry_after")
        .and_then(|at| retry_after(&at));
    fields.finish(&[]);
    let retry = retry?;
    if retry.attempts.is_none() {
        at.wrong(
            "`attempts` is missing: people give up at some time",
            "add `attempts: 4`; it counts the first one",
        );
        return None;
    }
    Some(Retry {
        budget: budget.flatten(),
        retry_after,
        ..retry
    })
}

/// `retry:` of docks, which hold what they could not deliver and so may go on for ever; a budget would make them drop it.
pub(super) fn stubborn(at: &At<'_>) -> Option<Retry> {
    let mut fields = at.fields()?;
    let retry = backoff(&mut fields);
    let retry_after = fields
        .get("respect_retry_after")
        .and_then(|at| retry_after(&at));
    fields.finish(&[]);
    Some(Retry {
        retry_after,
        ..retry?
    })
}

/// The policy of hubs that come back, which ask for no page and so are told no `Retry-After`.
pub(super) fn reconnect(fields: &mut Fields<'_>) -> Option<Retry> {
    let retry = backoff(fields);
    let budget = fields.get("budget").and_then(|at| {
        let budget = budget(&at)?;
        if budget.reserve_per_second == 0.0 {
            at.wrong(
                "hubs that used up this budget would never come back: only new outages earn retries",
                "write `{ share: 10%, at_least: 20/s }`: so many retries of the group are always allowed",
            );
            return None;
        }
        Some(budget)
    });
    Some(Retry { budget, ..retry? })
}

/// `10%`, or `{ share: 10%, at_least: 2/s }`.
fn budget(at: &At<'_>) -> Option<RetryBudget> {
    if at.lone_word().is_some() {
        return Some(RetryBudget {
            share: at.share()?,
            reserve_per_second: 0.0,
        });
    }
    let mut fields = at.fields()?;
    let share = fields.need("share").and_then(|at| at.share());
    let at_least = fields.get("at_least").map(|at| at.rate());
    fields.finish(&[]);
    Some(RetryBudget {
        share: share?,
        reserve_per_second: at_least.unwrap_or(Some(0.0))?,
    })
}

/// `true`, `false`, or `{ at_most: 30s }`.
fn retry_after(at: &At<'_>) -> Option<Duration> {
    if at.lone_word().is_some() {
        return at.truth()?.then_some(RETRY_AFTER);
    }
    let mut fields = at.fields()?;
    let most = fields.need("at_most").and_then(|at| at.time());
    fields.finish(&[]);
    most
}

/// One policy among the keys of a map.
fn backoff(fields: &mut Fields<'_>) -> Option<Retry> {
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
    fields.finish(&[]);
    if attempts.is_some() && limit.is_none() {
        return None;
    }
    Some(Retry {
        attempts: limit,
        ..Retry::of(backoff?)
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

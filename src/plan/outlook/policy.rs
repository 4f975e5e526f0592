//! How somebody tries again, in a line.

use crate::plan::quantity::{duration, rate};
use crate::retry::{Backoff, Retry, RetryBudget};

/// The policy with its budget, for people.
#[must_use]
pub fn policy(retry: &Retry) -> String {
    let grown =
        |name: &str, base, cap| format!("{name} from {} to {}", duration(base), duration(cap));
    let waits = match retry.backoff {
        _ if retry.attempts == Some(1) => return "one attempt".to_owned(),
        Backoff::Immediate => "at once".to_owned(),
        Backoff::Fixed { every } => format!("every {}", duration(every)),
        Backoff::Exponential { base, cap, .. } => grown("exponential", base, cap),
        Backoff::FullJitter { base, cap, .. } => grown("full jitter", base, cap),
        Backoff::EqualJitter { base, cap, .. } => grown("equal jitter", base, cap),
        Backoff::Decorrelated { base, cap } => grown("decorrelated", base, cap),
    };
    let mut text = match retry.attempts {
        Some(attempts) => format!("{waits}, {attempts} attempts"),
        None => format!("{waits}, for ever"),
    };
    if let Some(budget) = retry.budget {
        text.push_str(", budget ");
        text.push_str(&self::budget(&budget));
    }
    if let Some(most) = retry.retry_after {
        text.push_str(", Retry-After respected up to ");
        text.push_str(&duration(most));
    }
    text
}

/// What a budget allows, with the bound on attempts that follows from it.
fn budget(budget: &RetryBudget) -> String {
    let share = figure(budget.share * 100.0);
    let reserve = budget.reserve_per_second;
    let (besides, grows) = if reserve > 0.0 {
        let reserve = rate(reserve);
        (
            format!(" and at least {reserve}"),
            format!(" + {reserve} ÷ the rate"),
        )
    } else {
        Default::default()
    };
    let bound = figure(1.0 + budget.share);
    format!("{share}%{besides} (at most {bound}{grows} attempts an action)")
}

/// Up to three digits behind the point, and no more than it needs.
fn figure(value: f64) -> String {
    ((value * 1000.0).round() / 1000.0).to_string()
}

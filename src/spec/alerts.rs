//! `alerts:` of a target file: its own alert rules, rehearsed on every run.

use super::reader::At;
use super::resolve::{self, Grace, Role, Written};
use crate::plan::Plan;
use crate::plan::expect::Alert;

/// The rules by name, as far as they can be read; what can't be is in the log.
pub(super) fn lines<'a>(target: &At<'a>) -> Vec<(String, Written<'a>)> {
    let at = target.find(&["alerts"]);
    if at.path != "alerts" {
        return Vec::new();
    }
    let named = at.named().unwrap_or_default();
    let one = |(name, at): (&str, At<'a>)| {
        let line = resolve::lines(vec![at], Role::Guard).pop()?;
        Some((name.to_owned(), line))
    };
    named.into_iter().filter_map(one).collect()
}

/// The rules with their names looked up. A target file serves many profiles: a rule about something that this one does not have is
/// no mistake, and is told.
pub(super) fn resolve(alerts: &[(String, Written<'_>)], plan: &Plan, grace: Grace) -> Vec<Alert> {
    let one = |(name, written): &(String, Written<'_>)| Alert {
        name: name.clone(),
        rule: written.text().to_owned(),
        line: resolve::quietly(written, plan, grace),
    };
    alerts.iter().map(one).collect()
}

//! What expectations say of the run as a whole: recovery and drain, the critical share, alerts.

use super::expectation::{Metric, Word};
use super::grammar::{BadLine, unknown_metric};
use super::resolve::bad;
use super::subject::{Found, Subjects};
use crate::plan::expect::{Subject, Unit};
use crate::plan::fault::{Trigger, TriggerKind};

impl Subjects<'_> {
    /// The critical number is one of hubs that are thrown off at the same time.
    pub(super) fn critical_share(&self, at: usize) -> Result<Found, BadLine> {
        let thrown = |trigger: &Trigger| matches!(trigger.kind, TriggerKind::Disconnect(_));
        if !self.plan.triggers.iter().any(thrown) {
            return Err(bad(
                at,
                "no trigger disconnects hubs, so no critical number can be measured",
                "add `drop: { at: 90s, disconnect: { hubs: … } }` to `timeline:`, or leave the line out",
            ));
        }
        Ok((Subject::CriticalShare, &[Unit::Share]))
    }

    /// An alert of the target file.
    pub(super) fn alert(&self, name: &Word) -> Result<Found, BadLine> {
        let alerts = &self.plan.target.alerts;
        let row = alerts.iter().position(|alert| alert.name == name.text);
        let alert = row.ok_or_else(|| unknown_metric(name))?;
        if let Err(why) = &alerts[alert].line {
            return Err(bad(
                name.at,
                format!("the alert `{}` can't be rehearsed: {why}", name.text),
                "leave the line out",
            ));
        }
        if self.plan.triggers.is_empty() && self.plan.faults.is_empty() {
            return Err(bad(
                name.at,
                "nothing that an alert could be waited for after: no trigger and no fault",
                "add a `timeline:`, or leave the line out",
            ));
        }
        Ok((Subject::Alert { alert }, &[Unit::Time]))
    }

    pub(super) fn recovery(
        &self,
        name: Option<&Word>,
        at: usize,
        metric: Metric,
    ) -> Result<Found, BadLine> {
        self.check_nameless(name, metric)?;
        if self.plan.triggers.is_empty() && self.plan.faults.is_empty() {
            return Err(bad(
                at,
                "nothing to recover from: no trigger and no fault",
                "add a `timeline:`, or leave the line out",
            ));
        }
        Ok((Subject::Recovery, &[Unit::Time]))
    }
}

//! Lines about what only the whole run can tell: recovery, drain, the critical share, and comparisons with an earlier run.

use super::answer::Answer;
use super::value::{Found, Part};
use super::{Judge, missing};
use crate::event::MarkId;
use crate::measure::critical::critical;
use crate::measure::recovery::{Tenths, dispersion};
use crate::plan::OperationKind;
use crate::plan::expect::{self, Expectation, Scope, Subject, Unit};

impl Judge<'_> {
    pub(super) fn recovery(&self, line: &Expectation, mark: Option<MarkId>) -> Vec<Answer> {
        let from_removal = line
            .scopes
            .iter()
            .any(|scope| matches!(scope, Scope::FromRemovalOf(_)));
        let marks = self.collector.marks();
        let asked = match mark {
            Some(id) => vec![id],
            None => marks.rows.iter().map(|row| row.id).collect(),
        };
        let answers = asked.into_iter().map(|id| {
            let label = self.label(None, Some(id));
            if let Some(reason) = missing(Some(id), marks) {
                return Answer::nothing(line, &reason, None);
            }
            let Some(recovery) = self.recoveries.iter().find(|recovery| recovery.mark == id) else {
                return Answer::nothing(line, "its recovery was not analysed", label);
            };
            let length = match line.subject {
                Subject::Drain => recovery.drain(),
                _ => recovery.length(from_removal),
            };
            let Some(limit) = self.limit(line, &line.subject, Some(id), Unit::Time) else {
                return Answer::nothing(line, no_limit(line), label).measuring(&length);
            };
            Answer::recovered(line, &length, limit, label)
        });
        answers.collect()
    }

    /// The least favourable of the disconnects of the run.
    pub(super) fn critical_share(&self, line: &Expectation) -> Vec<Answer> {
        let plan = self.collector.plan();
        let found = critical(self.collector, self.pools);
        if found.is_empty() {
            let why = "no disconnect of this run says how fast the target serves connects";
            return vec![Answer::nothing(line, why, None)];
        }
        let answers = found.iter().map(|critical| {
            let label = Some(plan.mark_name(critical.mark).to_owned());
            let share = critical.share();
            let found = Found {
                low: share.low,
                high: share.high,
                at: None,
                samples: 1,
            };
            match self.limit(line, &line.subject, None, Unit::Share) {
                Some(limit) => Answer::interval(line, found, limit, label),
                None => Answer::nothing(line, no_limit(line), label),
            }
        });
        answers.collect()
    }

    /// By how much attempts vary more than chance does: those to connect, or of all requests where there are no hubs.
    pub(super) fn synchronisation(&self, part: &Part<'_>) -> Option<Found> {
        let wanted: fn(OperationKind) -> bool = if self.collector.plan().hubs.is_empty() {
            |kind| {
                matches!(
                    kind,
                    OperationKind::Step { .. } | OperationKind::Issue { .. }
                )
            }
        } else {
            |kind| matches!(kind, OperationKind::Connect { .. })
        };
        let tenths: Vec<Tenths> = self
            .points(part)
            .map(|(_, point)| self.collector.tenths(point, wanted))
            .collect();
        let attempts: u64 = tenths.iter().flatten().map(|count| u64::from(*count)).sum();
        dispersion(&tenths).map(|index| Found::exactly(index, attempts))
    }

    /// The limit of a line that speaks of an earlier run.
    pub(super) fn of_last(&self, line: &Expectation) -> Option<f64> {
        let against = self.collector.plan().against.as_ref()?;
        let last = against.values.get(&expect::key(&line.text)).copied()??;
        Some(line.limit.value * last)
    }
}

/// Why a multiple has nothing to be a multiple of.
pub(super) fn no_limit(line: &Expectation) -> &'static str {
    match line.limit.unit {
        Unit::TimesLast => {
            "there is no value of an earlier run to compare with; give one that has this line with --against RUN"
        }
        _ => "there is no quiet time to compare with",
    }
}

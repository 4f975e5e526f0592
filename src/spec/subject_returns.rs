//! What expectations say of returns: names, figures, and whether the target can tell them.

use super::expectation::{Metric, Word};
use super::grammar::BadLine;
use super::resolve::{bad, unknown};
use super::subject::{Found, Subjects};
use crate::plan::OperationKind;
use crate::plan::expect::{ReturnFigure, Stat, Subject, TimeOf, Unit};

/// The returns of all groups of docks.
const ALL: &str = "returns";

impl Subjects<'_> {
    pub(super) fn is_docks(&self, name: &Word) -> bool {
        name.text == ALL || self.plan.docks.iter().any(|group| group.name == name.text)
    }

    /// Rows of `Plan::docks`.
    fn dock_groups(&self, name: &Word) -> Result<Vec<usize>, BadLine> {
        let docks = &self.plan.docks;
        if docks.is_empty() {
            return Err(bad(
                name.at,
                "nobody hands anything over",
                "add `docks:`, or leave the line out",
            ));
        }
        let rows: Vec<usize> = (0..docks.len())
            .filter(|row| name.text == ALL || docks[*row].name == name.text)
            .collect();
        if rows.is_empty() {
            let names = docks.iter().map(|group| group.name.as_str());
            let known: Vec<&str> = std::iter::once(ALL).chain(names).collect();
            return Err(unknown(name, &known));
        }
        Ok(rows)
    }

    /// How many returns of some kind; a metric that is none of theirs stands for those in doubt.
    pub(super) fn returns(&self, name: &Word, metric: Metric) -> Result<Found, BadLine> {
        let of = match metric {
            Metric::Lost => ReturnFigure::Lost,
            Metric::Duplicated => ReturnFigure::Duplicated,
            Metric::Stored => ReturnFigure::Stored,
            Metric::Active => ReturnFigure::Active,
            _ => ReturnFigure::InDoubt,
        };
        let docks = self.dock_groups(name)?;
        let reconciles = || {
            let devices = docks
                .iter()
                .map(|row| &self.plan.target.docks[self.plan.docks[*row].device]);
            devices
                .flat_map(|device| &device.sends)
                .map(|sent| sent.reconcile.as_ref())
        };
        let told = match of {
            ReturnFigure::Duplicated => reconciles()
                .all(|reconcile| reconcile.is_some_and(|reconcile| reconcile.applied.is_some())),
            ReturnFigure::Active => reconciles()
                .all(|reconcile| reconcile.is_some_and(|reconcile| !reconcile.is.is_empty())),
            ReturnFigure::Lost | ReturnFigure::InDoubt | ReturnFigure::Stored => true,
        };
        if !told {
            let (what, key) = match of {
                ReturnFigure::Duplicated => ("how often it booked a return", "applied: $.applied"),
                _ => ("whether a trip is over", "is: { $.state: ended }"),
            };
            return Err(bad(
                name.at,
                format!("nobody asks the target {what}"),
                format!(
                    "add `reconcile: {{ get: …, {key} }}` to what the dock sends in the target file"
                ),
            ));
        }
        Ok((Subject::Returns { docks, of }, &[Unit::Share, Unit::Count]))
    }

    /// From the hand-over to the target's yes.
    pub(super) fn delay(&self, name: &Word, stat: Option<Stat>) -> Result<Found, BadLine> {
        let operations = self
            .dock_groups(name)?
            .into_iter()
            .filter_map(|docks| self.plan.operation(OperationKind::Return { docks }))
            .collect();
        let subject = Subject::Time {
            operations,
            of: TimeOf::Latency,
            stat: stat.unwrap_or(Stat::Max),
        };
        Ok((subject, &[Unit::Time, Unit::TimesBaseline]))
    }
}

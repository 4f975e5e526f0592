//! What a line about returns measures.

use super::Judge;
use super::value::{Found, Part, Pick};
use crate::event::ReturnState;
use crate::measure::returns::ReturnAccount;
use crate::plan::expect::{ReturnFigure, Unit};

impl Judge<'_> {
    /// Returns by the second in which they were handed over; what docks hold, at the end of each second.
    pub(super) fn returns(
        &self,
        docks: &[usize],
        of: ReturnFigure,
        part: &Part<'_>,
    ) -> Option<Found> {
        if of == ReturnFigure::Stored {
            return self.stored(docks, part);
        }
        let mut sum = ReturnAccount::default();
        for row in docks {
            let seconds = part
                .seconds()
                .filter_map(|second| self.collector.returns().second(*row, second));
            seconds.for_each(|account| sum.add(account));
        }
        let count = match of {
            ReturnFigure::Lost => sum.of(ReturnState::Lost),
            ReturnFigure::Duplicated => sum.of(ReturnState::Duplicated),
            ReturnFigure::InDoubt => sum.of(ReturnState::InDoubt),
            ReturnFigure::Active => sum.active,
            ReturnFigure::Stored => sum.of(ReturnState::Stored),
        };
        // What the target did not answer for may be any of these.
        let may_yet = match of {
            ReturnFigure::InDoubt => 0,
            _ => sum.unanswered,
        };
        let by = if part.unit == Unit::Share {
            sum.created as f64
        } else {
            1.0
        };
        (sum.created > 0).then(|| Found {
            low: count as f64 / by,
            high: (count + may_yet) as f64 / by,
            at: None,
            samples: sum.created,
        })
    }

    /// At the end of everything, when docks had their time to get rid of what they held, or at the end of each second.
    fn stored(&self, docks: &[usize], part: &Part<'_>) -> Option<Found> {
        let totals = || docks.iter().map(|row| self.collector.returns().total(*row));
        let created: u64 = totals().map(|total| total.created).sum();
        let by = if part.unit == Unit::Share {
            created.max(1) as f64
        } else {
            1.0
        };
        if part.pick == Pick::Last && part.to_the_end {
            let stored: u64 = totals().map(|total| total.of(ReturnState::Stored)).sum();
            return (created > 0).then(|| Found::exactly(stored as f64 / by, created));
        }
        let values = self.points(part).map(|(second, point)| {
            let rows = docks.iter().filter_map(|row| point.docks.get(*row));
            let stored: f64 = rows.map(|row| f64::from(row.stored)).sum();
            (second, stored / by)
        });
        part.pick(values)
    }
}

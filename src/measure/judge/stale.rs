//! What a line about stale commands measures: those that ghosts saw on a shard that their hub had left.

use super::Judge;
use super::value::{Found, Part};
use crate::event::Offset;
use crate::measure::ledger::Account;
use crate::plan::expect::Unit;
use std::collections::BTreeSet;

impl Judge<'_> {
    /// Sightings by the second in which they were made. What happened while a ghost did not watch, nobody knows.
    pub(super) fn stale(&self, issuers: &[usize], part: &Part<'_>) -> Option<Found> {
        let (plan, places) = (self.collector.plan(), self.collector.places());
        let mut seen = 0;
        let mut due = Account::default();
        let mut devices = BTreeSet::new();
        for issuer in issuers {
            let to = plan.issuers.get(*issuer)?.to;
            devices.insert(plan.hubs.get(to)?.device);
            let stale = &places.groups.get(to)?.stale.by_second;
            let row = u16::try_from(*issuer).ok()?;
            let seconds = part.seconds();
            seen += seconds
                .filter_map(|second| stale.get(&(row, second)))
                .sum::<u64>();
            let ledger = self.collector.ledger();
            part.seconds()
                .filter_map(|second| ledger.second(*issuer, second))
                .for_each(|account| due.add(account));
        }
        let is_blind = devices.iter().any(|device| {
            places
                .watched(*device, self.load_end())
                .is_none_or(|watched| watched.gaps > 0)
        });
        let by = if part.unit == Unit::Share {
            due.due.max(1) as f64
        } else {
            1.0
        };
        let low = seen as f64 / by;
        (due.due > 0).then_some(Found {
            low,
            high: if is_blind { f64::INFINITY } else { low },
            at: None,
            samples: due.due,
        })
    }

    /// The end of the load, or of what is known.
    fn load_end(&self) -> Offset {
        let end = self.collector.marks().load_end;
        end.map_or(self.now, |end| end.min(self.now))
    }
}

//! The retry budget of each group, as a bucket of the right size.

use super::Plan;
use crate::event::AgentKind;
use crate::retry::{Budget, RetryBudget};

impl Plan {
    /// A new bucket for the group in row `group` of its kind's list, still empty; one that grants everything without a budget.
    #[must_use]
    pub fn budget(&self, kind: AgentKind, group: usize) -> Budget {
        let window_s = RetryBudget::WINDOW.as_secs_f64();
        let of = |budget, actions: f64| Budget::new(budget, actions);
        let bucket = match kind {
            AgentKind::Hub => self.hubs.get(group).map(|hubs| {
                // A mass disconnect is one action for each hub.
                of(hubs.reconnect.retry.budget, f64::from(hubs.count))
            }),
            AgentKind::Rider => self.riders.get(group).map(|riders| {
                let journey = &self.target.journeys[riders.journey];
                let requests = journey.requests().count() as f64;
                let actions = riders.arrivals.peak_per_second() * requests * window_s;
                of(riders.retry.budget, actions)
            }),
            AgentKind::Issuer => self.issuers.get(group).map(|issuers| {
                let actions = issuers.arrivals.peak_per_second() * window_s;
                of(issuers.retry.budget, actions)
            }),
            // A dock must get rid of what it holds: it has no budget.
            AgentKind::Dock => None,
        };
        bucket.unwrap_or_else(Budget::unlimited)
    }
}

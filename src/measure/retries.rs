//! What became of retries: refused by a budget, asked to wait by the target, put off for its sake.

use crate::event::RetryChange;

/// The retries of one operation over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryTotal {
    /// Did not leave: the group's budget was spent.
    pub denied: u64,
    /// Refusals with 429 or 503 that carried `Retry-After`.
    pub asked: u64,
    /// Left later than the policy's own wait, for the sake of `Retry-After`.
    pub postponed: u64,
}

impl RetryTotal {
    pub(super) fn change(&mut self, change: RetryChange) {
        let count = match change {
            RetryChange::Denied => &mut self.denied,
            RetryChange::Asked => &mut self.asked,
            RetryChange::Postponed => &mut self.postponed,
        };
        *count += 1;
    }

    pub(super) fn add(&mut self, other: RetryTotal) {
        self.denied += other.denied;
        self.asked += other.asked;
        self.postponed += other.postponed;
    }
}

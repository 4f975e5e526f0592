//! Retry budgets: how many retries a group may make, whatever its policy would allow each of its members.
//!
//! The bucket is that of Finagle's `RetryBudget`: every intended action deposits a share of a retry, every retry withdraws a whole one.
//! It starts empty, so attempts ÷ actions never exceeds 1 + share, not even at the beginning. Where Finagle lets deposits expire
//! after 10 s, the bucket is bounded by what 10 s at the group's peak deposit (at least one retry): quiet hours save up no burst of
//! retries, and a slow group still has one retry in 1 ÷ share actions. On top comes a reserve (Finagle's `minRetriesPerSec`), none
//! unless the file asks for it: at a low rate it lifts the bound to 1 + share + reserve ÷ rate.
//!
//! One bucket serves every agent of a group on every worker; it is two numbers that are changed without a lock.

use crate::event::Offset;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a file says about a group's retries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryBudget {
    /// Retries for each intended action, 0 to 1.
    pub share: f64,
    /// Retries a second that are allowed besides, however few actions there are; 0 for none.
    pub reserve_per_second: f64,
}

impl RetryBudget {
    /// How long deposits at the peak rate fill the bucket: Finagle's time to live.
    pub const WINDOW: Duration = Duration::from_secs(10);

    /// Attempts for each intended action can't exceed this while actions come at `rate_per_second`.
    #[must_use]
    pub fn bound(&self, rate_per_second: f64) -> f64 {
        let reserve = if self.reserve_per_second > 0.0 {
            self.reserve_per_second / rate_per_second
        } else {
            0.0
        };
        1.0 + self.share + reserve
    }
}

/// The budget of one group, shared by all of its agents.
#[derive(Debug)]
pub struct Budget {
    /// `None`: every retry is granted.
    limits: Option<Limits>,
    /// Millionths of a retry.
    balance: AtomicU64,
    /// When the reserve will have paid for everything that was taken from it, in microseconds of the clock.
    reserve_paid_us: AtomicU64,
}

/// In millionths of a retry, and in microseconds.
#[derive(Debug, Clone, Copy)]
struct Limits {
    deposit: u64,
    most: u64,
    /// Time in which the reserve pays for one retry; `None` without a reserve.
    reserve_every_us: Option<u64>,
}

/// One retry.
const RETRY: u64 = 1_000_000;
/// The reserve saves up what it pays in this time, and one retry.
const RESERVE_SAVES_US: u64 = 1_000_000;

impl Budget {
    /// Grants every retry.
    #[must_use]
    pub fn unlimited() -> Budget {
        Budget {
            limits: None,
            balance: AtomicU64::new(0),
            reserve_paid_us: AtomicU64::new(0),
        }
    }

    /// An empty bucket for a group that intends at most `peak_actions` actions in [`RetryBudget::WINDOW`]; without a budget every
    /// retry is granted.
    #[must_use]
    pub fn new(budget: Option<RetryBudget>, peak_actions: f64) -> Budget {
        let limits = budget.map(|budget| {
            let deposit = (budget.share.clamp(0.0, 1.0) * RETRY as f64).floor() as u64;
            let window = (peak_actions.max(0.0) * deposit as f64) as u64;
            let reserve = budget.reserve_per_second;
            Limits {
                deposit,
                // What is more than one retry when it is earned is not lost.
                most: window.max(RETRY + deposit),
                reserve_every_us: (reserve > 0.0).then(|| (1e6 / reserve).ceil() as u64),
            }
        });
        Budget {
            limits,
            ..Budget::unlimited()
        }
    }

    /// An intended action begins.
    pub fn deposit(&self) {
        let Some(limits) = self.limits else { return };
        let add = |balance: u64| {
            let sum = balance.saturating_add(limits.deposit).min(limits.most);
            (sum != balance).then_some(sum)
        };
        // A full bucket stays as it is.
        let _ = self
            .balance
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
    }

    /// Whether there may be a retry now; if so, it is paid for.
    #[must_use]
    pub fn withdraw(&self, now: Offset) -> bool {
        let Some(limits) = self.limits else {
            return true;
        };
        let paid = self
            .balance
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |balance| {
                balance.checked_sub(RETRY)
            })
            .is_ok();
        paid || limits
            .reserve_every_us
            .is_some_and(|every_us| self.take_reserve(now, every_us))
    }

    /// The reserve as a virtual schedule (GCRA): what it has saved up is how late it is paid.
    fn take_reserve(&self, now: Offset, every_us: u64) -> bool {
        let saved_us = RESERVE_SAVES_US.saturating_add(every_us);
        self.reserve_paid_us
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |paid_us| {
                let next_us = paid_us.max(now.0.saturating_sub(saved_us)) + every_us;
                (next_us <= now.0).then_some(next_us)
            })
            .is_ok()
    }
}

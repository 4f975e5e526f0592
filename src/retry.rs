//! How long to wait before the next attempt.
//!
//! Pure: the wait is a function of the policy, the number of attempts made, the previous wait and the dice. Formulas: Brooker,
//! "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015) and its simulator. The exponent is 0 for the wait after the
//! first attempt, so that `base` is what one would expect it to be: the first wait.

mod budget;

pub use budget::{Budget, RetryBudget};

use crate::dice::Dice;
use std::time::Duration;

/// Waits drawn where a mean has no closed form.
const DRAWS: u32 = 20_000;

/// A retry policy. `attempts` counts the first one; `None` never gives up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    pub backoff: Backoff,
    pub attempts: Option<u32>,
    /// Shared by the group; `None` allows what `attempts` allows.
    pub budget: Option<RetryBudget>,
    /// A `Retry-After` of the target is respected up to this long; `None` if the group ignores it.
    pub retry_after: Option<Duration>,
}

/// The wait between two attempts; n is the number of attempts made, less one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Backoff {
    Immediate,
    Fixed {
        every: Duration,
    },
    /// min(cap, base × factor^n)
    Exponential {
        base: Duration,
        cap: Duration,
        factor: f64,
    },
    /// uniform in [0, min(cap, base × factor^n))
    FullJitter {
        base: Duration,
        cap: Duration,
        factor: f64,
    },
    /// half of the exponential wait, plus uniform up to the other half
    EqualJitter {
        base: Duration,
        cap: Duration,
        factor: f64,
    },
    /// min(cap, uniform in [base, 3 × previous wait)), the previous one starting at base
    Decorrelated {
        base: Duration,
        cap: Duration,
    },
}

impl Retry {
    /// One attempt, no more.
    pub const NEVER: Retry = Retry {
        attempts: Some(1),
        ..Retry::of(Backoff::Immediate)
    };

    /// Retries without end by this backoff: no budget, `Retry-After` ignored.
    #[must_use]
    pub const fn of(backoff: Backoff) -> Retry {
        Retry {
            backoff,
            attempts: None,
            budget: None,
            retry_after: None,
        }
    }

    /// Whether there may be another attempt after `made` attempts.
    #[must_use]
    pub fn allows(&self, made: u32) -> bool {
        self.attempts.is_none_or(|attempts| made < attempts)
    }

    /// The wait before the attempt that follows `made` attempts (from 1), or `None` if there is none. `previous` is the wait
    /// before the last attempt, zero if there was none.
    pub fn next(&self, made: u32, previous: Duration, dice: &mut Dice) -> Option<Duration> {
        self.allows(made)
            .then(|| self.backoff.wait(made, previous, dice))
    }

    /// The wait before the next attempt where the policy alone would wait for `wait` and the target asked for `asked`.
    #[must_use]
    pub fn with_retry_after(&self, wait: Duration, asked: Option<Duration>) -> Duration {
        match (self.retry_after, asked) {
            (Some(most), Some(asked)) => wait.max(asked.min(most)),
            _ => wait,
        }
    }

    /// The longest wait between two attempts.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        self.backoff
            .longest()
            .max(self.retry_after.unwrap_or_default())
    }

    /// The longest that all attempts together may take by the policy's own waits, each at most `timeout`; `None` if the policy never gives up.
    #[must_use]
    pub fn longest_total(&self, timeout: Duration) -> Option<Duration> {
        let attempts = self.attempts?;
        let waits = (1..attempts)
            .try_fold(Duration::ZERO, |sum, made| {
                // From where the wait has reached its cap on, the sum is a product.
                let wait = self.backoff.longest_after(made);
                if wait == self.backoff.longest() {
                    Err((sum, made))
                } else {
                    Ok(sum.saturating_add(wait))
                }
            })
            .unwrap_or_else(|(sum, made)| {
                sum.saturating_add(self.backoff.longest().saturating_mul(attempts - made))
            });
        Some(timeout.saturating_mul(attempts).saturating_add(waits))
    }
}

impl Backoff {
    /// The wait after `attempt` attempts (from 1). `previous` is the wait before the last attempt, zero if there was none.
    pub fn wait(&self, attempt: u32, previous: Duration, dice: &mut Dice) -> Duration {
        match *self {
            Backoff::Immediate => Duration::ZERO,
            Backoff::Fixed { every } => every,
            Backoff::Exponential { base, cap, factor } => exponential(base, cap, factor, attempt),
            Backoff::FullJitter { base, cap, factor } => {
                dice.between(Duration::ZERO, exponential(base, cap, factor, attempt))
            }
            Backoff::EqualJitter { base, cap, factor } => {
                let whole = exponential(base, cap, factor, attempt);
                let half = whole / 2;
                half + dice.between(Duration::ZERO, whole - half)
            }
            Backoff::Decorrelated { base, cap } => {
                let high = previous.max(base).saturating_mul(3);
                dice.between(base, high).min(cap)
            }
        }
    }

    /// No wait is longer than this.
    #[must_use]
    pub fn longest(&self) -> Duration {
        match *self {
            Backoff::Immediate => Duration::ZERO,
            Backoff::Fixed { every } => every,
            Backoff::Exponential { base, cap, factor }
            | Backoff::FullJitter { base, cap, factor }
            | Backoff::EqualJitter { base, cap, factor } => {
                if factor > 1.0 && base > Duration::ZERO {
                    cap
                } else {
                    base.min(cap)
                }
            }
            Backoff::Decorrelated { cap, .. } => cap,
        }
    }

    /// The mean wait, E(B) in the formula of the collapse boundary, once the backoff has reached its cap: 0, b, cap, cap/2, 3cap/4. That of decorrelated has no closed form and
    /// depends on base ÷ cap (0.56 cap at 1:60); it is the mean of 20,000 waits drawn from a fixed stream, good to about 1 %.
    #[must_use]
    pub fn mean_at_cap(&self) -> Duration {
        let longest = self.longest();
        match self {
            Backoff::Immediate | Backoff::Fixed { .. } | Backoff::Exponential { .. } => longest,
            Backoff::FullJitter { .. } => longest / 2,
            Backoff::EqualJitter { .. } => longest / 4 * 3,
            Backoff::Decorrelated { .. } => {
                let mut dice = Dice::named(0, 0, 0);
                let (mut wait, mut sum) = (longest, Duration::ZERO);
                for attempt in 1..=DRAWS {
                    wait = self.wait(attempt, wait, &mut dice);
                    sum = sum.saturating_add(wait);
                }
                sum / DRAWS
            }
        }
    }

    /// No wait after `attempt` attempts is longer than this.
    fn longest_after(&self, attempt: u32) -> Duration {
        match *self {
            Backoff::Exponential { base, cap, factor }
            | Backoff::FullJitter { base, cap, factor }
            | Backoff::EqualJitter { base, cap, factor } => exponential(base, cap, factor, attempt),
            Backoff::Decorrelated { base, cap } => {
                exponential(base.saturating_mul(3), cap, 3.0, attempt)
            }
            Backoff::Immediate | Backoff::Fixed { .. } => self.longest(),
        }
    }
}

/// min(cap, base × factor^(attempt − 1)). A power too large for a double is infinite, and infinity is above any cap.
fn exponential(base: Duration, cap: Duration, factor: f64, attempt: u32) -> Duration {
    if base.is_zero() {
        return Duration::ZERO;
    }
    let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    let seconds = base.as_secs_f64() * factor.powi(exponent);
    if seconds >= cap.as_secs_f64() {
        cap
    } else {
        Duration::from_secs_f64(seconds.max(0.0))
    }
}

//! How long to wait before the next attempt.
//!
//! Pure: the wait is a function of the policy, the attempt and the dice. Formulas: Brooker, "Exponential Backoff And Jitter"
//! (AWS Architecture Blog, 2015) and its simulator.

use std::time::Duration;

/// A retry policy. `attempts` counts the first one; `None` never gives up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    pub backoff: Backoff,
    pub attempts: Option<u32>,
}

/// The wait before attempt n + 1.
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

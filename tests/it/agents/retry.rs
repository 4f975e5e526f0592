//! Waits between attempts: within their bounds for every policy, and with the means that the collapse formula rests on.

use super::plans::{millis, seconds};
use proptest::prelude::*;
use rushhour::dice::Dice;
use rushhour::retry::{Backoff, Retry};
use std::time::Duration;

fn dice() -> Dice {
    Dice::named(5, 5, 5)
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    let time = (0_u64..100_000_000).prop_map(Duration::from_micros);
    let factor = prop_oneof![Just(2.0), 1.0..4.0_f64];
    (0..6, time.clone(), time, factor).prop_map(|(kind, base, cap, factor)| match kind {
        0 => Backoff::Immediate,
        1 => Backoff::Fixed { every: base },
        2 => Backoff::Exponential { base, cap, factor },
        3 => Backoff::FullJitter { base, cap, factor },
        4 => Backoff::EqualJitter { base, cap, factor },
        _ => Backoff::Decorrelated { base, cap },
    })
}

/// The formula of Brooker's simulator, for attempts at which a double still holds the power.
fn exponential(base: Duration, cap: Duration, factor: f64, attempt: u32) -> Duration {
    let power = base.as_secs_f64() * factor.powf(f64::from(attempt - 1));
    cap.min(Duration::try_from_secs_f64(power).unwrap_or(cap))
}

proptest! {
    #[test]
    fn every_wait_is_within_its_bounds(backoff in any_backoff(), attempt in 1_u32..60, seed in any::<u64>(), previous_us in 0_u64..200_000_000) {
        let previous = Duration::from_micros(previous_us);
        let wait = backoff.wait(attempt, previous, &mut Dice::named(seed, 0, 0));
        prop_assert!(wait <= backoff.longest());
        let (low, high) = match backoff {
            Backoff::Immediate => (Duration::ZERO, Duration::ZERO),
            Backoff::Fixed { every } => (every, every),
            Backoff::Exponential { base, cap, factor } => {
                let exact = exponential(base, cap, factor, attempt);
                (exact, exact)
            }
            Backoff::FullJitter { base, cap, factor } => (Duration::ZERO, exponential(base, cap, factor, attempt)),
            Backoff::EqualJitter { base, cap, factor } => {
                let whole = exponential(base, cap, factor, attempt);
                (whole / 2, whole)
            }
            Backoff::Decorrelated { base, cap } => (base.min(cap), cap.min(previous.max(base) * 3)),
        };
        let rounding = Duration::from_micros(1);
        prop_assert!(wait + rounding >= low && wait <= high + rounding, "{:?} not in {:?} to {:?}", wait, low, high);
    }

    #[test]
    fn ten_thousand_attempts_overflow_nothing(backoff in any_backoff(), attempts in prop_oneof![Just(10_000_u32), Just(u32::MAX)]) {
        let mut dice = dice();
        let wait = backoff.wait(attempts, Duration::MAX, &mut dice);
        prop_assert!(wait <= backoff.longest());
        let retry = Retry { backoff, attempts: Some(attempts), ..Retry::NEVER };
        let total = retry.longest_total(seconds(1)).unwrap();
        prop_assert!(total >= seconds(u64::from(attempts)));
        prop_assert!(total <= (seconds(1) + backoff.longest()) * attempts);
    }

    #[test]
    fn no_run_of_attempts_takes_longer_than_the_longest_total(backoff in any_backoff(), attempts in 1_u32..40, seed in any::<u64>()) {
        let retry = Retry { backoff, attempts: Some(attempts), ..Retry::NEVER };
        let mut dice = Dice::named(seed, 1, 1);
        let (mut sum, mut made, mut previous) = (seconds(3), 1, Duration::ZERO);
        while let Some(wait) = retry.next(made, previous, &mut dice) {
            sum += wait + seconds(3);
            previous = wait;
            made += 1;
        }
        prop_assert_eq!(made, attempts);
        let rounding = Duration::from_micros(u64::from(attempts));
        prop_assert!(sum <= retry.longest_total(seconds(3)).unwrap() + rounding);
    }
}

#[test]
fn the_first_wait_is_the_base() {
    let (base, cap, factor) = (seconds(1), seconds(15), 2.0);
    let backoff = Backoff::Exponential { base, cap, factor };
    let waits: Vec<u64> = (1..7)
        .map(|attempt| backoff.wait(attempt, Duration::ZERO, &mut dice()).as_secs())
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 15, 15]);
}

#[test]
fn attempts_count_the_first_one() {
    let retry = Retry {
        backoff: Backoff::Immediate,
        attempts: Some(2),
        ..Retry::NEVER
    };
    assert_eq!(
        retry.next(1, Duration::ZERO, &mut dice()),
        Some(Duration::ZERO)
    );
    assert_eq!(retry.next(2, Duration::ZERO, &mut dice()), None);
    assert_eq!(Retry::NEVER.next(1, Duration::ZERO, &mut dice()), None);
    let forever = Retry {
        attempts: None,
        ..retry
    };
    assert!(
        forever
            .next(u32::MAX, Duration::ZERO, &mut dice())
            .is_some()
    );
    assert_eq!(forever.longest_total(seconds(1)), None);
}

#[test]
fn the_longest_total_is_what_one_would_add_up_by_hand() {
    let fixed = Retry {
        backoff: Backoff::Fixed { every: seconds(2) },
        attempts: Some(4),
        ..Retry::NEVER
    };
    assert_eq!(
        fixed.longest_total(seconds(5)),
        Some(seconds(4 * 5 + 3 * 2))
    );
    let (base, cap, factor) = (seconds(1), seconds(6), 2.0);
    let jitter = Retry {
        backoff: Backoff::FullJitter { base, cap, factor },
        attempts: Some(6),
        ..Retry::NEVER
    };
    assert_eq!(
        jitter.longest_total(seconds(1)),
        Some(seconds(6 + 1 + 2 + 4 + 6 + 6))
    );
}

#[test]
fn a_base_of_nothing_waits_for_nothing_however_often() {
    let (base, cap, factor) = (Duration::ZERO, seconds(6), 2.0);
    let backoff = Backoff::Exponential { base, cap, factor };
    assert_eq!(
        backoff.wait(10_000, Duration::ZERO, &mut dice()),
        Duration::ZERO
    );
    assert_eq!(backoff.longest(), Duration::ZERO);
}

/// D* = μ(2T + E[B]) rests on these means. 40 000 waits at the cap give the mean to within 1 % of the cap; 2 % are allowed.
#[test]
fn means_at_the_cap_are_those_of_the_collapse_formula() {
    let (base, cap, factor) = (millis(10), seconds(10), 2.0);
    for backoff in [
        Backoff::Fixed { every: cap },
        Backoff::Exponential { base, cap, factor },
        Backoff::FullJitter { base, cap, factor },
        Backoff::EqualJitter { base, cap, factor },
        Backoff::Decorrelated { base, cap },
        Backoff::Decorrelated {
            base: cap / 60,
            cap,
        },
    ] {
        let mut dice = dice();
        let mut previous = Duration::ZERO;
        let mut sum = Duration::ZERO;
        for attempt in 1..=40_100 {
            previous = backoff.wait(attempt, previous, &mut dice);
            if attempt > 100 {
                sum += previous;
            }
        }
        let (measured, stated) = (
            (sum / 40_000).as_secs_f64(),
            backoff.mean_at_cap().as_secs_f64(),
        );
        assert!(
            (measured - stated).abs() < 0.02 * cap.as_secs_f64(),
            "{backoff:?}: {measured} s, not {stated} s"
        );
    }
}

//! Noise, by seed: how often the analysis sees what is not there, and how far off it is.

use super::scene::{Scene, at, signal, span, success};
use rushhour::dice::Dice;
use rushhour::measure::recovery::{RecoveryOutcome, SignalKind, SignalRows};

const RUNS: u64 = 400;
const LENGTH: u64 = 400;

/// Nearly normal with deviation 1: the sum of twelve uniform draws.
fn normal(dice: &mut Dice) -> f64 {
    (0..12).map(|_| dice.fraction()).sum::<f64>() - 6.0
}

/// A signal around 100 with 3 % of noise, half of it carried from second to second, times `level` of the second.
fn noisy(seed: u64, level: impl Fn(u64) -> f64) -> SignalRows {
    let mut dice = Dice::named(seed, 7, 0);
    let mut carried = 0.0;
    let noise: Vec<f64> = (0..LENGTH)
        .map(|_| {
            carried = 0.5 * carried + normal(&mut dice) * 0.75_f64.sqrt();
            carried * 3.0
        })
        .collect();
    signal("goodput", SignalKind::Goodput, LENGTH, |second| {
        Some((100.0 + noise[second as usize]) * level(second))
    })
}

/// The share of `tries` a second that succeed, each with `chance`.
fn shares(seed: u64, tries: u64, chance: impl Fn(u64) -> f64) -> SignalRows {
    let mut dice = Dice::named(seed, 8, 0);
    let rows: Vec<f64> = (0..LENGTH)
        .map(|second| {
            let ok = (0..tries)
                .filter(|_| dice.fraction() < chance(second))
                .count();
            ok as f64 / tries as f64
        })
        .collect();
    signal("unlock success", SignalKind::Goodput, LENGTH, |second| {
        Some(rows[second as usize])
    })
}

fn outcome(signal: SignalRows) -> RecoveryOutcome {
    Scene::new(vec![signal], vec![span(0, 100, 130)]).outcome()
}

fn count(of: impl Fn(u64) -> bool) -> u64 {
    (0..RUNS).filter(|seed| of(*seed)).count() as u64
}

/// A fault without effect on a healthy, noisy signal: at most 1 % of runs see an effect.
#[test]
fn noise_is_not_taken_for_an_effect() {
    let wrong = count(|seed| outcome(noisy(seed, |_| 1.0)) != RecoveryOutcome::NotNeeded);
    assert!(wrong <= RUNS / 100, "{wrong} of {RUNS}");
    let wrong = count(|seed| outcome(shares(seed, 20, |_| 0.995)) != RecoveryOutcome::NotNeeded);
    assert!(
        wrong <= RUNS / 100,
        "{wrong} of {RUNS} with 20 tries a second"
    );
}

/// Five arrivals a second by chance are seldom five, and some seconds have none: that is neither silence nor an effect.
#[test]
fn chance_arrivals_are_not_taken_for_silence() {
    let wrong = count(|seed| {
        let mut dice = Dice::named(seed, 9, 0);
        let tries: Vec<f64> = (0..LENGTH)
            .map(|_| (0..50).filter(|_| dice.below(10) == 0).count() as f64)
            .collect();
        let of = |second: u64| tries[second as usize];
        let signal = success(LENGTH, |second| (of(second) > 0.0).then_some(1.0), of, 5.0);
        outcome(signal) != RecoveryOutcome::NotNeeded
    });
    assert!(wrong <= RUNS / 100, "{wrong} of {RUNS}");
}

/// A signal that stays 15 % low is never called recovered, however the noise falls: at most 1 % of runs.
#[test]
fn what_stays_low_is_not_called_recovered() {
    let low = |second: u64| if second >= 100 { 0.85 } else { 1.0 };
    let wrong =
        count(|seed| matches!(outcome(noisy(seed, low)), RecoveryOutcome::Recovered { .. }));
    assert!(wrong <= RUNS / 100, "{wrong} of {RUNS}");
    let low = |second: u64| if second >= 100 { 0.85 } else { 0.995 };
    let wrong = count(|seed| {
        matches!(
            outcome(shares(seed, 20, low)),
            RecoveryOutcome::Recovered { .. }
        )
    });
    assert!(
        wrong <= RUNS / 100,
        "{wrong} of {RUNS} with 20 tries a second"
    );
}

/// A real outage that ends at 180 s is told within 5 s in 95 of 100 runs, and never 5 s early.
#[test]
fn a_real_recovery_is_told_within_seconds() {
    let outage = |second: u64| {
        if (100..180).contains(&second) {
            0.5
        } else {
            1.0
        }
    };
    let found = |seed| match outcome(noisy(seed, outage)) {
        RecoveryOutcome::Recovered {
            at: recovered_at, ..
        } => Some(recovered_at),
        _ => None,
    };
    let early = count(|seed| found(seed).is_some_and(|recovered_at| recovered_at < at(178)));
    let near = count(|seed| found(seed).is_some_and(|recovered_at| recovered_at <= at(185)));
    assert_eq!(early, 0);
    assert!(near >= RUNS * 95 / 100, "{near} of {RUNS}");
}

//! What attempts in step look like by tenths of a second, and what chance looks like.

use rushhour::dice::Dice;
use rushhour::measure::recovery::{Tenths, dispersion, phase_concentration};
use std::time::Duration;

/// Attempts of `hubs` at times that `when` draws, over `seconds`.
fn attempts(hubs: u32, seconds: usize, mut when: impl FnMut(&mut Dice) -> f64) -> Vec<Tenths> {
    let mut dice = Dice::named(1, 2, 3);
    let mut rows = vec![Tenths::default(); seconds];
    for _ in 0..hubs {
        let at = when(&mut dice);
        if let Some(row) = rows.get_mut(at as usize) {
            row[(at.fract() * 10.0) as usize] += 1;
        }
    }
    rows
}

#[test]
fn chance_has_an_index_of_one() {
    let spread = attempts(3000, 60, |dice| dice.fraction() * 60.0);
    let index = dispersion(&spread).unwrap();
    assert!((0.85..1.15).contains(&index), "{index}");
    let phase = phase_concentration(&spread, Duration::from_secs(7)).unwrap();
    assert!(phase < 0.06, "{phase}");
}

/// A rate that falls from 100 to nothing within a minute is no wave.
#[test]
fn a_rate_that_falls_is_not_in_step() {
    let falling = attempts(3000, 60, |dice| {
        (1.0 - (1.0 - dice.fraction()).sqrt()) * 60.0
    });
    let index = dispersion(&falling).unwrap();
    assert!(index < 1.3, "{index}");
}

/// All within 200 ms, every seven seconds.
#[test]
fn waves_are_in_step() {
    let waves = attempts(3000, 63, |dice| {
        (dice.below(9) * 7) as f64 + dice.fraction() * 0.2
    });
    let index = dispersion(&waves).unwrap();
    assert!(index > 50.0, "{index}");
    let phase = phase_concentration(&waves, Duration::from_secs(7)).unwrap();
    assert!(phase > 0.9, "{phase}");
}

#[test]
fn few_attempts_say_nothing() {
    let few = attempts(20, 10, |dice| dice.fraction() * 10.0);
    assert_eq!(dispersion(&few), None);
    assert_eq!(phase_concentration(&few, Duration::from_secs(3)), None);
    let many = attempts(200, 10, |dice| dice.fraction() * 10.0);
    assert_eq!(phase_concentration(&many, Duration::ZERO), None);
}

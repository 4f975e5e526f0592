//! Each trap of the field notes on recovery (§2.4), 200 runs by seed with a known truth: the right outcome in at least 99 % of them, and
//! the recovery's time within one second where nothing but the outage decides it, or within the noise that is stated.

use super::scene::{Scene, at, signal, span, success};
use rushhour::dice::Dice;
use rushhour::event::MarkId;
use rushhour::measure::recovery::{Ending, MarkSpan, RecoveryOutcome, SignalKind, SignalRows};
use std::time::Duration;

const SEEDS: u64 = 200;
/// 99 % of them.
const RIGHT: usize = 198;
const BEGIN: u64 = 100;

/// Whether the outcome is the true one.
type Truth = fn(&RecoveryOutcome) -> bool;

fn right(scene: impl Fn(u64) -> (Scene, u64), truth: impl Fn(&RecoveryOutcome, u64) -> bool) {
    let wrong: Vec<(u64, RecoveryOutcome)> = (0..SEEDS)
        .filter_map(|seed| {
            let (scene, end) = scene(seed);
            let outcome = scene.outcome();
            (!truth(&outcome, end)).then_some((seed, outcome))
        })
        .collect();
    assert!(
        SEEDS as usize - wrong.len() >= RIGHT,
        "{} of {SEEDS} wrong, as {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(3)]
    );
}

/// Recovered at the true second, at most `early` before it and `late` after it.
fn recovered_near(outcome: &RecoveryOutcome, end: u64, early: u64, late: u64) -> bool {
    match outcome {
        RecoveryOutcome::Recovered { at: found, .. } => {
            *found >= at(end - early) && *found <= at(end + late)
        }
        _ => false,
    }
}

fn dice(seed: u64, stream: u64) -> Dice {
    Dice::named(seed, 0x7375_6974 + stream, 0)
}

/// Around 1 with this deviation: the sum of twelve uniform draws.
fn noise(dice: &mut Dice, deviation: f64) -> f64 {
    1.0 + deviation * ((0..12).map(|_| dice.fraction()).sum::<f64>() - 6.0)
}

/// How often something with this mean happens in a second, by chance.
fn by_chance(dice: &mut Dice, mean: f64) -> f64 {
    let (mut count, mut product) = (0.0, dice.fraction());
    let least = (-mean).exp();
    while product > least {
        product *= dice.fraction();
        count += 1.0;
    }
    count
}

/// When the outage ends: another second for each seed.
fn end_of(seed: u64) -> u64 {
    dice(seed, 0).below(200) + 150
}

/// A rate of 100 a second with 2 % of noise, at `level` of it.
fn goodput(seed: u64, length: u64, level: impl Fn(u64) -> f64) -> SignalRows {
    let mut dice = dice(seed, 1);
    let noise: Vec<f64> = (0..length).map(|_| noise(&mut dice, 0.02)).collect();
    signal("goodput", SignalKind::Goodput, length, |second| {
        Some(100.0 * level(second) * noise[second as usize])
    })
}

fn fault(signals: Vec<SignalRows>) -> Scene {
    Scene::new(signals, vec![span(0, BEGIN, BEGIN + 20)])
}

/// Retries in step: a wave of failures every 20 to 59 seconds, and between them nobody tries.
#[test]
fn silence_between_waves() {
    let scene = |seed| {
        let (end, period) = (end_of(seed), dice(seed, 2).below(40) + 20);
        let mut chance = dice(seed, 3);
        let tries: Vec<f64> = (0..end + 120)
            .map(|second| match (BEGIN..end).contains(&second) {
                true if (second - BEGIN) % period < 2 => by_chance(&mut chance, 400.0),
                true => 0.0,
                false => by_chance(&mut chance, 20.0),
            })
            .collect();
        let share = |second: u64| {
            let fails = (BEGIN..end).contains(&second);
            (tries[second as usize] > 0.0).then_some(if fails { 0.0 } else { 1.0 })
        };
        let tried = |second: u64| tries[second as usize];
        (fault(vec![success(end + 120, share, tried, 20.0)]), end)
    };
    right(scene, |outcome, end| recovered_near(outcome, end, 1, 3));
}

/// Good for 5 to 24 seconds, and then down again for as long as it was.
#[test]
fn first_sample_in_the_band() {
    let scene = |seed| {
        let end = end_of(seed);
        let pause = dice(seed, 4).below(20) + 5;
        let level = move |second: u64| {
            let up = (end - 30 - pause..end - 30).contains(&second);
            if (BEGIN..end).contains(&second) && !up {
                0.4
            } else {
                1.0
            }
        };
        (fault(vec![goodput(seed, end + 120, level)]), end)
    };
    right(scene, |outcome, end| recovered_near(outcome, end, 1, 1));
}

/// 1 % of the healthy seconds are bad: 12 minutes without any come once in 1400 times.
#[test]
fn healthy_noise_for_12_minutes() {
    let scene = |seed| {
        let end = end_of(seed) + 600;
        let mut chance = dice(seed, 5);
        let rows: Vec<f64> = (0..end + 2400)
            .map(|second| match (600..end).contains(&second) {
                true => 0.4,
                false if chance.fraction() < 0.01 => 0.8,
                false => noise(&mut chance, 0.01),
            })
            .collect();
        let of = |second: u64| Some(rows[second as usize]);
        let signal = signal("goodput", SignalKind::Goodput, end + 2400, of);
        let mut scene =
            Scene::new(vec![signal], vec![span(0, 600, 620)]).sustain(Duration::from_secs(720));
        scene.settings.baseline = Duration::from_secs(600);
        (scene, end)
    };
    // The quiet time's own rate is known from 600 seconds with some six bad ones: where they were few by chance, the allowance is small
    // and a window that keeps it comes later.
    right(scene, |outcome, end| recovered_near(outcome, end, 0, 900));
    let (mut near, mut all_good) = (0, 0);
    for seed in 0..SEEDS {
        let (scene, end) = scene(seed);
        near += usize::from(recovered_near(&scene.outcome(), end, 0, 5));
        let rows = &scene.observation.signals[0].rows;
        let after = usize::try_from(end).unwrap()..usize::try_from(end + 720).unwrap();
        all_good += usize::from(rows[after].iter().flatten().all(|value| *value > 0.9));
    }
    assert!(near >= 170, "{near} of {SEEDS} within five seconds");
    assert!(
        all_good <= 2,
        "{all_good} of {SEEDS} have 12 minutes without a bad second"
    );
}

/// Warm-up before 0:00, and a drift through all of the quiet time.
#[test]
fn polluted_baseline() {
    let warm_up = |seed| {
        let (end, zero) = (end_of(seed), dice(seed, 6).below(40) + 30);
        let level = move |second: u64| match second {
            second if second < zero => 0.1,
            second if (BEGIN..end).contains(&second) => 0.5,
            _ => 1.0,
        };
        let mut scene = fault(vec![goodput(seed, end + 120, level)]);
        scene.observation.quiet_from = at(zero);
        (scene, end)
    };
    right(warm_up, |outcome, end| recovered_near(outcome, end, 1, 1));
    let drift = |seed| {
        let end = end_of(seed);
        let up = 0.3 + 0.3 * dice(seed, 7).fraction();
        let level = move |second: u64| match second {
            second if (BEGIN..end).contains(&second) => 0.5,
            second => 1.0 + up * (second.min(BEGIN) as f64 / BEGIN as f64),
        };
        (fault(vec![goodput(seed, end + 120, level)]), end)
    };
    let unknown: Truth =
        |outcome| matches!(outcome, RecoveryOutcome::Censored { why, .. } if why.contains("moved"));
    right(drift, |outcome, _| unknown(outcome));
}

/// Half of those who failed do not come back: all that is tried succeeds, and half of it is missing.
#[test]
fn users_who_give_up() {
    let scene = |seed| {
        let end = end_of(seed) + 60;
        let mut chance = dice(seed, 8);
        let tries: Vec<f64> = (0..end + 120)
            .map(|second| {
                let away = (BEGIN..end).contains(&second);
                by_chance(&mut chance, if away { 25.0 } else { 50.0 })
            })
            .collect();
        let value = |second: u64| {
            let fails = (BEGIN..BEGIN + 30).contains(&second);
            (tries[second as usize] > 0.0).then_some(if fails { 0.5 } else { 1.0 })
        };
        let tried = |second: u64| tries[second as usize];
        (fault(vec![success(end + 120, value, tried, 50.0)]), end)
    };
    // A window of 30 s holds 90 % of the offer less what chance takes while up to 14 of its seconds are too few.
    right(scene, |outcome, end| recovered_near(outcome, end, 14, 1));
}

/// Answers are fast again, and what piled up drains for another 40 to 139 seconds.
#[test]
fn live_backlog() {
    let scene = |seed| {
        let up_to = BEGIN + 40;
        let end = up_to + dice(seed, 9).below(100) + 40;
        let level = move |second: u64| {
            if (BEGIN..up_to).contains(&second) {
                0.4
            } else {
                1.0
            }
        };
        let length = end + 120;
        let mut chance = dice(seed, 10);
        let stock: Vec<f64> = (0..length)
            .map(|second| {
                let usual = by_chance(&mut chance, 10.0);
                let piled = match second {
                    second if second < BEGIN || second >= end => 0.0,
                    second if second < up_to => 2000.0 * (second - BEGIN) as f64 / 40.0,
                    second => 2000.0 * (end - second) as f64 / (end - up_to) as f64,
                };
                usual + piled
            })
            .collect();
        let of = |second: u64| Some(stock[second as usize]);
        let backlog = signal(
            "commands open",
            SignalKind::Backlog { slack: 0.0 },
            length,
            of,
        );
        (fault(vec![goodput(seed, length, level), backlog]), end)
    };
    // The last seconds of the drain lie within what comes and goes.
    right(scene, |outcome, end| recovered_near(outcome, end, 2, 1));
}

/// The fault was never taken away: a recovery from its removal has no beginning.
#[test]
fn fault_that_is_not_healed() {
    let scene = |seed| {
        let end = end_of(seed);
        let level = move |second: u64| {
            if (BEGIN..end).contains(&second) {
                0.5
            } else {
                1.0
            }
        };
        let mut scene = fault(vec![goodput(seed, end + 120, level)]);
        scene.observation.marks = vec![MarkSpan {
            id: MarkId(0),
            begin: at(BEGIN),
            end: None,
        }];
        (scene, end)
    };
    right(
        scene,
        |outcome, _| matches!(outcome, RecoveryOutcome::Censored { why, .. } if why.contains("still acted")),
    );
}

/// The run ended by a signal, or before the sustain time was over.
#[test]
fn censored() {
    let low = |second: u64| if second >= BEGIN { 0.7 } else { 1.0 };
    let interrupted = |seed| {
        let end = end_of(seed);
        let scene = fault(vec![goodput(seed, end, low)]);
        (scene.ending(Ending::Interrupted("Ctrl-C".to_owned())), end)
    };
    right(interrupted, |outcome, end| {
        let at_least = (end - BEGIN - 20) * 1_000_000;
        matches!(outcome, RecoveryOutcome::Censored { at_least_us, .. } if *at_least_us == at_least)
    });
    let too_short = |seed| {
        let end = end_of(seed);
        let level = move |second: u64| {
            if (BEGIN..end).contains(&second) {
                0.5
            } else {
                1.0
            }
        };
        let held = dice(seed, 11).below(20) + 5;
        (fault(vec![goodput(seed, end + held, level)]), end)
    };
    right(too_short, |outcome, end| {
        let at_least = (end - BEGIN - 20) * 1_000_000;
        matches!(outcome, RecoveryOutcome::Censored { at_least_us, .. }
            if at_least_us.abs_diff(at_least) <= 1_000_000)
    });
}

/// Hubs that went away and stay away; hubs that come back too slowly to be seen in one window.
#[test]
fn stuck_or_slow() {
    let hubs = |seed: u64, a_second: f64| {
        let mut chance = dice(seed, 12);
        let mut back = 0.0;
        let rows: Vec<f64> = (0..400_u64)
            .map(|second| {
                if second > BEGIN + 5 {
                    back += by_chance(&mut chance, a_second);
                }
                match second {
                    second if second < BEGIN => 1000.0,
                    second if second < BEGIN + 5 => 100.0,
                    _ => (400.0 + back).min(1000.0),
                }
            })
            .collect();
        let of = |second: u64| Some(rows[second as usize]);
        let connected = signal("homes connected", SignalKind::Connected, 400, of);
        (fault(vec![connected]), 0)
    };
    right(
        |seed| hubs(seed, 0.002),
        |outcome, _| matches!(outcome, RecoveryOutcome::Metastable { .. }),
    );
    right(
        |seed| hubs(seed, 1.0),
        |outcome, _| {
            // 690 of 990 are back at the end: 300 s more, and chance moves that by a tenth or two.
            matches!(outcome, RecoveryOutcome::Recovering { eta_us, .. }
                if (150_000_000..600_000_000).contains(eta_us))
        },
    );
}

/// Back for 60 seconds, and then down again with nothing that explains it.
#[test]
fn a_second_collapse() {
    let (mut seen, mut invented) = (0, 0);
    for seed in 0..SEEDS {
        let end = end_of(seed);
        let again = end + 60;
        let with = move |second: u64| {
            let down = (BEGIN..end).contains(&second) || (again..again + 40).contains(&second);
            if down { 0.5 } else { 1.0 }
        };
        let without = move |second: u64| {
            if (BEGIN..end).contains(&second) {
                0.5
            } else {
                1.0
            }
        };
        let collapses = |level: &dyn Fn(u64) -> f64| {
            let scene = fault(vec![goodput(seed, end + 200, level)]);
            scene.analyse().remove(0).collapses
        };
        let found = collapses(&with);
        let right = found.first().is_some_and(|collapse| {
            collapse.at == at(again)
                && collapse
                    .back
                    .is_some_and(|back| back.0.abs_diff(at(again + 40).0) <= 1_000_000)
        });
        seen += usize::from(right && found.len() == 1);
        invented += usize::from(!collapses(&without).is_empty());
    }
    assert!(seen >= RIGHT, "{seen} of {SEEDS} were seen");
    assert!(
        invented <= SEEDS as usize - RIGHT,
        "{invented} of {SEEDS} were invented"
    );
}

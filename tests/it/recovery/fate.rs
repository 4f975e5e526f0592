//! What is said of a target that does not come back while it is watched.

use super::scene::{Scene, recovered, signal, span, success};
use rushhour::measure::recovery::{RecoveryLength, RecoveryOutcome, SignalKind};
use std::time::Duration;

/// Hubs of which 300 come back in the first wave, and then as many a second as `back` says.
fn stuck_hubs(length: u64, back: f64) -> Scene {
    let connected = signal("homes connected", SignalKind::Connected, length, |second| {
        Some(if (100..105).contains(&second) {
            200.0
        } else if second < 100 {
            1000.0
        } else {
            (500.0 + (second - 105) as f64 * back).min(1000.0)
        })
    });
    Scene::new(vec![connected], vec![span(0, 100, 102)])
}

/// Of 800 hubs that went away 300 came back, and nobody after them.
#[test]
fn a_fleet_that_stays_away_is_metastable() {
    let outcome = stuck_hubs(400, 0.0).outcome();
    let RecoveryOutcome::Metastable {
        within_us,
        signal,
        goodput,
    } = &outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (*within_us, signal.as_str()),
        (298_000_000, "homes connected")
    );
    assert!((goodput - 0.375).abs() < 1e-9, "{outcome:?}");
    assert_eq!(
        outcome.length(true),
        RecoveryLength::Never(Duration::from_secs(298))
    );
}

/// One hub a second: by one window alone this looks like a standstill, and it is not.
#[test]
fn a_slow_drain_is_recovering_with_the_time_that_it_takes() {
    let outcome = stuck_hubs(300, 1.0).outcome();
    let RecoveryOutcome::Recovering { eta_us, stock, .. } = &outcome else {
        panic!("{outcome:?}")
    };
    // 694 are back at the last second, and 990 are healthy.
    assert_eq!((*eta_us, stock.as_str()), (296_000_000, "homes connected"));
    assert_eq!(stuck_hubs(900, 1.0).outcome(), recovered(595, 100, 102));
}

#[test]
fn nothing_is_called_metastable_before_it_was_watched_for_long_enough() {
    let RecoveryOutcome::Censored { why, .. } = stuck_hubs(150, 0.0).outcome() else {
        panic!("{:?}", stuck_hubs(150, 0.0).outcome())
    };
    // Three times a timeout of 5 s and a wait of 15 s.
    assert!(why.contains("48 s") && why.contains("60 s"), "{why}");
}

#[test]
fn a_higher_load_is_no_metastable_failure() {
    let goodput = success(
        400,
        |second| Some(if second < 100 { 1.0 } else { 0.2 }),
        |_| 20.0,
        20.0,
    );
    let mut scene = Scene::new(vec![goodput], vec![span(0, 100, 102)]);
    assert!(
        matches!(scene.outcome(), RecoveryOutcome::Metastable { .. }),
        "{:?}",
        scene.outcome()
    );
    let activity = scene.observation.signals[0].activity.as_mut().unwrap();
    activity
        .offered
        .iter_mut()
        .skip(100)
        .for_each(|offered| *offered = 30.0);
    assert!(
        matches!(scene.outcome(), RecoveryOutcome::Censored { why, .. } if why.contains("more is asked for")),
        "{:?}",
        scene.outcome()
    );
}

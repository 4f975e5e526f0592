//! Curves whose answer can be read off.

use super::scene::{Scene, at, recovered, signal, span, success};
use rushhour::event::{MarkId, Offset};
use rushhour::measure::recovery::{
    Ending, MarkSpan, RecoveryLength, RecoveryOutcome, SignalKind, decided,
};
use std::time::Duration;

/// 100 a second, 50 from `begin` to `end`.
fn dip(length: u64, begin: u64, end: u64) -> Scene {
    let goodput = signal(
        "commands in time",
        SignalKind::Goodput,
        length,
        move |second| {
            Some(if (begin..end).contains(&second) {
                50.0
            } else {
                100.0
            })
        },
    );
    Scene::new(vec![goodput], vec![span(0, 100, 160)])
}

#[test]
fn recovery_is_the_first_second_of_the_good_time_that_lasts() {
    let recovery = dip(300, 100, 175).analyse().remove(0);
    assert_eq!(recovery.outcome, recovered(175, 100, 160));
    assert_eq!(recovery.onset, Some(at(100)));
    let signal = &recovery.signals[0];
    assert_eq!(
        (signal.recovered, signal.worst, signal.bad_seconds),
        (Some(at(175)), Some((50.0, at(100))), 75)
    );
    let band = signal.band.unwrap();
    assert_eq!(
        (band.baseline.from, band.baseline.to),
        (at(40), at(100)),
        "the minute before the mark"
    );
    assert_eq!((band.enter, band.leave), (90.0, 95.0));
}

#[test]
fn the_effect_may_come_later_than_the_fault() {
    let recovery = dip(300, 130, 190).analyse().remove(0);
    assert_eq!(recovery.onset, Some(at(130)));
    assert_eq!(recovery.outcome, recovered(190, 100, 160));
}

#[test]
fn a_target_that_fails_over_is_back_when_the_fault_goes() {
    assert_eq!(dip(300, 100, 120).outcome(), recovered(160, 100, 160));
    assert_eq!(
        dip(300, 100, 120).outcome().length(true),
        RecoveryLength::Exactly(Duration::ZERO)
    );
}

#[test]
fn whoever_never_leaves_the_band_needs_no_recovery() {
    let scene = dip(300, 0, 0);
    assert_eq!(scene.outcome(), RecoveryOutcome::NotNeeded);
    assert_eq!(
        scene.outcome().length(false),
        RecoveryLength::Exactly(Duration::ZERO)
    );
    // However short the sustain time is.
    let mut hasty = dip(300, 160, 163);
    hasty.settings.sustain = Duration::from_secs(2);
    assert!(
        matches!(hasty.outcome(), RecoveryOutcome::Recovered { at: found, .. } if found == at(163)),
        "{:?}",
        hasty.outcome()
    );
    // Two bad seconds are no onset: 3 of 5 are.
    assert_eq!(dip(300, 110, 112).outcome(), RecoveryOutcome::NotNeeded);
    assert_eq!(dip(300, 110, 113).outcome(), recovered(160, 100, 160));
}

#[test]
fn what_neither_drains_nor_collapses_is_not_known_further() {
    let RecoveryOutcome::Censored { why, at_least_us } = dip(400, 100, 400).outcome() else {
        panic!("{:?}", dip(400, 100, 400).outcome())
    };
    assert_eq!(at_least_us, 240_000_000);
    assert!(why.contains("neither draining"), "{why}");
}

#[test]
fn a_run_cut_short_says_so_and_at_least_how_long() {
    let scene = dip(200, 100, 400).ending(Ending::Interrupted("stopped by Ctrl-C".to_owned()));
    let why = "stopped by Ctrl-C".to_owned();
    assert_eq!(
        scene.outcome(),
        RecoveryOutcome::Censored {
            why,
            at_least_us: 40_000_000
        }
    );
}

#[test]
fn a_good_end_that_is_too_short_is_no_recovery_and_no_failure() {
    let RecoveryOutcome::Censored { why, at_least_us } = dip(200, 100, 180).outcome() else {
        panic!("{:?}", dip(200, 100, 180).outcome())
    };
    assert_eq!(at_least_us, 20_000_000);
    assert!(
        why.contains("for the last 20 s") && why.contains("30 s"),
        "{why}"
    );
}

#[test]
fn while_the_run_goes_on_it_is_decided_as_soon_as_it_can_be() {
    for length in 100..300 {
        let recoveries = dip(length, 100, 175).ending(Ending::Running).analyse();
        assert_eq!(
            decided(&recoveries),
            length >= 205,
            "at {length}: {:?}",
            recoveries[0].outcome
        );
    }
    for length in 100..300 {
        let recoveries = dip(length, 0, 0).ending(Ending::Running).analyse();
        assert_eq!(
            decided(&recoveries),
            length >= 190,
            "at {length}: {:?}",
            recoveries[0].outcome
        );
    }
}

#[test]
fn a_mark_that_still_acts_is_undecided() {
    let mut scene = dip(300, 100, 175).ending(Ending::Running);
    scene.observation.marks = vec![MarkSpan {
        id: MarkId(0),
        begin: at(100),
        end: None,
    }];
    assert_eq!(scene.outcome(), RecoveryOutcome::Undecided);
    scene.observation.ending = Ending::Settled;
    assert!(
        matches!(scene.outcome(), RecoveryOutcome::Censored { why, .. } if why.contains("still acted"))
    );
}

#[test]
fn hubs_are_back_at_99_percent_of_what_stood() {
    let connected = signal("homes connected", SignalKind::Connected, 300, |second| {
        Some(match second {
            0..100 => 8000.0,
            100..130 => 4960.0 + (second - 100) as f64 * 98.0,
            130..140 => 7919.0,
            _ => 7920.0,
        })
    });
    let scene = Scene::new(vec![connected], vec![span(0, 100, 102)]);
    assert_eq!(scene.outcome(), recovered(140, 100, 102));
}

/// A loss of 5 % of the fleet is far within 10 %, and still a loss.
#[test]
fn a_small_share_of_lost_hubs_is_an_effect() {
    let connected = signal("homes connected", SignalKind::Connected, 300, |second| {
        Some(if (100..150).contains(&second) {
            950.0
        } else {
            1000.0
        })
    });
    assert_eq!(
        Scene::new(vec![connected], vec![span(0, 100, 100)]).outcome(),
        recovered(150, 100, 100)
    );
}

#[test]
fn a_wait_of_microseconds_may_double_but_not_grow_to_what_people_feel() {
    let wait = |high: f64| {
        let rows = move |second| {
            Some(if (100..200).contains(&second) {
                high
            } else {
                120.0
            })
        };
        let wait = signal("pool wait", SignalKind::Wait { slack: 10_000.0 }, 300, rows);
        Scene::new(vec![wait], vec![span(0, 100, 160)]).outcome()
    };
    assert_eq!(wait(3000.0), RecoveryOutcome::NotNeeded);
    assert_eq!(wait(30_000.0), recovered(200, 100, 160));
}

#[test]
fn all_signals_have_to_hold_at_the_same_time() {
    // Goodput is back at 150 and dips again while the hubs come back at 170: both are good from 190 on.
    let goodput = signal("goodput", SignalKind::Goodput, 300, |second| {
        Some(
            if (100..150).contains(&second) || (180..190).contains(&second) {
                50.0
            } else {
                100.0
            },
        )
    });
    let connected = signal("connected", SignalKind::Connected, 300, |second| {
        Some(if (100..170).contains(&second) {
            500.0
        } else {
            1000.0
        })
    });
    let recovery = Scene::new(vec![goodput, connected], vec![span(0, 100, 100)])
        .analyse()
        .remove(0);
    assert_eq!(recovery.outcome, recovered(190, 100, 100));
    assert_eq!(
        recovery.signals[0].recovered,
        Some(at(150)),
        "by itself it held for 30 s"
    );
    assert_eq!(recovery.signals[1].recovered, Some(at(170)));
}

#[test]
fn the_next_mark_ends_the_look_at_the_one_before() {
    let goodput = signal("goodput", SignalKind::Goodput, 500, |second| {
        Some(
            if (100..220).contains(&second) || (250..270).contains(&second) {
                50.0
            } else {
                100.0
            },
        )
    });
    let recoveries =
        Scene::new(vec![goodput], vec![span(0, 100, 130), span(1, 240, 245)]).analyse();
    // 20 good seconds before the next mark are not the 30 that it takes.
    let RecoveryOutcome::Censored { why, at_least_us } = &recoveries[0].outcome else {
        panic!("{recoveries:?}")
    };
    assert_eq!(*at_least_us, 90_000_000);
    assert!(why.contains("next trigger or fault"), "{why}");
    // The second is compared with the quiet time before the first.
    assert_eq!(recoveries[1].signals[0].band.unwrap().baseline.to, at(100));
    assert_eq!(recoveries[1].outcome, recovered(270, 240, 245));
}

#[test]
fn marks_that_overlap_recover_together() {
    let goodput = signal("goodput", SignalKind::Goodput, 400, |second| {
        Some(if (100..230).contains(&second) {
            50.0
        } else {
            100.0
        })
    });
    let recoveries =
        Scene::new(vec![goodput], vec![span(1, 120, 122), span(0, 100, 200)]).analyse();
    assert_eq!(
        recoveries[0].mark,
        MarkId(0),
        "in the order of their begins"
    );
    assert_eq!(recoveries[0].outcome, recovered(230, 100, 200));
    assert_eq!(recoveries[1].outcome, recovered(230, 120, 122));
}

#[test]
fn leaving_the_band_again_is_told() {
    let goodput = signal("goodput", SignalKind::Goodput, 400, |second| {
        Some(
            if (100..120).contains(&second) || (300..310).contains(&second) {
                50.0
            } else {
                100.0
            },
        )
    });
    let recovery = Scene::new(vec![goodput], vec![span(0, 100, 110)])
        .analyse()
        .remove(0);
    assert_eq!(recovery.outcome, recovered(120, 100, 110));
    assert_eq!(recovery.left_again, Some(at(300)));
    let collapse = &recovery.collapses[0];
    assert_eq!(
        (collapse.at, collapse.back, collapse.signal.as_str()),
        (at(300), Some(at(310)), "goodput")
    );
    assert_eq!(
        recovery.length(true),
        RecoveryLength::Exactly(Duration::from_secs(200)),
        "to the last recovery"
    );
}

#[test]
fn without_quiet_seconds_there_is_no_answer_but_a_reason() {
    let mut scene = dip(300, 100, 175);
    scene.observation.quiet_from = at(95);
    assert!(
        matches!(scene.outcome(), RecoveryOutcome::Censored { why, .. } if why.contains("too few quiet seconds"))
    );
}

#[test]
fn a_quiet_time_that_moves_is_not_quiet() {
    let goodput = signal("goodput", SignalKind::Goodput, 300, |second| {
        let drifting = if second < 100 {
            100.0 + 0.5 * second as f64
        } else {
            150.0
        };
        Some(if (100..150).contains(&second) {
            50.0
        } else {
            drifting + (second % 3) as f64
        })
    });
    let outcome = Scene::new(vec![goodput], vec![span(0, 100, 120)]).outcome();
    assert!(
        matches!(&outcome, RecoveryOutcome::Censored { why, .. } if why.contains("moved by +22 %")),
        "{outcome:?}"
    );
}

#[test]
fn a_probe_that_goes_blind_does_not_make_a_recovery() {
    let wait = |blind: std::ops::Range<u64>| {
        let rows = move |second| {
            let wait = if (100..150).contains(&second) {
                50_000.0
            } else {
                100.0
            };
            (!blind.contains(&second)).then_some(wait)
        };
        Scene::new(
            vec![signal(
                "pool wait",
                SignalKind::Wait { slack: 10_000.0 },
                300,
                rows,
            )],
            vec![span(0, 100, 130)],
        )
        .outcome()
    };
    assert_eq!(wait(0..0), recovered(150, 100, 130));
    let outcome = wait(140..300);
    assert!(
        matches!(&outcome, RecoveryOutcome::Censored { why, .. } if why == "pool wait could not be read for long enough"),
        "{outcome:?}"
    );
}

#[test]
fn a_group_that_had_nothing_to_do_before_is_not_judged() {
    let idle = success(
        300,
        |second| (second > 200).then_some(0.1),
        |second| if second > 200 { 5.0 } else { 0.0 },
        0.0,
    );
    let mut scene = dip(300, 100, 175);
    scene.observation.signals.push(idle);
    let recovery = scene.analyse().remove(0);
    assert_eq!(recovery.outcome, recovered(175, 100, 160));
    assert_eq!(recovery.signals[1].band, None);
}

#[test]
fn the_clock_may_begin_long_before_the_columns() {
    let mut scene = dip(300, 100, 175);
    scene.observation.first_second = 1000;
    scene.observation.quiet_from = at(1000);
    scene.observation.marks = vec![span(0, 1100, 1160)];
    assert_eq!(scene.outcome(), recovered(1175, 1100, 1160));
}

/// 1 % of the fleet an hour reconnects anyway; 600 reconnects come in ten seconds.
#[test]
fn reconnects_multiply_by_the_worst_minute_over_the_quiet_rate() {
    let reconnects = |quiet: f64| -> Vec<f64> {
        (0..300)
            .map(|second| {
                if (100..110).contains(&second) {
                    60.0
                } else {
                    quiet
                }
            })
            .collect()
    };
    let multiplied = dip(300, 100, 175)
        .hubs(1000, reconnects(0.5))
        .analyse()
        .remove(0)
        .reconnects
        .unwrap();
    // 600 and 50 × 0.5 in the worst minute.
    assert!(
        (multiplied.peak_per_second - 625.0 / 60.0).abs() < 1e-9,
        "{multiplied:?}"
    );
    assert!(
        (multiplied.times - 625.0 / 60.0 / 0.5).abs() < 1e-9,
        "{multiplied:?}"
    );
    assert!(
        (multiplied.extra_per_hub - 0.595).abs() < 1e-9,
        "{multiplied:?}"
    );
    assert_eq!((multiplied.floored, multiplied.peak_at), (false, at(110)));

    let from_nothing = dip(300, 100, 175)
        .hubs(1000, reconnects(0.0))
        .analyse()
        .remove(0)
        .reconnects
        .unwrap();
    assert!(from_nothing.floored && from_nothing.times.is_finite());
    assert_eq!(
        (
            from_nothing.baseline_per_second,
            from_nothing.peak_per_second
        ),
        (0.0, 10.0)
    );
    assert_eq!(
        from_nothing.above_double_seconds, 69,
        "the minute after the first and the last of the ten seconds"
    );
}

#[test]
fn no_marks_and_no_columns_are_no_trouble() {
    assert!(Scene::new(Vec::new(), Vec::new()).analyse().is_empty());
    let outcome = Scene::new(Vec::new(), vec![span(0, 100, 110)]).outcome();
    assert!(
        matches!(outcome, RecoveryOutcome::Censored { .. }),
        "{outcome:?}"
    );
    let late = dip(50, 0, 0);
    assert!(
        matches!(late.outcome(), RecoveryOutcome::Censored { .. }),
        "the mark lies behind the columns"
    );
    assert_eq!(Offset::ZERO, at(0));
}

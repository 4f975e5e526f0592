//! What holds for any columns.

use super::scene::{Scene, at, signal, span, success};
use proptest::prelude::*;
use rushhour::measure::recovery::{
    Ending, Recovery, RecoveryOutcome, SignalKind, SignalRows, decided,
};

/// Columns that are mostly healthy, with bad stretches and missing seconds.
fn columns() -> impl Strategy<Value = Vec<Option<f64>>> {
    let piece = (
        1_usize..40,
        prop_oneof![4 => Just(Some(100.0)), 2 => Just(Some(60.0)), 1 => Just(None)],
    );
    proptest::collection::vec(piece, 1..20).prop_map(|pieces| {
        let healthy = std::iter::repeat_n(Some(100.0), 60);
        healthy
            .chain(
                pieces
                    .into_iter()
                    .flat_map(|(length, value)| std::iter::repeat_n(value, length)),
            )
            .collect()
    })
}

fn scene(rows: &[Option<f64>], begin: u64, end: u64) -> Scene {
    let length = rows.len() as u64;
    let attempts = |second: u64| {
        if rows[second as usize].is_some() {
            20.0
        } else {
            0.0
        }
    };
    let goodput = success(length, |second| rows[second as usize], attempts, 20.0);
    let connected = signal("connected", SignalKind::Connected, length, |second| {
        rows[second as usize].or(Some(1.0))
    });
    Scene::new(vec![goodput, connected], vec![span(0, begin, end)])
}

fn cut(scene: &Scene, length: usize) -> Scene {
    let mut scene = scene.clone();
    for signal in &mut scene.observation.signals {
        signal.rows.truncate(length);
        if let Some(activity) = &mut signal.activity {
            activity.attempts.truncate(length);
            activity.offered.truncate(length);
        }
    }
    scene
}

fn scaled(rows: &SignalRows, by: f64) -> SignalRows {
    SignalRows {
        rows: rows
            .rows
            .iter()
            .map(|value| value.map(|value| value * by))
            .collect(),
        ..rows.clone()
    }
}

fn bad_in(rows: &[Option<f64>], from: usize) -> usize {
    rows[from..from + 30]
        .iter()
        .filter(|value| value.is_none_or(|value| value < 95.0))
        .count()
}

/// The same answer; what was divided may differ in its last digits.
fn same(one: &RecoveryOutcome, other: &RecoveryOutcome) -> bool {
    match (one, other) {
        (
            RecoveryOutcome::Metastable {
                within_us,
                signal,
                goodput,
            },
            RecoveryOutcome::Metastable {
                within_us: within,
                signal: name,
                goodput: share,
            },
        ) => (within_us, signal) == (within, name) && (goodput - share).abs() < 1e-9,
        (
            RecoveryOutcome::Recovering {
                within_us,
                eta_us,
                stock,
            },
            RecoveryOutcome::Recovering {
                within_us: within,
                eta_us: eta,
                stock: name,
            },
        ) => {
            (within_us, stock) == (within, name) && eta_us.abs_diff(*eta) <= 1 + eta_us / 1_000_000
        }
        _ => one == other,
    }
}

proptest! {
    /// A recovery lies at or after the removal and the onset, holds for the sustain time, and no earlier second would have done.
    #[test]
    fn a_recovery_is_what_it_says(rows in columns(), lasts in 0_u64..60) {
        let (begin, end) = (60, 60 + lasts);
        let recovery: Recovery = scene(&rows, begin, end).analyse().remove(0);
        if let RecoveryOutcome::Recovered { at: recovered_at, from_injection_us, from_removal_us, declared } = recovery.outcome {
            prop_assert!(recovered_at >= at(end) && Some(recovered_at) >= recovery.onset);
            prop_assert_eq!(from_injection_us, recovered_at.0 - at(begin).0);
            prop_assert_eq!(from_removal_us, recovered_at.0 - at(end).0);
            let row = recovered_at.second() as usize;
            prop_assert!(rows.len() >= row + 30);
            prop_assert_eq!(declared, at(row as u64 + 30));
            // 30 seconds at a rate of 0.002 allow for two bad ones.
            prop_assert!(bad_in(&rows, row) <= 2);
            prop_assert!(rows[row].is_some_and(|value| value >= 95.0));
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Once it is decided, more seconds change nothing but `left_again`.
    #[test]
    fn an_answer_stays(rows in columns(), lasts in 0_u64..60) {
        let whole = scene(&rows, 60, 60 + lasts).ending(Ending::Running);
        let answer = whole.outcome();
        let mut early = None;
        for length in (60..rows.len()).step_by(3) {
            let recoveries = cut(&whole, length).analyse();
            if decided(&recoveries) {
                let outcome = recoveries[0].outcome.clone();
                prop_assert_eq!(early.get_or_insert(outcome.clone()), &outcome, "at {}", length);
            }
        }
        if let Some(early) = early {
            prop_assert_eq!(early, answer);
        }
    }

}

proptest! {
    /// The unit of a signal does not matter.
    #[test]
    fn scaling_changes_nothing(rows in columns(), by in 0.001_f64..1000.0) {
        let plain = scene(&rows, 60, 70);
        let mut other = plain.clone();
        other.observation.signals = plain.observation.signals.iter().map(|rows| scaled(rows, by)).collect();
        prop_assert!(same(&plain.outcome(), &other.outcome()), "{:?}, {:?}", plain.outcome(), other.outcome());
    }

    /// Any columns, marks and lengths give one answer a mark, and never break the analysis.
    #[test]
    fn anything_goes(
        rows in proptest::collection::vec(proptest::option::of(proptest::num::f64::ANY), 0..200),
        marks in proptest::collection::vec((0_u64..300, 0_u64..300, any::<bool>()), 0..5),
        quiet_from in 0_u64..250,
        first_second in 0_u64..250,
    ) {
        let spans: Vec<_> = (0..).zip(&marks).map(|(id, (begin, lasts, ends))| {
            let mut span = span(id, *begin, begin + lasts);
            span.end = span.end.filter(|_| *ends);
            span
        }).collect();
        let kinds = [SignalKind::Goodput, SignalKind::Connected, SignalKind::Backlog { slack: 0.0 }, SignalKind::Wait { slack: 1.0 }];
        let signals = kinds.map(|kind| signal("any", kind, rows.len() as u64, |second| rows[second as usize]));
        let reconnects = rows.iter().map(|value| value.unwrap_or(0.0)).collect();
        let mut scene = Scene::new(signals.to_vec(), spans).hubs(10, reconnects);
        scene.observation.quiet_from = at(quiet_from);
        scene.observation.first_second = first_second;
        prop_assert_eq!(scene.analyse().len(), marks.len());
    }
}

//! A recording as a profile plays it.

use rushhour::spec::{Sources, read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A profile with this recording beside it.
fn write(folder: &Path, duration: &str, recorded: &str) -> PathBuf {
    let counts: String = (0..60)
        .map(|minute| format!("{minute},{}\n", minute % 7))
        .collect();
    std::fs::write(
        folder.join("arrivals.csv"),
        format!("minute,unlocks\n{counts}"),
    )
    .unwrap();
    let target = super::here("tests/it/bad/good/target.yaml");
    let profile = folder.join("profile.yaml");
    let text = format!(
        "target: {}\nduration: {duration}\nriders:\n  people: {{ journey: ride, arrivals: {{ recorded: {recorded} }} }}\n",
        target.display()
    );
    std::fs::write(&profile, text).unwrap();
    profile
}

/// Minutes 10 to 40 of the recording, three times as many, twice as fast.
#[test]
fn a_part_of_a_recording_is_played_larger_and_faster() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let recorded = r#"{ csv: arrivals.csv, column: unlocks, per: 1m, from: "00:10", to: "00:40", times: 3, speed: 2x }"#;
    let profile = write(folder.path(), "15m", recorded);
    let sources = Sources {
        profile,
        ..Sources::default()
    };
    let plan = read(&sources).expect("the profile is right");
    let arrivals = &plan.riders[0].arrivals;
    assert_eq!(arrivals.lasts(), Duration::from_secs(15 * 60));
    let wanted: Vec<u64> = (10..40).map(|minute| minute % 7 * 3).collect();
    assert_eq!(arrivals.total(), wanted.iter().sum::<u64>());
    let mut counts = vec![0_u64; wanted.len()];
    for due in (1..).map_while(|n| arrivals.due(n)) {
        counts[(due.as_secs() / 30) as usize] += 1;
    }
    assert_eq!(counts, wanted);
}

/// Half of a recording of small counts is half of them all, not the half of each rounded down to nothing.
#[test]
fn small_counts_do_not_vanish_when_they_are_scaled_down() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let profile = write(
        folder.path(),
        "1h",
        "{ csv: arrivals.csv, column: unlocks, per: 1m, times: 0.1 }",
    );
    let sources = Sources {
        profile,
        ..Sources::default()
    };
    let plan = read(&sources).expect("the profile is right");
    let recorded: u64 = (0..60).map(|minute| minute % 7).sum();
    assert_eq!(
        plan.riders[0].arrivals.total(),
        (recorded as f64 * 0.1).round() as u64
    );
}

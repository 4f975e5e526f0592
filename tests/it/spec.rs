//! What files say, and what is said about wrong ones.

use rushhour::spec::{Sources, read};
use std::path::PathBuf;

fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Every shipped profile with every target and experiment that it is meant for.
#[test]
fn shipped_files_are_read_without_problems() {
    let chaos = ["chaos/kill-shard.yaml", "chaos/slow-database.yaml"];
    let mut runs: Vec<(&str, Option<&str>, Vec<&str>)> = vec![
        ("profiles/quickstart.yaml", None, vec![]),
        ("profiles/commuter-burst.yaml", None, vec![]),
        ("profiles/mass-reconnect.yaml", None, vec![]),
        (
            "profiles/mass-reconnect.yaml",
            Some("profiles/targets/mosquitto.yaml"),
            vec![],
        ),
        ("profiles/certificate-refresh.yaml", None, vec![]),
    ];
    runs.extend(chaos.map(|file| ("profiles/commuter-burst.yaml", None, vec![file])));
    for (profile, target, chaos) in runs {
        let sources = Sources {
            profile: here(profile),
            target: target.map(here),
            chaos: chaos.iter().map(|file| here(file)).collect(),
            ..Sources::default()
        };
        if let Err(problems) = read(&sources) {
            panic!("{profile} with {target:?} and {chaos:?}:\n{problems}");
        }
    }
}

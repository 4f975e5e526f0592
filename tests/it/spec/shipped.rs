//! The files that come with the program.

use super::here;
use rushhour::plan::outlook::Outlook;
use rushhour::spec::{Sources, files, read};

fn sources(profile: &str, target: Option<&str>, chaos: &[&str]) -> Sources {
    Sources {
        profile: here(profile),
        target: target.map(here),
        chaos: chaos.iter().map(|file| here(file)).collect(),
        ..Sources::default()
    }
}

/// Every recipe of `chaos/`, with the profile and target that its first line names.
fn recipes() -> Vec<Sources> {
    let mut runs = Vec::new();
    let on_the_lab = [
        "kill-shard",
        "rolling-shard-restart",
        "slow-database",
        "exhaust-pool",
        "black-hole-shard",
        "half-open",
        "flapping-link",
        "second-trigger",
        "lose-all-connections",
    ];
    let on_a_cluster = [
        "drain-emqx",
        "drain-rabbitmq",
        "lame-duck-nats",
        "delete-pod",
    ];
    let recipes = [
        ("commuter-burst", None, &on_the_lab[..]),
        ("certificate-refresh", None, &["slow-authentication"][..]),
        (
            "mass-reconnect",
            Some("profiles/targets/cluster.yaml"),
            &on_a_cluster[..],
        ),
    ];
    for (profile, target, names) in recipes {
        for name in names {
            let chaos = format!("chaos/{name}.yaml");
            runs.push(sources(
                &format!("profiles/{profile}.yaml"),
                target,
                &[chaos.as_str()],
            ));
        }
    }
    runs
}

/// Every shipped profile with every target and experiment that it is meant for.
#[test]
fn shipped_files_are_read_without_problems() {
    let mut runs = vec![
        sources("profiles/quickstart.yaml", None, &[]),
        sources("profiles/commuter-burst.yaml", None, &[]),
        sources("profiles/mass-reconnect.yaml", None, &[]),
        sources(
            "profiles/mass-reconnect.yaml",
            Some("profiles/targets/mosquitto.yaml"),
            &[],
        ),
        sources("profiles/certificate-refresh.yaml", None, &[]),
        sources("profiles/station-outage.yaml", None, &[]),
        sources("profiles/broker-rebalance.yaml", None, &[]),
        sources("profiles/certificate-wave.yaml", None, &[]),
        sources("profiles/certificate-renewal.yaml", None, &[]),
        sources("profiles/critical-number.yaml", None, &[]),
    ];
    runs.extend(recipes());
    for run in &runs {
        match read(run) {
            Ok(plan) => assert!(
                Outlook::of(&plan)
                    .warnings
                    .iter()
                    .all(|warning| warning.contains("never covers"))
            ),
            Err(problems) => panic!("{run:?}:\n{problems}"),
        }
    }
    // None of profiles/ and chaos/ is left out above.
    for folder in ["profiles", "chaos", "profiles/targets"] {
        for entry in std::fs::read_dir(here(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_read = runs.iter().any(|run| {
                files(run)
                    .iter()
                    .any(|file| file.canonicalize().ok() == path.canonicalize().ok())
            });
            assert!(
                path.is_dir() || is_read,
                "{} is read by no test",
                path.display()
            );
        }
    }
}

/// The good files of the folder of bad ones are good: what is wrong there is wrong for the reason stated.
#[test]
fn good_files_are_good() {
    if let Err(problems) = read(&sources("tests/it/bad/good/profile.yaml", None, &[])) {
        panic!("{problems}");
    }
}

#[test]
fn the_plan_of_a_profile_with_a_fault_is_printed_whole() {
    let run = sources(
        "profiles/commuter-burst.yaml",
        None,
        &["chaos/slow-database.yaml"],
    );
    let run = Sources {
        seed: Some(5),
        on: vec!["auth-from-database".to_owned()],
        ..run
    };
    let plan = read(&run).unwrap_or_else(|problems| panic!("{problems}"));
    let text = Outlook::of(&plan)
        .to_string()
        .replace(&format!("{}/", env!("CARGO_MANIFEST_DIR")), "");
    insta::assert_snapshot!(text);
}

#[test]
fn a_broker_alone_has_a_plan_too() {
    let run = sources(
        "profiles/mass-reconnect.yaml",
        Some("profiles/targets/mosquitto.yaml"),
        &[],
    );
    let plan = read(&run).unwrap_or_else(|problems| panic!("{problems}"));
    let outlook = Outlook::of(&plan);
    assert_eq!(
        outlook.hosts,
        [(
            "127.0.0.1:1883".to_owned(),
            "devices.hub.shards.broker".to_owned()
        )]
    );
    // Ten thousand hubs and one connection that publishes commands.
    assert_eq!(outlook.sockets(), 10_001);
    // Half of them come back within the five seconds of `first`: twice as fast as they came up.
    assert_eq!(outlook.peak_connects_per_second, 1_000.0);
}

//! Runs repeated, compared, and judged against an earlier one, as a user does it.

use super::{LIMIT, lab_target, profile};
use crate::support::program::Home;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// The folders of a home's runs that hold a file of this name, by their names, which begin with the time.
fn folders_with(home: &Home, name: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(home.path().join("runs"))
        .expect("there are runs")
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.join(name).is_file())
        .collect();
    found.sort();
    found
}

#[test]
fn a_repetition_has_a_summary_and_can_be_compared() {
    let home = Home::new();
    let file = profile(
        &home,
        &lab_target(),
        3,
        "expect: [ command latency p95 <= 2s ]\n",
    );
    let ended = home
        .start(&["run", &file, "--repeat", "2"], &[])
        .wait(LIMIT);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("2 runs of"), "{}", ended.stdout);
    let summaries = folders_with(&home, "summary.json");
    let [summary] = summaries.as_slice() else {
        panic!("{summaries:?}")
    };
    let text = fs::read_to_string(summary.join("summary.json")).expect("it was just seen");
    let told: Value = serde_json::from_str(&text).expect("the summary is JSON");
    let seeds: Vec<u64> = told["runs"]
        .as_array()
        .expect("runs are a list")
        .iter()
        .filter_map(|run| run["seed"].as_u64())
        .collect();
    assert_eq!(seeds, [7, 8], "each run has the next seed");
    assert_eq!(told["lines"][0]["values"].as_array().map(Vec::len), Some(2));

    // With itself nothing has changed, however few the runs are.
    let itself = summary.display().to_string();
    let compared = home.start(&["compare", &itself, &itself], &[]).wait(LIMIT);
    assert_eq!(compared.code, 0, "{}\n{}", compared.stdout, compared.stderr);

    let runs = folders_with(&home, "result.json");
    let run = runs[0].display().to_string();
    // Another load is another plan.
    let other = profile(
        &home,
        &lab_target(),
        4,
        "expect: [ command latency p95 <= 100x last ]\n",
    );
    let ended = home
        .start(&["run", &other, "--against", &run], &[])
        .wait(LIMIT);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let result = ended.result();
    assert!(
        result["judgements"][0]["limit"]
            .as_str()
            .is_some_and(|limit| limit.contains("x last =")),
        "{}",
        result["judgements"]
    );
    let other_run = ended.run.expect("it made a folder").display().to_string();
    let refused = home.start(&["compare", &run, &other_run], &[]).wait(LIMIT);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(
        refused.stderr.contains("--different-plans"),
        "{}",
        refused.stderr
    );
    let told = home
        .start(&["compare", &run, &other_run, "--different-plans"], &[])
        .wait(LIMIT);
    assert!(told.stdout.contains("COMPARISON"), "{}", told.stdout);
}

#[test]
fn the_similar_small_run_is_printed_without_a_profile() {
    let home = Home::new();
    // The large system of the field notes: 2 500 connects/s, T = 5 s, full jitter to 60 s: 8 μT.
    let like = "1_000_000,50,20ms,5s,full_jitter:1s:60s";
    let told = home.start(&["check", "--like", like], &[]).wait(LIMIT);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(
        told.stdout.contains("= 100_000 hubs, 10.0% of the fleet"),
        "{}",
        told.stdout
    );
    assert!(told.stdout.contains("pool_size: 1,"), "{}", told.stdout);
    assert!(told.stdout.contains("count: 20000"), "{}", told.stdout);
    let told = home
        .start(&["check", "--like", "1000,5,20ms,full_jitter:1s:60s"], &[])
        .wait(LIMIT);
    assert_eq!(told.code, 2);
    assert!(told.stderr.contains("4 parts, not 5"), "{}", told.stderr);
    let told = home.start(&["check"], &[]).wait(LIMIT);
    assert_eq!(told.code, 2);
    assert!(told.stderr.contains("give a profile"), "{}", told.stderr);
}

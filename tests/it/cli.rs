//! The command line: help, exit codes, refusals.

use crate::support::program::Home;
use rushhour::run::ending::Ending;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn help_prints_the_table_of_exit_codes() {
    let finished = Home::new().finish(&["--help"], LIMIT);
    finished.expect_code(0);
    assert!(
        finished.stdout.contains(&Ending::table()),
        "{}",
        finished.stdout
    );
}

#[test]
fn the_readme_has_the_same_table() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"))
        .expect("README.md is there");
    for ending in Ending::ALL {
        let row = format!("| {} | {} |", ending.code(), ending.meaning());
        assert!(readme.contains(&row), "the README lacks the row `{row}`");
    }
}

#[test]
fn bad_arguments_end_with_2() {
    let home = Home::new();
    home.finish(&["run"], LIMIT).expect_code(2);
    home.finish(&["run", "no-such-profile.yaml"], LIMIT)
        .expect_code(2);
    home.finish(&["rum"], LIMIT).expect_code(2);
}

#[test]
fn a_defect_that_the_lab_does_not_have_is_refused_by_check_too() {
    let home = Home::new();
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/quickstart.yaml");
    for command in ["check", "run"] {
        let finished = home.finish(&[command, profile, "--on", "auth-from-databse"], LIMIT);
        finished.expect_code(2);
        let said = &finished.stderr;
        assert!(
            said.contains("auth-from-databse") && said.contains("auth-from-database"),
            "{said}"
        );
    }
}

#[test]
fn a_missing_profile_is_told_by_its_name() {
    let finished = Home::new().finish(&["check", "no-such-profile.yaml"], LIMIT);
    finished.expect_code(2);
    assert!(
        finished.stderr.contains("no-such-profile.yaml"),
        "{}",
        finished.stderr
    );
}

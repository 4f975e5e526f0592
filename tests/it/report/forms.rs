//! The forms, as snapshots of one report, and what must hold for any report.

use super::scene;
use rushhour::report::terminal::COLUMNS;
use rushhour::report::{Report, json, junit, markdown, summary};

#[test]
fn the_terminal_summary() {
    insta::assert_snapshot!(summary(&scene::report(), false));
}

#[test]
fn the_markdown() {
    insta::assert_snapshot!(markdown(&scene::report()));
}

#[test]
fn the_junit_file() {
    insta::assert_snapshot!(junit(&scene::report()));
}

#[test]
fn the_json_file_is_the_report() {
    let report = scene::report();
    let text = json(&report);
    let back: Report = serde_json::from_str(&text).unwrap();
    // Numbers with a fraction may differ in their last bit.
    assert_eq!(back.run, report.run);
    assert_eq!(back.ledger, report.ledger);
    assert_eq!(back.hubs, report.hubs);
    assert_eq!(back.marks, report.marks);
    assert_eq!(back.operations.len(), report.operations.len());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema_version"], 1);
    assert_eq!(value["verdict"]["verdict"], "fail");
}

#[test]
fn the_events_file() {
    let mut stage = scene::evening();
    let transitions = stage.collector.take_transitions();
    let marks = stage.collector.marks();
    insta::assert_snapshot!(rushhour::report::events::lines(
        &transitions,
        &stage.plan,
        marks
    ));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut report = scene::report();
    report.judgements[0].text =
        "unlock latency p95 <= 1.5x baseline in every 1m during kill-gateway ".repeat(4);
    report
        .notes
        .push("a long note with many words in it ".repeat(20));
    let text = summary(&report, false);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= COLUMNS, "{widest} columns");
}

#[test]
fn colours_change_nothing_but_colours() {
    let report = scene::report();
    let coloured = summary(&report, true);
    let mut plain = coloured.clone();
    for code in [
        "\u{1b}[32m",
        "\u{1b}[31m",
        "\u{1b}[33m",
        "\u{1b}[2m",
        "\u{1b}[0m",
    ] {
        plain = plain.replace(code, "");
    }
    assert_ne!(coloured, plain);
    assert_eq!(plain, summary(&report, false));
}

#[test]
fn a_table_cell_can_not_break_its_table() {
    let mut report = scene::report();
    report.judgements[0].measured = "a | b\nc".to_owned();
    assert!(markdown(&report).contains("a \\| b c"));
}

#[test]
fn a_run_that_can_not_be_judged_is_an_error_in_junit() {
    let mut report = scene::report();
    report.verdict.verdict = "inconclusive".to_owned();
    report.verdict.exit_code = 4;
    let text = junit(&report);
    assert!(
        text.contains("<error type=\"invalid-run\"") || text.contains("type=\"invalid-run\""),
        "{text}"
    );
}

#[test]
fn an_empty_run_has_every_form() {
    let stage = crate::measure::stage::Stage::new(scene::plan_with_a_drop());
    let judged = stage.judge().verdict();
    let report = rushhour::report::build(&stage.collector, &judged, &[], &[], Default::default());
    for text in [
        summary(&report, false),
        markdown(&report),
        junit(&report),
        json(&report),
    ] {
        assert!(!text.is_empty());
    }
}

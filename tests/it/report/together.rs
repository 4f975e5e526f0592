//! Several runs told together, and two sets of runs compared.

use super::scene::report;
use rushhour::report::{Change, Report, comparison, comparison_text, repetition, repetition_text};

/// Runs that differ by their recovery, in seconds; `None` did not recover.
fn runs(recoveries: &[Option<u64>]) -> Vec<Report> {
    let one = |(number, seconds): (usize, &Option<u64>)| {
        let mut report = report();
        report.run.id = format!("run-{number}");
        report.run.seed = number as u64;
        for row in &mut report.recoveries {
            row.collapses.clear();
            row.from_removal_us = seconds.map(|seconds| seconds * 1_000_000);
            let outcome = if seconds.is_some() {
                "recovered"
            } else {
                "metastable"
            };
            outcome.clone_into(&mut row.outcome);
        }
        report
    };
    recoveries.iter().enumerate().map(one).collect()
}

fn change(first: &[Option<u64>], second: &[Option<u64>]) -> Change {
    let rows = comparison(&runs(first), &runs(second), 0.25);
    let mut rows = rows.iter();
    let row = rows.find(|row| row.name.starts_with("recovery from the end"));
    row.expect("recovery is compared").change
}

const FAST: [Option<u64>; 5] = [Some(10), Some(11), Some(12), Some(11), Some(10)];

#[test]
fn what_did_not_recover_is_counted_and_not_left_out() {
    let all = repetition(&runs(&[Some(10), None, Some(12), Some(14), None]));
    let row = &all.recoveries[0];
    assert_eq!(row.censored, 2);
    assert_eq!(row.figures.median, Some(14e6));
    assert_eq!(row.figures.p90, None, "nine of ten were not seen to end");
    assert_eq!((row.figures.low, row.figures.high), (Some(10e6), None));
    let text = repetition_text(&all);
    assert!(text.contains("recovered 3, metastable 2"), "{text}");
    assert!(
        text.contains("median 14.0 s, p90 not seen, 2 of 5 censored"),
        "{text}"
    );
}

#[test]
fn worse_takes_a_shift_and_enough_runs() {
    let slow = [Some(30), Some(31), Some(29), Some(33), Some(30)];
    assert_eq!(change(&FAST, &slow), Change::Worse);
    assert_eq!(change(&slow, &FAST), Change::Better);
    assert_eq!(change(&FAST, &FAST), Change::Same);
    // Certain, and too small to matter.
    let a_little = [Some(12), Some(13), Some(13), Some(12), Some(13)];
    assert_eq!(change(&FAST, &a_little), Change::Same);
    // Large, and three runs a side can't tell it from chance.
    assert_eq!(change(&FAST[..3], &slow[..3]), Change::Unproven);
    // Who does not come back at all is slower than anyone who does.
    assert_eq!(change(&FAST, &[None; 5]), Change::Worse);
    assert_eq!(change(&[None; 5], &[None; 5]), Change::Same);
}

#[test]
fn no_data_is_no_pass() {
    let mut second = runs(&FAST);
    second
        .iter_mut()
        .for_each(|report| report.recoveries.clear());
    let rows = comparison(&runs(&FAST), &second, 0.25);
    let row = rows
        .iter()
        .find(|row| row.name.starts_with("recovery from the end"));
    assert_eq!(row.expect("recovery is compared").change, Change::NoData);
    let text = comparison_text(&rows, (5, 5), 0.25);
    assert!(text.contains("no data"), "{text}");
}

//! Several runs of one plan, told together: what differs between runs is chance, and says how far one run can be trusted.

use super::data::{RecoveryRow, Report};
use crate::measure::figures;
use crate::measure::statistics::{median, median_interval, quantile};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// All runs, and what they say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    pub profile: String,
    pub runs: Vec<RunLine>,
    /// One row for each trigger and fault.
    pub recoveries: Vec<RepeatedRecovery>,
    /// One row for each expectation that measured something.
    pub lines: Vec<RepeatedValue>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    pub id: String,
    pub folder: String,
    pub seed: u64,
    pub verdict: String,
    pub exit_code: u8,
}

/// How the runs recovered from one mark. Times are microseconds from its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedRecovery {
    pub mark: String,
    /// How many runs ended in each way.
    pub outcomes: Vec<(String, u64)>,
    /// Runs that had not recovered when they ended; they count as longest.
    pub censored: u64,
    pub figures: RepeatedValue,
}

/// A number of each run. Where the middle (or the ninth of ten) was not seen to end, there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedValue {
    pub name: String,
    /// `None`: that run had not come to an end with it.
    pub values: Vec<Option<f64>>,
    pub median: Option<f64>,
    pub p90: Option<f64>,
    /// Between these lies the median, with this confidence.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub confidence: Option<f64>,
}

impl RepeatedValue {
    /// Of values that may be infinite.
    fn of(name: &str, values: &[f64]) -> RepeatedValue {
        let known = |value: f64| Some(value).filter(|value| value.is_finite());
        let interval = median_interval(values);
        RepeatedValue {
            name: name.to_owned(),
            values: values.iter().map(|value| known(*value)).collect(),
            median: median(values).and_then(known),
            p90: quantile(values, 0.9).and_then(known),
            low: interval.and_then(|interval| known(interval.low)),
            high: interval.and_then(|interval| known(interval.high)),
            confidence: interval.map(|interval| interval.confidence),
        }
    }
}

/// The time from a mark's end to the recovery; without an end infinite.
pub(super) fn recovery_us(row: &RecoveryRow) -> f64 {
    let collapsed = row
        .collapses
        .iter()
        .any(|collapse| collapse.back_us.is_none());
    match row.from_removal_us {
        Some(us) if !collapsed => us as f64,
        _ => f64::INFINITY,
    }
}

/// Tells runs together.
#[must_use]
pub fn repetition(reports: &[Report]) -> Repetition {
    let marks = reports
        .first()
        .into_iter()
        .flat_map(|report| &report.recoveries);
    let recoveries = marks.map(|first| {
        let rows: Vec<&RecoveryRow> = reports
            .iter()
            .filter_map(|report| report.recoveries.iter().find(|row| row.mark == first.mark))
            .collect();
        let values: Vec<f64> = rows.iter().map(|row| recovery_us(row)).collect();
        let mut outcomes: Vec<(String, u64)> = Vec::new();
        for row in &rows {
            match outcomes
                .iter_mut()
                .find(|(outcome, _)| *outcome == row.outcome)
            {
                Some((_, count)) => *count += 1,
                None => outcomes.push((row.outcome.clone(), 1)),
            }
        }
        RepeatedRecovery {
            mark: first.mark.clone(),
            outcomes,
            censored: values.iter().filter(|value| value.is_infinite()).count() as u64,
            figures: RepeatedValue::of("recovery from its end", &values),
        }
    });
    let lines = reports
        .first()
        .into_iter()
        .flat_map(|report| &report.judgements);
    let lines = lines.filter_map(|first| {
        let rows = reports
            .iter()
            .filter_map(|report| report.judgements.iter().find(|row| row.text == first.text));
        let values: Vec<f64> = rows.filter_map(|row| row.value).collect();
        (!values.is_empty()).then(|| RepeatedValue::of(&first.text, &values))
    });
    Repetition {
        profile: reports
            .first()
            .map(|report| report.run.profile.clone())
            .unwrap_or_default(),
        recoveries: recoveries.collect(),
        lines: lines.collect(),
        runs: reports
            .iter()
            .map(|report| RunLine {
                id: report.run.id.clone(),
                folder: report.run.folder.clone(),
                seed: report.run.seed,
                verdict: report.verdict.verdict.clone(),
                exit_code: report.verdict.exit_code,
            })
            .collect(),
    }
}

/// As the terminal and `summary.md` have it.
#[must_use]
pub fn repetition_text(all: &Repetition) -> String {
    let mut text = String::new();
    let time = |us: Option<f64>| us.map_or_else(|| "not seen".to_owned(), figures::time);
    let _ = writeln!(text, "# {} runs of {}\n", all.runs.len(), all.profile);
    for run in &all.runs {
        let _ = writeln!(text, "- {} seed {}: {}", run.id, run.seed, run.verdict);
    }
    for row in &all.recoveries {
        let outcomes: Vec<String> = row
            .outcomes
            .iter()
            .map(|(outcome, count)| format!("{outcome} {count}"))
            .collect();
        let value = &row.figures;
        let _ = writeln!(
            text,
            "\nAfter {}: {}\n  recovery from its end: median {}, p90 {}, {} of {} censored{}",
            row.mark,
            outcomes.join(", "),
            time(value.median),
            time(value.p90),
            row.censored,
            value.values.len(),
            interval_text(value, &time)
        );
    }
    if !all.lines.is_empty() {
        let _ = writeln!(text, "\nExpectations (base units: µs, shares, counts)");
    }
    for line in &all.lines {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figures::number);
        let _ = writeln!(
            text,
            "  {}: median {}, p90 {}{}",
            line.name,
            number(line.median),
            number(line.p90),
            interval_text(line, &number)
        );
    }
    text
}

fn interval_text(value: &RepeatedValue, write: &dyn Fn(Option<f64>) -> String) -> String {
    value.confidence.map_or_else(String::new, |confidence| {
        format!(
            "; the median lies between {} and {} with {}",
            write(value.low),
            write(value.high),
            figures::share(confidence)
        )
    })
}

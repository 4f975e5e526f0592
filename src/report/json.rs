//! `result.json`: the report as it is.

use super::Report;

/// The report as JSON, with a line end.
#[must_use]
pub fn json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report)
        .expect("a report is plain data: maps have text as keys and numbers are finite or null");
    text.push('\n');
    text
}

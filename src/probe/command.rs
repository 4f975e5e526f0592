//! A program of the target file that prints lines of Prometheus' text format: the last resort for what exports nothing.

use crate::measure::pool::{Gap, GapReason};
use std::process::Stdio;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::Command;

/// The most that is read of what it prints.
const MOST_BYTES: u64 = 1024 * 1024;

/// Runs it once to its end. When the reading is given up, the program is killed.
pub(super) async fn output(words: &[String]) -> Result<Vec<u8>, Gap> {
    let program = words.first().map(String::as_str).unwrap_or_default();
    let gap = |reason, why: String| Gap {
        reason,
        detail: format!("{program}: {why}"),
    };
    let mut child = Command::new(program)
        .args(words.iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| gap(GapReason::Unreachable, error.to_string()))?;
    let mut printed = Vec::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out)
            .take(MOST_BYTES + 1)
            .read_to_end(&mut printed)
            .await
            .map_err(|error| gap(GapReason::Unreadable, error.to_string()))?;
    }
    if printed.len() as u64 > MOST_BYTES {
        return Err(gap(
            GapReason::Unreadable,
            "it printed more than 1 MiB".to_owned(),
        ));
    }
    let status = child
        .wait()
        .await
        .map_err(|error| gap(GapReason::Unreachable, error.to_string()))?;
    if status.success() {
        return Ok(printed);
    }
    Err(gap(GapReason::Refused, format!("it ended with {status}")))
}

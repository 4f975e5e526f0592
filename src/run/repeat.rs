//! One plan, several times, each with its own seed; and what all of them say together.

use super::ending::Ending;
use super::folder::{Folder, WriteFailed};
use super::interrupt::Interrupt;
use super::{RunArguments, Stopped, earlier};
use crate::net::secrets::Secrets;
use crate::report::{Report, repetition, repetition_text};
use std::path::PathBuf;

/// Runs it `times` times with the seeds from the plan's own on, prints and writes one summary. An interruption ends the rest.
///
/// # Errors
/// If nothing could be run, or the summary not be written.
pub(super) fn repeat(
    arguments: &RunArguments,
    times: u32,
    interrupt: &Interrupt,
    once: impl Fn(&RunArguments) -> (Ending, Option<PathBuf>),
) -> Result<Ending, Stopped> {
    let first = super::plan(arguments)?.seed;
    let mut reports: Vec<Report> = Vec::new();
    let mut worst = Ending::Passed;
    for number in 0..u64::from(times) {
        let with_seed = RunArguments {
            seed: Some(first.wrapping_add(number)),
            ..arguments.clone()
        };
        let (ending, folder) = once(&with_seed);
        worst = worst.min(ending);
        if let Some(folder) = folder {
            reports.push(earlier::report(&folder).map_err(Stopped::internal)?);
        }
        // What can't be run once can't be run again; what was interrupted is not wanted any more.
        if reports.is_empty() || interrupt.seen().is_some() || ending == Ending::Unhealed {
            break;
        }
    }
    if reports.is_empty() {
        return Ok(worst);
    }
    let text = summarise(arguments, &reports).map_err(Stopped::internal)?;
    super::print(&text)?;
    Ok(worst)
}

/// Writes `summary.json` and `summary.md` into a folder of their own, and gives what is printed.
fn summarise(arguments: &RunArguments, reports: &[Report]) -> Result<String, WriteFailed> {
    let all = repetition(reports);
    let folder = Folder::create(&arguments.out)?;
    let redactor = Secrets::default().redactor();
    let text = repetition_text(&all);
    let json = serde_json::to_string_pretty(&all).unwrap_or_default();
    folder.write("summary.json", &json, &redactor)?;
    folder.write("summary.md", &text, &redactor)?;
    Ok(format!(
        "\n{text}\nSUMMARY  {}/  summary.md  summary.json  (`rushhour compare` takes this folder)\n",
        folder.path().display()
    ))
}

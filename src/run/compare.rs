//! Two runs, or two repetitions, compared.

use super::earlier;
use super::ending::Ending;
use super::{Stopped, print};
use crate::report::{Change, Report, comparison, comparison_text};
use std::path::PathBuf;

/// What `compare` is given.
#[derive(Debug, Clone, clap::Args)]
pub struct CompareArguments {
    /// The run before: its folder, or that of a repetition (`--repeat`).
    pub first: PathBuf,
    /// The run after.
    pub second: PathBuf,
    /// A change by less than this share of the first is none.
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0)]
    pub floor: f64,
    /// Compare although agents, arrivals or triggers are not the same.
    #[arg(long)]
    pub different_plans: bool,
}

/// Compares and prints: failed if something got worse, inconclusive if that can't be told or one side has no data.
#[must_use]
pub fn compare(arguments: &CompareArguments) -> Ending {
    match compared(arguments) {
        Ok(ending) => ending,
        Err(stopped) => super::tell(&stopped),
    }
}

fn compared(arguments: &CompareArguments) -> Result<Ending, Stopped> {
    if !(arguments.floor.is_finite() && arguments.floor >= 0.0) {
        let floor = arguments.floor;
        return Err(Stopped::Refused(format!(
            "error: --floor {floor} is no share; write a number of percent, such as 25"
        )));
    }
    let first = earlier::reports(&arguments.first).map_err(Stopped::refused)?;
    let second = earlier::reports(&arguments.second).map_err(Stopped::refused)?;
    if !arguments.different_plans {
        refuse_other_plan(arguments, &first, &second)?;
    }
    let floor = arguments.floor / 100.0;
    let rows = comparison(&first, &second, floor);
    print(&comparison_text(&rows, (first.len(), second.len()), floor))?;
    let worst = rows.iter().map(|row| row.change).max();
    Ok(match worst {
        Some(Change::Worse) => Ending::Failed,
        Some(Change::NoData | Change::Unproven) | None => Ending::Inconclusive,
        Some(Change::Same | Change::Better) => Ending::Passed,
    })
}

fn refuse_other_plan(
    arguments: &CompareArguments,
    first: &[Report],
    second: &[Report],
) -> Result<(), Stopped> {
    let mut all = first.iter().chain(second).map(|report| &report.run.plan);
    let one = all.next();
    if all.all(|other| Some(other) == one) {
        return Ok(());
    }
    Err(Stopped::Refused(format!(
        "error: {} and {} ran different plans (agents, arrivals, triggers or faults differ), so that a difference says nothing about the \
         target; give --different-plans to compare them all the same",
        arguments.first.display(),
        arguments.second.display()
    )))
}

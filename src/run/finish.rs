//! The end of a run: close, judge, write every file, print the summary.

use super::chaos_parts::remaining_text;
use super::drive::LoadEnded;
use super::ending::Ending;
use super::folder::{self, Folder, WriteFailed};
use super::prepare::Prepared;
use super::watching::Watching;
use super::{Stopped, usage};
use crate::chaos::heal::Remaining;
use crate::measure::recovery::Ending as ObservationEnd;
use crate::measure::{Judged, Verdict};
use crate::net::secrets::Redactor;
use crate::report::{self, Facts, Report};
use std::io::IsTerminal;

/// What is known when the load is over.
pub(super) struct Outcome {
    pub load: LoadEnded,
    pub unhealed: Vec<Remaining>,
    pub interrupted: Option<Ending>,
}

/// Judges the run and writes what came of it.
///
/// # Errors
/// If a result can't be written; the summary is printed all the same.
pub(super) fn finish(
    prepared: &Prepared,
    mut watching: Watching,
    outcome: &Outcome,
) -> Result<Ending, Stopped> {
    watching.close();
    let recoveries = watching.recoveries(observation_end(&outcome.load));
    let mut judged = watching.judged(&recoveries);
    for doubt in doubts(&watching, outcome) {
        judged.verdict = judged
            .verdict
            .worst(Verdict::Inconclusive { why: doubt.clone() });
        judged.doubts.push(doubt);
    }
    if let LoadEnded::ByGuard(line) = &outcome.load {
        let why = format!("a guard stopped the run: {line}");
        judged.verdict = judged.verdict.worst(Verdict::Fail { why });
    }
    let ending = ending(&judged, outcome);
    let mut report = report(prepared, &watching, &judged, &recoveries, outcome, ending);
    let ending = match write_forms(&prepared.folder, &prepared.redactor, &report) {
        Ok(()) => ending,
        Err(failed) => {
            // What is printed is then all that there is, and says so.
            let ending = ending.min(Ending::Internal);
            report.verdict.exit_code = ending.code();
            report.verdict.exit_text = format!("{}: {failed}", ending.meaning());
            report.notes.push(failed.to_string());
            eprintln!("error: {failed}");
            ending
        }
    };
    let summary = report::summary(&report, std::io::stdout().is_terminal());
    super::print(&prepared.redactor.redact(&summary))?;
    Ok(ending)
}

fn observation_end(load: &LoadEnded) -> ObservationEnd {
    match load {
        LoadEnded::ByPlan => ObservationEnd::Settled,
        LoadEnded::ByGuard(line) => ObservationEnd::Interrupted(format!("the guard `{line}`")),
        LoadEnded::Unsteady(_) => ObservationEnd::Interrupted("a missing steady state".to_owned()),
        LoadEnded::ByInterrupt => ObservationEnd::Interrupted("a signal".to_owned()),
    }
}

fn doubts(watching: &Watching, outcome: &Outcome) -> Vec<String> {
    let mut doubts = watching.doubts.clone();
    if let LoadEnded::Unsteady(lines) = &outcome.load {
        doubts.push(format!(
            "nothing was broken, since the steady state did not hold: {}",
            lines.join("; ")
        ));
    }
    if outcome.interrupted.is_some() {
        doubts.push("the run was interrupted before its end".to_owned());
    }
    doubts.extend(remaining_text(&outcome.unhealed));
    doubts
}

/// The first that applies, in the order of the table of exit codes.
fn ending(judged: &Judged, outcome: &Outcome) -> Ending {
    if !outcome.unhealed.is_empty() {
        return Ending::Unhealed;
    }
    if let Some(interrupted) = outcome.interrupted {
        return interrupted;
    }
    match judged.verdict {
        Verdict::Fail { .. } => Ending::Failed,
        Verdict::Inconclusive { .. } => Ending::Inconclusive,
        Verdict::Pass => Ending::Passed,
    }
}

fn report(
    prepared: &Prepared,
    watching: &Watching,
    judged: &Judged,
    recoveries: &[crate::measure::recovery::Recovery],
    outcome: &Outcome,
    ending: Ending,
) -> Report {
    let mut notes = watching.notes.clone();
    notes.extend(watching.file_problems().map(str::to_owned));
    let facts = Facts {
        run_id: prepared.folder.id().to_owned(),
        started: folder::utc_text(prepared.started),
        replay: prepared.replay.clone(),
        folder: prepared.folder.path().display().to_string(),
        unfinished: false,
        stopped: stopped_text(&outcome.load),
        exit_code: ending.code(),
        exit_text: ending.meaning().to_owned(),
        workers: watching.workers(),
        cpu_share: watching.cpu_share(),
        resident_bytes: usage::resident_bytes(),
        notes,
    };
    report::build(
        &watching.collector,
        judged,
        &watching.pools,
        recoveries,
        facts,
    )
}

fn stopped_text(load: &LoadEnded) -> Option<String> {
    match load {
        LoadEnded::ByPlan => None,
        LoadEnded::ByGuard(line) => Some(format!("the guard {line}")),
        LoadEnded::Unsteady(_) => Some("a missing steady state".to_owned()),
        LoadEnded::ByInterrupt => Some("a signal".to_owned()),
    }
}

/// Writes a report in every form, and gives the first failure.
pub(super) fn write_forms(
    folder: &Folder,
    redactor: &Redactor,
    report: &Report,
) -> Result<(), WriteFailed> {
    let forms = [
        ("result.json", report::json(report)),
        ("report.md", report::markdown(report)),
        ("junit.xml", report::junit(report)),
    ];
    let mut first_failure = Ok(());
    for (name, text) in forms {
        let written = folder.write(name, &text, redactor);
        if first_failure.is_ok() {
            first_failure = written;
        }
    }
    first_failure
}

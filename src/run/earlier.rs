//! Runs that are over, read back from their folders.

use crate::plan::expect::{Against, key};
use crate::report::{Repetition, Report};
use std::fs;
use std::path::{Path, PathBuf};

/// Why a run can't be read back.
#[derive(Debug, thiserror::Error)]
#[error("error: can't read {path} as a run: {reason}; give the folder of a run, such as runs/ID")]
pub(super) struct NotARun {
    path: PathBuf,
    reason: String,
}

fn read(path: &Path) -> Result<String, NotARun> {
    fs::read_to_string(path).map_err(|error| NotARun {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// The report of a run, by its folder or its `result.json`.
///
/// # Errors
/// If there is none, or it is of another version.
pub(super) fn report(place: &Path) -> Result<Report, NotARun> {
    let path = if place.is_dir() {
        place.join("result.json")
    } else {
        place.to_owned()
    };
    serde_json::from_str(&read(&path)?).map_err(|error| NotARun {
        path,
        reason: error.to_string(),
    })
}

/// The reports of a run, or of all runs of a repetition by the folder with its `summary.json`.
///
/// # Errors
/// If one of them can't be read.
pub(super) fn reports(place: &Path) -> Result<Vec<Report>, NotARun> {
    let summary = place.join("summary.json");
    if !summary.is_file() {
        return Ok(vec![report(place)?]);
    }
    let all: Repetition = serde_json::from_str(&read(&summary)?).map_err(|error| NotARun {
        path: summary,
        reason: error.to_string(),
    })?;
    // Folders lie beside each other, wherever they were moved to.
    let beside = place.parent().unwrap_or(Path::new("."));
    all.runs
        .iter()
        .map(|run| {
            let moved = beside.join(&run.id);
            let folder = if moved.is_dir() {
                moved
            } else {
                PathBuf::from(&run.folder)
            };
            report(&folder)
        })
        .collect()
}

/// What `last` stands for in the lines of this run.
///
/// # Errors
/// If the run can't be read.
pub(super) fn against(place: &Path) -> Result<Against, NotARun> {
    let report = report(place)?;
    let values = report.judgements.iter();
    Ok(Against {
        run: report.run.id.clone(),
        values: values.map(|row| (key(&row.text), row.value)).collect(),
    })
}

//! The report as it stands, written while the run goes on: a run that is killed leaves more than nothing.
//!
//! Decides when it is worth writing. What it holds is measured and judged elsewhere, and the end of the run writes over it.

use super::ending::Ending;
use super::finish::write_forms;
use super::folder::{self, Folder};
use super::prepare::Prepared;
use super::usage;
use crate::measure::judge::Judge;
use crate::measure::pool::PoolSeries;
use crate::measure::recovery::Recovery;
use crate::measure::{Collector, Verdict};
use crate::net::secrets::Redactor;
use crate::report::{self, Facts};
use std::time::{Duration, Instant};

/// From one to the next, unless a trigger or fault begins or ends.
const EVERY: Duration = Duration::from_secs(5);
/// At most this share of the time goes into writing them.
const LARGEST_SHARE: f64 = 0.02;

/// What is needed to write it, and when that was done last.
pub(super) struct Interim {
    folder: Folder,
    redactor: Redactor,
    started: String,
    replay: String,
    workers: usize,
    next: Instant,
    /// Begins and ends of triggers and faults that the last one knew.
    changes: usize,
    /// What went wrong first.
    problem: Option<String>,
}

impl Interim {
    /// Nothing is written yet.
    pub fn new(prepared: &Prepared, workers: usize) -> Interim {
        Interim {
            folder: prepared.folder.clone(),
            redactor: prepared.redactor.clone(),
            started: folder::utc_text(prepared.started),
            replay: prepared.replay.clone(),
            workers,
            next: Instant::now(),
            changes: 0,
            problem: None,
        }
    }

    /// Whether it is worth writing now.
    pub fn is_due(&self, collector: &Collector) -> bool {
        let now = Instant::now();
        now >= self.next || (changes(collector) != self.changes && now + EVERY >= self.next)
    }

    /// Writes it. A full disk ends no run: the first problem is kept for the report.
    pub fn write(&mut self, collector: &Collector, pools: &[PoolSeries], recoveries: &[Recovery]) {
        let begun = Instant::now();
        self.changes = changes(collector);
        let mut judged = Judge::new(collector, pools, recoveries).verdict();
        let why = "the run had not ended when this was written".to_owned();
        judged.doubts = vec![why.clone()];
        judged.verdict = Verdict::Inconclusive { why };
        let facts = Facts {
            run_id: self.folder.id().to_owned(),
            started: self.started.clone(),
            replay: self.replay.clone(),
            folder: self.folder.path().display().to_string(),
            unfinished: true,
            stopped: None,
            exit_code: Ending::Inconclusive.code(),
            exit_text: "unfinished: it was written while the run went on".to_owned(),
            workers: self.workers,
            cpu_share: None,
            resident_bytes: usage::resident_bytes(),
            notes: Vec::new(),
        };
        let report = report::build(collector, &judged, pools, recoveries, facts);
        if let Err(failed) = write_forms(&self.folder, &self.redactor, &report) {
            self.problem.get_or_insert(failed.to_string());
        }
        self.next = Instant::now() + EVERY.max(begun.elapsed().div_f64(LARGEST_SHARE));
    }

    /// What kept one from being written.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

fn changes(collector: &Collector) -> usize {
    let marks = collector.marks();
    let ended = marks.rows.iter().filter(|row| row.end.is_some()).count();
    let begun = marks.rows.iter().filter(|row| row.begin.is_some()).count();
    begun + ended + usize::from(marks.zero.is_some())
}

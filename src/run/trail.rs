//! The files that grow while a run goes on: `events.jsonl` and `latency.hlog`.
//!
//! A full disk must not end a run: the first failure is kept for the report, and nothing more is written.

use super::folder::Folder;
use crate::measure::Collector;
use crate::report::{events, hlog};
use std::fs::File;
use std::io::{self, Write};
use std::time::SystemTime;

/// Both files, open.
pub(super) struct Trail {
    events: File,
    latency: File,
    problem: Option<String>,
}

impl Trail {
    /// Creates both files.
    ///
    /// # Errors
    /// If one can't be made.
    pub fn start(folder: &Folder, started: SystemTime) -> io::Result<Trail> {
        let mut latency = File::create(folder.path().join("latency.hlog"))?;
        latency.write_all(hlog::header(started).as_bytes())?;
        Ok(Trail {
            events: File::create(folder.path().join("events.jsonl"))?,
            latency,
            problem: None,
        })
    }

    /// Appends what the collector has ready.
    pub fn add(&mut self, collector: &mut Collector) {
        let transitions = collector.take_transitions();
        let intervals = collector.take_intervals();
        if self.problem.is_some() {
            return;
        }
        let lines = events::lines(&transitions, collector.plan(), collector.marks());
        let rows = hlog::lines(&intervals);
        let written = self
            .events
            .write_all(lines.as_bytes())
            .and_then(|()| self.latency.write_all(rows.as_bytes()));
        if let Err(error) = written {
            self.problem = Some(format!("events.jsonl and latency.hlog end early: {error}"));
        }
    }

    /// What went wrong, if anything did.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

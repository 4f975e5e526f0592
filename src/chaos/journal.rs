//! The journal of a run: what was broken and how it is undone, on the disk before it is broken.
//!
//! One JSON object a line, appended and fsynced. Whoever writes holds the file's lock, so a run that is alive is told from one that
//! died: the kernel lets go of the lock of a dead process, whatever it died of.

use super::undo::Undo;
use crate::net::state::{self, StateDirectory, StateError, open_private, sync_directory};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LOCK_TRIES: u32 = 20;
const LOCK_REST: Duration = Duration::from_millis(20);

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Since 1970, by the machine's clock.
    pub at_ms: u64,
    pub entry: Entry,
}

/// A step in the life of a fault, known by its name in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// What faults of the run will act on, so that another one keeps off.
    Claims {
        what: Vec<String>,
    },
    /// It may be injected from here on. `ends_at_ms`, like `at_ms`, is when it is due to end; `None`: with the run.
    Armed {
        fault: String,
        undo: Box<Undo>,
        ends_at_ms: Option<u64>,
    },
    Injected {
        fault: String,
    },
    Observed {
        fault: String,
        how: String,
    },
    NotObserved {
        fault: String,
        why: String,
    },
    /// The undo was performed.
    Undone {
        fault: String,
        how: String,
    },
    /// The undo was seen to have worked: nothing of the fault is left.
    Verified {
        fault: String,
        how: String,
    },
    UndoFailed {
        fault: String,
        why: String,
    },
}

/// Why a journal can't be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("run {0} is still going: end it with Ctrl-C, it undoes its faults itself")]
    RunIsAlive(String),
    #[error("there is no journal of a run {run_id} in {}", directory.display())]
    NoSuchRun { run_id: String, directory: PathBuf },
    #[error("a run {0} has been here already")]
    RunExists(String),
}

/// A fault that is not known to be undone.
#[derive(Debug, Clone, PartialEq)]
pub struct Unhealed {
    pub fault: String,
    pub undo: Undo,
    pub ends_at_ms: Option<u64>,
}

/// What a run left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    pub run_id: String,
    /// The run goes on, and looks after its faults itself.
    pub is_alive: bool,
    pub faults: Vec<Unhealed>,
    /// What its faults act on, now or later.
    pub claims: Vec<String>,
    /// Lines that can't be read although they are not the last: what they armed is not known.
    pub unreadable: Vec<String>,
}

impl Left {
    /// Every fault of it is known to be undone.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.faults.is_empty() && self.unreadable.is_empty()
    }
}

/// The journal of one run, locked.
#[derive(Debug)]
pub struct Journal {
    run_id: String,
    path: PathBuf,
    file: Mutex<Flock<File>>,
}

impl Journal {
    /// Starts the journal of a new run.
    ///
    /// # Errors
    /// If the run has one already, or the state directory can't be used.
    pub fn create(state: &StateDirectory, run_id: &str) -> Result<Journal, JournalError> {
        let directory = state.run(run_id)?;
        let path = directory.join("journal.jsonl");
        if path.exists() {
            return Err(JournalError::RunExists(run_id.to_owned()));
        }
        let file = open_private(OpenOptions::new().append(true).create_new(true), &path)?;
        sync_directory(&directory)?;
        sync_directory(state.path())?;
        Journal::locked(run_id, path, file)
    }

    /// Takes over the journal of a run that has died.
    ///
    /// # Errors
    /// If there is none, the run is still going, or it is not ours alone.
    pub fn take_over(state: &StateDirectory, run_id: &str) -> Result<Journal, JournalError> {
        let path = path_of(state, run_id)?;
        let file = open_private(OpenOptions::new().append(true), &path)?;
        let journal = Journal::locked(run_id, path, file)?;
        journal.cut_torn_tail()?;
        Ok(journal)
    }

    fn locked(run_id: &str, path: PathBuf, file: File) -> Result<Journal, JournalError> {
        let mut file = file;
        // Whoever looks for unhealed faults holds the lock for a moment; a run holds it for its life.
        for _ in 0..LOCK_TRIES {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => {
                    return Ok(Journal {
                        run_id: run_id.to_owned(),
                        path,
                        file: Mutex::new(locked),
                    });
                }
                Err((unlocked, _)) => file = unlocked,
            }
            std::thread::sleep(LOCK_REST);
        }
        Err(JournalError::RunIsAlive(run_id.to_owned()))
    }

    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends an entry; when this returns, it is on the disk. Blocks for an fsync.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn append(&self, entry: Entry) -> Result<(), JournalError> {
        let line = Line {
            at_ms: now_ms(),
            entry,
        };
        let failed = |source| state::at(&self.path, source);
        let mut text = serde_json::to_string(&line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        // A journal is whole between lines, even if somebody panicked while holding it.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(failed)?;
        Ok(())
    }

    /// What is not known to be undone.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn left(&self) -> Result<Left, JournalError> {
        let text = state::read_private(&self.path)?;
        Ok(left_by(&self.run_id, &text, true))
    }

    /// An unfinished last line was never followed by an injection; what is appended must not grow onto it.
    fn cut_torn_tail(&self) -> Result<(), JournalError> {
        let text = state::read_private(&self.path)?;
        let whole = text.rfind('\n').map_or(0, |newline| newline + 1);
        if whole < text.len() {
            let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.set_len(whole as u64)
                .and_then(|()| file.sync_all())
                .map_err(|source| state::at(&self.path, source))?;
        }
        Ok(())
    }
}

/// What every run left behind, in the order of their ids; runs that left nothing are not named.
///
/// # Errors
/// If the state directory can't be read or is not ours alone.
pub fn open_all(state: &StateDirectory) -> Result<Vec<Left>, JournalError> {
    let mut all = Vec::new();
    for run_id in state.run_ids()? {
        let left = look(state, &run_id)?;
        if !left.is_nothing() {
            all.push(left);
        }
    }
    Ok(all)
}

/// What one run left behind, or still has.
///
/// # Errors
/// If its journal can't be read or is not ours alone.
pub fn look(state: &StateDirectory, run_id: &str) -> Result<Left, JournalError> {
    let path = path_of(state, run_id)?;
    let file = open_private(OpenOptions::new().read(true), &path)?;
    let is_alive = Flock::lock(file, FlockArg::LockSharedNonblock).is_err();
    Ok(left_by(run_id, &state::read_private(&path)?, is_alive))
}

/// What a live run breaks that this one breaks too, as a text that says so; `None` if there is nothing. Each run has to have written
/// its own claims before it asks, so that of two runs that start at the same time at least one is refused.
///
/// # Errors
/// As [`open_all`].
pub fn contested(
    state: &StateDirectory,
    own_id: &str,
    claims: &[String],
) -> Result<Option<String>, JournalError> {
    for run_id in state
        .run_ids()?
        .into_iter()
        .filter(|run_id| run_id != own_id)
    {
        let other = look(state, &run_id)?;
        let both = claims.iter().find(|claim| other.claims.contains(claim));
        if let Some(both) = both.filter(|_| other.is_alive) {
            return Ok(Some(format!(
                "run {run_id} is going on and breaks {both}, too: neither could tell its own faults from the other's; wait for its end, or end it with Ctrl-C"
            )));
        }
    }
    Ok(None)
}

/// What dead runs left behind, as a text that says how to undo it; `None` if there is nothing. A new run must not start over it.
///
/// # Errors
/// As [`open_all`].
pub fn unhealed(state: &StateDirectory) -> Result<Option<String>, JournalError> {
    let mut lines = Vec::new();
    for left in open_all(state)?.into_iter().filter(|left| !left.is_alive) {
        for fault in &left.faults {
            lines.push(format!(
                "run {}: fault `{}` was not undone: {}",
                left.run_id, fault.fault, fault.undo
            ));
        }
        let lost = left.unreadable.iter().map(|line| {
            format!(
                "run {}: its journal holds an unreadable {line}",
                left.run_id
            )
        });
        lines.extend(lost);
    }
    if lines.is_empty() {
        return Ok(None);
    }
    lines.push("undo them first: rushhour heal --all".to_owned());
    Ok(Some(lines.join("\n")))
}

/// Reads a journal's text. A last line without its end is torn, and nothing happened after it.
fn left_by(run_id: &str, text: &str, is_alive: bool) -> Left {
    let mut left = Left {
        run_id: run_id.to_owned(),
        is_alive,
        faults: Vec::new(),
        claims: Vec::new(),
        unreadable: Vec::new(),
    };
    let whole = text.rfind('\n').map_or("", |newline| &text[..newline]);
    for (number, line) in whole.lines().enumerate() {
        match serde_json::from_str::<Line>(line) {
            Ok(Line {
                entry:
                    Entry::Armed {
                        fault,
                        undo,
                        ends_at_ms,
                    },
                ..
            }) => {
                left.faults.retain(|known| known.fault != fault);
                left.faults.push(Unhealed {
                    fault,
                    undo: *undo,
                    ends_at_ms,
                });
            }
            Ok(Line {
                entry: Entry::Claims { what },
                ..
            }) => left.claims.extend(what),
            Ok(Line {
                entry: Entry::Verified { fault, .. },
                ..
            }) => {
                left.faults.retain(|known| known.fault != fault);
            }
            Ok(_) => {}
            Err(error) => left
                .unreadable
                .push(format!("line {}: {error}", number + 1)),
        }
    }
    left
}

fn path_of(state: &StateDirectory, run_id: &str) -> Result<PathBuf, JournalError> {
    if !state.run_ids()?.iter().any(|known| known == run_id) {
        let (run_id, directory) = (run_id.to_owned(), state.path().to_owned());
        return Err(JournalError::NoSuchRun { run_id, directory });
    }
    Ok(state.run(run_id)?.join("journal.jsonl"))
}

/// Since 1970, by the machine's clock.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

//! The fault `pause` on a process: SIGSTOP. Its undo is SIGCONT, to that process and no other.

use super::process::{Identity, Pinned};
use super::undo::Standing;
use crate::plan::component::{Component, Process};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long every thread of a process may take to stop.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How `/proc` calls a process that SIGSTOP holds (proc(5)).
const STOPPED: char = 'T';

/// The undo: the process that was stopped runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    pub component: String,
    pub process: Identity,
}

/// A pause that is ready: the process is held by its pidfd.
pub(super) struct PauseProcess {
    process: Pinned,
    component: String,
}

impl PauseProcess {
    pub(super) fn arm(component: &Component, process: &Process) -> Result<PauseProcess, String> {
        let pid_file = PathBuf::from(process.pid_file.to_string());
        let executable = process.executable.as_ref().map(ToString::to_string);
        let pinned = Pinned::of_program(&pid_file, executable.as_deref());
        let pinned = pinned.map_err(|error| error.to_string())?;
        if pinned.identity.state() == Some(STOPPED) {
            return Err(format!("{} stands still already", pinned.identity));
        }
        Ok(PauseProcess {
            process: pinned,
            component: component.name.clone(),
        })
    }

    pub(super) fn touches(&self) -> String {
        self.process.identity.with_age()
    }

    pub(super) fn undo(&self) -> Resume {
        Resume {
            component: self.component.clone(),
            process: self.process.identity.clone(),
        }
    }

    pub(super) fn inject(&self) -> Result<(), String> {
        self.process.stop().map_err(|error| error.to_string())
    }

    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + STOPS_WITHIN;
        loop {
            let state = self.process.identity.state();
            let seen = match state {
                Some(STOPPED) => return Ok(format!("{} stands still", self.process.identity)),
                Some(state) => format!("{} is in state {state}", self.process.identity),
                None => return Err(format!("{} has ended", self.process.identity)),
            };
            if Instant::now() >= end {
                return Err(seen);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Resume {
    pub(super) fn standing(&self) -> Standing {
        match self.process.state() {
            Some(STOPPED) => Standing::Stands(format!("{} stands still", self.process)),
            Some(_) => Standing::Healed(format!("{} runs", self.process)),
            None => Standing::Healed(format!("{} has ended, and its pause with it", self.process)),
        }
    }

    pub(super) fn perform(&self) -> Result<String, String> {
        match Pinned::of(&self.process) {
            Ok(pinned) => pinned.resume().map_err(|error| error.to_string())?,
            // Whoever ended in between needs no signal.
            Err(_) if !self.process.runs() => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(format!("SIGCONT to {}", self.process))
    }
}

impl fmt::Display for Resume {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "let {} run again: SIGCONT to {}",
            self.component, self.process
        )
    }
}

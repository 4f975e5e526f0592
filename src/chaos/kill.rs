//! The fault `kill`: SIGKILL to the process of a component. Its undo is the target's operation that starts it again.

use super::process::{Identity, Pinned, of_pid_file};
use super::request::{StoredRequest, accepts};
use super::undo::Standing;
use crate::plan::Target;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long a process may take to end after SIGKILL, and its port to close.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A start may take as long as the component's own.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// The undo: the component runs as another process than the one that was killed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartComponent {
    pub component: String,
    pub pid_file: PathBuf,
    /// `host:port`, if the target file names it.
    pub port: Option<String>,
    pub killed: Identity,
    pub start: StoredRequest,
    /// The component ends with this process: the lab that the run started.
    pub lab: Option<Identity>,
}

/// A kill that is ready: the process is held by its pidfd.
#[derive(Debug)]
pub(super) struct Kill {
    process: Pinned,
    undo: StartComponent,
}

impl Kill {
    /// Takes hold of the process of the component in row `component`.
    pub(super) fn arm(
        component: usize,
        target: &Target,
        lab: Option<Identity>,
    ) -> Result<Kill, String> {
        let component = &target.components[component];
        let operation = &target.operations[component.undo];
        let pid_file = PathBuf::from(component.pid_file.to_string());
        let start =
            StoredRequest::of(&operation.request, target).map_err(|error| error.to_string())?;
        let process = Pinned::of_pid_file(&pid_file).map_err(|error| error.to_string())?;
        let undo = StartComponent {
            component: component.name.clone(),
            pid_file,
            port: component.port.as_ref().map(ToString::to_string),
            killed: process.identity.clone(),
            start,
            lab,
        };
        Ok(Kill { process, undo })
    }

    pub(super) fn undo(&self) -> StartComponent {
        self.undo.clone()
    }

    pub(super) fn inject(&self) -> Result<(), String> {
        self.process.kill().map_err(|error| error.to_string())
    }

    /// Waits until the process has ended and its port is closed.
    pub(super) async fn observe(&self) -> Result<String, String> {
        self.process
            .ended(ENDS_WITHIN)
            .await
            .map_err(|error| error.to_string())?;
        let gone = format!("{} has ended", self.process.identity);
        let Some(port) = &self.undo.port else {
            return Ok(gone);
        };
        let closed = async {
            while accepts(port, &self.undo.start.never)
                .await
                .map_err(|error| error.to_string())?
            {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Ok(format!("{gone}, {port} is closed"))
        };
        let late = || {
            Err(format!(
                "{gone}, but {port} still accepts connections after {ENDS_WITHIN:?}"
            ))
        };
        tokio::time::timeout(ENDS_WITHIN, closed)
            .await
            .unwrap_or_else(|_| late())
    }
}

impl StartComponent {
    /// The pid file names a live process that is not the killed one, and the port is open.
    pub(super) async fn standing(&self) -> Result<Standing, String> {
        if let Some(lab) = self.lab.as_ref().filter(|lab| !lab.runs()) {
            return Ok(Standing::Healed(format!(
                "the lab, {lab}, has ended with its components"
            )));
        }
        let now = match of_pid_file(&self.pid_file) {
            Ok(now) if now == self.killed => {
                return Ok(Standing::Stands(format!("{now} has not been killed")));
            }
            Ok(now) => now,
            Err(error) => {
                return Ok(Standing::Stands(format!(
                    "{} does not run: {error}",
                    self.component
                )));
            }
        };
        let Some(port) = &self.port else {
            return Ok(Standing::Healed(format!("{now} runs")));
        };
        if accepts(port, &self.start.never)
            .await
            .map_err(|error| error.to_string())?
        {
            return Ok(Standing::Healed(format!("{now} runs, {port} is open")));
        }
        Ok(Standing::Stands(format!(
            "{now} runs, but {port} is closed"
        )))
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let status = self
            .start
            .send(START_TIMEOUT)
            .await
            .map_err(|error| error.to_string())?;
        Ok(format!("{}: {status}", self.start))
    }
}

impl fmt::Display for StartComponent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "start {} again by {}",
            self.component, self.start
        )
    }
}

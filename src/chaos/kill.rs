//! The faults `kill` and `signal` on a process. Their undo starts it again: by an operation of the target, or by a program.

use super::command::StoredCommand;
use super::process::{Identity, Pinned, Signals, of_pid_file};
use super::request::{StoredRequest, accepts};
use super::undo::Standing;
use crate::plan::Target;
use crate::plan::component::{Act, Component, Process, SentSignal, Start};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long a process may take to end after SIGKILL, and its port to close.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long a process may take to show what it does with another signal.
const REACTS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A start may take as long as the component's own.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// A program that starts the component and fails says so within this, or is a daemon.
const FAILS_WITHIN: Duration = Duration::from_millis(300);

/// The undo: the component runs as another process than the one that was killed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartComponent {
    pub component: String,
    pub pid_file: PathBuf,
    /// `host:port`, if the target file names it.
    pub port: Option<String>,
    /// The target's `never`.
    #[serde(default)]
    pub never: Vec<String>,
    pub killed: Identity,
    /// A signal after which the process may serve on. If it does not, it is ended before another one is started.
    #[serde(default)]
    pub may_serve_on: bool,
    pub start: StartBy,
    /// The component ends with this process: the lab that the run started.
    pub lab: Option<Identity>,
}

/// What starts a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartBy {
    Request(Box<StoredRequest>),
    Program(Box<StoredCommand>),
    /// The target file says that it is not started again.
    Nothing,
}

/// A kill or another signal that is ready: the process is held by its pidfd.
#[derive(Debug)]
pub(super) struct Kill {
    process: Pinned,
    signal: Signal,
    undo: StartComponent,
}

impl Kill {
    /// Takes hold of the process of a component.
    pub(super) fn arm(
        component: &Component,
        process: &Process,
        act: Act,
        target: &Target,
        lab: Option<Identity>,
    ) -> Result<Kill, String> {
        let pid_file = PathBuf::from(process.pid_file.to_string());
        let start = StartBy::of(process, target)?;
        let executable = process.executable.as_ref().map(ToString::to_string);
        let pinned = Pinned::of_program(&pid_file, executable.as_deref());
        let pinned = pinned.map_err(|error| error.to_string())?;
        let signal = match act {
            Act::Signal(signal) => sent(signal),
            _ => Signal::KILL,
        };
        let undo = StartComponent {
            component: component.name.clone(),
            pid_file,
            port: component.port.as_ref().map(ToString::to_string),
            never: target.never.clone(),
            killed: pinned.identity.clone(),
            may_serve_on: signal != Signal::KILL,
            start,
            lab,
        };
        Ok(Kill {
            process: pinned,
            signal,
            undo,
        })
    }

    pub(super) fn touches(&self) -> String {
        self.process.identity.with_age()
    }

    pub(super) fn undo(&self) -> StartComponent {
        self.undo.clone()
    }

    pub(super) fn inject(&self) -> Result<(), String> {
        self.process
            .signal(self.signal)
            .map_err(|error| error.to_string())
    }

    pub(super) async fn observe(&self) -> Result<String, String> {
        match self.signal {
            Signal::KILL => self.observe_end().await,
            _ => self.observe_reaction().await,
        }
    }

    /// Waits until the process has ended and its port is closed.
    async fn observe_end(&self) -> Result<String, String> {
        self.process
            .ended(ENDS_WITHIN)
            .await
            .map_err(|error| error.to_string())?;
        let gone = format!("{} has ended", self.process.identity);
        let Some(port) = &self.undo.port else {
            return Ok(gone);
        };
        let closed = async {
            while self.undo.is_open(port).await? {
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

    /// Waits until the process has ended, closed its port, or taken the signal with a handler of its own.
    async fn observe_reaction(&self) -> Result<String, String> {
        let process = &self.process.identity;
        let end = Instant::now() + REACTS_WITHIN;
        loop {
            let Some(signals) = process.signals() else {
                return Ok(format!("{process} has ended"));
            };
            if let Some(port) = &self.undo.port
                && !self.undo.is_open(port).await?
            {
                return Ok(format!("{process} has closed {port}"));
            }
            let bit = Signals::bit(self.signal);
            let name = self.signal.as_raw();
            if signals.ignored & bit != 0 {
                return Err(format!("{process} ignores signal {name}"));
            }
            let is_late = Instant::now() >= end;
            if signals.caught & bit != 0 && signals.pending & bit == 0 && is_late {
                return Ok(format!("{process} took signal {name} and serves on"));
            }
            if is_late {
                return Err(format!("{process} has not taken signal {name}"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn sent(signal: SentSignal) -> Signal {
    match signal {
        SentSignal::Terminate => Signal::TERM,
        SentSignal::Interrupt => Signal::INT,
        SentSignal::Quit => Signal::QUIT,
        SentSignal::Hangup => Signal::HUP,
        SentSignal::User1 => Signal::USR1,
        SentSignal::User2 => Signal::USR2,
    }
}

impl StartBy {
    fn of(process: &Process, target: &Target) -> Result<StartBy, String> {
        Ok(match &process.start {
            Some(Start::Operation(row)) => {
                let request = &target.operations[*row].request;
                let request = StoredRequest::of(request, target);
                StartBy::Request(Box::new(request.map_err(|error| error.to_string())?))
            }
            Some(Start::Program(program)) => {
                let command = StoredCommand::of(program, target);
                StartBy::Program(Box::new(command.map_err(|error| error.to_string())?))
            }
            None => StartBy::Nothing,
        })
    }
}

impl StartComponent {
    /// The pid file names a live process that is not the killed one, and the port is open.
    pub(super) async fn standing(&self, performed: bool) -> Result<Standing, String> {
        if let Some(lab) = self.lab.as_ref().filter(|lab| !lab.runs()) {
            return Ok(Standing::Healed(format!(
                "the lab, {lab}, has ended with its components"
            )));
        }
        if self.start == StartBy::Nothing {
            return Ok(Standing::Healed(format!(
                "nothing starts {} again: the target file says irreversible",
                self.component
            )));
        }
        let now = match of_pid_file(&self.pid_file) {
            Ok(now) => now,
            Err(error) => {
                return Ok(Standing::Stands(format!(
                    "{} does not run: {error}",
                    self.component
                )));
            }
        };
        if now == self.killed && !self.may_serve_on {
            return Ok(self.not_killed(performed));
        }
        let Some(port) = &self.port else {
            return Ok(Standing::Healed(format!("{now} runs")));
        };
        if self.is_open(port).await? {
            return Ok(Standing::Healed(format!("{now} runs, {port} is open")));
        }
        Ok(Standing::Stands(format!(
            "{now} runs, but {port} is closed"
        )))
    }

    /// The process that was to be killed runs: the signal is on its way, or was never sent.
    fn not_killed(&self, performed: bool) -> Standing {
        let dying = self
            .killed
            .signals()
            .is_none_or(|signals| signals.pending & Signals::bit(Signal::KILL) != 0);
        if dying || performed {
            Standing::Stands(format!("{} has not ended yet", self.killed))
        } else {
            Standing::Healed(format!("{} was never killed", self.killed))
        }
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        if self.killed.runs() {
            // It neither serves nor ends: what a signal left half-way is ended before another one is started in its place.
            let half_way = Pinned::of(&self.killed).map_err(|error| error.to_string())?;
            half_way.kill().map_err(|error| error.to_string())?;
            let ended = half_way.ended(ENDS_WITHIN).await;
            ended.map_err(|error| error.to_string())?;
        }
        match &self.start {
            StartBy::Request(request) => {
                let status = request.send(START_TIMEOUT).await;
                let status = status.map_err(|error| error.to_string())?;
                Ok(format!("{request}: {status}"))
            }
            StartBy::Program(program) => {
                let mut left = program.leave_running().map_err(|error| error.to_string())?;
                tokio::time::sleep(FAILS_WITHIN).await;
                match left.ended().filter(|status| !status.success()) {
                    Some(status) => Err(format!("{program} ended with {status}")),
                    None => Ok(format!("started {program}")),
                }
            }
            StartBy::Nothing => Ok("nothing".to_owned()),
        }
    }

    async fn is_open(&self, port: &str) -> Result<bool, String> {
        accepts(port, &self.never)
            .await
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for StartComponent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let component = &self.component;
        match &self.start {
            StartBy::Request(request) => write!(formatter, "start {component} again by {request}"),
            StartBy::Program(program) => write!(formatter, "start {component} again by {program}"),
            StartBy::Nothing => write!(formatter, "{component} is not started again"),
        }
    }
}

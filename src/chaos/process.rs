//! Which process a number means: identity by number, start time and executable, signals only through a pidfd.

use crate::plan::quantity;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

const LOOK_EVERY: Duration = Duration::from_millis(2);
/// `USER_HZ`, in which Linux tells times of processes (proc(5), time(7)).
const TICKS_PER_SECOND: f64 = 100.0;

/// One process, told apart from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// Clock ticks between the machine's start and the process's (field 22 of `/proc/PID/stat`).
    pub started_ticks: u64,
    pub executable: PathBuf,
}

/// Why a process can't be named or touched.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("pid file {}: {source}", path.display())]
    PidFile { path: PathBuf, source: io::Error },
    #[error("pid file {} holds `{text}`, which is no process id", path.display())]
    NoPid { path: PathBuf, text: String },
    #[error("process {pid}: {source}")]
    Gone { pid: i32, source: io::Error },
    #[error("process {pid} is {what}: it will not be signalled")]
    Forbidden { pid: i32, what: &'static str },
    #[error(
        "process {pid} runs {runs}, not {wanted}: it is another one than the target file means"
    )]
    AnotherProgram {
        pid: i32,
        runs: String,
        wanted: String,
    },
    #[error("process {pid} still runs {waited:?} after SIGKILL")]
    StillRuns { pid: i32, waited: Duration },
}

/// What is known of a process's signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signals {
    pub pending: u64,
    pub ignored: u64,
    pub caught: u64,
}

impl Signals {
    /// The bit of a signal in these masks.
    #[must_use]
    pub fn bit(signal: Signal) -> u64 {
        1 << (signal.as_raw() - 1)
    }
}

/// A process held by its pidfd: a signal reaches this one or nobody.
#[derive(Debug)]
pub struct Pinned {
    pub identity: Identity,
    handle: OwnedFd,
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "process {} ({})",
            self.pid,
            self.executable.display()
        )
    }
}

impl Identity {
    /// The process that has this number now.
    ///
    /// # Errors
    /// If there is none, or it is only waiting to be reaped.
    pub fn of(pid: i32) -> Result<Identity, ProcessError> {
        let gone = |source| ProcessError::Gone { pid, source };
        let stat = Stat::of(pid).map_err(gone)?;
        if matches!(stat.state, 'Z' | 'X') {
            return Err(gone(io::Error::new(
                io::ErrorKind::NotFound,
                "it has ended",
            )));
        }
        // Another user's executable can't be read; number and start time still name the process.
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        Ok(Identity {
            pid,
            started_ticks: stat.started_ticks,
            executable,
        })
    }

    /// Itself, and for how long it has run: what tells it apart from a later one.
    #[must_use]
    pub fn with_age(&self) -> String {
        let uptime = fs::read_to_string("/proc/uptime").ok();
        let uptime_s: Option<f64> =
            uptime.and_then(|text| text.split_whitespace().next()?.parse().ok());
        let age = uptime_s.map(|uptime_s| {
            let age_s = uptime_s - self.started_ticks as f64 / TICKS_PER_SECOND;
            Duration::from_secs(age_s.max(0.0) as u64)
        });
        match age {
            Some(age) => format!("{self}, started {} ago", quantity::duration(age)),
            None => self.to_string(),
        }
    }

    /// The process that this program is.
    ///
    /// # Errors
    /// If `/proc` is not there.
    pub fn ours() -> Result<Identity, ProcessError> {
        Identity::of(i32::try_from(std::process::id()).unwrap_or(i32::MAX))
    }

    /// Its state as `/proc` has it (proc(5)): `R`, `S`, `T` and so on; `None` if it has ended.
    #[must_use]
    pub fn state(&self) -> Option<char> {
        let stat = Stat::of(self.pid).ok()?;
        let is_it = stat.started_ticks == self.started_ticks && !matches!(stat.state, 'Z' | 'X');
        is_it.then_some(stat.state)
    }

    /// The signals that are on their way to it, those that it ignores and those that it handles, a bit each from SIGHUP on (proc(5)).
    #[must_use]
    pub fn signals(&self) -> Option<Signals> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let mask = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            u64::from_str_radix(line.trim(), 16).ok()
        };
        let signals = Signals {
            pending: mask("SigPnd:")? | mask("ShdPnd:")?,
            ignored: mask("SigIgn:")?,
            caught: mask("SigCgt:")?,
        };
        self.runs().then_some(signals)
    }

    /// Whether it still runs.
    #[must_use]
    pub fn runs(&self) -> bool {
        Identity::of(self.pid).is_ok_and(|now| now.started_ticks == self.started_ticks)
    }
}

/// The process named by a pid file.
///
/// # Errors
/// If the file can't be read, holds no number, or no such process runs.
pub fn of_pid_file(path: &Path) -> Result<Identity, ProcessError> {
    let text = fs::read_to_string(path).map_err(|source| ProcessError::PidFile {
        path: path.to_owned(),
        source,
    })?;
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
    let pid = pid.ok_or_else(|| ProcessError::NoPid {
        path: path.to_owned(),
        text: text.trim().to_owned(),
    })?;
    Identity::of(pid)
}

impl Pinned {
    /// Takes hold of the process of a pid file.
    ///
    /// # Errors
    /// If it does not run, or is one that must never be signalled: pid 1, this program, or one of its ancestors.
    pub fn of_pid_file(path: &Path) -> Result<Pinned, ProcessError> {
        Pinned::of(&of_pid_file(path)?)
    }

    /// The same for a process that must be of this program, if one is given.
    ///
    /// # Errors
    /// As [`Pinned::of_pid_file`], and if it is of another program.
    pub fn of_program(path: &Path, executable: Option<&str>) -> Result<Pinned, ProcessError> {
        let pinned = Pinned::of_pid_file(path)?;
        let Some(wanted) = executable else {
            return Ok(pinned);
        };
        let file = fs::canonicalize(wanted).unwrap_or_else(|_| PathBuf::from(wanted));
        if pinned.identity.executable == file {
            return Ok(pinned);
        }
        Err(ProcessError::AnotherProgram {
            pid: pinned.identity.pid,
            runs: pinned.identity.executable.display().to_string(),
            wanted: wanted.to_owned(),
        })
    }

    /// Takes hold of exactly this process.
    ///
    /// # Errors
    /// As [`Pinned::of_pid_file`], and if its number belongs to another one by now.
    pub fn of(named: &Identity) -> Result<Pinned, ProcessError> {
        let pid = named.pid;
        forbid(pid)?;
        let gone = |source: io::Error| ProcessError::Gone { pid, source };
        let number = Pid::from_raw(pid).ok_or(ProcessError::Forbidden {
            pid,
            what: "no process",
        })?;
        let handle =
            pidfd_open(number, PidfdFlags::NONBLOCK).map_err(|error| gone(error.into()))?;
        // The number may have changed hands before the pidfd was open: what it holds now must be what the file named.
        let identity = Identity::of(pid)?;
        if identity != *named {
            return Err(gone(io::Error::other(
                "it was replaced by another one while it was looked at",
            )));
        }
        Ok(Pinned { identity, handle })
    }

    /// Sends SIGKILL.
    ///
    /// # Errors
    /// If the process has gone or is not ours to signal.
    pub fn kill(&self) -> Result<(), ProcessError> {
        self.signal(Signal::KILL)
    }

    /// Sends SIGSTOP.
    ///
    /// # Errors
    /// As [`Pinned::kill`].
    pub fn stop(&self) -> Result<(), ProcessError> {
        self.signal(Signal::STOP)
    }

    /// Sends SIGCONT.
    ///
    /// # Errors
    /// As [`Pinned::kill`].
    pub fn resume(&self) -> Result<(), ProcessError> {
        self.signal(Signal::CONT)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// If the process has gone or is not ours to signal.
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        pidfd_send_signal(&self.handle, signal).map_err(|error| ProcessError::Gone {
            pid: self.identity.pid,
            source: error.into(),
        })
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    /// If it has not within `limit`.
    pub async fn ended(&self, limit: Duration) -> Result<(), ProcessError> {
        let end = Instant::now() + limit;
        while !self.has_ended()? {
            if Instant::now() >= end {
                return Err(ProcessError::StillRuns {
                    pid: self.identity.pid,
                    waited: limit,
                });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// A pidfd becomes readable when its process has ended, reaped or not.
    fn has_ended(&self) -> Result<bool, ProcessError> {
        let mut ended = [PollFd::new(self.handle.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut ended, PollTimeout::ZERO);
        ready
            .map(|ready| ready > 0)
            .map_err(|error| ProcessError::Gone {
                pid: self.identity.pid,
                source: error.into(),
            })
    }
}

fn forbid(pid: i32) -> Result<(), ProcessError> {
    if pid == 1 {
        return Err(ProcessError::Forbidden {
            pid,
            what: "the first of its system",
        });
    }
    let mut ancestor = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    let mut what = "this program itself";
    while ancestor > 1 {
        if ancestor == pid {
            return Err(ProcessError::Forbidden { pid, what });
        }
        what = "an ancestor of this program";
        ancestor = Stat::of(ancestor).map_or(0, |stat| stat.parent);
    }
    Ok(())
}

/// What `/proc/PID/stat` tells.
struct Stat {
    state: char,
    parent: i32,
    started_ticks: u64,
}

impl Stat {
    fn of(pid: i32) -> io::Result<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Stat::parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc entry"))
    }

    /// The name in brackets may hold anything, brackets included: what counts starts after the last one.
    fn parse(text: &str) -> Option<Stat> {
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        // Fields 3 and 4 are read; the start time is field 22.
        let started_ticks = fields.nth(17)?.parse().ok()?;
        Some(Stat {
            state,
            parent,
            started_ticks,
        })
    }
}

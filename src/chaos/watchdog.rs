//! Heals after a run that was killed: a process that waits for the run to end, and undoes what it did not undo.
//!
//! The run holds the other end of a pipe. If the pipe closes without a word, the run died; whatever it died of, the kernel closes it.

use super::heal::{self, Healing};
use crate::net::state::{StateDirectory, open_private};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

const DONE: &[u8] = b"done\n";

/// The run's side: while this lives, the watchdog watches.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
}

/// Arguments of `rushhour watchdog`.
#[derive(Debug, Clone, clap::Args)]
pub struct WatchdogArguments {
    /// The run to heal after
    #[arg(long)]
    pub run: String,
}

impl Watchdog {
    /// Starts the watchdog of a run. `program` is this program's own file.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start(program: &Path, state: &StateDirectory, run_id: &str) -> io::Result<Watchdog> {
        let log = state.run(run_id)?.join("watchdog.log");
        let output = open_private(OpenOptions::new().append(true).create(true), &log)?;
        let mut command = state.command(program);
        command.args(["watchdog", "--run", run_id]);
        // A Ctrl-C meant for the run must not reach it.
        command.process_group(0);
        // The standard library opens the pipe close-on-exec: no other child keeps it open after us.
        command
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child = command.spawn()?;
        Ok(Watchdog { child })
    }

    /// The run has undone its faults itself.
    ///
    /// # Errors
    /// If the watchdog has died before.
    pub fn dismiss(mut self) -> io::Result<()> {
        let told = self
            .child
            .stdin
            .take()
            .map_or(Ok(()), |mut pipe| pipe.write_all(DONE));
        self.child.wait()?;
        told
    }
}

/// Waits for the run and heals after it.
#[must_use]
pub fn run(arguments: &WatchdogArguments) -> Healing {
    let mut said = Vec::new();
    // A pipe that can't be read has no run at its other end.
    let _ = io::stdin().read_to_end(&mut said);
    if said == DONE {
        return Healing::Done;
    }
    heal::run_after_death(&arguments.run)
}

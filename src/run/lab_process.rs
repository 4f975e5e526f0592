//! The embedded target as a process of its own, for target files with a `lab:` map.
//!
//! Nothing of the lab's code is known here: it is started like any program, says in one line where it listens, and is reached
//! over the wire.

use crate::plan::target::LabSpec;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

/// How long the lab may take to say where it listens.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// A running lab that ends when this value is dropped or this process dies.
#[derive(Debug)]
pub struct LabProcess {
    child: Child,
    /// Held open: its end tells the lab to end, even after a kill of this process.
    _alive: ChildStdin,
    /// `api`, `shard-1`, …: what target files call `<lab.NAME>`.
    pub places: BTreeMap<String, String>,
}

/// The lab did not start.
#[derive(Debug, thiserror::Error)]
pub enum LabFailed {
    /// The program could not be started.
    #[error("can't start the lab ({program} lab): {source}")]
    Start {
        /// What was started.
        program: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It ended or said something else.
    #[error("the lab did not start: {0}; what it said itself stands above")]
    NotReady(String),
}

impl LabProcess {
    /// Starts the lab in `directory` and waits until it says where it listens.
    ///
    /// # Errors
    /// If it can't be started or does not get ready in time.
    pub async fn start(
        spec: &LabSpec,
        through_link: bool,
        directory: &Path,
    ) -> Result<LabProcess, LabFailed> {
        let program = std::env::current_exe().map_err(|source| LabFailed::Start {
            program: "this program".into(),
            source,
        })?;
        let mut command = Command::new(&program);
        command
            .arg("lab")
            .arg("--stop-with-parent")
            .arg("--dir")
            .arg(directory);
        command.arg("--shards").arg(spec.shards.max(1).to_string());
        if let Some(database) = &spec.database {
            command.arg("--database").arg(database);
        }
        command.arg("--tls").arg(spec.tls.name());
        for defect in &spec.on {
            command.arg("--on").arg(defect);
        }
        for (name, value) in &spec.settings {
            command.arg("--set").arg(format!("{name}={value}"));
        }
        if through_link {
            command.arg("--through-link");
        }
        // Its own process group: Ctrl-C at the terminal reaches the run, and the run decides when the lab ends.
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let start = |source| LabFailed::Start {
            program: program.display().to_string(),
            source,
        };
        let mut child = command.spawn().map_err(start)?;
        let missing = || LabFailed::NotReady("its pipes are missing".into());
        let alive = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let places = match tokio::time::timeout(READY_LIMIT, ready_line(stdout)).await {
            Ok(places) => places?,
            Err(_) => {
                return Err(LabFailed::NotReady(format!(
                    "no ready line within {} s",
                    READY_LIMIT.as_secs()
                )));
            }
        };
        Ok(LabProcess {
            child,
            _alive: alive,
            places,
        })
    }

    /// Its process id; `None` once it has ended.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Ends the lab and waits until it is gone, killing it after `limit`.
    ///
    /// # Errors
    /// If the operating system can't tell about the process.
    pub async fn stop(self, limit: Duration) -> std::io::Result<()> {
        let LabProcess {
            mut child, _alive, ..
        } = self;
        drop(_alive);
        if tokio::time::timeout(limit, child.wait()).await.is_err() {
            child.kill().await?;
        }
        Ok(())
    }
}

async fn ready_line(
    stdout: tokio::process::ChildStdout,
) -> Result<BTreeMap<String, String>, LabFailed> {
    let mut line = String::new();
    let read = BufReader::new(stdout).read_line(&mut line).await;
    match read {
        Ok(0) => Err(LabFailed::NotReady("it ended before it was ready".into())),
        Ok(_) => serde_json::from_str(&line)
            .map_err(|error| LabFailed::NotReady(format!("its ready line can't be read: {error}"))),
        Err(error) => Err(LabFailed::NotReady(error.to_string())),
    }
}

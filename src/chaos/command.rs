//! A program as it lies in the journal, with everything that running it needs: its file, arguments, directory and environment. No
//! shell reads it, and it is killed with all that it started if it takes too long.

use super::process::Identity;
use super::request::{read, secrets_named};
use crate::plan::component::Program;
use crate::plan::target::{SecretSource, Target};
use crate::plan::template::Template;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// What a program finds in its environment of ours.
const KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];
/// What the programs of container engines, clusters and systemd need besides to find whom they speak to.
const KEPT_FOR_CLI: [&str; 8] = [
    "KUBECONFIG",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "CONTAINER_HOST",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "USER",
];
/// Of one call of such a program.
const CLI_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of output that are read; the rest is thrown away.
const MOST_OUTPUT_BYTES: usize = 8 << 20;
/// What a daemon that the program left behind may hold its output open.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// Characters of a failed program's words that are shown.
const SHOWN: usize = 300;

/// A program that can be run by a process that has nothing but the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCommand {
    /// The program's file, found when it was stored.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub directory: Option<PathBuf>,
    /// All of its environment; values may name secrets.
    pub environment: BTreeMap<String, String>,
    /// What it reads.
    #[serde(default)]
    pub input: Option<String>,
    pub timeout_ms: u64,
    /// Where the secrets of its environment come from.
    pub secrets: BTreeMap<String, SecretSource>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

/// Why a program can't be run, or not as it should have.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(
        "{0} is not installed: it is in no folder of PATH; install it, or name its file in the target file"
    )]
    NotFound(String),
    #[error("{0}")]
    Secrets(String),
    #[error("{command} can't be started: {source}")]
    Start {
        command: String,
        source: std::io::Error,
    },
    #[error("{command} was killed: it took longer than {timeout:?}")]
    TooLong { command: String, timeout: Duration },
    #[error("{command} ended with {end}{said}")]
    Failed {
        command: String,
        end: String,
        said: String,
    },
}

impl StoredCommand {
    /// A program of a component, for the journal.
    ///
    /// # Errors
    /// If it is not installed, or a secret of its environment can't be had.
    pub fn of(program: &Program, target: &Target) -> Result<StoredCommand, CommandError> {
        let redactor = read(&target.secrets)
            .map_err(|error| CommandError::Secrets(error.to_string()))?
            .redactor();
        let directory = program
            .directory
            .as_ref()
            .map(|text| text.to_string().into());
        let mut words = program.arguments.iter().map(ToString::to_string);
        let name = words.next().unwrap_or_default();
        let mut environment = kept(&KEPT);
        environment.extend(program.environment.iter().map(|(name, value)| {
            let value = redactor.redact(&value.to_string()).into_owned();
            (name.clone(), value)
        }));
        let named = secrets_named(environment.values().map(String::as_str));
        let mut secrets = target.secrets.clone();
        secrets.retain(|name, _| named.contains(name));
        Ok(StoredCommand {
            program: found(&name, environment.get("PATH"), directory.as_deref())?,
            arguments: words.collect(),
            directory,
            environment,
            input: None,
            timeout_ms: u64::try_from(program.timeout.as_millis()).unwrap_or(u64::MAX),
            secrets,
        })
    }

    /// A call of `kubectl` and the like: the file that the target file names for it, or the one in `PATH`.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn cli(
        name: &str,
        cli: &BTreeMap<String, PathBuf>,
        arguments: &[&str],
    ) -> Result<StoredCommand, CommandError> {
        let mut environment = kept(&KEPT);
        environment.extend(kept(&KEPT_FOR_CLI));
        let program = match cli.get(name) {
            // A relative name would mean another file to whoever heals from another folder.
            Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.clone()),
            None => found(name, environment.get("PATH"), None)?,
        };
        Ok(StoredCommand {
            program,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            directory: None,
            environment,
            input: None,
            timeout_ms: u64::try_from(CLI_TIMEOUT.as_millis()).unwrap_or(u64::MAX),
            secrets: BTreeMap::new(),
        })
    }

    /// The same program with other arguments.
    #[must_use]
    pub fn with(&self, arguments: &[&str]) -> StoredCommand {
        StoredCommand {
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            input: None,
            ..self.clone()
        }
    }

    /// The same with something to read.
    #[must_use]
    pub fn reading(self, input: String) -> StoredCommand {
        StoredCommand {
            input: Some(input),
            ..self
        }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// If it can't be started, or takes too long.
    pub async fn run(&self) -> Result<Ran, CommandError> {
        let mut child = self.start(Stdio::piped)?;
        // Whoever goes on without us must not be taken for the program: its group is known by its number.
        let group = Group::of(&child);
        let (output, errors) = (
            Heard::of(child.stdout.take()),
            Heard::of(child.stderr.take()),
        );
        let (mut pipe, input) = (child.stdin.take(), self.input.clone());
        let write = async move {
            if let (Some(pipe), Some(input)) = (&mut pipe, input) {
                // A program that does not read to the end says by its exit code whether it minds.
                let _ = pipe.write_all(input.as_bytes()).await;
            }
        };
        let timeout = Duration::from_millis(self.timeout_ms);
        let ended = tokio::time::timeout(timeout, async {
            tokio::spawn(write);
            child.wait().await
        })
        .await;
        let status = match ended {
            Ok(Ok(status)) => status,
            Ok(Err(source)) => return Err(self.not_started(source)),
            Err(_) => {
                group.kill();
                // Reaped, so that its number is free again; after SIGKILL it can only end.
                let _ = child.wait().await;
                return Err(CommandError::TooLong {
                    command: self.to_string(),
                    timeout,
                });
            }
        };
        group.ended();
        Ok(Ran {
            code: status.code(),
            output: output.text().await,
            errors: errors.text().await,
        })
    }

    /// Runs it; gives what it printed.
    ///
    /// # Errors
    /// As [`StoredCommand::run`], and if it does not exit with 0.
    pub async fn succeed(&self) -> Result<String, CommandError> {
        let ran = self.run().await?;
        if ran.code == Some(0) {
            return Ok(ran.output);
        }
        Err(self.failed(&ran))
    }

    /// What it means that it ended like this.
    #[must_use]
    pub fn failed(&self, ran: &Ran) -> CommandError {
        let said = if ran.errors.trim().is_empty() {
            &ran.output
        } else {
            &ran.errors
        };
        let said: String = said.trim().chars().take(SHOWN).collect();
        let redacted = read(&self.secrets).map(|secrets| secrets.redactor().redact(&said).into());
        CommandError::Failed {
            command: self.to_string(),
            end: ran
                .code
                .map_or("a signal".to_owned(), |code| format!("exit code {code}")),
            said: match redacted {
                Ok(said) if !String::is_empty(&said) => format!(": {said}"),
                _ => String::new(),
            },
        }
    }

    /// Starts it and leaves it to itself: it may be a daemon, or become one. An early end with a failure is told by `ended`.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn leave_running(&self) -> Result<Left, CommandError> {
        let child = self.start(Stdio::null)?;
        let process = child
            .id()
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(|pid| Identity::of(pid).ok());
        Ok(Left { child, process })
    }

    fn start(&self, output: fn() -> Stdio) -> Result<Child, CommandError> {
        let secrets =
            read(&self.secrets).map_err(|error| CommandError::Secrets(error.to_string()))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        for (name, value) in &self.environment {
            let known = |name: &str| {
                let secret = name.strip_prefix("secret.")?;
                secrets.value(secret).map(str::to_owned)
            };
            let value = Template::parse(value).map(|text| text.resolve(&known).to_string());
            let value = value.map_err(|error| CommandError::Secrets(error.to_string()))?;
            command.env(name, value.replace("<<", "<"));
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let input = match self.input {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        // A group of its own: what it starts can be ended with it, and a Ctrl-C meant for us does not reach it.
        command
            .stdin(input)
            .stdout(output())
            .stderr(output())
            .process_group(0);
        command.spawn().map_err(|source| self.not_started(source))
    }

    fn not_started(&self, source: std::io::Error) -> CommandError {
        CommandError::Start {
            command: self.to_string(),
            source,
        }
    }
}

impl fmt::Display for StoredCommand {
    /// As one would type it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.program.display())?;
        self.arguments
            .iter()
            .try_for_each(|word| write!(formatter, " {word}"))
    }
}

/// A program that was started and left to itself.
#[derive(Debug)]
pub struct Left {
    child: Child,
    /// `None` if it had ended at once.
    pub process: Option<Identity>,
}

impl Left {
    /// How it ended, if it has.
    #[must_use]
    pub fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

/// The process group of a child that has not been waited for; killed when this is dropped before it ended.
struct Group {
    leader: Option<Pid>,
}

impl Group {
    fn of(child: &Child) -> Group {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        Group {
            leader: pid.map(Pid::from_raw),
        }
    }

    fn kill(mut self) {
        self.kill_once();
    }

    fn ended(mut self) {
        self.leader = None;
    }

    fn kill_once(&mut self) {
        if let Some(leader) = self.leader.take() {
            // It fails only if nobody of the group is left.
            let _ = killpg(leader, Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill_once();
    }
}

/// What a program says, read while it runs.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    reading: Option<JoinHandle<()>>,
}

impl Heard {
    fn of(pipe: Option<impl AsyncRead + Unpin + Send + 'static>) -> Heard {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&bytes);
        let reading = pipe.map(|mut pipe| {
            tokio::spawn(async move {
                let mut piece = vec![0; 64 << 10];
                while let Ok(read @ 1..) = pipe.read(&mut piece).await {
                    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = MOST_OUTPUT_BYTES.saturating_sub(heard.len());
                    heard.extend_from_slice(&piece[..read.min(room)]);
                }
            })
        });
        Heard { bytes, reading }
    }

    /// Everything up to the end, or what has come by then from one that left a daemon behind.
    async fn text(self) -> String {
        if let Some(mut reading) = self.reading
            && tokio::time::timeout(OUTPUT_GRACE, &mut reading)
                .await
                .is_err()
        {
            reading.abort();
        }
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn kept(names: &[&str]) -> BTreeMap<String, String> {
    let value = |name: &&str| {
        std::env::var(name)
            .ok()
            .map(|value| value.replace('<', "<<"))
    };
    names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), value(name)?)))
        .collect()
}

/// The file of a program: as named, or the first of its name in `PATH`.
fn found(
    name: &str,
    path: Option<&String>,
    directory: Option<&Path>,
) -> Result<PathBuf, CommandError> {
    if name.contains('/') {
        let file = directory.unwrap_or(Path::new("")).join(name);
        return Ok(std::path::absolute(&file).unwrap_or(file));
    }
    let folders = path.map(String::as_str).unwrap_or_default();
    std::env::split_paths(folders)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| CommandError::NotFound(name.to_owned()))
}

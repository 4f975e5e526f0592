//! The supervisor's children: started, listened to, killed, and their pid files.

use super::Part;
use super::messages::{self, ChildSays, ParentSays};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use tokio::io::BufReader;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};

/// What happened to a child, told to the supervisor.
#[derive(Debug)]
pub enum News {
    Said {
        name: String,
        what: ChildSays,
    },
    Ended {
        name: String,
        status: Option<ExitStatus>,
    },
}

/// A running child. Dropping it kills the process.
pub struct Running {
    kill: Option<oneshot::Sender<()>>,
    words: mpsc::Sender<ParentSays>,
}

/// Why a child could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("can't start {name}: {source}")]
    Spawn { name: String, source: io::Error },
    #[error("can't write {}: {source}", file.display())]
    PidFile { file: PathBuf, source: io::Error },
}

impl Running {
    /// Kills the process; `News::Ended` tells when it is gone.
    pub fn kill(&mut self) {
        if let Some(kill) = self.kill.take() {
            let _ = kill.send(());
        }
    }

    /// Says something to the process; lost if it is gone or doesn't listen.
    pub fn say(&self, what: ParentSays) {
        let _ = self.words.try_send(what);
    }
}

/// Starts a part of the lab under a name, and writes its pid file.
///
/// # Errors
/// If the process can't be started or the pid file can't be written.
pub fn start(
    part: Part,
    name: &str,
    configuration: &impl Serialize,
    dir: &Path,
    news: &mpsc::Sender<News>,
) -> Result<Running, StartError> {
    let fail = |source| StartError::Spawn {
        name: name.to_owned(),
        source,
    };
    let mut child = Command::new(std::env::current_exe().map_err(fail)?)
        .args(["lab-part", part.name()])
        .arg(serde_json::to_string(configuration).expect("plain data becomes JSON"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(fail)?;
    let file = pid_file(dir, name);
    write_pid(&file, child.id()).map_err(|source| StartError::PidFile {
        file: file.clone(),
        source,
    })?;
    let (kill, killed) = oneshot::channel();
    let (words, said) = mpsc::channel(64);
    if let Some(stdin) = child.stdin.take() {
        tokio::spawn(messages::write_all(said, stdin));
    }
    tokio::spawn(follow(child, name.to_owned(), killed, file, news.clone()));
    Ok(Running {
        kill: Some(kill),
        words,
    })
}

/// Passes on what the child says, waits for its end and removes its pid file.
async fn follow(
    mut child: Child,
    name: String,
    killed: oneshot::Receiver<()>,
    pid_file: PathBuf,
    news: mpsc::Sender<News>,
) {
    let words = child.stdout.take().map(|stdout| {
        let (name, news) = (name.clone(), news.clone());
        tokio::spawn(async move {
            let (mut lines, mut line) = (BufReader::new(stdout), Vec::new());
            while let Some(what) = messages::next(&mut lines, &mut line).await {
                if news
                    .send(News::Said {
                        name: name.clone(),
                        what,
                    })
                    .await
                    .is_err()
                {
                    return;
                }
            }
        })
    });
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        _ = killed => {
            let _ = child.kill().await;
            child.wait().await.ok()
        }
    };
    // Its last words come before its end.
    if let Some(words) = words {
        let _ = words.await;
    }
    // A number that may soon be another process's must not stay behind as this one's.
    let _ = fs::remove_file(pid_file);
    let _ = news.send(News::Ended { name, status }).await;
}

/// `DIR/NAME.pid`.
pub fn pid_file(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.pid"))
}

/// Writes a pid file in one step: a reader sees the whole number or none.
///
/// # Errors
/// If the folder can't be written to.
pub fn write_pid(file: &Path, pid: Option<u32>) -> io::Result<()> {
    let Some(pid) = pid else { return Ok(()) };
    let unfinished = file.with_extension("pid.new");
    fs::write(&unfinished, format!("{pid}\n"))?;
    fs::rename(unfinished, file)
}

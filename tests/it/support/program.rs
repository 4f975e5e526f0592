//! The program as a process: started with a home of its own, waited for with a limit, never left behind.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A folder of its own in which the program runs: its runs and its state lie inside and go with it.
pub struct Home {
    folder: tempfile::TempDir,
}

/// A program that runs.
pub struct Running {
    child: Child,
    folder: PathBuf,
}

/// What a program left.
#[derive(Debug)]
pub struct Finished {
    /// Exit code, or 128 + signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// The folder of its run, if it made one.
    pub run: Option<PathBuf>,
}

impl Home {
    pub fn new() -> Home {
        Home {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the home and gives its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder"))
            .expect("folders can be made");
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Starts the program with these arguments and environment variables.
    pub fn start(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let output = |name: &str| File::create(self.path().join(name)).expect("output can be kept");
        let child = Command::new(env!("CARGO_BIN_EXE_rushhour"))
            .args(arguments)
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .expect("the program starts");
        Running {
            child,
            folder: self.path().to_owned(),
        }
    }

    /// Runs the program to its end.
    pub fn finish(&self, arguments: &[&str], limit: Duration) -> Finished {
        self.start(arguments, &[]).wait(limit)
    }

    /// Every file below the home, with its content.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut open = vec![self.path().to_owned()];
        let mut files = Vec::new();
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder)
                .expect("the home can be listed")
                .flatten()
            {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                } else if path.is_file() {
                    files.push((path.clone(), fs::read(&path).unwrap_or_default()));
                }
            }
        }
        files
    }
}

impl Running {
    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("process ids are small");
        kill(Pid::from_raw(id), signal).expect("the program still runs");
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far on standard output.
    pub fn stdout(&self) -> String {
        fs::read_to_string(self.folder.join("stdout")).unwrap_or_default()
    }

    /// What it has printed so far on standard error.
    pub fn stderr(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }

    /// Waits for the end; a program that is still there after `limit` is killed, and the test fails.
    pub fn wait(mut self, limit: Duration) -> Finished {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if begun.elapsed() > limit {
                let (stdout, stderr) = (self.stdout(), self.stderr());
                self.child.kill().expect("a child can be killed");
                self.child.wait().expect("a child can be waited for");
                panic!("still running after {limit:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        use std::os::unix::process::ExitStatusExt;
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal));
        Finished {
            code: code.expect("a process ends by a code or a signal"),
            stdout: self.stdout(),
            stderr: self.stderr(),
            run: newest_run(&self.folder.join("runs")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that failed half-way leaves nothing behind; an ended child can't be killed, and need not be.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Finished {
    /// The parsed `result.json`.
    pub fn result(&self) -> serde_json::Value {
        let run = self
            .run
            .as_ref()
            .unwrap_or_else(|| panic!("no run folder: {self:?}"));
        let text = fs::read_to_string(run.join("result.json"))
            .unwrap_or_else(|error| panic!("result.json: {error}: {self:?}"));
        serde_json::from_str(&text).expect("result.json is JSON")
    }

    /// Fails with everything that was printed unless the code is `code`.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Finished {
        assert_eq!(
            self.code, code,
            "--- stdout\n{}\n--- stderr\n{}",
            self.stdout, self.stderr
        );
        self
    }
}

fn newest_run(runs: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(runs).ok()?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        // Two runs of one second differ in their names by chance only.
        .max_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
}

/// Waits until `holds` gives something, and gives it; fails after `limit`.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, mut holds: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

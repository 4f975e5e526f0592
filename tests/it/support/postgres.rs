//! A PostgreSQL of the test's own, on a free port, in a folder that goes with it.

use super::service::{free_port, listens};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running PostgreSQL with a database `lab` that user `lab` may use without a password.
pub struct Postgres {
    pub port: u16,
    server: Child,
    _dir: tempfile::TempDir,
}

/// Starts one; `None`, with a printed line, if PostgreSQL is not installed.
pub fn postgres() -> Option<Postgres> {
    let Some(programs) = programs() else {
        let required = std::env::var("RUSHHOUR_REQUIRE_SERVICES").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "PostgreSQL is not installed, but RUSHHOUR_REQUIRE_SERVICES=1"
        );
        println!("skipped: PostgreSQL is not installed");
        return None;
    };
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    // It refuses to run as root; its own user must be able to walk to the data.
    let owner = is_root().then_some("postgres");
    if let Some(owner) = owner {
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.path(), everybody).unwrap();
        done(Command::new("chown").arg(owner).arg(&data));
    }
    done(
        by(owner, &programs.join("initdb"))
            .args(["--auth=trust", "--username=lab", "--no-sync", "-D"])
            .arg(&data),
    );
    let port = free_port();
    let server = by(owner, &programs.join("postgres"))
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F"])
        .args(["-c", "unix_socket_directories="])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let postgres = Postgres {
        port,
        server,
        _dir: dir,
    };
    assert!(
        listens(
            SocketAddr::from(([127, 0, 0, 1], port)),
            Duration::from_secs(20)
        ),
        "PostgreSQL did not start"
    );
    postgres.create_database(&programs);
    Some(postgres)
}

impl Postgres {
    /// Where its database is.
    pub fn url(&self) -> String {
        format!("postgres://lab@127.0.0.1:{}/lab", self.port)
    }

    fn create_database(&self, programs: &Path) {
        let mut attempts = 0;
        // It listens before it lets anybody in.
        while !Command::new(programs.join("createdb"))
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", "lab", "lab"])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
        {
            attempts += 1;
            assert!(attempts < 100, "no database can be made");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.server.id()).unwrap());
        // Immediate shutdown: its children end with it, and its data goes anyway.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGQUIT);
        let _ = self.server.wait();
    }
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// The folder with the programs of the newest installed PostgreSQL.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.flatten().map(|version| version.path().join("bin"));
    folders
        .filter(|folder| folder.join("initdb").is_file())
        .max()
}

/// The program as its owner's, without a process of `su` in between that would not pass signals on.
pub fn by(owner: Option<&str>, program: &Path) -> Command {
    let Some(owner) = owner else {
        return Command::new(program);
    };
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", owner, "--regid", owner, "--clear-groups"])
        .args(["--pdeathsig", "KILL"])
        .arg(program);
    command
}

fn done(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

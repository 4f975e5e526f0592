//! Installed services, each test with its own on a free port.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The path of an installed program. Without it the test is skipped with a printed line, or fails if
/// `RUSHHOUR_REQUIRE_SERVICES=1`, as in CI.
pub fn program(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")])
        .map(|directory| directory.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var("RUSHHOUR_REQUIRE_SERVICES").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "{name} is not installed, but RUSHHOUR_REQUIRE_SERVICES=1"
        );
        println!("skipped: {name} is not installed");
    }
    found
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Waits until something listens there; false if nothing does within `limit`.
pub fn listens(address: SocketAddr, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    while TcpStream::connect(address).is_err() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A mosquitto of the test's own; killed when dropped.
pub struct Mosquitto {
    pub port: u16,
    log: PathBuf,
    child: Child,
    directory: TempDir,
}

/// Starts a mosquitto on 127.0.0.1 that lets everybody in and logs everything; `None` if it is not installed.
pub fn mosquitto() -> Option<Mosquitto> {
    mosquitto_with(|_| "allow_anonymous true\n".to_owned())
}

/// The same with lines of its own; `lines` gets the directory for files that they name.
pub fn mosquitto_with(lines: impl Fn(&Path) -> String) -> Option<Mosquitto> {
    let program = program("mosquitto")?;
    for _ in 0..5 {
        let directory = TempDir::new().unwrap();
        let port = free_port();
        let configuration = directory.path().join("mosquitto.conf");
        let log = directory.path().join("mosquitto.log");
        // `user root`: otherwise it gives up root and cannot read its own files here.
        let text = format!(
            "listener {port} 127.0.0.1\nuser root\nmax_connections -1\npersistence false\nlog_type all\n\
             log_timestamp false\nconnection_messages true\n{}",
            lines(directory.path())
        );
        std::fs::write(&configuration, text).unwrap();
        let child = start_mosquitto(&program, &configuration, &log);
        let mut broker = Mosquitto {
            port,
            log,
            child,
            directory,
        };
        let stands = listens(broker.address(), Duration::from_secs(5));
        // Somebody else may have taken the port in between.
        if stands && broker.child.try_wait().unwrap().is_none() {
            return Some(broker);
        }
    }
    panic!("mosquitto did not start");
}

fn start_mosquitto(program: &Path, configuration: &Path, log: &Path) -> Child {
    Command::new(program)
        .arg("-c")
        .arg(configuration)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(log).unwrap())
        .spawn()
        .unwrap()
}

impl Mosquitto {
    /// Sends a signal to it; SIGTERM makes it write what it keeps, SIGSTOP silences it.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    /// Ends it with this signal and starts it again on the same port, with what it kept and with an empty log.
    pub fn restart(&mut self, signal: Signal) {
        self.signal(signal);
        self.child.wait().unwrap();
        let configuration = self.directory.path().join("mosquitto.conf");
        self.child = start_mosquitto(&program("mosquitto").unwrap(), &configuration, &self.log);
        assert!(listens(self.address(), Duration::from_secs(10)));
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }

    /// How many lines of the log contain `text`.
    pub fn logged(&self, text: &str) -> usize {
        self.log()
            .lines()
            .filter(|line| line.contains(text))
            .count()
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

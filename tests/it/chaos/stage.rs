//! What faults need in order to be tested: state of their own, a link to somewhere, a component that an operation starts.

use rushhour::chaos::links::Links;
use rushhour::chaos::process::Identity;
use rushhour::chaos::proxy::client::ProxyClient;
use rushhour::net::state::StateDirectory;
use rushhour::plan::Target;
use rushhour::plan::component::{Act, Body, Component, Process, Start};
use rushhour::plan::fault::{FaultKind, Link, OperationSpec};
use rushhour::plan::target::{Answer, Method, Request};
use rushhour::plan::template::Template;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_rushhour");
/// Far above anything that a healthy machine takes; a test that reaches it has failed.
pub const LIMIT: Duration = Duration::from_secs(20);

pub fn program() -> &'static Path {
    Path::new(PROGRAM)
}

/// A state directory of the test's own.
pub struct State {
    pub directory: StateDirectory,
    pub base: TempDir,
}

pub fn state() -> State {
    let base = TempDir::new().unwrap();
    State {
        directory: StateDirectory::under(base.path()).unwrap(),
        base,
    }
}

/// Waits until `seen` is true.
pub async fn until<F: Future<Output = bool>>(what: &str, mut seen: impl FnMut() -> F) {
    let end = Instant::now() + LIMIT;
    while !seen().await {
        assert!(Instant::now() < end, "within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A request of a target file.
pub fn request(method: Method, url: &str) -> Request {
    Request {
        method,
        url: Template::parse(url).unwrap(),
        headers: Vec::new(),
        bearer: None,
        json: None,
        answer: Answer::default(),
    }
}

/// `rushhour heal --all` in this state, with everything that it said.
pub async fn heal(state: &State) -> (Option<i32>, String) {
    let base = state.base.path().to_owned();
    let heal = move || {
        Command::new(PROGRAM)
            .args(["heal", "--all"])
            .env("XDG_STATE_HOME", base)
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(heal).await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// A link `db` from a free port to `to`, carried by a proxy process; ended by force when dropped.
pub struct Carried {
    pub links: Option<Links>,
    pub proxy: ProxyClient,
    pub address: SocketAddr,
    pub target: Target,
    pub state: State,
    _proxy: EndsWithTest,
}

impl Carried {
    pub async fn to(to: SocketAddr) -> Carried {
        let state = state();
        let target = target_with_link(to);
        let links = Links::start(&target, program(), &state.directory, "test")
            .await
            .unwrap();
        let proxy = links.client(0).unwrap().clone();
        let address = proxy.registration().unwrap().links[0]
            .listen
            .parse()
            .unwrap();
        Carried {
            _proxy: EndsWithTest(proxy.registration().unwrap().process.clone()),
            links: Some(links),
            proxy,
            address,
            target,
            state,
        }
    }
}

pub fn target_with_link(to: SocketAddr) -> Target {
    let link = Link::between(
        "db",
        Template::literal("127.0.0.1:0"),
        Template::literal(&to.to_string()),
    );
    Target {
        links: vec![link],
        ..Target::default()
    }
}

/// Kills a process that the test started, if it still runs; a later one with its number is left alone.
pub fn end_by_force(process: &Identity) {
    if process.runs() {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(process.pid),
            nix::sys::signal::Signal::SIGKILL,
        );
    }
}

/// A process that ends with the test, however that ends.
pub struct EndsWithTest(pub Identity);

impl Drop for EndsWithTest {
    fn drop(&mut self) {
        end_by_force(&self.0);
    }
}

/// A server that gives every byte back and passes the end of the stream on.
pub async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reads, mut writes) = stream.split();
                let _ = tokio::io::copy(&mut reads, &mut writes).await;
                let _ = writes.shutdown().await;
            });
        }
    });
    address
}

/// The time that a byte takes to an echo and back.
pub async fn round_trip(stream: &mut TcpStream) -> Duration {
    let sent = Instant::now();
    stream.write_all(b"?").await.unwrap();
    stream.read_exact(&mut [0]).await.unwrap();
    sent.elapsed()
}

/// A component (a `sleep`) and an HTTP server whose operation `POST /start` starts it again.
pub struct Stage {
    pub target: Target,
    pub pid_file: PathBuf,
    pub starts: std::sync::Arc<std::sync::Mutex<Vec<Identity>>>,
    pub directory: TempDir,
    server: SocketAddr,
}

impl Stage {
    /// The process id in the pid file.
    pub fn pid(&self) -> i32 {
        std::fs::read_to_string(&self.pid_file)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    /// How often the component was started, by whomever.
    pub fn started(&self) -> usize {
        self.starts.lock().unwrap().len()
    }

    /// Starts the component as its own supervisor would.
    pub fn start_by_itself(&self) {
        start_component(&self.pid_file, &self.starts);
    }

    /// One more operation of the target, by the paths of its request and its undo.
    pub fn add_operation(&mut self, name: &str, path: &str, undo: Option<&str>) {
        let at = |path: &str| request(Method::Post, &format!("http://{}{path}", self.server));
        let operation = OperationSpec {
            name: name.to_owned(),
            request: at(path),
            undo: undo.map(at),
            observe: None,
            undone: None,
        };
        self.target.operations.push(operation);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for process in self.starts.lock().unwrap().iter() {
            end_by_force(process);
        }
    }
}

pub async fn stage() -> Stage {
    let directory = TempDir::new().unwrap();
    let pid_file = directory.path().join("shard-1.pid");
    let starts = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (server_pid_file, server_starts) = (pid_file.clone(), std::sync::Arc::clone(&starts));
    start_component(&pid_file, &starts);
    let operations = axum::Router::new().route(
        "/start",
        axum::routing::post(move || async move {
            start_component(&server_pid_file, &server_starts);
            "started"
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, operations).await });
    let mut target = Target::default();
    let start = request(Method::Post, &format!("http://{address}/start"));
    add_component(&mut target, &pid_file.display().to_string(), start);
    Stage {
        target,
        pid_file,
        starts,
        directory,
        server: address,
    }
}

/// The component `shard-1`, started by the operation `start`.
pub fn add_component(target: &mut Target, pid_file: &str, start: Request) {
    target.operations.push(OperationSpec {
        name: "start".to_owned(),
        request: start,
        undo: None,
        observe: None,
        undone: None,
    });
    target.components.push(Component {
        name: "shard-1".to_owned(),
        body: process(pid_file, target.operations.len() - 1),
        port: None,
        irreversible: false,
    });
}

/// A process that the operation in this row starts again.
pub fn process(pid_file: &str, operation: usize) -> Body {
    Body::Process(Process {
        pid_file: Template::literal(pid_file),
        executable: None,
        start: Some(Start::Operation(operation)),
    })
}

/// SIGKILL to the first component.
pub fn kill() -> FaultKind {
    FaultKind::Act {
        component: 0,
        act: Act::Kill { count: 1 },
    }
}

fn start_component(pid_file: &Path, starts: &std::sync::Mutex<Vec<Identity>>) {
    let mut child = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    std::fs::write(pid_file, pid.to_string()).unwrap();
    starts.lock().unwrap().push(Identity::of(pid).unwrap());
    // Reaped when it ends, as a supervisor would.
    std::thread::spawn(move || child.wait());
}

//! A lab of the test's own, as a process: started, asked, ended.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// A running lab. Dropping it ends it.
pub struct Lab {
    child: Child,
    stdin: Option<ChildStdin>,
    ready: Value,
    _dir: tempfile::TempDir,
    client: reqwest::Client,
}

impl Lab {
    /// Starts a lab with these arguments and waits for its ready line.
    pub fn start(arguments: &[&str]) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_rushhour"))
            .args(["lab", "--stop-with-parent", "--dir"])
            .arg(dir.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("the ready line is {line:?}: {error}"));
        let stdin = child.stdin.take();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Lab {
            child,
            stdin,
            ready,
            _dir: dir,
            client,
        }
    }

    /// What the ready line says under this name.
    pub fn says(&self, name: &str) -> &str {
        self.ready[name]
            .as_str()
            .unwrap_or_else(|| panic!("no `{name}` in {}", self.ready))
    }

    /// Everything the ready line says.
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// An address of the ready line, with or without a scheme.
    pub fn address(&self, name: &str) -> SocketAddr {
        self.says(name)
            .trim_start_matches("http://")
            .parse()
            .unwrap()
    }

    /// The process id of the supervisor.
    pub fn id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// The process id that a pid file of the lab holds, if there is one.
    pub fn pid_of(&self, component: &str) -> Option<Pid> {
        let file = std::path::Path::new(self.says("dir")).join(format!("{component}.pid"));
        let text = std::fs::read_to_string(file).ok()?;
        Some(Pid::from_raw(text.trim().parse().unwrap()))
    }

    /// Kills a component of the lab.
    pub fn kill(&self, component: &str) -> Pid {
        let pid = self.pid_of(component).unwrap();
        kill(pid, Signal::SIGKILL).unwrap();
        pid
    }

    /// Closes the lab's standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the supervisor's end; gives its exit code, `None` after a signal.
    pub fn wait(&mut self, limit: Duration) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(
                begun.elapsed() < limit,
                "the lab still runs after {limit:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// GET of a path of the API: status and body, `Null` if that is no JSON.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.answer(self.client.get(self.url(path))).await
    }

    /// POST of JSON to a path of the API.
    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.answer(self.client.post(self.url(path)).json(&body))
            .await
    }

    /// POST with an idempotency key to a path of the API.
    pub async fn post_once(&self, path: &str, key: &str) -> (u16, Value) {
        let request = self
            .client
            .post(self.url(path))
            .header("Idempotency-Key", key);
        self.answer(request).await
    }

    /// GET with a token.
    pub async fn get_as(&self, path: &str, token: &str) -> (u16, Value) {
        self.answer(self.client.get(self.url(path)).bearer_auth(token))
            .await
    }

    /// POST by somebody who says who it is, without an idempotency key.
    pub async fn post_as(&self, path: &str, rider: &str) -> (u16, Value) {
        self.answer(self.client.post(self.url(path)).header("Rider", rider))
            .await
    }

    /// Everything that the gateway counted.
    pub async fn stats(&self) -> Value {
        let (status, stats) = self.get("/admin/stats").await;
        assert_eq!(status, 200);
        stats
    }

    /// The text of `/metrics`.
    pub async fn metrics(&self) -> String {
        let url = format!("{}/metrics", self.says("metrics"));
        let answer = self.client.get(url).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// Hands in a command; gives the status of the answer.
    pub async fn command(&self, serial: &str, id: &str, ttl_ms: u64) -> u16 {
        let body = json!({ "id": id, "action": "switch", "ttl_ms": ttl_ms });
        self.post(&format!("/v1/hubs/{serial}/commands"), body)
            .await
            .0
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.says("api"))
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or(Value::Null))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.close_stdin();
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begun.elapsed() > Duration::from_secs(5) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Whether somebody accepts connections there.
pub fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_millis(500)).is_ok()
}

/// Whether the process exists and has not ended.
pub fn is_alive(pid: Pid) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.trim_start().chars().next());
        state != Some(Some('Z'))
    })
}

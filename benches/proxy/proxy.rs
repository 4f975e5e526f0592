//! A proxy of ours as a process, and what is asked of it over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A running proxy with one link, ended when dropped.
pub struct Proxy {
    child: Child,
    pub api: SocketAddr,
    pub link: SocketAddr,
    control: SocketAddr,
    token: String,
    _state: TempDir,
}

impl Proxy {
    /// Starts one whose link `link` leads to `to`.
    pub fn to(to: SocketAddr) -> Proxy {
        let state = TempDir::new().expect("a directory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_rushhour"))
            .args(["proxy", "--api", "127.0.0.1:0", "--link"])
            .arg(format!("link=127.0.0.1:0={to}"))
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the proxy starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says where it is");
        let ready: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let registration = std::fs::read_to_string(text(&ready["registration"])).expect("a file");
        let registration: serde_json::Value = serde_json::from_str(&registration).expect("JSON");
        let address = |text: String| text.parse::<SocketAddr>().expect("an address");
        Proxy {
            api: address(text(&ready["api"]).replace("http://", "")),
            link: address(text(&ready["links"][0]["listen"])),
            control: address(text(&registration["control"])),
            token: text(&registration["token"]),
            child,
            _state: state,
        }
    }

    /// Asks Toxiproxy's API; gives the status.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> u16 {
        http(self.api, method, path, "", body).0
    }

    /// Asks the control port; gives the answer.
    pub fn order(&self, method: &str, path: &str, body: &str) -> serde_json::Value {
        let token = format!("authorization: Bearer {}\r\n", self.token);
        let path = format!("/rushhour/v1{path}");
        let (status, answer) = http(self.control, method, &path, &token, body);
        assert!(
            (200..300).contains(&status),
            "{method} {path}: {status} {answer}"
        );
        serde_json::from_str(&answer).unwrap_or_default()
    }

    pub fn resident_bytes(&self) -> u64 {
        resident_bytes(self.child.id())
    }

    pub fn open_files(&self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        files.expect("its open files").count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process keeps in memory.
pub fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    kib.expect("a size")
        .trim()
        .parse::<u64>()
        .expect("a number")
        * 1024
}

fn http(at: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).expect("the API listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a limit");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    let status = answer[9..12].parse().expect("a status");
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, body.to_owned())
}

/// A server that hands every connection to a thread of its own.
pub fn serve(each: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = each.clone();
            stream.set_nodelay(true).expect("an option");
            std::thread::spawn(move || each(stream));
        }
    });
    address
}

/// The middle of these.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

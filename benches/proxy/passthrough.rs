//! What a connection through the proxy costs, beside haproxy, in turn.

use crate::proxy::{Proxy, median, resident_bytes, serve};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ROUND_TRIPS: usize = 20_000;
const PING_BYTES: usize = 64;
const STREAM_BYTES: usize = 1 << 30;
const CHUNK_BYTES: usize = 64 * 1024;
const HELD: usize = 3_000;

/// haproxy in TCP mode, ended when dropped.
struct Haproxy {
    child: Child,
    echo: SocketAddr,
    sink: SocketAddr,
    _folder: TempDir,
}

impl Haproxy {
    fn to(echo: SocketAddr, sink: SocketAddr) -> Haproxy {
        let free = || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.local_addr().expect("its address")
        };
        let (echo_at, sink_at) = (free(), free());
        let folder = TempDir::new().expect("a directory");
        let mut text = String::from(
            "global\n maxconn 9000\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\n",
        );
        for (name, at, to) in [("echo", echo_at, echo), ("sink", sink_at, sink)] {
            writeln!(text, "listen {name}\n bind {at}\n server one {to}").expect("a text");
        }
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, text).expect("a file");
        let child = Command::new("haproxy")
            .arg("-db")
            .arg("-f")
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .expect("haproxy is installed (apt-get install haproxy)");
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(sink_at).is_err() {
            assert!(Instant::now() < until, "haproxy does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Haproxy {
            child,
            echo: echo_at,
            sink: sink_at,
            _folder: folder,
        }
    }

    /// Of all its processes.
    fn resident_bytes(&self) -> u64 {
        resident_bytes(self.child.id())
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn run(rounds: usize) {
    let echo = serve(|mut stream| {
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut chunk) {
            if stream.write_all(&chunk[..read]).is_err() {
                return;
            }
        }
    });
    let sink = serve(|mut stream| {
        let mut chunk = vec![0; 4 * CHUNK_BYTES];
        while let Ok(1..) = stream.read(&mut chunk) {}
        let _ = stream.write_all(b"!");
    });
    let haproxy = Haproxy::to(echo, sink);
    let (ours_echo, ours_sink) = (Proxy::to(echo), Proxy::to(sink));
    let routes = [
        ("direct", echo, sink),
        ("haproxy", haproxy.echo, haproxy.sink),
        ("ours", ours_echo.link, ours_sink.link),
    ];
    let mut trips: [Vec<f64>; 3] = Default::default();
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 1..=rounds {
        for (row, (name, echo, sink)) in routes.into_iter().enumerate() {
            trips[row].push(round_trip_us(echo));
            rates[row].push(gigabits_per_second(sink));
            println!(
                "round {round} {name:>8}: p50 {:>6.1} us, {:>5.2} Gbit/s",
                trips[row][round - 1],
                rates[row][round - 1]
            );
        }
    }
    let trips = trips.map(median);
    let rates = rates.map(median);
    let (haproxy_adds, ours_adds) = (trips[1] - trips[0], trips[2] - trips[0]);
    let per_connection = held_bytes(ours_echo.link, || ours_echo.resident_bytes());
    let per_haproxy = held_bytes(haproxy.echo, || haproxy.resident_bytes());
    println!("medians of {rounds} rounds, ours against haproxy:");
    println!(
        "added p50:   {ours_adds:.1} us against {haproxy_adds:.1} us (goal: at most 1.1 times)"
    );
    println!(
        "throughput:  {:.2} Gbit/s against {:.2} (goal: at least 1.2 times)",
        rates[2], rates[1]
    );
    println!(
        "idle memory: {per_connection} B a connection against {per_haproxy} B (goal: at most 10 KB)"
    );
    assert!(ours_adds <= 1.1 * haproxy_adds, "round trips");
    assert!(rates[2] >= 1.2 * rates[1], "throughput");
    assert!(per_connection <= 10_000, "memory");
}

fn round_trip_us(to: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(to).expect("it listens");
    stream.set_nodelay(true).expect("an option");
    let mut bytes = [7; PING_BYTES];
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let sent = Instant::now();
        stream.write_all(&bytes).expect("it is sent");
        stream.read_exact(&mut bytes).expect("it comes back");
        trips.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    median(trips)
}

fn gigabits_per_second(to: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(to).expect("it listens");
    let chunk = vec![7; CHUNK_BYTES];
    let begun = Instant::now();
    for _ in 0..STREAM_BYTES / CHUNK_BYTES {
        stream.write_all(&chunk).expect("it is sent");
    }
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("the end is sent");
    // The sink says so when it has read everything.
    stream.read_exact(&mut [0]).expect("it has arrived");
    STREAM_BYTES as f64 * 8.0 / begun.elapsed().as_secs_f64() / 1e9
}

/// Resident bytes for each of many connections on which something was said once.
fn held_bytes(to: SocketAddr, resident: impl Fn() -> u64) -> u64 {
    let before = resident();
    let held: Vec<TcpStream> = (0..HELD)
        .map(|_| {
            let mut stream = TcpStream::connect(to).expect("it listens");
            stream.write_all(b"?").expect("it is sent");
            stream.read_exact(&mut [0]).expect("it comes back");
            stream
        })
        .collect();
    resident().saturating_sub(before) / held.len() as u64
}

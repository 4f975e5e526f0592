//! The API while peers that never read hold up everything in both directions.

use crate::proxy::Proxy;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(100);
const TYPES: [(&str, &str); 7] = [
    ("latency", r#"{"latency":100}"#),
    ("bandwidth", r#"{"rate":10}"#),
    ("slow_close", r#"{"delay":100}"#),
    ("timeout", r#"{"timeout":60000}"#),
    ("slicer", r#"{"average_size":10,"delay":10}"#),
    ("limit_data", r#"{"bytes":1000000000}"#),
    ("noop", "{}"),
];

pub fn run(connections: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = Proxy::to(listener.local_addr().expect("its address"));
    let mut peers = Vec::new();
    for _ in 0..connections {
        let client = TcpStream::connect(proxy.link).expect("it listens");
        let (target, _) = listener.accept().expect("it comes through");
        peers.extend([fill(client), fill(target)]);
    }
    // What the proxy took meanwhile makes room once more.
    std::thread::sleep(Duration::from_millis(500));
    let peers: Vec<TcpStream> = peers.into_iter().map(fill).collect();
    println!(
        "{connections} connections are full both ways, {} MB in the proxy",
        proxy.resident_bytes() / 1_000_000
    );
    let mut slowest = (Duration::ZERO, String::new());
    for (kind, attributes) in TYPES {
        for stream in ["upstream", "downstream"] {
            let toxic = format!(
                r#"{{"name":"t","type":"{kind}","stream":"{stream}","attributes":{attributes}}}"#
            );
            let mut steps = vec![
                ("POST", "/proxies/link/toxics", toxic.as_str(), 200),
                ("GET", "/proxies", "", 200),
                ("POST", "/proxies/link/toxics/t", r#"{"toxicity":0.5}"#, 200),
                ("GET", "/proxies/link/toxics", "", 200),
                ("DELETE", "/proxies/link/toxics/t", "", 204),
            ];
            // A timeout closes its connections when it goes, so its removal comes last of all.
            if kind == "timeout" {
                steps = vec![("GET", "/proxies", "", 200)];
            }
            steps.push(("POST", "/reset", "", 204));
            for (method, path, body, status) in steps {
                let begun = Instant::now();
                assert_eq!(
                    proxy.ask(method, path, body),
                    status,
                    "{method} {path} {body}"
                );
                let took = begun.elapsed();
                if took > slowest.0 {
                    slowest = (took, format!("{method} {path} with {kind} on {stream}"));
                }
            }
        }
    }
    println!(
        "slowest request: {:.1} ms, {}",
        slowest.0.as_secs_f64() * 1e3,
        slowest.1
    );
    drop(peers);
    assert!(slowest.0 <= LIMIT, "above {LIMIT:?}");
}

/// Sends until nobody takes any more.
fn fill(mut stream: TcpStream) -> TcpStream {
    stream.set_nonblocking(true).expect("an option");
    let chunk = [7; 65_536];
    loop {
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return stream,
            Err(error) => panic!("{error}"),
        }
    }
}

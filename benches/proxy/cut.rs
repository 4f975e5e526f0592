//! RST to a share of many idle connections at once.

use crate::proxy::Proxy;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WITHIN: Duration = Duration::from_secs(1);

pub fn run(connections: usize) {
    let first = once(connections);
    let second = once(connections);
    assert_eq!(first, second, "the same seed chooses the same connections");
    println!("the same {} connections both times", first.len());
}

/// The connections that were cut, by the order in which they came.
fn once(connections: usize) -> Vec<usize> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = Proxy::to(listener.local_addr().expect("its address"));
    // Clients, proxy and target are three processes: none holds more than two files for a connection.
    let program = std::env::current_exe().expect("the path of this program");
    let mut clients = Command::new(program)
        .args(["hold", &proxy.link.to_string(), &connections.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the clients start");
    let targets: Vec<TcpStream> = (0..connections)
        .map(|_| {
            let (mut stream, _) = listener.accept().expect("it comes through");
            stream.write_all(b"!").expect("it is welcomed");
            stream
        })
        .collect();
    let mut told = BufReader::new(clients.stdout.take().expect("their output")).lines();
    let mut line = || told.next().expect("a line").expect("a text");
    assert_eq!(line(), "all stand");
    let begun = Instant::now();
    let answer = proxy.order(
        "POST",
        "/links/link/cut",
        r#"{"id":"third","share":0.3,"within_ms":800,"by":"reset","seed":42}"#,
    );
    let chosen = answer["chosen"].as_u64().expect("a count") as usize;
    let took = loop {
        let state = proxy.order("GET", "/links", "");
        if state[0]["cut"].as_u64() >= Some(chosen as u64) {
            break begun.elapsed();
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    clients
        .stdin
        .take()
        .expect("their input")
        .write_all(b"look\n")
        .expect("they are asked");
    let ended: Vec<usize> = line()
        .split_whitespace()
        .map(|row| row.parse().expect("a number"))
        .collect();
    println!(
        "{} of {connections} connections reset after {:.0} ms; the others stand",
        ended.len(),
        took.as_secs_f64() * 1e3
    );
    let _ = clients.wait();
    drop(targets);
    assert_eq!(ended.len(), (connections as f64 * 0.3).round() as usize);
    assert_eq!(ended.len(), chosen);
    assert!(took <= WITHIN, "above {WITHIN:?}");
    ended
}

/// Holds so many idle connections, one after another, and tells on request which have been reset.
pub fn hold(to: &str, connections: usize) {
    let to: SocketAddr = to.parse().expect("an address");
    let mut streams: Vec<TcpStream> = (0..connections)
        .map(|_| {
            let mut stream = TcpStream::connect(to).expect("it listens");
            stream.read_exact(&mut [0]).expect("it is welcomed");
            stream.set_nonblocking(true).expect("an option");
            stream
        })
        .collect();
    println!("all stand");
    std::io::stdin()
        .read_line(&mut String::new())
        .expect("a word");
    let mut ended = Vec::new();
    for (row, stream) in streams.iter_mut().enumerate() {
        match stream.read(&mut [0]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                ended.push(row.to_string());
            }
            other => panic!("connection {row}: {other:?}"),
        }
    }
    println!("{}", ended.join(" "));
}

//! Much data through a delay while toxics come and go: nothing is lost, and nothing stays.

use crate::proxy::{Proxy, serve};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 64 * 1024;
const CHANGES: usize = 200;
const MEMORY_LIMIT_BYTES: u64 = 200_000_000;

/// FNV-1a over words: quick, and any byte that is lost, changed or moved changes it.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

pub fn run(mebibytes: usize) {
    let (tell, told) = mpsc::channel();
    let echo = serve(move |mut stream| {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut hash = Hash::new();
        while let Ok(read @ 1..) = stream.read(&mut chunk) {
            hash.add(&chunk[..read]);
            stream.write_all(&chunk[..read]).expect("it goes back");
        }
        let _ = stream.shutdown(Shutdown::Write);
        let _ = tell.send(hash.0);
    });
    let proxy = Proxy::to(echo);
    let files = proxy.open_files();
    for stream in ["upstream", "downstream"] {
        let toxic = format!(
            r#"{{"name":"far-{stream}","type":"latency","stream":"{stream}","attributes":{{"latency":200}}}}"#
        );
        assert_eq!(proxy.ask("POST", "/proxies/link/toxics", &toxic), 200);
    }
    let begun = Instant::now();
    let stream = TcpStream::connect(proxy.link).expect("it listens");
    let (sender, receiver) = there_and_back(stream, mebibytes);
    let mut most = 0;
    let mut changes = 0;
    while !receiver.is_finished() || changes < CHANGES {
        let stream = if changes % 4 < 2 {
            "upstream"
        } else {
            "downstream"
        };
        let toxic = format!(
            r#"{{"name":"more","type":"latency","stream":"{stream}","attributes":{{"latency":{},"jitter":5}}}}"#,
            changes % 40
        );
        if changes % 2 == 0 {
            assert_eq!(proxy.ask("POST", "/proxies/link/toxics", &toxic), 200);
        } else {
            assert_eq!(proxy.ask("DELETE", "/proxies/link/toxics/more", ""), 204);
        }
        changes += 1;
        most = most.max(proxy.resident_bytes());
        std::thread::sleep(Duration::from_millis(25));
    }
    let sent = sender.join().expect("sent");
    let back = receiver.join().expect("received");
    let there = told.recv().expect("the target has seen the end");
    let until = Instant::now() + Duration::from_secs(10);
    while proxy.open_files() > files && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    println!(
        "{mebibytes} MiB there and back in {:.1} s, {changes} changes: sent {sent:016x}, there {there:016x}, back {back:016x}",
        begun.elapsed().as_secs_f64()
    );
    println!(
        "most memory {} MB, open files {files} before and {} after",
        most / 1_000_000,
        proxy.open_files()
    );
    assert!(sent == there && sent == back, "the hashes differ");
    assert!(most < MEMORY_LIMIT_BYTES, "memory");
    assert_eq!(proxy.open_files(), files, "open files");
}

/// Sends so much and reads what comes back; each gives its hash.
fn there_and_back(mut reads: TcpStream, mebibytes: usize) -> (JoinHandle<u64>, JoinHandle<u64>) {
    let mut writes = reads.try_clone().expect("another handle");
    let sender = std::thread::spawn(move || {
        let mut hash = Hash::new();
        let mut word = 1_u64;
        let mut chunk = vec![0; CHUNK_BYTES];
        for _ in 0..mebibytes * (1 << 20) / CHUNK_BYTES {
            for eight in chunk.chunks_exact_mut(8) {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                eight.copy_from_slice(&word.to_le_bytes());
            }
            hash.add(&chunk);
            writes.write_all(&chunk).expect("it is sent");
        }
        writes.shutdown(Shutdown::Write).expect("the end is sent");
        hash.0
    });
    let receiver = std::thread::spawn(move || {
        let mut hash = Hash::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(read @ 1..) = reads.read(&mut chunk) {
            hash.add(&chunk[..read]);
        }
        hash.0
    });
    (sender, receiver)
}

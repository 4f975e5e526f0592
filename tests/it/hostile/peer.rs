//! A scripted server on a free port: it answers each thing that is said to it with a list of moves, and logs what it saw when.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep_until;

/// What a server does, one after the other.
#[derive(Debug, Clone)]
pub enum Move {
    Write(Vec<u8>),
    /// Goes on reading meanwhile.
    Wait(Duration),
    /// FIN.
    Close,
    /// RST.
    Reset,
}

/// What was said to a server.
#[derive(Debug, Clone)]
pub struct Said {
    /// Which of its connection, from 1; 0 is the connection itself.
    pub nth: usize,
    /// One whole packet or request; empty for the connection itself.
    pub bytes: Vec<u8>,
}

/// What a server saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Accepted,
    Bytes(Vec<u8>),
    /// The client ended the connection.
    Fin,
    Rst,
    /// The server did.
    Ended,
}

/// One line of a server's log.
#[derive(Debug, Clone)]
pub struct Line {
    pub connection: usize,
    pub at: Instant,
    pub seen: Seen,
}

/// How the bytes of a client fall into things that it says: the length of the first one, `None` while it is not whole.
pub type Framing = fn(&[u8]) -> Option<usize>;

type Script = dyn Fn(&Said) -> Vec<Move> + Send + Sync;

/// A server and its log; it ends with the test's runtime.
#[derive(Clone)]
pub struct Peer {
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<Line>>>,
}

/// A server that answers by `script`; a move begins when the one before it is done.
pub async fn serve(
    framing: Framing,
    script: impl Fn(&Said) -> Vec<Move> + Send + Sync + 'static,
) -> Peer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = Peer {
        address: listener.local_addr().unwrap(),
        log: Arc::default(),
    };
    let (served, script): (Peer, Arc<Script>) = (peer.clone(), Arc::new(script));
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            stream.set_nodelay(true).unwrap();
            served.note(connection, Seen::Accepted);
            let (peer, script) = (served.clone(), Arc::clone(&script));
            tokio::spawn(async move {
                let end = converse(stream, connection, framing, &peer, &script).await;
                peer.note(connection, end);
            });
        }
    });
    peer
}

/// One connection, until somebody ends it.
async fn converse(
    mut stream: TcpStream,
    connection: usize,
    framing: Framing,
    peer: &Peer,
    script: &Arc<Script>,
) -> Seen {
    let mut unread = Vec::new();
    let mut nth = 0;
    let mut moves = VecDeque::from(script(&Said {
        nth,
        bytes: Vec::new(),
    }));
    let mut waits_until = None;
    loop {
        let now = tokio::time::Instant::now();
        if waits_until.is_none_or(|until| until <= now) {
            waits_until = None;
            match moves.pop_front() {
                // A client that is gone is noticed by the next read.
                Some(Move::Write(bytes)) => {
                    let _ = stream.write_all(&bytes).await;
                    continue;
                }
                Some(Move::Wait(time)) => waits_until = Some(now + time),
                Some(Move::Close) => {
                    let _ = stream.shutdown().await;
                    return Seen::Ended;
                }
                Some(Move::Reset) => {
                    stream.set_zero_linger().unwrap();
                    return Seen::Ended;
                }
                None => {}
            }
        }
        let wake = waits_until.unwrap_or(now + Duration::from_secs(3600));
        tokio::select! {
            () = sleep_until(wake) => {}
            read = stream.read_buf(&mut unread) => match read {
                Ok(0) => return Seen::Fin,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Seen::Rst,
                Err(error) => panic!("a server of the test can't read: {error}"),
                Ok(_) => while let Some(length) = framing(&unread) {
                    let bytes: Vec<u8> = unread.drain(..length).collect();
                    peer.note(connection, Seen::Bytes(bytes.clone()));
                    nth += 1;
                    moves.extend(script(&Said { nth, bytes }));
                },
            },
        }
    }
}

impl Peer {
    fn note(&self, connection: usize, seen: Seen) {
        let at = Instant::now();
        self.log.lock().unwrap().push(Line {
            connection,
            at,
            seen,
        });
    }

    pub fn log(&self) -> Vec<Line> {
        self.log.lock().unwrap().clone()
    }

    pub fn count(&self, wanted: impl Fn(&Seen) -> bool) -> usize {
        self.log().iter().filter(|line| wanted(&line.seen)).count()
    }

    pub fn accepted(&self) -> usize {
        self.count(|seen| *seen == Seen::Accepted)
    }

    /// Whole packets or requests that arrived.
    pub fn said(&self) -> usize {
        self.count(|seen| matches!(seen, Seen::Bytes(_)))
    }

    /// For each connection that the client ended: the time from the last thing that it said (or from its begin) to its end.
    pub fn patience(&self) -> Vec<Duration> {
        let log = self.log();
        let ends = log
            .iter()
            .filter(|line| matches!(line.seen, Seen::Fin | Seen::Rst));
        ends.map(|end| {
            let last = log.iter().rfind(|line| {
                line.connection == end.connection
                    && matches!(line.seen, Seen::Accepted | Seen::Bytes(_))
                    && line.at <= end.at
            });
            end.at - last.unwrap().at
        })
        .collect()
    }
}

/// An HTTP request with a body of `content-length`.
pub fn http(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let body: usize = head
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next())
        .map_or(0, |length| length.parse().unwrap());
    (bytes.len() >= end + body).then_some(end + body)
}

/// An MQTT packet.
pub fn mqtt(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    for (place, byte) in bytes.iter().skip(1).take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            let whole = 2 + place + length;
            return (bytes.len() >= whole).then_some(whole);
        }
    }
    None
}

/// A byte at a time, with `gap` between two.
pub fn drip(bytes: &[u8], gap: Duration) -> Vec<Move> {
    bytes
        .iter()
        .flat_map(|byte| [Move::Write(vec![*byte]), Move::Wait(gap)])
        .collect()
}

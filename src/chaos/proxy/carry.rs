//! One connection carried: two ways, each with its delay line, in one task.
//!
//! An idle connection holds no buffer: bytes are read into the thread's scratch space and kept only if they can't leave at once.
//! A peer that doesn't read stops the reading from the other side, and nothing else: the chain is changed without asking here.

use super::chain::{Chain, Direction};
use super::delay_line::{DelayLine, End, Next};
use super::link::Counters;
use bytes::Bytes;
use socket2::SockRef;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// Read at once; also what is held for a peer that does not read.
const CHUNK_BYTES: usize = 64 * 1024;
/// Held on one way while a delay is in force: 16 MiB is 80 MB/s through 200 ms.
const DELAYED_BYTES: usize = 16 * 1024 * 1024;
/// Held in the whole process; above it every way falls back to `CHUNK_BYTES`.
const PROCESS_BYTES: usize = 128 * 1024 * 1024;
/// Chunks moved before other connections of the thread get their turn.
const TURNS: usize = 16;

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK_BYTES]);
}

/// A connection between a client and the link's target.
pub(super) struct Connection {
    /// Number within the link; part of what the jitter is drawn from.
    pub(super) number: u64,
    pub(super) client: TcpStream,
    pub(super) target: TcpStream,
    pub(super) chain: watch::Receiver<Arc<Chain>>,
    pub(super) counters: Arc<Counters>,
}

/// One way of it.
struct Pipe {
    direction: Direction,
    line: DelayLine,
    /// The receiving socket takes nothing at the moment.
    blocked: bool,
    /// The end has been passed on.
    closed: bool,
}

/// What a round of moving bytes came to.
enum Moved {
    /// Wait for a socket, or until this moment.
    Wait(Option<Instant>),
    /// There is more to do at once.
    More,
    /// The socket written to has been reset by its peer.
    ReceiverReset,
    /// An RST is due: the connection ends.
    Reset,
}

impl Connection {
    /// Carries until both ways have ended or one side resets.
    pub(super) async fn run(mut self) {
        let mut out = Pipe::new(Direction::ToTarget);
        let mut back = Pipe::new(Direction::ToClient);
        loop {
            let first = out.advance(&self, &self.client, &self.target);
            let second = back.advance(&self, &self.target, &self.client);
            let now = Instant::now();
            if matches!(first, Moved::Reset) || matches!(second, Moved::Reset) {
                return self.reset();
            }
            if matches!(first, Moved::ReceiverReset) {
                back.line.end(now, End::Reset);
            }
            if matches!(second, Moved::ReceiverReset) {
                out.line.end(now, End::Reset);
            }
            let resets = [&out, &back]
                .iter()
                .any(|pipe| pipe.line.ended() == Some(End::Reset));
            if out.closed && back.closed && !resets {
                return;
            }
            let (Moved::Wait(one), Moved::Wait(two)) = (first, second) else {
                tokio::task::yield_now().await;
                continue;
            };
            let until = one.into_iter().chain(two).min();
            if !self.wait(&mut out, &mut back, until).await {
                return;
            }
        }
    }

    /// Waits until something may have changed; false if the link is gone.
    async fn wait(&mut self, out: &mut Pipe, back: &mut Pipe, until: Option<Instant>) -> bool {
        let alarm = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let at_client = readiness(&self.client, out, back);
        let at_target = readiness(&self.target, back, out);
        tokio::select! {
            reset = at_client => if reset { out.line.end(Instant::now(), End::Reset) },
            reset = at_target => if reset { back.line.end(Instant::now(), End::Reset) },
            () = alarm => {}
            changed = self.chain.changed() => return changed.is_ok(),
        }
        true
    }

    fn reset(self) {
        // Lingering for zero seconds makes the close an RST. It can fail only on a socket that is dead already.
        for socket in [&self.client, &self.target] {
            let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
        }
    }
}

/// Waits for what the two ways need of a socket: `reads` takes from it, `writes` gives to it. True if its peer has reset it.
async fn readiness(socket: &TcpStream, reads: &Pipe, writes: &Pipe) -> bool {
    if reads.line.ended() == Some(End::Reset) {
        return std::future::pending().await;
    }
    let mut interest = Interest::ERROR;
    if reads.wants_to_read() {
        interest |= Interest::READABLE;
    }
    if writes.blocked {
        interest |= Interest::WRITABLE;
    }
    match socket.ready(interest).await {
        Ok(ready) => ready.is_error(),
        Err(_) => true,
    }
}

impl Pipe {
    fn new(direction: Direction) -> Pipe {
        Pipe {
            direction,
            line: DelayLine::default(),
            blocked: false,
            closed: false,
        }
    }

    fn wants_to_read(&self) -> bool {
        let room = if self.blocked || HELD_BYTES.load(Ordering::Relaxed) > PROCESS_BYTES {
            CHUNK_BYTES
        } else {
            DELAYED_BYTES
        };
        self.line.ended().is_none() && self.line.held_bytes() < room
    }

    /// Moves what can be moved without waiting.
    fn advance(&mut self, connection: &Connection, from: &TcpStream, to: &TcpStream) -> Moved {
        let chain = Arc::clone(&connection.chain.borrow());
        for _ in 0..TURNS {
            let delivered = self.deliver(connection, &chain, to);
            if !matches!(delivered, Moved::Wait(_)) {
                return delivered;
            }
            if !self.wants_to_read() || !self.read(connection, &chain, from, to) {
                return delivered;
            }
        }
        Moved::More
    }

    /// Sends what is due.
    fn deliver(&mut self, connection: &Connection, chain: &Chain, to: &TcpStream) -> Moved {
        let delay = |chunk| chain.delay(self.direction, connection.number, chunk);
        self.blocked = false;
        loop {
            match self.line.next(Instant::now(), delay) {
                Next::Nothing => return Moved::Wait(None),
                Next::At(due) => return Moved::Wait(Some(due)),
                Next::End(End::Reset) => return Moved::Reset,
                Next::End(End::Finished) => {
                    if !self.closed {
                        self.closed = true;
                        // Fails only if the peer is gone, which the other way notices.
                        let _ = SockRef::from(to).shutdown(Shutdown::Write);
                    }
                    return Moved::Wait(None);
                }
                Next::Bytes(bytes) => match to.try_write(&bytes) {
                    Ok(written) => {
                        self.line.sent(written);
                        HELD_BYTES.fetch_sub(written, Ordering::Relaxed);
                        connection.counters.carried(self.direction, written);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.blocked = true;
                        return Moved::Wait(self.line.reset_at(delay));
                    }
                    Err(_) => {
                        self.give_up();
                        return Moved::ReceiverReset;
                    }
                },
            }
        }
    }

    /// Reads one chunk, and passes it on at once if nothing stands in its way. False if there was nothing to read.
    fn read(
        &mut self,
        connection: &Connection,
        chain: &Chain,
        from: &TcpStream,
        to: &TcpStream,
    ) -> bool {
        SCRATCH.with_borrow_mut(|scratch| match from.try_read(scratch) {
            Ok(0) => {
                self.line.end(Instant::now(), End::Finished);
                true
            }
            Ok(read) => {
                let delayed = chain.delays(self.direction);
                let direct = !delayed && self.line.held_bytes() == 0;
                let sent = if direct {
                    to.try_write(&scratch[..read]).unwrap_or(0)
                } else {
                    0
                };
                connection.counters.carried(self.direction, sent);
                if sent < read {
                    connection.counters.held(delayed);
                    HELD_BYTES.fetch_add(read - sent, Ordering::Relaxed);
                    self.line
                        .push(Instant::now(), Bytes::copy_from_slice(&scratch[sent..read]));
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(_) => {
                self.line.end(Instant::now(), End::Reset);
                true
            }
        })
    }

    /// Nothing more can be delivered: the receiver has gone.
    fn give_up(&mut self) {
        HELD_BYTES.fetch_sub(self.line.held_bytes(), Ordering::Relaxed);
        self.line = DelayLine::default();
        self.line.end(Instant::now(), End::Finished);
        self.closed = true;
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        HELD_BYTES.fetch_sub(self.line.held_bytes(), Ordering::Relaxed);
    }
}

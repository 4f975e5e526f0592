//! One connection carried: two ways, each with its pipeline, in one task.
//!
//! An idle connection holds no buffer: bytes are read into the thread's scratch space and kept only if they can't leave at once.
//! A peer that doesn't read stops the reading from the other side, and nothing else: the chain is changed without asking here.

use super::chain::{Chain, Direction};
use super::counters::Counters;
use super::mqtt::{self, Speech};
use super::pipeline::{Fate, Pipeline};
use super::queue::End;
use crate::plan::fault::CutBy;
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
use tokio_util::sync::CancellationToken;

/// Read at once; also what is held for a peer that does not read.
const CHUNK_BYTES: usize = 64 * 1024;
/// Read at once where whole chunks come and go: one system call moves four times as much.
const BULK_BYTES: usize = 256 * 1024;
/// Held on one way while a delay is in force: 16 MiB is 80 MB/s through 200 ms.
const DELAYED_BYTES: usize = 16 * 1024 * 1024;
/// Held in the whole process; above it every way falls back to `CHUNK_BYTES`.
const PROCESS_BYTES: usize = 128 * 1024 * 1024;
/// Chunks moved before other connections of the thread get their turn.
const TURNS: usize = 16;
/// How long a cut waits for the end of a packet, to tell its reason behind it.
const GOODBYE: Duration = Duration::from_millis(500);
/// How long a connection that a toxic closed is drained: closing it with bytes unread would turn the FIN into an RST.
const DRAIN: Duration = Duration::from_secs(1);

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; BULK_BYTES]);
}

/// A connection between a client and the link's target.
pub(super) struct Connection {
    /// Number within the link; part of what is drawn for it.
    pub(super) number: u64,
    pub(super) client: TcpStream,
    pub(super) target: TcpStream,
    pub(super) chain: watch::Receiver<Arc<Chain>>,
    /// Ends with FIN when it is cancelled.
    pub(super) stop: CancellationToken,
    pub(super) counters: Arc<Counters>,
}

/// One way of it.
struct Pipe {
    direction: Direction,
    pipeline: Pipeline,
    /// Of the pipeline, as `HELD_BYTES` knows it.
    counted_bytes: usize,
    /// The receiving socket takes nothing at the moment.
    blocked: bool,
    /// The end has been passed on.
    closed: bool,
    /// Something has been read.
    begun: bool,
    /// Something has been read that the other way does not know of.
    fresh: bool,
    /// Whole chunks come and go: larger ones are worth their room.
    bulk: bool,
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
    /// Everything that may leave has left: the connection is closed.
    Close,
}

impl Connection {
    /// Carries until both ways have ended, one side resets, or a toxic ends it.
    pub(super) async fn run(mut self) {
        let mut out = Pipe::new(Direction::ToTarget, self.number);
        let mut back = Pipe::new(Direction::ToClient, self.number);
        let mut cut = self.refit(&mut out, &mut back);
        loop {
            // Nothing that arrives after a change was answered for may pass by it.
            if self.chain.has_changed().unwrap_or(false) {
                cut = self.refit(&mut out, &mut back);
            }
            let first = out.advance(&self, &self.client, &self.target);
            let answered = agree(&mut out, &mut back);
            let second = back.advance(&self, &self.target, &self.client);
            agree(&mut out, &mut back);
            let now = Instant::now();
            let due = cut.map(|(at, by)| {
                if may_be_cut(by, &back) {
                    at
                } else {
                    at + GOODBYE
                }
            });
            if let (Some(at), Some((_, by))) = (due, cut)
                && at <= now
            {
                return self.cut(by, &back).await;
            }
            if matches!(first, Moved::Reset) || matches!(second, Moved::Reset) {
                return self.reset();
            }
            if matches!(first, Moved::Close) || matches!(second, Moved::Close) {
                return self.close().await;
            }
            if matches!(first, Moved::ReceiverReset) {
                back.pipeline.end(now, End::Reset);
            }
            if matches!(second, Moved::ReceiverReset) {
                out.pipeline.end(now, End::Reset);
            }
            let resets = [&out, &back]
                .iter()
                .any(|pipe| pipe.pipeline.arrived_end() == Some(End::Reset));
            if out.closed && back.closed && !resets {
                return;
            }
            let (Moved::Wait(one), Moved::Wait(two), false) = (first, second, answered) else {
                tokio::task::yield_now().await;
                continue;
            };
            let until = one.into_iter().chain(two).chain(due).min();
            match self.wait(&mut out, &mut back, until).await {
                Woken::Gone => return self.close().await,
                Woken::Changed => cut = self.refit(&mut out, &mut back),
                Woken::Ready => {}
            }
        }
    }

    /// Takes the chain over as it is; gives the connection's own cut.
    fn refit(&mut self, out: &mut Pipe, back: &mut Pipe) -> Option<(Instant, CutBy)> {
        let chain = Arc::clone(&self.chain.borrow_and_update());
        let now = Instant::now();
        for pipe in [out, back] {
            pipe.pipeline.refit(&chain, now);
        }
        chain.cut_of(self.number)
    }

    /// Waits until something may have changed.
    async fn wait(&mut self, out: &mut Pipe, back: &mut Pipe, until: Option<Instant>) -> Woken {
        let alarm = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let at_client = readiness(&self.client, out, back);
        let at_target = readiness(&self.target, back, out);
        tokio::select! {
            reset = at_client => if reset { out.pipeline.end(Instant::now(), End::Reset) },
            reset = at_target => if reset { back.pipeline.end(Instant::now(), End::Reset) },
            () = alarm => {}
            () = self.stop.cancelled() => return Woken::Gone,
            changed = self.chain.changed() => return if changed.is_ok() { Woken::Changed } else { Woken::Gone },
        }
        Woken::Ready
    }

    async fn cut(self, by: CutBy, back: &Pipe) {
        self.counters.cut();
        match by {
            CutBy::Reset => self.reset(),
            CutBy::Close => self.close().await,
            CutBy::Disconnect(reason) => {
                if back.pipeline.is_between_packets() {
                    // A client that has no room for four bytes learns of its end by the FIN.
                    let _ = self.client.try_write(&mqtt::disconnect(reason));
                }
                self.close().await;
            }
        }
    }

    fn reset(self) {
        // Lingering for zero seconds makes the close an RST. It can fail only on a socket that is dead already.
        for socket in [&self.client, &self.target] {
            let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
        }
    }

    /// FIN to both sides.
    async fn close(self) {
        for socket in [&self.client, &self.target] {
            // Fails only if the peer is gone, which comes to the same.
            let _ = SockRef::from(socket).shutdown(Shutdown::Write);
        }
        let drained = async { tokio::join!(drain(&self.client), drain(&self.target)) };
        // Whoever does not close within this time gets an RST for what it still sends.
        let _ = tokio::time::timeout(DRAIN, drained).await;
    }
}

/// Each way learns what the other has found out, and hands over what toxics say in the target's place; true if there was some.
fn agree(out: &mut Pipe, back: &mut Pipe) -> bool {
    if out.pipeline.speech() == Speech::Unknown && back.begun {
        // A server that speaks first speaks no MQTT.
        out.pipeline.learn(Speech::Other);
    }
    if back.pipeline.speech() != out.pipeline.speech() {
        back.pipeline.learn(out.pipeline.speech());
    }
    if std::mem::take(&mut back.fresh) {
        out.pipeline.answer_came();
    }
    let answers = out.pipeline.take_answers();
    let answered = !answers.is_empty();
    let now = Instant::now();
    for (bytes, last) in answers {
        back.pipeline.push(now, bytes);
        if last {
            back.pipeline.end(now, End::Finished);
            out.pipeline.end(now, End::Finished);
        }
    }
    answered
}

/// A reason is told between two packets, or not at all.
fn may_be_cut(by: CutBy, back: &Pipe) -> bool {
    !matches!(by, CutBy::Disconnect(_))
        || !matches!(back.pipeline.speech(), Speech::Mqtt(mqtt::MQTT_5))
        || back.pipeline.is_between_packets()
}

/// Why a wait ended.
enum Woken {
    Ready,
    /// The chain has changed.
    Changed,
    /// The link is gone or was switched off.
    Gone,
}

/// Reads and throws away until the peer ends.
async fn drain(socket: &TcpStream) {
    loop {
        if socket.readable().await.is_err() {
            return;
        }
        let read = SCRATCH.with_borrow_mut(|scratch| socket.try_read(scratch));
        match read {
            Ok(0) => return,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}

/// Waits for what the two ways need of a socket: `reads` takes from it, `writes` gives to it. True if its peer has reset it.
async fn readiness(socket: &TcpStream, reads: &Pipe, writes: &Pipe) -> bool {
    if reads.pipeline.arrived_end() == Some(End::Reset) {
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
    fn new(direction: Direction, connection: u64) -> Pipe {
        Pipe {
            direction,
            pipeline: Pipeline::new(direction, connection),
            counted_bytes: 0,
            blocked: false,
            closed: false,
            begun: false,
            fresh: false,
            bulk: false,
        }
    }

    fn wants_to_read(&self) -> bool {
        let narrow = self.blocked
            || !self.pipeline.delays()
            || HELD_BYTES.load(Ordering::Relaxed) > PROCESS_BYTES;
        let room = if narrow { CHUNK_BYTES } else { DELAYED_BYTES };
        self.pipeline.arrived_end().is_none() && self.pipeline.held_bytes() < room
    }

    /// Moves what can be moved without waiting.
    fn advance(&mut self, connection: &Connection, from: &TcpStream, to: &TcpStream) -> Moved {
        let moved = self.turns(connection, from, to);
        let held = self.pipeline.held_bytes();
        HELD_BYTES.fetch_add(held, Ordering::Relaxed);
        HELD_BYTES.fetch_sub(self.counted_bytes, Ordering::Relaxed);
        self.counted_bytes = held;
        moved
    }

    fn turns(&mut self, connection: &Connection, from: &TcpStream, to: &TcpStream) -> Moved {
        for _ in 0..TURNS {
            let delivered = self.deliver(connection, to);
            if !matches!(delivered, Moved::Wait(_)) {
                return delivered;
            }
            if !self.wants_to_read() || !self.read(connection, from, to) {
                return delivered;
            }
        }
        Moved::More
    }

    /// Sends what is due.
    fn deliver(&mut self, connection: &Connection, to: &TcpStream) -> Moved {
        self.blocked = false;
        let wake = self.pipeline.advance(Instant::now());
        if self.pipeline.fate() == Fate::Resets {
            return Moved::Reset;
        }
        while let Some(bytes) = self.pipeline.ready() {
            match to.try_write(bytes) {
                Ok(written) => {
                    self.pipeline.delivered(written);
                    connection.counters.carried(self.direction, written);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Moved::Wait(wake);
                }
                Err(_) => {
                    self.pipeline.give_up(Instant::now());
                    self.closed = true;
                    return Moved::ReceiverReset;
                }
            }
        }
        if self.pipeline.fate() == Fate::Closes {
            return Moved::Close;
        }
        if self.pipeline.is_finished() && !self.closed {
            self.closed = true;
            // Fails only if the peer is gone, which the other way notices.
            let _ = SockRef::from(to).shutdown(Shutdown::Write);
        }
        Moved::Wait(wake)
    }

    /// Reads one chunk, and passes it on at once if nothing stands in its way. False if there was nothing to read.
    fn read(&mut self, connection: &Connection, from: &TcpStream, to: &TcpStream) -> bool {
        let most = if self.bulk { BULK_BYTES } else { CHUNK_BYTES };
        SCRATCH.with_borrow_mut(|scratch| match from.try_read(&mut scratch[..most]) {
            Ok(0) => {
                self.pipeline.end(Instant::now(), End::Finished);
                true
            }
            Ok(read) => {
                self.begun = true;
                self.fresh = true;
                self.pipeline.look_at(&scratch[..read]);
                let sent = if self.pipeline.is_clear() {
                    to.try_write(&scratch[..read]).unwrap_or(0)
                } else {
                    0
                };
                connection.counters.carried(self.direction, sent);
                self.bulk = sent >= CHUNK_BYTES;
                if sent < read {
                    connection.counters.held(self.pipeline.has_toxics());
                    let rest = Bytes::copy_from_slice(&scratch[sent..read]);
                    self.pipeline.push(Instant::now(), rest);
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(_) => {
                self.pipeline.end(Instant::now(), End::Reset);
                true
            }
        })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        HELD_BYTES.fetch_sub(self.counted_bytes, Ordering::Relaxed);
    }
}

//! What one way of a connection holds back: chunks in their order, then the end of the stream.
//!
//! Pure: it is told the time and the delay of a chunk, and never loses, reorders or invents a byte.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Chunks on their way.
#[derive(Debug, Default)]
pub struct DelayLine {
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Chunks seen so far; numbers the next one.
    chunks: u64,
    end: Option<(Instant, End)>,
}

#[derive(Debug)]
struct Held {
    arrived: Instant,
    number: u64,
    bytes: Bytes,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// FIN: follows the last byte.
    Finished,
    /// RST: what is still held is lost, as it is on a real path.
    Reset,
}

/// What is next to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// These bytes, now.
    Bytes(Bytes),
    /// The end, now.
    End(End),
    /// Something, but not before this moment.
    At(Instant),
    /// Nothing is held.
    Nothing,
}

impl DelayLine {
    /// Takes a chunk in.
    pub fn push(&mut self, arrived: Instant, bytes: Bytes) {
        self.chunks += 1;
        self.held_bytes += bytes.len();
        self.held.push_back(Held {
            arrived,
            number: self.chunks,
            bytes,
        });
    }

    /// The stream ends; an RST overrules a FIN, the first of each kind counts.
    pub fn end(&mut self, arrived: Instant, end: End) {
        match (self.end, end) {
            (None, _) | (Some((_, End::Finished)), End::Reset) => self.end = Some((arrived, end)),
            _ => {}
        }
    }

    /// Whether the end of the stream is known.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.end.map(|(_, end)| end)
    }

    /// What leaves next, given how long a chunk of a number is held.
    pub fn next(&self, now: Instant, delay: impl Fn(u64) -> Duration) -> Next {
        let reset = self.reset_at(&delay);
        if reset.is_some_and(|due| due <= now) {
            return Next::End(End::Reset);
        }
        let (due, ready) = match (self.held.front(), self.end) {
            (Some(front), _) => (
                front.arrived + delay(front.number),
                Next::Bytes(front.bytes.clone()),
            ),
            (None, Some((arrived, end))) => (arrived + delay(self.chunks + 1), Next::End(end)),
            (None, None) => return Next::Nothing,
        };
        if due <= now {
            ready
        } else {
            Next::At(reset.map_or(due, |reset| reset.min(due)))
        }
    }

    /// When an RST that has arrived takes effect. It does not wait for bytes that the other side does not take.
    pub fn reset_at(&self, delay: impl Fn(u64) -> Duration) -> Option<Instant> {
        match self.end {
            Some((arrived, End::Reset)) => Some(arrived + delay(self.chunks + 1)),
            _ => None,
        }
    }

    /// The first `written` bytes of the front chunk have left.
    pub fn sent(&mut self, written: usize) {
        let Some(front) = self.held.front_mut() else {
            return;
        };
        let written = written.min(front.bytes.len());
        front.bytes.advance(written);
        self.held_bytes -= written;
        if front.bytes.is_empty() {
            self.held.pop_front();
            if self.held.is_empty() {
                // An idle connection must cost nothing.
                self.held = VecDeque::new();
            }
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

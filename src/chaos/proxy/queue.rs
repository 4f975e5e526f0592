//! What one step of a connection's way holds back: chunks in their order, then the end of the stream.
//!
//! Pure: it is told the time, and never loses, reorders or invents a byte.

use bytes::Bytes;
use std::collections::VecDeque;
use tokio::time::Instant;

/// Chunks on their way.
#[derive(Debug, Default)]
pub struct Queue {
    held: VecDeque<Held>,
    held_bytes: usize,
    /// Chunks seen so far; numbers the next one.
    chunks: u64,
    end: Option<(Instant, End)>,
}

/// A chunk that waits.
#[derive(Debug, Clone)]
pub struct Held {
    pub arrived: Instant,
    /// Counts from 1 within the queue.
    pub number: u64,
    pub bytes: Bytes,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// FIN: follows the last byte.
    Finished,
    /// RST: what is still held is lost, as it is on a real path.
    Reset,
}

impl Queue {
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

    /// The end of the stream, if it is known, and when it came.
    #[must_use]
    pub fn ended(&self) -> Option<(Instant, End)> {
        self.end
    }

    /// The chunk that leaves next.
    #[must_use]
    pub fn front(&self) -> Option<&Held> {
        self.held.front()
    }

    /// Takes at most `bytes` bytes of the front chunk; the rest of it stays at the front.
    pub fn take(&mut self, bytes: usize) -> Bytes {
        let Some(front) = self.held.front_mut() else {
            return Bytes::new();
        };
        let taken = front.bytes.split_to(bytes.min(front.bytes.len()));
        self.held_bytes -= taken.len();
        if front.bytes.is_empty() {
            self.held.pop_front();
            if self.held.is_empty() {
                // An idle connection must cost nothing.
                self.held = VecDeque::new();
            }
        }
        taken
    }

    /// Takes the whole front chunk.
    pub fn take_front(&mut self) -> Bytes {
        self.take(usize::MAX)
    }

    /// Makes one chunk of the first two, for who needs to see more at once; false if there is only one.
    pub fn merge_front(&mut self) -> bool {
        if self.held.len() < 2 {
            return false;
        }
        let first = self.held.pop_front();
        if let (Some(first), Some(second)) = (first, self.held.front_mut()) {
            second.bytes = [&first.bytes[..], &second.bytes[..]].concat().into();
            second.arrived = first.arrived;
            second.number = first.number;
        }
        true
    }

    /// Chunks held.
    #[must_use]
    pub fn held_chunks(&self) -> usize {
        self.held.len()
    }

    /// Throws away what is held.
    pub fn discard(&mut self) {
        self.held = VecDeque::new();
        self.held_bytes = 0;
    }

    /// The number that the next chunk will have.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.chunks + 1
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Hands everything on to `next`, behind what is there.
    pub(super) fn flow_into(&mut self, next: &mut Queue) {
        for held in std::mem::take(&mut self.held) {
            next.push(held.arrived, held.bytes);
        }
        self.held_bytes = 0;
        if let Some((arrived, end)) = self.end {
            next.end(arrived, end);
        }
    }
}

//! One way of a connection: its bytes go through a step for each toxic that acts on it, in the order of the chain.
//!
//! Pure: it is told the time and what arrives, and answers what may leave. It never loses, reorders or invents a byte that no
//! toxic loses, whatever comes and goes in the chain meanwhile.

use super::chain::{Chain, Direction, Toxic};
use super::queue::{End, Queue};
use super::toxics::{Progress, Step};
use bytes::Bytes;
use std::sync::Arc;
use tokio::time::Instant;

/// The steps of one way, and what has come out of the last.
#[derive(Debug)]
pub struct Pipeline {
    direction: Direction,
    /// The connection's number in its link.
    connection: u64,
    steps: Vec<Stage>,
    out: Queue,
    fate: Fate,
}

/// A toxic at work.
#[derive(Debug)]
struct Stage {
    toxic: Arc<Toxic>,
    progress: Progress,
    queue: Queue,
    /// The end that was passed on already.
    passed: Option<End>,
}

/// Whether the connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    GoesOn,
    /// It is closed once what has left is delivered.
    Closes,
    /// It is reset now.
    Resets,
}

impl Pipeline {
    /// A way without toxics; [`Pipeline::refit`] brings those of the chain.
    #[must_use]
    pub fn new(direction: Direction, connection: u64) -> Pipeline {
        Pipeline {
            direction,
            connection,
            steps: Vec::new(),
            out: Queue::default(),
            fate: Fate::GoesOn,
        }
    }

    /// Takes over the chain as it is now. What a toxic that has gone held flows on at once; one that has changed goes on where
    /// it was.
    pub fn refit(&mut self, chain: &Chain, now: Instant) {
        let wanted: Vec<&Arc<Toxic>> = chain
            .toxics()
            .iter()
            .filter(|toxic| toxic.kind.acts_on_bytes() && toxic.ways.hold(self.direction))
            .filter(|toxic| toxic.acts_on(self.connection))
            .collect();
        let mut row = 0;
        while row < self.steps.len() {
            let id = &self.steps[row].toxic.id;
            if wanted.iter().any(|toxic| toxic.id == *id) {
                row += 1;
            } else {
                self.drop_step(row);
            }
        }
        for (place, toxic) in wanted.into_iter().enumerate() {
            let found = self.steps.iter().position(|step| step.toxic.id == toxic.id);
            match found {
                Some(row) => self.steps[row].become_of(toxic, now),
                None => {
                    let place = place.min(self.steps.len());
                    self.steps.insert(place, Stage::new(toxic, now));
                }
            }
        }
    }

    fn drop_step(&mut self, row: usize) {
        let mut gone = self.steps.remove(row);
        if gone.toxic.kind.loses_bytes() {
            self.meet(match gone.toxic.kind {
                super::toxics::Kind::BlackHole(_) => Fate::Resets,
                _ => Fate::Closes,
            });
        }
        let next = self.steps.get_mut(row).map(|step| &mut step.queue);
        gone.queue.flow_into(next.unwrap_or(&mut self.out));
    }

    /// Bytes arrived.
    pub fn push(&mut self, arrived: Instant, bytes: Bytes) {
        self.first().push(arrived, bytes);
    }

    /// The stream ended.
    pub fn end(&mut self, arrived: Instant, end: End) {
        self.first().end(arrived, end);
    }

    fn first(&mut self) -> &mut Queue {
        match self.steps.first_mut() {
            Some(step) => &mut step.queue,
            None => &mut self.out,
        }
    }

    /// The end of what arrives, if it is known.
    #[must_use]
    pub fn arrived_end(&self) -> Option<End> {
        let first = self.steps.first().map_or(&self.out, |step| &step.queue);
        first.ended().map(|(_, end)| end)
    }

    /// Moves what is due through the steps; gives the moment of the next change, if time alone brings one.
    pub fn advance(&mut self, now: Instant) -> Option<Instant> {
        let mut wake: Option<Instant> = None;
        for row in 0..self.steps.len() {
            loop {
                let (head, tail) = self.steps.split_at_mut(row + 1);
                let stage = &mut head[row];
                let next = match tail.first_mut() {
                    Some(step) => &mut step.queue,
                    None => &mut self.out,
                };
                match stage.step(now, self.connection) {
                    Step::Emit(bytes, due) => next.push(due, bytes),
                    Step::End(end, due) => {
                        if stage.passed.replace(end) == Some(end) {
                            break;
                        }
                        next.end(due, end);
                    }
                    Step::At(due) => {
                        wake = Some(wake.map_or(due, |wake| wake.min(due)));
                        break;
                    }
                    Step::Nothing => break,
                    Step::Close => {
                        self.meet(Fate::Closes);
                        break;
                    }
                    Step::Reset => {
                        self.meet(Fate::Resets);
                        break;
                    }
                }
            }
        }
        wake
    }

    /// The worse fate stands.
    fn meet(&mut self, fate: Fate) {
        if self.fate != Fate::Resets {
            self.fate = fate;
        }
    }

    /// Whether the connection goes on. A reset that has come through overrules what still waits to be taken.
    #[must_use]
    pub fn fate(&self) -> Fate {
        match self.out.ended() {
            Some((_, End::Reset)) => Fate::Resets,
            _ => self.fate,
        }
    }

    /// The bytes to deliver next.
    #[must_use]
    pub fn ready(&self) -> Option<&Bytes> {
        self.out.front().map(|front| &front.bytes)
    }

    /// The first `written` of the bytes that are ready have been delivered.
    pub fn delivered(&mut self, written: usize) {
        self.out.take(written);
    }

    /// Everything is delivered, and a FIN is due.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.out.front().is_none() && matches!(self.out.ended(), Some((_, End::Finished)))
    }

    /// Nothing acts and nothing is held: bytes may pass directly.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.steps.is_empty() && self.out.front().is_none() && self.fate == Fate::GoesOn
    }

    /// Whether a toxic acts on what passes.
    #[must_use]
    pub fn has_toxics(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Whether a delay acts: more must be taken in than a socket holds, to keep the peer's speed.
    #[must_use]
    pub fn delays(&self) -> bool {
        self.steps.iter().any(|step| step.toxic.kind.delays())
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let within: usize = self.steps.iter().map(|step| step.queue.held_bytes()).sum();
        within + self.out.held_bytes()
    }

    /// The receiver has gone: nothing can be delivered any more.
    pub fn give_up(&mut self, now: Instant) {
        self.steps = Vec::new();
        self.out.discard();
        self.out.end(now, End::Finished);
    }
}

impl Stage {
    fn new(toxic: &Arc<Toxic>, now: Instant) -> Stage {
        Stage {
            toxic: Arc::clone(toxic),
            progress: Progress::begun(now),
            queue: Queue::default(),
            passed: None,
        }
    }

    fn become_of(&mut self, toxic: &Arc<Toxic>, now: Instant) {
        let same = std::mem::discriminant(&self.toxic.kind) == std::mem::discriminant(&toxic.kind);
        self.toxic = Arc::clone(toxic);
        if !same {
            self.progress = Progress::begun(now);
        }
    }

    fn step(&mut self, now: Instant, connection: u64) -> Step {
        self.toxic.kind.step(
            &mut self.progress,
            &mut self.queue,
            now,
            self.toxic.draws(connection),
        )
    }
}

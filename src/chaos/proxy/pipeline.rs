//! One way of a connection: its bytes go through a step for each toxic that acts on it, in the order of the chain.
//!
//! Toxics that understand a protocol stand before all others, the latest of them first: what comes to a new one is what arrives from
//! then on, and where its packets begin is known because every byte of MQTT that arrives was looked at.
//!
//! Pure: it is told the time and what arrives, and answers what may leave. It never loses, reorders or invents a byte that no
//! toxic loses, whatever comes and goes in the chain meanwhile.

use super::chain::{Chain, Direction, Toxic};
use super::mqtt::{Frames, Greeting, Speech};
use super::queue::{End, Queue};
use super::tally::{Acting, Foreign};
use super::toxics::{Kind, Progress, Step};
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
    speech: Speech,
    greeting: Greeting,
    /// Of what has arrived.
    frames: Frames,
    /// The toxics that don't understand this connection; nearly always none.
    foreign: Vec<Foreign>,
    /// What a toxic says in the target's place, and whether it is its last word.
    answers: Vec<(Bytes, bool)>,
}

/// A toxic at work.
#[derive(Debug)]
struct Stage {
    toxic: Arc<Toxic>,
    progress: Progress,
    queue: Queue,
    /// The end that was passed on already.
    passed: Option<End>,
    /// `None` on a way that is not counted.
    acting: Option<Acting>,
    /// Only counted while what came last is not understood.
    foreign: Option<Foreign>,
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
            speech: Speech::Unknown,
            greeting: Greeting::default(),
            frames: Frames::default(),
            foreign: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Takes over the chain as it is now. What a toxic that has gone held flows on at once; one that has changed goes on where
    /// it was.
    pub fn refit(&mut self, chain: &Chain, now: Instant) {
        let wanted: Vec<&Arc<Toxic>> = chain
            .toxics()
            .iter()
            .filter(|toxic| toxic.acts_towards(self.direction) && toxic.acts_on(self.connection))
            .collect();
        self.foreign
            .retain(|foreign| wanted.iter().any(|toxic| foreign.is_of(&toxic.tally)));
        let mut row = 0;
        while row < self.steps.len() {
            if wanted.iter().any(|toxic| self.steps[row].may_become(toxic)) {
                row += 1;
            } else {
                self.drop_step(row);
            }
        }
        let readers = |step: &Stage| step.toxic.kind.protocol().is_some();
        for toxic in wanted
            .iter()
            .filter(|toxic| toxic.kind.protocol().is_some())
        {
            match self.steps.iter_mut().find(|step| step.toxic.id == toxic.id) {
                Some(step) => step.become_of(toxic, now),
                None => self.read_with(toxic, now),
            }
        }
        let first = self.steps.iter().filter(|step| readers(step)).count();
        let plain = wanted
            .into_iter()
            .filter(|toxic| toxic.kind.protocol().is_none());
        for (place, toxic) in (first..).zip(plain) {
            match self.steps.iter_mut().find(|step| step.toxic.id == toxic.id) {
                Some(step) => step.become_of(toxic, now),
                None => {
                    let step = self.stage(toxic, now);
                    self.steps.insert(place.min(self.steps.len()), step);
                }
            }
        }
    }

    fn stage(&self, toxic: &Arc<Toxic>, now: Instant) -> Stage {
        let counts = self.connection != 0 && toxic.counts_on(self.direction);
        let progress = Progress {
            frames: self.frames,
            ..Progress::begun(now)
        };
        Stage {
            toxic: Arc::clone(toxic),
            progress,
            queue: Queue::default(),
            passed: None,
            acting: counts.then(|| Acting::on(&toxic.tally)),
            foreign: None,
        }
    }

    /// Puts a toxic that understands a protocol before the others, if the connection may speak that.
    fn read_with(&mut self, toxic: &Arc<Toxic>, now: Instant) {
        let understood = |protocol: super::toxics::Protocol| protocol.may_be(self.speech);
        if toxic.kind.protocol().is_none_or(understood) {
            let step = self.stage(toxic, now);
            self.steps.insert(0, step);
        } else {
            self.call_foreign(toxic);
        }
    }

    fn call_foreign(&mut self, toxic: &Arc<Toxic>) {
        let known = self
            .foreign
            .iter()
            .any(|foreign| foreign.is_of(&toxic.tally));
        if self.connection != 0 && toxic.counts_on(self.direction) && !known {
            self.foreign.push(Foreign::to(&toxic.tally));
        }
    }

    /// What the connection speaks, as far as its bytes have told.
    #[must_use]
    pub fn speech(&self) -> Speech {
        self.speech
    }

    /// What the other way has found out. Toxics that don't understand it go.
    pub fn learn(&mut self, speech: Speech) {
        self.speech = speech;
        while let Some(row) = self.steps.iter().position(|step| {
            let protocol = step.toxic.kind.protocol();
            protocol.is_some_and(|protocol| !protocol.may_be(speech))
        }) {
            let toxic = Arc::clone(&self.steps[row].toxic);
            self.drop_step(row);
            self.call_foreign(&toxic);
        }
    }

    /// Looks at bytes that have arrived, before they are pushed or passed on directly.
    pub fn look_at(&mut self, bytes: &[u8]) {
        if self.speech == Speech::Unknown && self.direction == Direction::ToTarget {
            match self.greeting.read(bytes) {
                Speech::Unknown => {}
                known => self.learn(known),
            }
        }
        if self.speech != Speech::Other {
            self.frames.pass(bytes);
        }
    }

    /// Something came back on the other way.
    pub fn answer_came(&mut self) {
        for step in &mut self.steps {
            step.progress.answered = true;
        }
    }

    /// What a toxic says in the target's place, and whether the connection ends after it.
    pub fn take_answers(&mut self) -> Vec<(Bytes, bool)> {
        std::mem::take(&mut self.answers)
    }

    /// Whether everything that arrived has left, and ends with a whole packet of MQTT 5.
    #[must_use]
    pub fn is_between_packets(&self) -> bool {
        self.speech == Speech::Mqtt(super::mqtt::MQTT_5)
            && self.frames.at_start()
            && self.held_bytes() == 0
    }

    fn drop_step(&mut self, row: usize) {
        let mut gone = self.steps.remove(row);
        // A request that has been thrown away in part is lost, too.
        if gone.toxic.kind.loses_bytes() || gone.progress.aborted.is_some() {
            self.meet(match gone.toxic.kind {
                Kind::BlackHole(_) => Fate::Resets,
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
        let level = match self.speech {
            Speech::Mqtt(level) => level,
            Speech::Unknown | Speech::Other => 0,
        };
        let mut wake: Option<Instant> = None;
        for row in 0..self.steps.len() {
            loop {
                let (head, tail) = self.steps.split_at_mut(row + 1);
                let stage = &mut head[row];
                let next = match tail.first_mut() {
                    Some(step) => &mut step.queue,
                    None => &mut self.out,
                };
                match stage.step(now, self.connection, level) {
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
                    Step::Answer { bytes, last } => self.answers.push((bytes, last)),
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
    /// Whether the toxic of this step may be replaced by this one where it stands. One that understands a protocol knows where it
    /// is in the stream, which another kind would not.
    fn may_become(&self, toxic: &Toxic) -> bool {
        let (ours, theirs) = (&self.toxic.kind, &toxic.kind);
        let reads = ours.protocol().is_some() || theirs.protocol().is_some();
        self.toxic.id == toxic.id && (!reads || same_kind(ours, theirs))
    }

    fn become_of(&mut self, toxic: &Arc<Toxic>, now: Instant) {
        let same = same_kind(&self.toxic.kind, &toxic.kind);
        self.toxic = Arc::clone(toxic);
        if !same {
            self.progress = Progress::begun(now);
        }
    }

    fn step(&mut self, now: Instant, connection: u64, level: u8) -> Step {
        let before = self.queue.held_chunks();
        let step = self.toxic.kind.step(
            &mut self.progress,
            &mut self.queue,
            now,
            self.toxic.draws(connection),
            level,
        );
        if connection != 0 {
            self.count(before, &step);
        }
        step
    }

    fn count(&mut self, before: usize, step: &Step) {
        let hits = std::mem::take(&mut self.progress.hits);
        let ended = u64::from(matches!(step, Step::Close | Step::Reset));
        self.toxic.tally.hit(match self.toxic.kind.protocol() {
            Some(_) => hits,
            None => before.saturating_sub(self.queue.held_chunks()) as u64 + ended,
        });
        if self.progress.foreign != self.foreign.is_some() {
            let foreign = self.progress.foreign && self.acting.is_some();
            self.foreign = foreign.then(|| Foreign::to(&self.toxic.tally));
        }
    }
}

fn same_kind(one: &Kind, other: &Kind) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

//! The faults in force on a link. Overlapping delays add; each ends by itself.

use crate::dice::Dice;
use crate::plan::fault::Way;
use std::time::Duration;
use tokio::time::Instant;

/// Everything that acts on a link at a moment.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    latencies: Vec<Latency>,
}

/// A delay of everything that is sent.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Unique in the process; whoever set it removes it by this name.
    pub id: String,
    pub add: Duration,
    /// Each chunk is delayed by `add` ± up to this, uniformly.
    pub jitter: Duration,
    pub way: Way,
    /// Ends by itself here, even if nobody comes back to remove it.
    pub until: Option<Instant>,
    /// The stream of the jitter's draws.
    pub seed: u64,
}

/// One of the two ways of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToTarget,
    ToClient,
}

impl Chain {
    /// Sets a latency; one of the same id is replaced.
    pub fn set(&mut self, latency: Latency) {
        self.remove(&latency.id);
        self.latencies.push(latency);
    }

    /// Takes a fault away; false if there was none of this id.
    pub fn remove(&mut self, id: &str) -> bool {
        let before = self.latencies.len();
        self.latencies.retain(|latency| latency.id != id);
        self.latencies.len() < before
    }

    /// Takes away what has reached its end; false if nothing had.
    pub fn expire(&mut self, now: Instant) -> bool {
        let before = self.latencies.len();
        self.latencies
            .retain(|latency| latency.until.is_none_or(|until| until > now));
        self.latencies.len() < before
    }

    /// What is in force, in the order in which it was set.
    #[must_use]
    pub fn latencies(&self) -> &[Latency] {
        &self.latencies
    }

    /// Whether anything delays this way.
    #[must_use]
    pub fn delays(&self, direction: Direction) -> bool {
        self.latencies
            .iter()
            .any(|latency| latency.acts_on(direction))
    }

    /// How long chunk `chunk` of connection `connection` is held. A pure function, so that a change of the chain applies to
    /// what is already held: it leaves at its arrival plus the delay in force.
    #[must_use]
    pub fn delay(&self, direction: Direction, connection: u64, chunk: u64) -> Duration {
        self.latencies
            .iter()
            .filter(|latency| latency.acts_on(direction))
            .map(|latency| latency.draw(connection, chunk))
            .sum()
    }
}

impl Latency {
    fn acts_on(&self, direction: Direction) -> bool {
        match self.way {
            Way::Requests => direction == Direction::ToTarget,
            Way::Answers => direction == Direction::ToClient,
            Way::Both => true,
        }
    }

    fn draw(&self, connection: u64, chunk: u64) -> Duration {
        if self.jitter.is_zero() {
            return self.add;
        }
        let low = self.add.saturating_sub(self.jitter);
        Dice::named(self.seed, connection, chunk).between(low, self.add + self.jitter)
    }
}

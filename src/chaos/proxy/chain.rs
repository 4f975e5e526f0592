//! The toxics in force on a link, in the order in which they came, and the connections that are cut. All connections of the link
//! share it, those that stand as well as new ones.

use super::tally::Tally;
use super::toxics::{Draws, Kind};
use crate::plan::fault::{Connections, CutBy, Way};
use std::sync::Arc;
use tokio::time::Instant;

/// Everything that acts on a link at a moment.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    toxics: Vec<Arc<Toxic>>,
    cuts: Vec<Arc<Cut>>,
}

/// A fault on one way of a link's connections, or on both.
#[derive(Debug, Clone)]
pub struct Toxic {
    /// Unique in the chain; whoever set it removes it by this name.
    pub id: String,
    pub ways: Ways,
    /// The share of the connections that it acts on, 0 to 1; which ones is drawn from the seed.
    pub toxicity: f64,
    pub kind: Kind,
    /// Ends by itself here, even if nobody comes back to remove it.
    pub until: Option<Instant>,
    pub seed: u64,
    /// Whether it acts on the connections that stood when it was set, on those that came later, or on both.
    pub connections: Connections,
    /// The number of the latest connection when it was set.
    pub born: u64,
    pub tally: Arc<Tally>,
}

/// One of the two ways of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToTarget,
    ToClient,
}

/// The ways that a toxic acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    pub to_target: bool,
    pub to_client: bool,
}

/// The end of chosen connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub id: String,
    pub by: CutBy,
    /// Number of the connection and when it ends, sorted by number.
    pub victims: Vec<(u64, Instant)>,
}

impl Chain {
    /// Sets a toxic; one of the same id is replaced in its place and counted on, a new one goes to the end.
    pub fn set(&mut self, mut toxic: Toxic) {
        match self.toxics.iter_mut().find(|old| old.id == toxic.id) {
            Some(old) => {
                toxic.born = old.born;
                toxic.tally = Arc::clone(&old.tally);
                *old = Arc::new(toxic);
            }
            None => self.toxics.push(Arc::new(toxic)),
        }
    }

    /// Takes a toxic away and gives it; nothing if there was none of this id.
    pub fn remove(&mut self, id: &str) -> Vec<Arc<Toxic>> {
        self.take(|toxic| toxic.id == id)
    }

    /// Takes away and gives what has reached its end.
    pub fn expire(&mut self, now: Instant) -> Vec<Arc<Toxic>> {
        self.take(|toxic| toxic.until.is_some_and(|until| until <= now))
    }

    fn take(&mut self, ends: impl Fn(&Toxic) -> bool) -> Vec<Arc<Toxic>> {
        let (ended, stay) = std::mem::take(&mut self.toxics)
            .into_iter()
            .partition(|toxic| ends(toxic));
        self.toxics = stay;
        ended
    }

    /// What is in force, in the order in which it was set.
    #[must_use]
    pub fn toxics(&self) -> &[Arc<Toxic>] {
        &self.toxics
    }

    /// Cuts connections; what was cut by an earlier one is forgotten, since it is gone or will be.
    pub fn cut(&mut self, cut: Cut, now: Instant) {
        self.cuts
            .retain(|old| old.victims.iter().any(|(_, at)| *at >= now));
        self.cuts.push(Arc::new(cut));
    }

    /// When and how a connection is cut, if it is.
    #[must_use]
    pub fn cut_of(&self, connection: u64) -> Option<(Instant, CutBy)> {
        self.cuts
            .iter()
            .filter_map(|cut| {
                let row = cut
                    .victims
                    .binary_search_by_key(&connection, |(number, _)| *number)
                    .ok()?;
                Some((cut.victims[row].1, cut.by))
            })
            .min_by_key(|(at, _)| *at)
    }

    /// The fault that refuses a new connection of this number, if one does.
    #[must_use]
    pub fn refuses(&self, connection: u64) -> Option<&Arc<Toxic>> {
        self.refusals().find(|toxic| toxic.acts_on(connection))
    }

    /// Whether every new connection is refused.
    #[must_use]
    pub fn refuses_all(&self) -> bool {
        self.refusals().any(|toxic| toxic.toxicity >= 1.0)
    }

    fn refusals(&self) -> impl Iterator<Item = &Arc<Toxic>> {
        self.toxics
            .iter()
            .filter(|toxic| toxic.kind == Kind::Refuse)
    }
}

impl Toxic {
    /// Whether it acts on this connection at all: a pure draw, so it stays as it is for as long as the connection lives. It acts on
    /// every canary, whose number is 0.
    #[must_use]
    pub fn acts_on(&self, connection: u64) -> bool {
        if connection == 0 {
            return true;
        }
        let of_age = match self.connections {
            Connections::All => true,
            Connections::Existing => connection <= self.born,
            Connections::New => connection > self.born,
        };
        of_age
            && (self.toxicity >= 1.0 || self.draws(connection).dice(0).fraction() < self.toxicity)
    }

    /// Whether it has something to do on one way of this connection.
    #[must_use]
    pub fn acts_towards(&self, direction: Direction) -> bool {
        self.kind.acts_on_bytes() && self.ways.hold(direction) && self.kind.acts_towards(direction)
    }

    /// Whether this way of a connection is the one on which the connection is counted: a fault on both ways acts on one connection.
    #[must_use]
    pub fn counts_on(&self, direction: Direction) -> bool {
        direction == Direction::ToTarget || !self.acts_towards(Direction::ToTarget)
    }

    /// Where its draws on a connection come from.
    #[must_use]
    pub fn draws(&self, connection: u64) -> Draws {
        Draws {
            seed: self.seed,
            connection,
        }
    }
}

impl Ways {
    /// Both.
    pub const BOTH: Ways = Ways {
        to_target: true,
        to_client: true,
    };

    /// Only this one.
    #[must_use]
    pub fn only(direction: Direction) -> Ways {
        Ways {
            to_target: direction == Direction::ToTarget,
            to_client: direction == Direction::ToClient,
        }
    }

    /// Whether `direction` is one of them.
    #[must_use]
    pub fn hold(self, direction: Direction) -> bool {
        match direction {
            Direction::ToTarget => self.to_target,
            Direction::ToClient => self.to_client,
        }
    }
}

impl From<Way> for Ways {
    fn from(way: Way) -> Ways {
        match way {
            Way::Requests => Ways::only(Direction::ToTarget),
            Way::Answers => Ways::only(Direction::ToClient),
            Way::Both => Ways::BOTH,
        }
    }
}

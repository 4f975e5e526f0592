//! The presence cache: which hub is on which shard, and in which of its sessions.

use crate::lab::messages::Client;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

/// Where a hub is. A higher generation is a later session, on whichever shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub shard: u16,
    pub generation: u64,
    /// Whether it takes commands already.
    pub listens: bool,
    /// Whether it has a connection; without one its shard keeps its commands for it.
    pub connected: bool,
}

/// A live session: where it is, and what its shard sees of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub place: Place,
    pub client: Client,
}

/// The cache.
#[derive(Debug, Default)]
pub struct Presence {
    /// By the hub's serial number.
    sessions: Mutex<BTreeMap<String, Session>>,
}

impl Presence {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions
            .lock()
            .expect("nobody panics while holding it")
    }

    /// A session stands. Gives the session that it replaces; `None` as the whole answer if a later one is known already.
    pub fn opened(
        &self,
        serial: &str,
        shard: u16,
        generation: u64,
        client: Client,
    ) -> Option<Option<Place>> {
        let mut sessions = self.held();
        if sessions
            .get(serial)
            .is_some_and(|known| known.place.generation >= generation)
        {
            return None;
        }
        let place = Place {
            shard,
            generation,
            listens: false,
            connected: true,
        };
        let replaced = sessions.insert(serial.to_owned(), Session { place, client });
        Some(replaced.map(|session| session.place))
    }

    /// The session takes commands from now on; false if it is not the hub's session any more.
    pub fn listening(&self, serial: &str, generation: u64) -> bool {
        match self.held().get_mut(serial) {
            Some(session) if session.place.generation == generation => {
                session.place.listens = true;
                true
            }
            _ => false,
        }
    }

    /// The connection ended, and the session with it unless its shard keeps it; false if it was not the hub's any more.
    pub fn closed(&self, serial: &str, generation: u64, keeps: bool) -> bool {
        let mut sessions = self.held();
        let Some(session) = sessions
            .get_mut(serial)
            .filter(|session| session.place.generation == generation)
        else {
            return false;
        };
        session.place.connected = false;
        if !keeps {
            sessions.remove(serial);
        }
        true
    }

    /// Forgets every session on a shard; gives them.
    pub fn shard_lost(&self, shard: u16) -> Vec<(String, u64)> {
        let mut sessions = self.held();
        let lost: Vec<_> = sessions
            .iter()
            .filter(|(_, session)| session.place.shard == shard)
            .map(|(serial, session)| (serial.clone(), session.place.generation))
            .collect();
        for (serial, _) in &lost {
            sessions.remove(serial);
        }
        lost
    }

    /// Where the hub is.
    pub fn place(&self, serial: &str) -> Option<Place> {
        self.held().get(serial).map(|session| session.place)
    }

    /// Where commands for the hub can go now.
    pub fn reachable(&self, serial: &str) -> Option<Place> {
        self.place(serial).filter(|place| place.listens)
    }

    /// Number of connected hubs by shard; shards without any are not in it.
    pub fn sessions(&self) -> BTreeMap<u16, u64> {
        let mut sessions = BTreeMap::new();
        for session in self.held().values() {
            if session.place.connected {
                *sessions.entry(session.place.shard).or_default() += 1;
            }
        }
        sessions
    }

    /// Every connected hub that takes commands. A client that takes none is somebody else: nobody moves it.
    pub fn hubs(&self) -> Vec<(String, Place)> {
        self.held()
            .iter()
            .filter(|(_, session)| session.place.connected && session.place.listens)
            .map(|(serial, session)| (serial.clone(), session.place))
            .collect()
    }

    /// Up to `most` sessions behind the serial number `after`, in the order of serial numbers; those of one shard if asked.
    pub fn page(&self, after: &str, most: usize, shard: Option<u16>) -> Vec<(String, Session)> {
        self.held()
            .range::<str, _>((Bound::Excluded(after), Bound::Unbounded))
            .filter(|(_, session)| session.place.connected)
            .filter(|(_, session)| shard.is_none_or(|shard| session.place.shard == shard))
            .take(most)
            .map(|(serial, session)| (serial.clone(), session.clone()))
            .collect()
    }

    /// Number of different client certificates on live sessions.
    pub fn certificates(&self) -> usize {
        let sessions = self.held();
        let certificates: HashSet<&str> = sessions
            .values()
            .filter(|session| session.place.connected)
            .filter_map(|session| session.client.certificate.as_deref())
            .collect();
        certificates.len()
    }
}

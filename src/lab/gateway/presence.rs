//! The presence cache: which hub is on which shard, and in which of its sessions.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard};

/// Where a hub is. A higher generation is a later session, on whichever shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub shard: u16,
    pub generation: u64,
    /// Whether it takes commands already.
    pub listens: bool,
}

/// The cache.
#[derive(Debug, Default)]
pub struct Presence {
    places: Mutex<HashMap<String, Place>>,
}

impl Presence {
    fn places(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.places.lock().expect("nobody panics while holding it")
    }

    /// A session stands. Gives the session that it replaces; `None` as the whole answer if a later one is known already.
    pub fn opened(&self, serial: &str, shard: u16, generation: u64) -> Option<Option<Place>> {
        let mut places = self.places();
        if places
            .get(serial)
            .is_some_and(|known| known.generation >= generation)
        {
            return None;
        }
        Some(places.insert(
            serial.to_owned(),
            Place {
                shard,
                generation,
                listens: false,
            },
        ))
    }

    /// The session takes commands from now on; false if it is not the hub's session any more.
    pub fn listening(&self, serial: &str, generation: u64) -> bool {
        match self.places().get_mut(serial) {
            Some(place) if place.generation == generation => {
                place.listens = true;
                true
            }
            _ => false,
        }
    }

    /// The session ended; false if it was not the hub's session any more.
    pub fn closed(&self, serial: &str, generation: u64) -> bool {
        let mut places = self.places();
        let is_it = places
            .get(serial)
            .is_some_and(|place| place.generation == generation);
        if is_it {
            places.remove(serial);
        }
        is_it
    }

    /// Forgets every session on a shard; gives them.
    pub fn shard_lost(&self, shard: u16) -> Vec<(String, u64)> {
        let mut places = self.places();
        let lost: Vec<_> = places
            .iter()
            .filter(|(_, place)| place.shard == shard)
            .map(|(serial, place)| (serial.clone(), place.generation))
            .collect();
        for (serial, _) in &lost {
            places.remove(serial);
        }
        lost
    }

    /// Where the hub is.
    pub fn place(&self, serial: &str) -> Option<Place> {
        self.places().get(serial).copied()
    }

    /// Where commands for the hub can go now.
    pub fn reachable(&self, serial: &str) -> Option<Place> {
        self.place(serial).filter(|place| place.listens)
    }

    /// Number of sessions by shard; shards without any are not in it.
    pub fn sessions(&self) -> BTreeMap<u16, u64> {
        let mut sessions = BTreeMap::new();
        for place in self.places().values() {
            *sessions.entry(place.shard).or_default() += 1;
        }
        sessions
    }
}

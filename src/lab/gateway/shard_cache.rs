//! The cache of 2026-07-09: where dispatch last found each hub. Healthy dispatch writes into it and never reads it; with
//! `shard-map-ignores-generation` it believes it, because the key lacks the generation of the map.

use super::presence::Place;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Where a hub was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cached {
    pub place: Place,
    /// The link of the shard at that time: another one is another process.
    pub link: u64,
    /// The generation of the shard map at that time.
    pub generation: u64,
}

/// The cache.
#[derive(Debug)]
pub struct ShardCache {
    entries: Mutex<HashMap<String, (Cached, Instant)>>,
    /// An entry that is not used for so long is forgotten. Every use counts, retries too, which is why the thirty seconds
    /// of that day never passed.
    lifetime: Duration,
}

impl ShardCache {
    /// An empty cache.
    pub fn new(lifetime: Duration) -> ShardCache {
        ShardCache {
            entries: Mutex::default(),
            lifetime,
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, (Cached, Instant)>> {
        self.entries.lock().expect("nobody panics while holding it")
    }

    /// Where the hub was found, if that isn't too long ago.
    pub fn get(&self, serial: &str) -> Option<Cached> {
        let now = Instant::now();
        let mut entries = self.entries();
        let (cached, used) = entries.get_mut(serial)?;
        if now.duration_since(*used) > self.lifetime {
            entries.remove(serial);
            return None;
        }
        *used = now;
        Some(*cached)
    }

    /// The hub was found.
    pub fn put(&self, serial: &str, cached: Cached) {
        let now = Instant::now();
        self.entries().insert(serial.to_owned(), (cached, now));
    }

    /// Forgets what was not used for too long.
    pub fn sweep(&self) {
        let now = Instant::now();
        self.entries()
            .retain(|_, (_, used)| now.duration_since(*used) <= self.lifetime);
    }
}

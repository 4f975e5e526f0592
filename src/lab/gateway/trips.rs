//! The trips that are under way, and who is on them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Trips that have begun and not ended since the gateway started.
#[derive(Debug, Default)]
pub struct Trips {
    inner: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The rider of each trip, where the gateway knows who it is.
    trips: HashMap<String, Option<String>>,
    by_rider: HashMap<String, u64>,
}

/// What the begin of a trip means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    New,
    /// A trip of somebody who is on another one already.
    Second,
    /// It was under way before.
    Known,
}

impl Trips {
    /// A trip has begun.
    pub fn begin(&self, trip: &str, rider: Option<&str>) -> Begun {
        let mut open = self.lock();
        if open.trips.contains_key(trip) {
            return Begun::Known;
        }
        open.trips.insert(trip.to_owned(), rider.map(str::to_owned));
        let Some(rider) = rider else {
            return Begun::New;
        };
        let count = open.by_rider.entry(rider.to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            Begun::Second
        } else {
            Begun::New
        }
    }

    /// A trip has ended; false if it was not under way.
    pub fn end(&self, trip: &str) -> bool {
        let mut open = self.lock();
        let Some(rider) = open.trips.remove(trip) else {
            return false;
        };
        if let Some(rider) = rider
            && let Some(count) = open.by_rider.get_mut(&rider)
        {
            *count -= 1;
            if *count == 0 {
                open.by_rider.remove(&rider);
            }
        }
        true
    }

    /// How many are under way.
    pub fn open(&self) -> usize {
        self.lock().trips.len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.inner.lock().expect("nobody panics while holding it")
    }
}

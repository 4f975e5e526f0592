//! How often each layer tried: requests at the gateway's edge, its calls of the station service, and the service's attempts at the database.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time over which multiples are taken.
const WINDOW: Duration = Duration::from_secs(10);

/// Counters of the layers, from the gateway's start.
#[derive(Debug, Default)]
pub struct Layers {
    requests: AtomicU64,
    calls: AtomicU64,
    attempts: AtomicU64,
    recent: Mutex<VecDeque<(Instant, Tries)>>,
}

/// Counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tries {
    /// Requests of riders and docks at the edge, their own retries included.
    pub requests: u64,
    /// Calls of the station service.
    pub calls: u64,
    /// Attempts of the service to do something in the database.
    pub attempts: u64,
}

impl Tries {
    /// Attempts at the database for each request at the edge; 1 where nobody asked.
    pub fn product(self) -> f64 {
        if self.requests == 0 {
            1.0
        } else {
            self.attempts as f64 / self.requests as f64
        }
    }
}

impl Layers {
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub fn call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub fn attempt(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// All so far.
    pub fn tries(&self) -> Tries {
        Tries {
            requests: self.requests.load(Ordering::Relaxed),
            calls: self.calls.load(Ordering::Relaxed),
            attempts: self.attempts.load(Ordering::Relaxed),
        }
    }

    /// Those of the last ten seconds, as far as somebody has looked since.
    pub fn recent(&self, now: Instant) -> Tries {
        let all = self.tries();
        let mut recent = self.recent.lock().expect("nobody panics while holding it");
        recent.push_back((now, all));
        while recent.len() > 1 && recent.front().is_some_and(|(at, _)| now - *at > WINDOW) {
            recent.pop_front();
        }
        let first = recent.front().map_or(all, |(_, tries)| *tries);
        Tries {
            requests: all.requests - first.requests,
            calls: all.calls - first.calls,
            attempts: all.attempts - first.attempts,
        }
    }
}

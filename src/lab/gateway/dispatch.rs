//! Dispatch: workers that take commands from the queue and hand them to the shard of their hub.
//!
//! Healthy, a worker asks presence where the hub is. With `shard-map-ignores-generation` it believes the cache of
//! 2026-07-09 first: after a rebalance, or the restart of a shard, commands go to where the hub was and are rejected there.

use super::Gateway;
use super::book::Taken;
use super::counts::Count;
use super::pool::{DatabaseError, Endpoint};
use super::presence::Place;
use super::shard_cache::Cached;
use super::store;
use crate::lab::defect::Defect;
use crate::lab::messages::ToShard;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two looks for what the cache need not know any longer.
const SWEEP: Duration = Duration::from_secs(5);

/// By the shard map of which generation each worker last handed over a command.
#[derive(Debug)]
pub struct Workers(Vec<AtomicU64>);

impl Workers {
    /// So many, all by the first map.
    pub fn new(count: u64) -> Workers {
        Workers((0..count).map(|_| AtomicU64::new(1)).collect())
    }

    /// The generations, worker by worker.
    pub fn generations(&self) -> Vec<u64> {
        let read = |generation: &AtomicU64| generation.load(Ordering::Relaxed);
        self.0.iter().map(read).collect()
    }
}

/// Starts the workers.
pub fn start(gateway: &Arc<Gateway>) {
    for worker in 0..gateway.workers.0.len() {
        let gateway = Arc::clone(gateway);
        tokio::spawn(async move {
            while let Ok(id) = gateway.book.queued().recv_async().await {
                gateway.dispatch(worker, &id).await;
            }
        });
    }
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP).await;
            gateway.cache.sweep();
        }
    });
}

/// Where a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Route {
    place: Place,
    /// Of the shard map that says so.
    generation: u64,
    /// The hub was there under an earlier map, and isn't now.
    stale: bool,
}

impl Gateway {
    /// Where commands for the hub go now; `None` while they have to wait for it.
    fn route(&self, serial: &str) -> Option<Route> {
        let found = self.presence.reachable(serial);
        let generation = self.map.generation();
        if self.switches.is_on(Defect::ShardMapIgnoresGeneration)
            && let Some(cached) = self.cache.get(serial)
        {
            let holds = self.links.number(cached.place.shard) == Some(cached.link)
                && found.is_none_or(|place| place.shard == cached.place.shard);
            let moved_on = cached.generation != generation;
            if moved_on && !(holds && found.is_some()) {
                return Some(Route {
                    place: cached.place,
                    generation: cached.generation,
                    stale: true,
                });
            }
            return found.map(|place| Route {
                place,
                generation: cached.generation,
                stale: false,
            });
        }
        let place = found?;
        if let Some(link) = self.links.number(place.shard) {
            let cached = Cached {
                place,
                link,
                generation,
            };
            self.cache.put(serial, cached);
        }
        Some(Route {
            place,
            generation,
            stale: false,
        })
    }

    async fn dispatch(self: &Arc<Self>, worker: usize, id: &str) {
        let Some(Taken {
            serial,
            action,
            expires,
        }) = self.book.taken(id)
        else {
            return;
        };
        let is_back = |serial: &str| self.presence.reachable(serial).is_some();
        if self.route(&serial).is_none() {
            return self.book.wait(id, is_back);
        }
        if self.note_dispatch(id).await.is_err() {
            return self.book.park(id);
        }
        // The hub may have moved while the database was asked.
        let Some(route) = self.route(&serial) else {
            return self.book.wait(id, is_back);
        };
        let Place {
            shard, generation, ..
        } = route.place;
        let sent = self.book.send(id, generation, || {
            let message = ToShard::Deliver {
                serial: serial.clone(),
                generation,
                command: id.to_owned(),
                action,
                ttl_ms: left_ms(expires),
            };
            let stands = route.stale || self.presence.reachable(&serial) == Some(route.place);
            stands && self.links.try_tell(shard, message)
        });
        if !sent {
            return;
        }
        self.counts.add(Count::CommandsDispatched);
        self.counts.of_shard(shard, |counts| {
            counts.dispatches += 1;
            counts.stale_dispatches += u64::from(route.stale);
        });
        self.workers.0[worker].store(route.generation, Ordering::Relaxed);
        if route.stale {
            // The shard rejects it, and the worker's connection there has to be made anew.
            let pause = Duration::from_millis(self.settings.dispatch_reconnect_ms);
            tokio::time::sleep(pause).await;
        }
    }

    async fn note_dispatch(&self, id: &str) -> Result<(), DatabaseError> {
        let mut lease = self.pool.acquire(Endpoint::Dispatch).await?;
        store::mark_command(&mut lease, id, "dispatched").await
    }

    /// A shard could not hand a command to its hub: it is tried again, after a pause unless the defect is on.
    pub(super) fn rejected(&self, id: &str) {
        let at_once = self.switches.is_on(Defect::ImmediateDispatchRetry);
        if self.book.undelivered(id, at_once) {
            self.counts.add(Count::DispatchRetries);
        }
    }
}

/// Milliseconds until then.
fn left_ms(expires: Instant) -> u64 {
    let left = expires.saturating_duration_since(Instant::now());
    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
}

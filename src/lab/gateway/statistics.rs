//! Everything counted, as one JSON object: the exact figures beside what `/metrics` shows.

use super::Gateway;
use super::counts::{Count, ShardCounts};
use super::pool::{Endpoint, Pool};
use crate::lab::defect::Defect;
use serde_json::{Map, Value, json};
use std::sync::atomic::Ordering;

/// The whole of it.
pub fn all(gateway: &Gateway) -> Value {
    let counts: Map<String, Value> = Count::ALL
        .iter()
        .map(|count| (count.name().to_owned(), json!(gateway.counts.get(*count))))
        .collect();
    let stages = gateway.book.stages();
    let defects: Map<String, Value> = Defect::ALL
        .iter()
        .map(|defect| {
            (
                defect.name().to_owned(),
                json!(gateway.switches.is_on(*defect)),
            )
        })
        .collect();
    let tries = gateway.layers.tries();
    json!({
        "uptime_ms": u64::try_from(gateway.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "pool": pool(&gateway.pool),
        "status_pool": pool(&gateway.status_pool),
        "layers": { "gateway": tries.requests, "service": tries.calls, "database": tries.attempts },
        "returns_queued": gateway.returns.queued(),
        "shards": shards(gateway),
        "shard_map": {
            "generation": gateway.map.generation(),
            "moved_hubs": gateway.map.moved(),
            "workers": gateway.workers.generations(),
        },
        "counts": counts,
        "commands": {
            "storing": stages.storing,
            "queued": stages.queued,
            "waiting": stages.waiting,
            "parked": stages.parked,
            "sent": stages.sent,
            "delivered": stages.delivered,
        },
        "trips_open": gateway.trips.open(),
        "defects": defects,
        "settings": gateway.settings,
    })
}

fn pool(pool: &Pool) -> Value {
    let acquires: Map<String, Value> = Endpoint::ALL
        .iter()
        .map(|endpoint| {
            let count = pool.counts.acquires[*endpoint as usize].load(Ordering::Relaxed);
            (endpoint.name().to_owned(), json!(count))
        })
        .collect();
    let waits = pool.waits.seen();
    json!({
        "wait_count": waits.count,
        "wait_sum_us": waits.sum_us,
        "wait_max_us": waits.max_us,
        "waiting": pool.counts.waiting.load(Ordering::Relaxed),
        "in_use": pool.in_use(),
        "idle": pool.idle_count(),
        "max": pool.size(),
        "timeouts": pool.counts.timeouts.load(Ordering::Relaxed),
        "refused": pool.counts.refused.load(Ordering::Relaxed),
        "opened": pool.counts.opened.load(Ordering::Relaxed),
        "failed_opens": pool.counts.failed_opens.load(Ordering::Relaxed),
        "lost": pool.counts.lost.load(Ordering::Relaxed),
        "acquires": acquires,
    })
}

fn shards(gateway: &Gateway) -> Value {
    let sessions = gateway.presence.sessions();
    let counted = gateway.counts.shards();
    let shards: Map<String, Value> = (1..=gateway.shards)
        .map(|number| {
            let ShardCounts {
                connects,
                disconnects,
                refused,
                dispatches,
                stale_dispatches,
                full_handshakes,
                resumed_handshakes,
                failed_handshakes,
            } = counted.get(&number).cloned().unwrap_or_default();
            let value = json!({
                "linked": gateway.links.has(number),
                "sessions": sessions.get(&number).copied().unwrap_or(0),
                "connects": connects,
                "disconnects": disconnects,
                "refused": refused,
                "dispatches": dispatches,
                "stale_dispatches": stale_dispatches,
                "handshakes": { "full": full_handshakes, "resumed": resumed_handshakes, "failed": failed_handshakes },
            });
            (format!("shard-{number}"), value)
        })
        .collect();
    Value::Object(shards)
}

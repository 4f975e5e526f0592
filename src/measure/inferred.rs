//! What can be said of a pool that nobody can read, from the load alone. Every answer is inferred and carries its assumption.
//!
//! From the knee (field notes on probes, §5): below it a request takes its service time `S0`; above it throughput stays at `X*` and
//! the rest of the latency is waiting. So the pool has about `X* · S0` connections, and the mean wait is about latency − `S0`.
//! From isolated phases: while one kind of request is alone, connections taken over requests sent are those of one request.

use super::Collector;
use super::pool::PoolSeries;
use crate::event::Offset;
use crate::plan::operation::OperationKind;
use crate::plan::target::Plays;
use serde::Serialize;

/// Something that nobody measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inferred {
    pub of: String,
    pub finding: Finding,
}

/// What was inferred.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    Knee(Knee),
    /// Connections that one request of this kind takes, and how many requests that was seen from.
    ConnectionsPerRequest {
        connections: f64,
        requests: u64,
    },
}

/// Where throughput stops to grow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Knee {
    /// Latency at low load, in microseconds.
    pub service_us: f64,
    /// Throughput that does not grow any more, per second.
    pub plateau_per_second: f64,
    /// Connections of the pool, or whatever else is the bottleneck.
    pub effective_pool: f64,
    /// Wait on the plateau, in microseconds.
    pub wait_us: f64,
}

impl Finding {
    /// What has to be true for it.
    #[must_use]
    pub fn assumption(&self) -> &'static str {
        match self {
            Finding::Knee(_) => {
                "assumes that one connection is held for the whole of a request, and that nothing else is the bottleneck"
            }
            Finding::ConnectionsPerRequest { .. } => {
                "assumes that nobody else used the pool while this kind of request was alone"
            }
        }
    }
}

/// One second of one kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Ended well.
    pub done: f64,
    /// Median latency; `None` where nothing ended.
    pub latency_us: Option<f64>,
}

/// Seconds that each side of a knee must have.
const ENOUGH_SECONDS: usize = 5;
/// Requests that must be seen alone.
const ENOUGH_REQUESTS: u64 = 20;
/// A latency of so many service times is one with a queue.
const QUEUES: f64 = 3.0;
/// A latency of at most so many service times is one without a queue.
const LIGHT: f64 = 1.5;
/// Without a queue, at most this share of the plateau was done.
const GREW: f64 = 0.8;
/// Throughput on a plateau stays within so much of its median.
const FLAT: f64 = 0.25;

/// The knee of a load, if it has one: seconds at low load, and seconds in which requests queue while throughput stays the same.
#[must_use]
pub fn knee(seconds: &[Load]) -> Option<Knee> {
    let mut latencies: Vec<f64> = seconds.iter().filter_map(|row| row.latency_us).collect();
    if latencies.len() < 2 * ENOUGH_SECONDS {
        return None;
    }
    latencies.sort_by(f64::total_cmp);
    // The quickest tenth, at least five seconds: what a request takes when it waits for nobody.
    let quick = (latencies.len() / 10).max(ENOUGH_SECONDS);
    let service_us = median(latencies.get(..quick)?)?;
    let queued = || {
        seconds
            .iter()
            .filter(|row| row.latency_us.is_some_and(|us| us > QUEUES * service_us))
    };
    let mut done: Vec<f64> = queued().map(|row| row.done).collect();
    if done.len() < ENOUGH_SECONDS || service_us <= 0.0 {
        return None;
    }
    done.sort_by(f64::total_cmp);
    let plateau_per_second = median(&done)?;
    let near = |done: &&f64| (**done - plateau_per_second).abs() <= FLAT * plateau_per_second;
    // Of a plateau nearly all seconds look the same, and nowhere is more done.
    let flat = done.iter().filter(near).count() * 10 >= done.len() * 8;
    let more = seconds
        .iter()
        .filter(|row| row.done > plateau_per_second * (1.0 + FLAT))
        .count();
    // Where as much was done without a queue, the load did not grow into it: something else made it slow.
    let mut light: Vec<f64> = seconds
        .iter()
        .filter(|row| row.latency_us.is_some_and(|us| us <= LIGHT * service_us))
        .map(|row| row.done)
        .collect();
    light.sort_by(f64::total_cmp);
    let grew = median(&light)? < GREW * plateau_per_second;
    if !flat || !grew || more * 10 > seconds.len() {
        return None;
    }
    let mut waits: Vec<f64> = queued()
        .filter_map(|row| Some(row.latency_us? - service_us))
        .collect();
    waits.sort_by(f64::total_cmp);
    Some(Knee {
        service_us,
        plateau_per_second,
        effective_pool: plateau_per_second * service_us / 1e6,
        wait_us: median(&waits)?,
    })
}

/// Of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(middle - 1)?, upper))
}

impl Collector {
    /// Everything that can be inferred. `pools` is parallel to `Probes::sources`.
    #[must_use]
    pub fn inferred(&self, pools: &[PoolSeries]) -> Vec<Inferred> {
        let steps = self.plan().operations.iter().enumerate();
        let steps = steps
            .filter(|(_, operation)| matches!(operation.kind, OperationKind::Step { .. }))
            .map(|(row, operation)| (row, operation.name.as_str()));
        let mut found = Vec::new();
        for (row, name) in steps {
            // A pool that can be read needs no guess.
            let knee = pools.is_empty().then(|| knee(&self.load_of(row)));
            found.extend(knee.flatten().map(|knee| Inferred {
                of: name.to_owned(),
                finding: Finding::Knee(knee),
            }));
            found.extend(self.alone(row, name, pools));
        }
        found
    }

    fn loaded(&self) -> std::ops::Range<u64> {
        let marks = self.marks();
        let from = marks.zero.map_or(0, |zero| zero.second());
        let to = marks.load_end.map_or(u64::MAX, |end| end.second());
        from..to.min(self.series().end())
    }

    fn load_of(&self, row: usize) -> Vec<Load> {
        let points = self.loaded().filter_map(|second| self.series().get(second));
        let rows = points.filter_map(|point| point.operations.get(row));
        rows.map(|point| Load {
            done: f64::from(point.ok),
            latency_us: point.p50_us.map(f64::from),
        })
        .collect()
    }

    /// Connections per request of a step, from the seconds in which it was the only kind of HTTP request.
    fn alone(&self, row: usize, name: &str, pools: &[PoolSeries]) -> Vec<Inferred> {
        let plan = self.plan();
        let http: Vec<usize> = (0..plan.operations.len())
            .filter(|other| plan.asks_over_http(plan.operations[*other].kind))
            .collect();
        let is_alone = |second: u64| {
            let Some(point) = self.series().get(second) else {
                return false;
            };
            let sent = |row: usize| {
                point.operations.get(row).map_or(0, |point| {
                    point.attempted + point.continued + point.in_flight
                })
            };
            sent(row) > 0 && http.iter().all(|other| *other == row || sent(*other) == 0)
        };
        let sources = plan.target.probes.sources.iter().zip(pools);
        let pools = sources.filter(|(source, _)| source.plays == Plays::Pool);
        let found = pools.filter_map(|(source, series)| {
            let (mut acquired, mut requests) = (0.0, 0);
            for second in self.loaded().filter(|second| is_alone(*second)) {
                let window = Offset(second * 1_000_000)..Offset((second + 1) * 1_000_000);
                let Some(acquires) = series.acquires(window) else {
                    continue;
                };
                acquired += acquires;
                requests += self.requests(second..second + 1);
            }
            (requests >= ENOUGH_REQUESTS).then(|| Inferred {
                of: format!("{name} at {}", source.name),
                finding: Finding::ConnectionsPerRequest {
                    connections: acquired / requests as f64,
                    requests,
                },
            })
        });
        found.collect()
    }
}

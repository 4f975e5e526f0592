//! Asks every instance of every source at a steady beat, on a thread of its own.
//!
//! Rounds begin at whole intervals of the run's clock and never overlap: a beat that comes while a round is still out is left out.
//! One connection per instance is opened by the first round, before there is load, and kept.

use super::extract::{Extractor, UnknownSource};
use super::instance::{self, BadSource, Instance};
use crate::event::Offset;
use crate::measure::pool::{Cost, Gap, GapReason, Reading, Sample};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::{Http, NoClient};
use crate::plan::Plan;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One connection for each instance; two may share a host and port.
const IDLE_CONNECTIONS: usize = 8;

/// A probe that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    UnknownSource(#[from] UnknownSource),
    #[error(transparent)]
    BadSource(#[from] BadSource),
    #[error("the probe can't start: {0}")]
    NoClient(#[from] NoClient),
    #[error("the probe can't start its thread: {0}")]
    NoThread(#[from] io::Error),
}

/// A probe that runs. Dropping it ends it without a last round.
#[derive(Debug)]
pub struct ProbeHandle {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// Where samples go. Called on the probe's thread; must not block.
pub type Deliver = Arc<dyn Fn(Sample) + Send + Sync>;

/// Starts to read all sources of the plan; the first round is asked for at once. Without sources nothing runs.
///
/// # Errors
/// If a source names something unknown, or no client or thread can be had.
pub fn start(
    plan: &Plan,
    hosts: &Arc<Hosts>,
    clock: Clock,
    deliver: Deliver,
) -> Result<ProbeHandle, ProbeError> {
    let probes = &plan.target.probes;
    let (stop, stopped) = watch::channel(false);
    let timeout = probes.timeout.min(probes.every.mul_f64(0.9));
    let http = Http::new(Arc::clone(hosts), IDLE_CONNECTIONS, timeout)?;
    let mut sources = Vec::new();
    for (row, source) in probes.sources.iter().enumerate() {
        sources.push(Source {
            row,
            name: source.name.clone(),
            instances: instance::all_of(source, &http, hosts)?
                .into_iter()
                .map(Some)
                .collect(),
            extractor: Arc::new(Extractor::of(source)?),
            timeout,
            every: probes.every,
            clock,
            deliver: Arc::clone(&deliver),
        });
    }
    if sources.is_empty() {
        return Ok(ProbeHandle { stop, thread: None });
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let thread = std::thread::Builder::new()
        .name("probe".to_owned())
        .spawn(move || run(&runtime, sources, &stopped))?;
    Ok(ProbeHandle {
        stop,
        thread: Some(thread),
    })
}

impl ProbeHandle {
    /// Asks every source once more, so that the counters of the last moments are read, and ends. Blocks for a probe's timeout
    /// at most.
    pub fn stop(mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A probe that panicked has left gaps, which the verdict sees.
            let _ = thread.join();
        }
    }
}

fn run(runtime: &Runtime, sources: Vec<Source>, stopped: &watch::Receiver<bool>) {
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for source in sources {
            tasks.spawn(source.keep_asking(stopped.clone()));
        }
        while tasks.join_next().await.is_some() {}
    });
}

/// One source and how it is asked.
struct Source {
    row: usize,
    name: String,
    /// `None` once its reader broke down.
    instances: Vec<Option<Instance>>,
    extractor: Arc<Extractor>,
    timeout: Duration,
    every: Duration,
    clock: Clock,
    deliver: Deliver,
}

impl Source {
    async fn keep_asking(mut self, mut stopped: watch::Receiver<bool>) {
        loop {
            self.round().await;
            let beat = self.next_beat(self.clock.now());
            tokio::select! {
                () = tokio::time::sleep_until(self.clock.instant(beat)) => {}
                asked_to_stop = async { stopped.wait_for(|stop| *stop).await.is_ok() } => {
                    if asked_to_stop {
                        self.round().await;
                    }
                    return;
                }
            }
        }
    }

    /// The first whole interval of the clock after `now`.
    fn next_beat(&self, now: Offset) -> Offset {
        let every = u64::try_from(self.every.as_micros())
            .unwrap_or(u64::MAX)
            .max(1);
        Offset((now.0 / every + 1).saturating_mul(every))
    }

    /// Asks all instances at the same time and tells what they said.
    async fn round(&mut self) {
        let at = self.clock.now();
        let mut readings = Vec::with_capacity(self.instances.len());
        let mut asked = JoinSet::new();
        for (row, slot) in self.instances.iter_mut().enumerate() {
            readings.push(Err(Gap {
                reason: GapReason::Unreadable,
                detail: format!("{}: the reader broke down", self.name),
            }));
            let Some(mut instance) = slot.take() else {
                continue;
            };
            let (extractor, timeout, clock) =
                (Arc::clone(&self.extractor), self.timeout, self.clock);
            asked.spawn(async move {
                let reading = ask(&mut instance, &extractor, timeout, clock).await;
                (row, instance, reading)
            });
        }
        while let Some(answered) = asked.join_next().await {
            if let Ok((row, instance, reading)) = answered {
                self.instances[row] = Some(instance);
                readings[row] = reading;
            }
        }
        (self.deliver)(Sample {
            source: self.row,
            at,
            instances: readings,
        });
    }
}

/// One reading of one instance, within `timeout`.
pub(super) async fn ask(
    instance: &mut Instance,
    extractor: &Extractor,
    timeout: Duration,
    clock: Clock,
) -> Result<Reading, Gap> {
    let began = clock.now();
    let said = instance.ask(extractor, timeout).await?;
    let ended = clock.now();
    let found = extractor.extract(said.series);
    if found.values.is_empty() {
        return Err(Gap {
            reason: GapReason::NothingFound,
            detail: format!(
                "{}: {} bytes, {} bad lines",
                instance.place(),
                said.bytes,
                said.bad_lines
            ),
        });
    }
    Ok(Reading {
        at: Offset(began.0.midpoint(ended.0)),
        started: found.started,
        values: found.values,
        cost: Cost {
            took_us: ended.0.saturating_sub(began.0),
            bytes: said.bytes,
            bad_lines: said.bad_lines,
            duplicate_lines: said.duplicate_lines,
        },
    })
}

//! What goes on beside the load: seconds are closed, files grow, the live line is told, guards are asked.
//!
//! Owns the collector. Decides when to look; what is seen is measured and judged elsewhere.

use super::drive::LoadEnded;
use super::interim::Interim;
use super::interrupt::Interrupt;
use super::prepare::Prepared;
use super::readmit::Pauses;
use super::trail::Trail;
use super::{Stopped, usage};
use crate::chaos::bulletin::Bulletin;
use crate::event::{Event, Offset, Sink};
use crate::measure::judge::Judge;
use crate::measure::pool::{PoolSeries, Sample};
use crate::measure::recovery::{self, Ending, Recovery, RecoveryOutcome};
use crate::measure::{Collector, Judged, Shard};
use crate::net::clock::Clock;
use crate::plan::Plan;
use crate::plan::fault::Edge;
use crate::probe::{self, ProbeHandle};
use crate::watch::exporter::Exporter;
use crate::watch::exposition::{self, Health, Seen};
use crate::watch::terminal::LiveLine;
use std::io::{self, IsTerminal, Stderr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior};

/// How often everything is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How late a trigger or fault may begin.
const MARK_PATIENCE: Duration = Duration::from_secs(1);
/// Steady state is asked for this long before the first fault, so that its last second is closed.
const STEADY_BEFORE: Duration = Duration::from_millis(500);

/// The eyes of a run.
pub(super) struct Watching {
    plan: Arc<Plan>,
    clock: Clock,
    pub collector: Collector,
    sinks: Vec<Sink>,
    samples: flume::Receiver<Sample>,
    /// `None` once it was stopped.
    probe: Option<ProbeHandle>,
    /// Parallel to `Probes::sources`.
    pub pools: Vec<PoolSeries>,
    trail: Trail,
    interim: Interim,
    line: LiveLine<Stderr>,
    looks: Interval,
    zero: Option<Offset>,
    steady_asked: bool,
    pauses: Pauses,
    bulletin: Bulletin,
    /// What keeps the run from passing and nobody else can know.
    pub doubts: Vec<String>,
    pub notes: Vec<String>,
    cpu_at_start_us: u64,
    exporter: Option<Arc<Exporter>>,
    /// The run's id.
    run: String,
}

impl Watching {
    /// Opens the run's growing files and starts the probes.
    ///
    /// # Errors
    /// If a file can't be made or a source can't be read.
    pub fn start(prepared: &Prepared, clock: Clock) -> Result<Watching, Stopped> {
        let plan = Arc::clone(&prepared.plan);
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let (collector, shards) = Collector::new(&plan, workers);
        let trail = Trail::start(&prepared.folder, prepared.started).map_err(Stopped::refused)?;
        let (sender, samples) = flume::unbounded();
        // A sample that comes after the run's end has nobody to read it.
        let deliver = Arc::new(move |sample| drop(sender.send(sample)));
        let probe =
            probe::start(&plan, &prepared.hosts, clock, deliver).map_err(Stopped::refused)?;
        let probes = &plan.target.probes;
        let pools = probes
            .sources
            .iter()
            .map(|_| PoolSeries::new(probes.every))
            .collect();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Watching {
            clock,
            collector,
            sinks: sinks(&shards),
            samples,
            probe: Some(probe),
            pools,
            trail,
            interim: Interim::new(prepared, workers),
            line: LiveLine::new(std::io::stderr(), std::io::stderr().is_terminal()),
            looks,
            zero: None,
            steady_asked: false,
            pauses: Pauses::default(),
            bulletin: Bulletin::new(plan.triggers.len() + plan.faults.len()),
            doubts: Vec::new(),
            notes: Vec::new(),
            cpu_at_start_us: usage::cpu_us(),
            exporter: prepared.exporter.clone(),
            run: prepared.folder.id().to_owned(),
            plan,
        })
    }

    /// One sink for each worker.
    pub fn sinks(&self) -> Vec<Sink> {
        self.sinks.clone()
    }

    /// The sink of whoever brings triggers and faults about: what waits for one of them hears of it.
    pub fn mark_sink(&self) -> Sink {
        self.bulletin.tap(&self.sinks[0])
    }

    /// Where it is told how far triggers and faults are.
    pub fn bulletin(&self) -> Bulletin {
        self.bulletin.clone()
    }

    /// Why hubs are not let back now.
    pub fn pauses(&self) -> Pauses {
        self.pauses.clone()
    }

    /// How many workers tell events.
    pub fn workers(&self) -> usize {
        self.sinks.len()
    }

    /// Tells an event of the run itself.
    pub fn tell(&mut self, event: Event) {
        if let Event::Zero { at } = event {
            self.zero = Some(at);
        }
        (self.sinks[0])(event);
    }

    /// Keeps something that the reader of the report should know.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Keeps something because of which the run can't pass.
    pub fn doubt(&mut self, text: String) {
        self.show(|line| line.say(&text));
        self.doubts.push(text);
    }

    /// Waits for `future` and looks on meanwhile.
    pub async fn beside<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                value = &mut future => return value,
                _ = self.looks.tick() => self.look(),
            }
        }
    }

    /// Waits for `future` and looks on; a signal, a guard or a missing steady state ends the wait.
    pub async fn beside_guarded(
        &mut self,
        future: impl Future<Output = ()>,
        interrupt: &Interrupt,
    ) -> LoadEnded {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                () = &mut future => return LoadEnded::ByPlan,
                _ = interrupt.wait() => return LoadEnded::ByInterrupt,
                _ = self.looks.tick() => {
                    self.look();
                    if let Some(ended) = self.guards() {
                        return ended;
                    }
                }
            }
        }
    }

    /// Waits until no command is open, at most until `limit`.
    pub async fn until_commands_settle(&mut self, limit: Offset) {
        while self.clock.now() < limit && self.collector.live(&self.pools).commands_open > 0 {
            self.looks.tick().await;
            self.look();
        }
    }

    /// Whether the recovery from every trigger and fault is decided.
    pub fn recovery_decided(&self) -> bool {
        let triggers = self.plan.triggers.iter().map(|trigger| trigger.at);
        // What waits for something is known to come, or not to come, when the load ends.
        let faults = self.plan.faults.iter().map(|fault| match fault.after {
            Some(_) => self.plan.duration,
            None => fault.at,
        });
        let (Some(last), Some(zero)) = (triggers.chain(faults).max(), self.zero) else {
            return true;
        };
        // A mark is known when the second in which it began is closed.
        let known_from = zero.after(last + MARK_PATIENCE).second();
        if self.collector.series().end() <= known_from {
            return false;
        }
        recovery::decided(&self.recoveries(Ending::Running))
    }

    /// How the target came back from every trigger and fault, as far as is known.
    pub fn recoveries(&self, ending: Ending) -> Vec<Recovery> {
        self.collector.recoveries(&self.pools, ending)
    }

    /// Closes what is still open. To be called once, after everyone has told their last event.
    pub fn close(&mut self) {
        if let Some(probe) = self.probe.take() {
            probe.stop();
        }
        self.take_samples();
        self.collector.finish(self.clock.now());
        self.trail.add(&mut self.collector);
        self.export();
        self.show(LiveLine::finish);
    }

    /// Judges everything that was measured.
    pub fn judged(&self, recoveries: &[Recovery]) -> Judged {
        Judge::new(&self.collector, &self.pools, recoveries).verdict()
    }

    /// Share of one core that this process used since the start.
    pub fn cpu_share(&self) -> Option<f64> {
        let passed_us = self.clock.now().0;
        let used_us = usage::cpu_us().saturating_sub(self.cpu_at_start_us);
        (passed_us > 0).then(|| used_us as f64 / passed_us as f64)
    }

    /// What went wrong with the files that are written while the run goes on, if anything did.
    pub fn file_problems(&self) -> impl Iterator<Item = &str> {
        self.trail
            .problem()
            .into_iter()
            .chain(self.interim.problem())
    }

    fn look(&mut self) {
        self.take_samples();
        if !self.collector.advance(self.clock.now()).is_empty() {
            self.trail.add(&mut self.collector);
            self.tell_recoveries();
            self.write_interim();
            self.export();
        }
        let live = self.collector.live(&self.pools);
        self.show(|line| line.show(&live));
    }

    fn write_interim(&mut self) {
        if self.interim.is_due(&self.collector) {
            let recoveries = self.recoveries(Ending::Running);
            self.interim
                .write(&self.collector, &self.pools, &recoveries);
        }
    }

    /// Faults that wait for a recovery hear of it by the analysis that the report is made from.
    fn tell_recoveries(&self) {
        let waits_for = |mark| {
            let mut waiting = self.plan.faults.iter().filter_map(|fault| fault.after);
            waiting.any(|after| after.edge == Edge::Recovery && after.mark == mark)
        };
        let marks = &self.collector.marks().rows;
        if !marks
            .iter()
            .any(|row| row.end.is_some() && waits_for(row.id))
        {
            return;
        }
        for recovery in self.recoveries(Ending::Running) {
            let told = match (&recovery.outcome, recovery.end) {
                (RecoveryOutcome::Recovered { at, .. }, _) => Ok(*at),
                (RecoveryOutcome::NotNeeded, Some(end)) => Ok(end),
                (RecoveryOutcome::Censored { why, .. }, _) => Err(why.clone()),
                _ => continue,
            };
            if waits_for(recovery.mark) {
                self.bulletin.tell_recovery(recovery.mark, told);
            }
        }
    }

    /// Makes the page that Prometheus reads; once a second is often enough.
    fn export(&self) {
        let Some(exporter) = &self.exporter else {
            return;
        };
        let recoveries = self.recoveries(Ending::Running);
        exporter.show(&exposition::page(&Seen {
            collector: &self.collector,
            pools: &self.pools,
            recoveries: &recoveries,
            health: Health {
                cpu_ratio: self.cpu_share(),
                resident_bytes: usage::resident_bytes(),
                open_files: usage::open_files(),
                open_files_limit: usage::open_files_limit(),
            },
            run: &self.run,
        }));
    }

    /// A live line that can't be written has nobody to read it; the run goes on.
    fn show(&mut self, what: impl FnOnce(&mut LiveLine<Stderr>) -> io::Result<()>) {
        let _ = what(&mut self.line);
    }

    fn take_samples(&mut self) {
        while let Ok(sample) = self.samples.try_recv() {
            if let Some(pool) = self.pools.get_mut(sample.source) {
                pool.add(sample);
            }
        }
    }

    /// The line of a guard that stops the run, if one does.
    fn guards(&mut self) -> Option<LoadEnded> {
        let judge = Judge::new(&self.collector, &self.pools, &[]);
        self.pauses.set(judge.pauses());
        if let Some(line) = judge.should_stop() {
            return Some(LoadEnded::ByGuard(line));
        }
        let first = self.plan.faults.iter().map(|fault| fault.at).min()?;
        let asked_at = self.zero?.after(first.saturating_sub(STEADY_BEFORE));
        if self.steady_asked || self.clock.now() < asked_at {
            return None;
        }
        self.steady_asked = true;
        let unsteady = judge.unsteady();
        (!unsteady.is_empty()).then_some(LoadEnded::Unsteady(unsteady))
    }
}

/// One sink a shard, for the workers to share.
fn sinks(shards: &[Arc<Shard>]) -> Vec<Sink> {
    shards
        .iter()
        .map(|shard| {
            let shard = Arc::clone(shard);
            let sink: Sink = Arc::new(move |event: Event| shard.record(&event));
            sink
        })
        .collect()
}

//! One worker's part of the recorder.
//!
//! Each worker tells events to its own shard, so that its lock is never contended except for the moment in which the collector
//! takes what is closed. An event counts in its own second; one that is told after that second was closed counts in the oldest
//! open one, because a sum that holds is worth more than a place that is exact.

use super::affected::LostHub;
use super::explained::{self, Explanations};
use super::publishers::PublisherTotal;
use super::retries::RetryTotal;
use super::returns::{self, BadReturn, Told};
use super::second::{HubSecond, OperationSecond, Second};
use crate::event::{
    Cause, CommandId, CommandStep, Event, HubChange, Mark, Offset, OperationId, Outcome,
    PacketKind, RetryChange,
};
use crate::plan::Plan;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When the load begins and ends, known to all shards as soon as one of them is told. `u64::MAX` µs: not yet.
#[derive(Debug)]
pub(super) struct Times {
    zero_us: AtomicU64,
    load_end_us: AtomicU64,
}

impl Times {
    pub(super) fn new() -> Times {
        Times {
            zero_us: AtomicU64::new(u64::MAX),
            load_end_us: AtomicU64::new(u64::MAX),
        }
    }

    pub(super) fn zero(&self) -> Option<Offset> {
        known(&self.zero_us)
    }

    pub(super) fn load_end(&self) -> Option<Offset> {
        known(&self.load_end_us)
    }
}

fn known(cell: &AtomicU64) -> Option<Offset> {
    Some(cell.load(Ordering::Acquire))
        .filter(|us| *us != u64::MAX)
        .map(Offset)
}

/// One worker's counts, steps of commands and marks.
#[derive(Debug)]
pub struct Shard {
    plan: Arc<Plan>,
    times: Arc<Times>,
    /// Steps of commands that are kept until the collector comes.
    most_steps: usize,
    inner: Mutex<Contents>,
}

/// A step in the life of a command, as told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub id: CommandId,
    pub step: CommandStep,
    pub at: Offset,
}

/// An action that was under way when the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub operation: OperationId,
    pub due: Offset,
    pub at: Offset,
}

/// How often attempts and actions of one operation ended in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub attempts: u64,
    pub actions: u64,
}

/// Packets written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCount {
    pub sent: u64,
    pub received: u64,
}

/// Completed handshakes of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handshakes {
    pub full: u64,
    /// They took up an earlier session.
    pub resumed: u64,
}

/// What a shard holds, and what the collector takes.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Seconds before this one are closed.
    closed: u64,
    pub seconds: BTreeMap<u64, Second>,
    /// Due before the load's end, ended after it.
    pub carried: Option<Second>,
    pub tallies: BTreeMap<(OperationId, Outcome), Tally>,
    pub retries: BTreeMap<OperationId, RetryTotal>,
    /// What exactly was wrong.
    pub explained: Explanations,
    /// Lost sessions by group and cause.
    pub losses: BTreeMap<(u16, Cause), u64>,
    /// Handshakes that came to an end, by group: full ones, and those that took up an earlier session.
    pub handshakes: BTreeMap<u16, Handshakes>,
    /// By group, then by kind.
    pub packets: Vec<[PacketCount; PacketKind::ALL.len()]>,
    /// Parallel to `Target::devices`.
    pub publishers: Vec<PublisherTotal>,
    pub steps: Vec<Step>,
    pub lost_hubs: Vec<LostHub>,
    pub returns: Told,
    /// Returns that did not end as they should.
    pub bad_returns: Vec<BadReturn>,
    pub marks: Vec<Mark>,
    /// About where hubs are and what certificates they show.
    pub places: Vec<(Offset, Event)>,
    pub unfinished: Vec<Unfinished>,
    /// Steps that did not fit.
    pub lost_steps: u64,
}

impl Shard {
    pub(super) fn new(plan: &Arc<Plan>, times: &Arc<Times>, most_steps: usize) -> Shard {
        Shard {
            plan: Arc::clone(plan),
            times: Arc::clone(times),
            most_steps,
            inner: Mutex::new(Contents::default()),
        }
    }

    /// Counts one event. Never waits longer than the collector needs to take what is closed.
    pub fn record(&self, event: &Event) {
        let mut contents = self.lock();
        match event {
            Event::Zero { at } => {
                self.times.zero_us.fetch_min(at.0, Ordering::AcqRel);
                self.times
                    .load_end_us
                    .fetch_min(at.after(self.plan.duration).0, Ordering::AcqRel);
            }
            Event::LoadEnd { at } => {
                self.times.load_end_us.fetch_min(at.0, Ordering::AcqRel);
            }
            Event::Mark(mark) => contents.marks.push(mark.clone()),
            Event::Standing { at, .. }
            | Event::Reference { at, .. }
            | Event::Stale { at, .. }
            | Event::Ghost { at, .. }
            | Event::Secured { at, .. }
            | Event::Renewed { at, .. }
            | Event::SessionSeen { at, .. } => {
                contents.secured(event);
                contents.places.push((*at, event.clone()));
            }
            Event::Unfinished { operation, due, at } => {
                contents.unfinished.push(Unfinished {
                    operation: *operation,
                    due: *due,
                    at: *at,
                });
            }
            Event::Command { id, step, at } => {
                if contents.steps.len() < self.most_steps {
                    contents.steps.push(Step {
                        id: *id,
                        step: *step,
                        at: *at,
                    });
                } else {
                    contents.lost_steps += 1;
                }
            }
            Event::Return { .. } | Event::LeftOut { .. } => contents.dock(&self.plan, event),
            Event::Packet {
                group, kind, sent, ..
            } => contents.packet(&self.plan, *group, *kind, *sent),
            Event::Publisher { .. }
            | Event::PublisherFailed { .. }
            | Event::PublisherPacket { .. } => contents.publisher(&self.plan, event),
            Event::Explained {
                operation,
                outcome,
                text,
                at,
            } => explained::tell(&mut contents.explained, (*operation, *outcome), text, *at),
            _ => self.count(&mut contents, event),
        }
    }

    /// Events that count in a second.
    fn count(&self, contents: &mut Contents, event: &Event) {
        match *event {
            Event::Started { operation, due, at } => {
                if let Some(row) = contents.operation(&self.plan, at, operation) {
                    row.started += 1;
                    row.lag.record(microseconds(at, due));
                }
            }
            Event::Attempted { operation, at } => {
                contents.attempted(&self.plan, at, operation);
            }
            Event::Continued { operation, at } => {
                if let Some(row) = contents.operation(&self.plan, at, operation) {
                    row.continued += 1;
                }
            }
            Event::AccountShared { operation, at } => {
                if let Some(row) = contents.operation(&self.plan, at, operation) {
                    row.shared_accounts += 1;
                }
            }
            Event::Duplicated {
                operation,
                known,
                at,
            } => {
                if let Some(row) = contents.operation(&self.plan, at, operation) {
                    row.duplicated += u32::from(known);
                    row.doubtful += u32::from(!known);
                }
            }
            Event::Answered {
                operation,
                at,
                outcome,
                ..
            } => {
                contents.answered(&self.plan, at, operation, outcome);
            }
            Event::Retry {
                operation, change, ..
            } => contents.retry(operation, change),
            Event::Finished { .. } => self.finished(contents, event),
            Event::Hub { .. } => contents.session(&self.plan, event),
            Event::Foreign { group, at } => {
                if let Some(row) = contents.hubs(&self.plan, at, group) {
                    row.foreign += 1;
                }
            }
            Event::Retained { group, at } => {
                if let Some(row) = contents.hubs(&self.plan, at, group) {
                    row.retained += 1;
                }
            }
            _ => {}
        }
    }

    /// An action ended; what was due before the load's end and ended after it is kept apart.
    fn finished(&self, contents: &mut Contents, event: &Event) {
        let Event::Finished {
            operation,
            due,
            started,
            at,
            outcome,
            attempts,
        } = *event
        else {
            return;
        };
        contents.tally(operation, outcome).actions += 1;
        let carried = self
            .times
            .load_end()
            .is_some_and(|end| at >= end && due < end);
        let row = if carried {
            let carried = &mut contents.carried;
            let second = carried.get_or_insert_with(|| Second::new(&self.plan, u64::MAX));
            second.operations.get_mut(usize::from(operation.0))
        } else {
            contents.operation(&self.plan, at, operation)
        };
        if let Some(row) = row {
            row.finish(outcome, microseconds(at, due), microseconds(at, started));
            // A journey and its spans tell no attempts of their own.
            if self.plan.is_made_of_steps(operation) {
                row.attempted += attempts;
            }
        }
    }

    /// Takes everything before the second `bound`, which is closed from now on, and all that has no second.
    pub(super) fn take(&self, bound: u64) -> Contents {
        let mut contents = self.lock();
        let open = contents.seconds.split_off(&bound);
        let mut taken = std::mem::take(&mut *contents);
        contents.closed = bound.max(taken.closed);
        contents.seconds = open;
        // What was due before the load's end is whole only at the end; the steps of open seconds wait for their order.
        contents.carried = taken.carried.take();
        let later;
        (taken.steps, later) = taken
            .steps
            .into_iter()
            .partition(|step| step.at.second() < bound);
        contents.steps = later;
        taken
    }

    /// Takes what was due before the load's end and ended after it.
    pub(super) fn take_carried(&self) -> Option<Second> {
        self.lock().carried.take()
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        // A worker that panicked while it counted leaves counts that are still whole numbers.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn second(&mut self, plan: &Plan, at: Offset) -> &mut Second {
        let index = at.second().max(self.closed);
        self.seconds
            .entry(index)
            .or_insert_with(|| Second::new(plan, index))
    }

    /// One attempt left; an attempt to connect also counts for its group.
    fn attempted(&mut self, plan: &Plan, at: Offset, operation: OperationId) {
        if let Some(row) = self.operation(plan, at, operation) {
            row.attempt(at);
        }
        if let Some(group) = plan.connecting_hubs(operation)
            && let Some(row) = self.hubs(plan, at, group)
        {
            row.connects += 1;
        }
    }

    /// One attempt was answered.
    fn answered(&mut self, plan: &Plan, at: Offset, operation: OperationId, outcome: Outcome) {
        self.tally(operation, outcome).attempts += 1;
        if matches!(outcome, Outcome::Refused(_))
            && let Some(row) = self.operation(plan, at, operation)
        {
            row.refused += 1;
            row.throttled += u32::from(outcome.is_throttling());
        }
    }

    fn operation(
        &mut self,
        plan: &Plan,
        at: Offset,
        operation: OperationId,
    ) -> Option<&mut OperationSecond> {
        self.second(plan, at)
            .operations
            .get_mut(usize::from(operation.0))
    }

    fn hubs(&mut self, plan: &Plan, at: Offset, group: u16) -> Option<&mut HubSecond> {
        self.second(plan, at).hubs.get_mut(usize::from(group))
    }

    /// The session of a hub changed.
    fn session(&mut self, plan: &Plan, event: &Event) {
        let Event::Hub {
            group,
            hub,
            change,
            at,
        } = *event
        else {
            return;
        };
        if matches!(change, HubChange::Lost(_) | HubChange::Left) {
            self.lost_hubs.push(LostHub { group, hub, at });
        }
        if let HubChange::Lost(cause) = change {
            *self.losses.entry((group, cause)).or_default() += 1;
        }
        if let Some(row) = self.hubs(plan, at, group) {
            row.change(change);
        }
    }

    fn tally(&mut self, operation: OperationId, outcome: Outcome) -> &mut Tally {
        self.tallies.entry((operation, outcome)).or_default()
    }

    /// What docks tell.
    fn dock(&mut self, plan: &Plan, event: &Event) {
        match *event {
            Event::Return {
                docks,
                id,
                created,
                step,
                at,
            } => {
                returns::tell(&mut self.returns, docks, created, step);
                self.bad_returns.extend(BadReturn::of(docks, id, step, at));
                if let Some(row) = self.second(plan, at).docks.get_mut(usize::from(docks)) {
                    row.step(step);
                }
            }
            Event::LeftOut { docks, why, at } => {
                if let Some(row) = self.second(plan, at).docks.get_mut(usize::from(docks)) {
                    row.left_out(why);
                }
            }
            _ => {}
        }
    }

    fn secured(&mut self, event: &Event) {
        if let Event::Secured { group, resumed, .. } = *event {
            let row = self.handshakes.entry(group).or_default();
            row.full += u64::from(!resumed);
            row.resumed += u64::from(resumed);
        }
    }

    fn retry(&mut self, operation: OperationId, change: RetryChange) {
        self.retries.entry(operation).or_default().change(change);
    }

    fn packet(&mut self, plan: &Plan, group: u16, kind: PacketKind, sent: bool) {
        self.packets.resize(plan.hubs.len(), Default::default());
        if let Some(row) = self.packets.get_mut(usize::from(group)) {
            row[kind as usize].count(sent);
        }
    }

    /// What is told of the connections over which commands are published.
    fn publisher(&mut self, plan: &Plan, event: &Event) {
        let mut row = |device: u16, count: &dyn Fn(&mut PublisherTotal)| {
            self.publishers
                .resize(plan.target.devices.len(), PublisherTotal::default());
            if let Some(row) = self.publishers.get_mut(usize::from(device)) {
                count(row);
            }
        };
        match *event {
            Event::Publisher { device, change, .. } => row(device, &|row| row.change(change)),
            Event::PublisherFailed {
                device, outcome, ..
            } => row(device, &|row| row.failed(outcome)),
            Event::PublisherPacket {
                device, kind, sent, ..
            } => row(device, &|row| row.packet(kind, sent)),
            _ => {}
        }
    }
}

impl PacketCount {
    pub(super) fn count(&mut self, sent: bool) {
        if sent {
            self.sent += 1;
        } else {
            self.received += 1;
        }
    }

    pub(super) fn add(&mut self, other: &PacketCount) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

fn microseconds(later: Offset, earlier: Offset) -> u64 {
    later.0.saturating_sub(earlier.0)
}

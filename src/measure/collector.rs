//! Closes seconds: takes them from all shards, adds them up, and hands them to whoever counts on.

use super::affected::{Affected, LostHub};
use super::certificates::Certificates;
use super::interference::Classes;
use super::interval::{Interval, Intervals};
use super::judge::{LagWatch, TimeLines};
use super::ledger::{Ledger, Movement, MovementKind, State};
use super::marks::Marks;
use super::phases::Phases;
use super::places::Places;
use super::returns::{BadReturn, Returns};
use super::second::{CommandSecond, Second};
use super::series::{Point, Series};
use super::shard::{Shard, Step, Times};
use super::totals::Totals;
use super::transition::{MOST_TRANSITIONS, Transition};
use crate::event::{Event, MarkId, Offset, Outcome};
use crate::plan::{OperationKind, Plan};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A second is closed when it has been over for this long: by then every worker has told what happened in it.
pub const LAG_SECONDS: u64 = 1;

/// Steps of commands that a shard keeps at least between two visits.
const FEWEST_STEPS: usize = 65_536;

/// Steps that one command may take on its way, with some retries.
const STEPS_A_COMMAND: f64 = 12.0;

/// The run so far. One per run; [`Collector::advance`] wants to be called about once a second.
#[derive(Debug)]
pub struct Collector {
    plan: Arc<Plan>,
    shards: Vec<Arc<Shard>>,
    times: Arc<Times>,
    /// Seconds before this one are closed.
    closed: u64,
    marks: Marks,
    ledger: Ledger,
    returns: Returns,
    series: Series,
    totals: Totals,
    /// Due before the load's end and ended after it: belongs to every window that reaches the load's end.
    carried: Second,
    intervals: Intervals,
    time_lines: TimeLines,
    lag: LagWatch,
    phases: Phases,
    places: Places,
    certificates: Certificates,
    affected: Affected,
    classes: Classes,
    /// Told before the mark that they belong to was known.
    lost_hubs: Vec<LostHub>,
    transitions: Vec<Transition>,
    told_transitions: u64,
    load_end_told: bool,
    left_out: u64,
    /// Steps of closed seconds that no shard had told when their second was closed, and of the seconds to be closed next.
    steps: Vec<Step>,
    /// What was told about places, of the seconds to be closed next.
    told_places: Vec<(Offset, Event)>,
}

impl Collector {
    /// A collector with one shard for each of `workers`.
    #[must_use]
    pub fn new(plan: &Arc<Plan>, workers: usize) -> (Collector, Vec<Arc<Shard>>) {
        let times = Arc::new(Times::new());
        let most_steps = most_steps(plan);
        let marks = Marks::new(plan);
        let shards: Vec<_> = (0..workers)
            .map(|_| Arc::new(Shard::new(plan, &times, most_steps)))
            .collect();
        let collector = Collector {
            plan: Arc::clone(plan),
            shards: shards.clone(),
            times,
            closed: 0,
            time_lines: TimeLines::new(plan, &marks),
            marks,
            ledger: Ledger::new(plan),
            returns: Returns::new(plan),
            series: Series::default(),
            totals: Totals::new(plan),
            carried: Second::new(plan, u64::MAX),
            intervals: Intervals::new(plan),
            lag: LagWatch::new(plan),
            phases: Phases::new(plan),
            places: Places::new(plan),
            certificates: Certificates::new(plan),
            affected: Affected::new(plan),
            classes: Classes::new(plan),
            lost_hubs: Vec::new(),
            transitions: Vec::new(),
            told_transitions: 0,
            load_end_told: false,
            left_out: 0,
            steps: Vec::new(),
            told_places: Vec::new(),
        };
        (collector, shards)
    }

    /// Closes every second that has been over for [`LAG_SECONDS`] at `now`, and gives them in order.
    pub fn advance(&mut self, now: Offset) -> Vec<Second> {
        self.close_before(now.second().saturating_sub(LAG_SECONDS))
    }

    /// Closes everything up to `now`. To be called once, when all workers have told their last event.
    pub fn finish(&mut self, now: Offset) -> Vec<Second> {
        let seconds = self.close_before(now.second() + 1);
        self.apply_times();
        for shard in &self.shards {
            if let Some(carried) = shard.take_carried() {
                self.carried.add(&carried);
            }
        }
        let carried = self.carried.clone();
        self.totals.add(&carried, true);
        self.time_lines.finish(&self.plan, &self.marks, &carried);
        self.phases.carried(&self.marks, &carried);
        self.intervals.add_carried(&carried);
        self.intervals.close(self.closed);
        if self.left_out > 0 {
            self.transitions.push(Transition::LeftOut {
                count: self.left_out,
                at: now,
            });
        }
        seconds
    }

    /// No more arrivals are due from `at` on, and whoever leaves from then on was told to.
    pub fn arrivals_end(&mut self, at: Offset) {
        self.marks.arrivals_end.get_or_insert(at);
    }

    /// Different hubs that lost a session after a mark began and before the next one did; `None` without hubs.
    #[must_use]
    pub fn affected_hubs(&self, mark: MarkId) -> Option<u64> {
        (!self.plan.hubs.is_empty()).then(|| self.affected.count(mark))
    }

    /// The plan that is measured.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When triggers, faults and the load began and ended.
    #[must_use]
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The account of the commands.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The account of the returns.
    #[must_use]
    pub fn returns(&self) -> &Returns {
        &self.returns
    }

    /// What stays of every closed second.
    #[must_use]
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Commands by group and shard.
    pub(super) fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Sums over the whole run.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// What was due before the load's end and ended after it; whole after [`Collector::finish`].
    #[must_use]
    pub fn carried(&self) -> &Second {
        &self.carried
    }

    /// The sums that lines about latencies are judged on.
    pub(super) fn time_lines(&self) -> &TimeLines {
        &self.time_lines
    }

    /// How late the generator was.
    #[must_use]
    pub fn lag(&self) -> &LagWatch {
        &self.lag
    }

    /// What ended before, during and after triggers and faults.
    #[must_use]
    pub fn phases(&self) -> &Phases {
        &self.phases
    }

    /// HTTP requests of all agents in these seconds of the clock.
    #[must_use]
    pub fn requests(&self, seconds: Range<u64>) -> u64 {
        let rows = || {
            let operations = self.plan.operations.iter().enumerate();
            operations.filter(|(_, operation)| self.plan.asks_over_http(operation.kind))
        };
        let points = seconds.filter_map(|second| self.series.get(second));
        let of = |point: &Point| -> u64 {
            rows()
                .filter_map(|(row, _)| point.operations.get(row))
                .map(|row| u64::from(row.attempted) + u64::from(row.continued))
                .sum()
        };
        points.map(of).sum()
    }

    /// Where hubs are and were.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Which certificates hubs showed.
    #[must_use]
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// The intervals that are full, for the interval log. Each is given once.
    pub fn take_intervals(&mut self) -> Vec<Interval> {
        self.intervals.take()
    }

    /// The transitions since the last call, for `events.jsonl`.
    pub fn take_transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.transitions)
    }

    fn close_before(&mut self, bound: u64) -> Vec<Second> {
        if bound <= self.closed {
            return Vec::new();
        }
        let mut seconds = self.take(bound);
        self.apply_times();
        self.steps.sort_by_key(|step| step.at);
        let mut closed = Vec::new();
        for index in self.closed..bound {
            let mut second = seconds
                .remove(&index)
                .unwrap_or_else(|| Second::new(&self.plan, index));
            self.close(&mut second);
            closed.push(second);
        }
        self.closed = bound;
        closed
    }

    /// Takes what all shards hold of the seconds before `bound`.
    fn take(&mut self, bound: u64) -> BTreeMap<u64, Second> {
        let mut seconds: BTreeMap<u64, Second> = BTreeMap::new();
        let (mut marks, mut places) = (Vec::new(), Vec::new());
        let mut bad_returns = Vec::new();
        for shard in &self.shards {
            let taken = shard.take(bound);
            for (index, second) in taken.seconds {
                match seconds.get_mut(&index) {
                    Some(sum) => sum.add(&second),
                    None => {
                        seconds.insert(index, second);
                    }
                }
            }
            self.returns.add(taken.returns);
            bad_returns.extend(taken.bad_returns);
            self.totals.tally(taken.tallies);
            self.totals.retries(taken.retries);
            self.totals.losses(taken.losses);
            self.totals.handshakes(&taken.handshakes);
            self.totals.explained(taken.explained);
            self.totals.packets(&taken.packets);
            self.totals.publishers(&taken.publishers);
            self.totals.lost_steps += taken.lost_steps;
            for left in taken.unfinished {
                if let Some(total) = self
                    .totals
                    .operations
                    .get_mut(usize::from(left.operation.0))
                {
                    total
                        .unfinished_ages
                        .record(left.at.0.saturating_sub(left.due.0));
                }
            }
            self.steps.extend(taken.steps);
            self.lost_hubs.extend(taken.lost_hubs);
            marks.extend(taken.marks);
            places.extend(taken.places);
        }
        self.told_places.extend(places);
        self.told_places.sort_by_key(|(at, _)| *at);
        bad_returns.sort_by_key(|bad: &BadReturn| bad.at);
        for bad in bad_returns {
            self.keep(Transition::Return(bad));
        }
        marks.sort_by_key(|mark| mark.at);
        for mark in marks {
            self.marks.apply(&mark);
            self.transitions.push(Transition::Mark(mark));
        }
        let closed = |lost: &LostHub| lost.at.second() < bound;
        let (closed, open) = self.lost_hubs.drain(..).partition(closed);
        self.lost_hubs = open;
        let closed: Vec<LostHub> = closed;
        for lost in closed {
            self.affected.take(&self.marks, lost);
        }
        seconds
    }

    fn apply_times(&mut self) {
        if let (None, Some(at)) = (self.marks.zero, self.times.zero()) {
            self.marks.zero = Some(at);
            self.transitions.push(Transition::Zero { at });
        }
        self.marks.load_end = self.times.load_end();
        if let Some(at) = self.marks.load_end.filter(|at| at.second() < self.closed)
            && !self.load_end_told
        {
            self.load_end_told = true;
            self.transitions.push(Transition::LoadEnd { at });
        }
    }

    /// Closes one second: the next one, with everything that belongs to it.
    fn close(&mut self, second: &mut Second) {
        let mut movements = Vec::new();
        let told = self
            .told_places
            .partition_point(|(at, _)| at.second() <= second.index);
        for (_, event) in self.told_places.drain(..told) {
            self.places.take(&event);
            self.certificates.take(&event);
        }
        self.places.second();
        let due = self
            .steps
            .partition_point(|step| step.at.second() <= second.index);
        for step in self.steps.drain(..due) {
            self.ledger
                .apply(step.id, step.step, step.at, &mut movements);
        }
        self.ledger
            .settle(Offset((second.index + 1) * 1_000_000 - 1), &mut movements);
        for movement in &movements {
            self.count(second, movement);
            self.tell(movement);
        }
        for (issuer, row) in second.commands.iter_mut().enumerate() {
            row.open = u32::try_from(self.ledger.total(issuer).of(State::Open)).unwrap_or(u32::MAX);
        }
        let loaded = self
            .marks
            .zero
            .is_some_and(|zero| second.index >= zero.second());
        self.totals.add(second, loaded);
        for (row, total) in second.hubs.iter_mut().zip(&self.totals.hubs) {
            row.standing = u32::try_from(total.standing()).unwrap_or(u32::MAX);
            row.standing_stuck = u32::try_from(total.standing_stuck()).unwrap_or(u32::MAX);
        }
        let before = second
            .index
            .checked_sub(1)
            .and_then(|before| self.series.get(before));
        self.returns
            .close(before.map(|point| &*point.docks), &mut second.docks);
        self.series.push(second);
        self.classes.second();
        self.intervals.add(second);
        self.time_lines.second(&self.plan, &self.marks, second);
        self.phases.second(&self.marks, second);
        if loaded
            && self
                .marks
                .load_end
                .is_none_or(|end| second.index < end.second())
        {
            self.lag.second(second);
        }
    }

    /// Counts a movement of the ledger as what happened in this second, and as the end-to-end operation of its group.
    fn count(&mut self, second: &mut Second, movement: &Movement) {
        let issuers = usize::from(movement.id.issuer);
        let mut nobody = CommandSecond::default();
        let row = second.commands.get_mut(issuers).unwrap_or(&mut nobody);
        match movement.kind {
            MovementKind::Due => row.due += 1,
            MovementKind::Accepted => row.accepted += 1,
            MovementKind::Delivered => row.delivered += 1,
            MovementKind::Acknowledged => row.acknowledged += 1,
            _ => {}
        }
        if let MovementKind::Settled(state) = movement.kind {
            let stands = self
                .places
                .settled(&self.plan, movement.id, movement.due, state);
            let shard = stands.or_else(|| self.plan.shard_of_command(movement.id));
            if let Some(shard) = shard {
                self.totals.settled(issuers, shard, state);
            }
            let took_us = movement
                .due
                .map_or(0, |due| movement.at.0.saturating_sub(due.0));
            self.classes.settled(issuers, shard, state, took_us);
        }
        let operation = self.plan.operation(OperationKind::Command { issuers });
        let end = self.marks.load_end;
        let carried = movement
            .due
            .zip(end)
            .is_some_and(|(due, end)| due < end && movement.at >= end);
        let settled = matches!(movement.kind, MovementKind::Settled(_));
        let second = if carried && settled {
            &mut self.carried
        } else {
            second
        };
        let Some(row) = operation.and_then(|id| second.operations.get_mut(usize::from(id.0)))
        else {
            return;
        };
        match (movement.kind, movement.due) {
            (MovementKind::Due, _) => row.started += 1,
            (MovementKind::Settled(state), Some(due)) => {
                let took_us = movement.at.0.saturating_sub(due.0);
                row.finish(outcome_of(state), took_us, took_us);
            }
            _ => {}
        }
    }

    fn tell(&mut self, movement: &Movement) {
        let Movement { id, at, due, .. } = *movement;
        let transition = match movement.kind {
            MovementKind::Settled(state) | MovementKind::Moved(state) if state != State::InTime => {
                Transition::Settled { id, state, due, at }
            }
            MovementKind::Duplicated => Transition::Duplicated { id, at },
            MovementKind::Unexpected => Transition::Unexpected { id, at },
            MovementKind::AfterClosing => Transition::AfterClosing { id, at },
            _ => return,
        };
        self.keep(transition);
    }

    /// Keeps a transition for the file, as long as there is room for it.
    fn keep(&mut self, transition: Transition) {
        if self.told_transitions < MOST_TRANSITIONS {
            self.told_transitions += 1;
            self.transitions.push(transition);
        } else {
            self.left_out += 1;
        }
    }
}

/// How a command's end counts as an action end to end.
fn outcome_of(state: State) -> Outcome {
    match state {
        State::InTime | State::Late => Outcome::Ok,
        State::Refused | State::Expired => Outcome::Refused(0),
        State::NotSent => Outcome::NotSent,
        State::Open | State::AfterTtl | State::Unanswered | State::Lost | State::InDoubt => {
            Outcome::TimedOut
        }
    }
}

/// Room for 5 s of the planned peak of all issuers.
fn most_steps(plan: &Plan) -> usize {
    let peak: f64 = plan
        .issuers
        .iter()
        .map(|issuer| issuer.arrivals.peak_per_second())
        .sum();
    FEWEST_STEPS.max((peak * 5.0 * STEPS_A_COMMAND) as usize)
}

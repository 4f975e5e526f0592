//! What a line measures, over stretches of seconds, for everything but latencies.

use super::Judge;
use super::probed::{broker, gauge};
use super::scope::Stretch;
use crate::event::{Offset, OperationId};
use crate::measure::ledger::{Account, State};
use crate::measure::series::{OperationPoint, Point};
use crate::plan::expect::{CommandState, HubRate, HubState, QueueSignal, Share, Subject, Unit};
use crate::plan::signal::Signal;
use crate::plan::{OperationKind, Plan};
use std::ops::Range;

/// What was measured. `low` and `high` differ where something is still open and may yet count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub low: f64,
    pub high: f64,
    /// The second of the worst value, for what is worst somewhere.
    pub at: Option<u64>,
    /// How many things it was made of.
    pub samples: u64,
}

impl Found {
    pub(super) fn exactly(value: f64, samples: u64) -> Found {
        Found {
            low: value,
            high: value,
            at: None,
            samples,
        }
    }
}

/// How the values of a window become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    Highest,
    Lowest,
    Last,
}

/// The part of the run that is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub stretches: &'a [Stretch],
    /// It reaches the load's end: what was due before and ended after it counts.
    pub to_the_end: bool,
    pub pick: Pick,
    pub unit: Unit,
}

impl Part<'_> {
    pub(super) fn seconds(&self) -> impl Iterator<Item = u64> + '_ {
        self.stretches
            .iter()
            .flat_map(|(first, last)| *first..=*last)
    }

    pub(super) fn length(&self) -> u64 {
        self.stretches
            .iter()
            .map(|(first, last)| last + 1 - first)
            .sum()
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<Offset>> + '_ {
        self.stretches
            .iter()
            .map(|(first, last)| Offset(first * 1_000_000)..Offset((last + 1) * 1_000_000))
    }

    pub(super) fn pick(&self, values: impl Iterator<Item = (u64, f64)>) -> Option<Found> {
        let mut samples = 0;
        let mut best: Option<(u64, f64)> = None;
        for (second, value) in values {
            samples += 1;
            let better = best.is_none_or(|(_, best)| match self.pick {
                Pick::Highest => value > best,
                Pick::Lowest => value < best,
                Pick::Last => true,
            });
            if better {
                best = Some((second, value));
            }
        }
        best.map(|(second, value)| Found {
            at: Some(second),
            ..Found::exactly(value, samples)
        })
    }
}

impl Judge<'_> {
    /// The value of a subject over a part of the run; `None` if nothing was measured there. Latencies and recovery are not
    /// measured here.
    pub(super) fn value(&self, subject: &Subject, part: &Part<'_>) -> Option<Found> {
        match subject {
            Subject::Share { operations, of } => self.share(operations, *of, part),
            Subject::AttemptsPer { operations } => self.attempts_per(operations, part),
            Subject::Commands { issuers, of } => self.commands(issuers, *of, part),
            Subject::Hubs { groups, of } => self.hubs(groups, *of, part),
            Subject::Rate { groups, of } => self.rate(groups, *of, part),
            Subject::Returns { docks, of } => self.returns(docks, *of, part),
            Subject::Pool { sources, of, stat } => worst(
                sources
                    .iter()
                    .filter_map(|row| self.pool(self.pools.get(*row)?, *of, *stat, part)),
                part,
            ),
            Subject::Queue { sources, of } => {
                let signal = match of {
                    QueueSignal::Depth => Signal::Depth,
                    QueueSignal::Age => Signal::Age,
                };
                worst(
                    sources
                        .iter()
                        .filter_map(|row| gauge(self.pools.get(*row)?, signal, part)),
                    part,
                )
            }
            Subject::Broker { sources, of } => worst(
                sources
                    .iter()
                    .filter_map(|row| broker(self.pools.get(*row)?, *of, part)),
                part,
            ),
            Subject::Probe { source } => gauge(self.pools.get(*source)?, Signal::Value, part),
            Subject::Blind => self.blind(part),
            Subject::Synchronisation => self.synchronisation(part),
            Subject::Time { .. }
            | Subject::Recovery
            | Subject::Drain
            | Subject::CriticalShare
            | Subject::Alert { .. } => None,
        }
    }

    pub(super) fn points<'b>(
        &'b self,
        part: &'b Part<'_>,
    ) -> impl Iterator<Item = (u64, &'b Point)> {
        part.seconds()
            .filter_map(|second| Some((second, self.collector.series().get(second)?)))
    }

    /// The sum of the operations over the part.
    fn operations(&self, operations: &[OperationId], part: &Part<'_>) -> OperationPoint {
        let mut sum = OperationPoint::default();
        let rows = || operations.iter().map(|id| usize::from(id.0));
        for (_, point) in self.points(part) {
            for row in rows().filter_map(|row| point.operations.get(row)) {
                sum.started += row.started;
                sum.attempted += row.attempted;
                sum.ok += row.ok;
                sum.declined += row.declined;
                sum.failed += row.failed;
                sum.timed_out += row.timed_out;
                sum.not_sent += row.not_sent;
            }
        }
        if part.to_the_end {
            for row in rows().filter_map(|row| self.collector.carried().operations.get(row)) {
                sum.ok += row.ok;
                sum.declined += row.declined;
                sum.failed += row.failed;
                sum.timed_out += row.timed_out;
                sum.not_sent += row.not_sent;
            }
        }
        sum
    }

    /// Success: ok ÷ (ended − declined − not sent). Declined: ÷ ended. Unfinished: of those started in the part, at its end.
    fn share(&self, operations: &[OperationId], of: Share, part: &Part<'_>) -> Option<Found> {
        let sum = self.operations(operations, part);
        let ended = sum.finished();
        let (count, all) = match of {
            Share::Success => (sum.ok, ended.saturating_sub(sum.declined + sum.not_sent)),
            Share::Declined => (sum.declined, ended),
            Share::Unfinished => (sum.started.saturating_sub(ended), sum.started),
        };
        (all > 0).then(|| Found::exactly(f64::from(count) / f64::from(all), u64::from(all)))
    }

    /// Attempts in the part ÷ actions that were under way in it: those at its begin and those started.
    fn attempts_per(&self, operations: &[OperationId], part: &Part<'_>) -> Option<Found> {
        let sum = self.operations(operations, part);
        let before = |first: &u64| {
            first
                .checked_sub(1)
                .and_then(|second| self.collector.series().get(second))
        };
        let under_way: u64 = part
            .stretches
            .iter()
            .filter_map(|(first, _)| before(first))
            .flat_map(|point| {
                operations
                    .iter()
                    .filter_map(|id| point.operations.get(usize::from(id.0)))
            })
            .map(|row| u64::from(row.in_flight))
            .sum();
        let actions = under_way + u64::from(sum.started);
        (actions > 0).then(|| Found::exactly(f64::from(sum.attempted) / actions as f64, actions))
    }

    /// Commands by the second of their due time.
    fn commands(&self, issuers: &[usize], of: CommandState, part: &Part<'_>) -> Option<Found> {
        if of == CommandState::Stale {
            return self.stale(issuers, part);
        }
        let ledger = self.collector.ledger();
        let mut sum = Account::default();
        let mut may_yet = 0;
        for issuer in issuers {
            for account in part
                .seconds()
                .filter_map(|second| ledger.second(*issuer, second))
            {
                sum.add(account);
            }
            let within = |due: Offset| {
                let mut stretches = part.stretches.iter();
                stretches.any(|(first, last)| (*first..=*last).contains(&due.second()))
            };
            let pending = ledger.pending(*issuer, self.now);
            may_yet += pending
                .filter(|pending| match of {
                    CommandState::InTime => pending.may_be_in_time,
                    CommandState::Late => true,
                    CommandState::Expired | CommandState::Lost | CommandState::InDoubt => {
                        !pending.delivered
                    }
                    CommandState::Duplicated | CommandState::Unexpected | CommandState::Stale => {
                        false
                    }
                })
                .filter(|pending| within(pending.due))
                .count();
        }
        let count = match of {
            CommandState::InTime => sum.of(State::InTime),
            CommandState::Late => sum.of(State::Late),
            CommandState::Expired => sum.of(State::Expired),
            CommandState::Lost => sum.of(State::Lost),
            CommandState::InDoubt => sum.of(State::InDoubt),
            CommandState::Duplicated => sum.duplicated,
            CommandState::Unexpected => sum.unexpected + self.foreign(issuers, part),
            CommandState::Stale => 0,
        };
        let by = if part.unit == Unit::Share {
            sum.due as f64
        } else {
            1.0
        };
        (sum.due > 0).then(|| Found {
            low: count as f64 / by,
            high: (count + may_yet as u64) as f64 / by,
            at: None,
            samples: sum.due,
        })
    }

    /// Messages without an id of this run at the hubs that the issuers send to.
    fn foreign(&self, issuers: &[usize], part: &Part<'_>) -> u64 {
        let plan = self.collector.plan();
        let mut groups: Vec<usize> = issuers
            .iter()
            .filter_map(|row| plan.issuers.get(*row))
            .map(|issuer| issuer.to)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        self.points(part)
            .flat_map(|(_, point)| groups.iter().filter_map(|group| point.hubs.get(*group)))
            .map(|row| u64::from(row.foreign))
            .sum()
    }

    fn hubs(&self, groups: &[usize], of: HubState, part: &Part<'_>) -> Option<Found> {
        let plan = self.collector.plan();
        let all: u64 = groups
            .iter()
            .filter_map(|row| plan.hubs.get(*row))
            .map(|group| u64::from(group.count))
            .sum();
        let by = if part.unit == Unit::Share {
            all.max(1) as f64
        } else {
            1.0
        };
        let sum =
            |point: &Point, count: &dyn Fn(&crate::measure::second::HubSecond) -> u32| -> f64 {
                groups
                    .iter()
                    .filter_map(|row| point.hubs.get(*row))
                    .map(|row| f64::from(count(row)))
                    .sum()
            };
        match of {
            HubState::Connected => part.pick(
                self.points(part)
                    .map(|(second, point)| (second, sum(point, &|row| row.standing) / by)),
            ),
            HubState::Stuck => part.pick(
                self.points(part)
                    .map(|(second, point)| (second, sum(point, &|row| row.standing_stuck) / by)),
            ),
            HubState::Lost => {
                let seconds = part.length();
                let lost: f64 = self
                    .points(part)
                    .map(|(_, point)| sum(point, &|row| row.lost))
                    .sum();
                (seconds > 0).then(|| Found::exactly(lost / by, seconds))
            }
            HubState::Refused | HubState::Throttled => {
                let connects = connects_of(plan, groups);
                let count = |row: &OperationPoint| match of {
                    HubState::Throttled => row.throttled,
                    _ => row.refused,
                };
                let refused: u64 = self
                    .points(part)
                    .flat_map(|(_, point)| {
                        connects.iter().filter_map(|row| point.operations.get(*row))
                    })
                    .map(|row| u64::from(count(row)))
                    .sum();
                let seconds = part.length();
                (seconds > 0).then(|| Found::exactly(refused as f64 / by, seconds))
            }
        }
    }

    /// Attempts to connect per second, as the target's listener sees them; reconnects are those after 0:00.
    fn rate(&self, groups: &[usize], of: HubRate, part: &Part<'_>) -> Option<Found> {
        let zero = self.collector.marks().zero?.second();
        let count = |second: u64, point: &Point| -> u64 {
            if of == HubRate::Reconnects && second < zero {
                return 0;
            }
            let rows = groups.iter().filter_map(|row| point.hubs.get(*row));
            rows.map(|row| u64::from(row.connects)).sum()
        };
        let seconds = part.length();
        let total: u64 = self
            .points(part)
            .map(|(second, point)| count(second, point))
            .sum();
        (seconds > 0).then(|| Found::exactly(total as f64 / seconds as f64, seconds))
    }
}

/// The operations by which these groups connect.
fn connects_of(plan: &Plan, groups: &[usize]) -> Vec<usize> {
    let row = |group: &usize| plan.operation(OperationKind::Connect { hubs: *group });
    groups
        .iter()
        .filter_map(row)
        .map(|id| usize::from(id.0))
        .collect()
}

pub(super) fn total(values: &[f64]) -> Option<Found> {
    (!values.is_empty()).then(|| Found::exactly(values.iter().sum(), values.len() as u64))
}

/// The worst of several sources.
fn worst(found: impl Iterator<Item = Found>, part: &Part<'_>) -> Option<Found> {
    found.reduce(|a, b| {
        let second = if part.pick == Pick::Lowest {
            b.low < a.low
        } else {
            b.high > a.high
        };
        if second { b } else { a }
    })
}

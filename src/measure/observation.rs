//! The run as the columns that the analysis of recovery looks at.

use super::Collector;
use super::ledger::State;
use super::pool::PoolSeries;
use super::recovery::{
    Activity, Ending, HubRows, MarkSpan, Observation, Recovery, Settings, SignalKind, SignalRows,
    Tenths, WorkRows, analyse,
};
use super::series::{OperationPoint, Point};
use crate::arrivals::Schedule;
use crate::event::Offset;
use crate::plan::signal::Signal;
use crate::plan::target::Plays;
use crate::plan::{OperationKind, outlook};
use std::time::Duration;

/// A pool wait up to this much above the quiet time's is never worse, in microseconds.
const WAIT_SLACK_US: f64 = 5_000.0;

/// The share of attempts that are retries is never worse up to this much above the quiet time's; fewer retries a second are none.
const RETRY_SLACK: f64 = 0.2;
const FEWEST_RETRIES: f64 = 3.0;

/// A queue of so many more than in the quiet time is on its way and no backlog.
const ON_THE_WAY: f64 = 3.0;

/// What somebody asks the target for.
fn is_asked(kind: OperationKind) -> bool {
    matches!(
        kind,
        OperationKind::Connect { .. }
            | OperationKind::Step { .. }
            | OperationKind::Issue { .. }
            | OperationKind::Return { .. }
            | OperationKind::Status { .. }
    )
}

impl Collector {
    /// The recovery from every trigger and fault that began, as far as it can be told now. `pools` is parallel to `Probes::sources`.
    #[must_use]
    pub fn recoveries(&self, pools: &[PoolSeries], ending: Ending) -> Vec<Recovery> {
        let plan = self.plan();
        let (timeout, longest_wait) = outlook::longest_way_round(plan).unwrap_or_default();
        let settings = Settings {
            baseline: plan.baseline,
            sustain: plan.sustain,
            timeout,
            longest_wait,
        };
        analyse(&self.observation(pools, ending), &settings)
    }

    fn observation(&self, pools: &[PoolSeries], ending: Ending) -> Observation {
        let end = self.complete();
        let mut signals = self.command_signals(end);
        signals.extend(self.step_signals(end));
        signals.extend(self.hub_signals(end));
        signals.extend(self.pool_signals(pools, end));
        signals.extend(self.backlog_signals(pools, end));
        signals.extend(self.retry_signal(end));
        let marks = self.marks().rows.iter().filter_map(|row| {
            Some(MarkSpan {
                id: row.id,
                begin: row.begin?,
                end: row.end,
            })
        });
        Observation {
            first_second: 0,
            quiet_from: self.marks().zero.unwrap_or(Offset::ZERO),
            signals,
            marks: marks.collect(),
            hubs: self.hub_rows(end),
            work: self.work_rows(end),
            ending,
        }
    }

    /// Seconds of which everything is known: a command may be in time until its `in_time` has passed.
    fn complete(&self) -> u64 {
        let slowest = self
            .plan()
            .issuers
            .iter()
            .map(|issuer| issuer.in_time)
            .max()
            .unwrap_or_default();
        let young = slowest.as_secs() + u64::from(slowest.subsec_nanos() > 0);
        let known = self.series().end().saturating_sub(young);
        // Who has been told to leave says nothing about the target.
        let arrivals_end = self.marks().arrivals_end.map_or(u64::MAX, Offset::second);
        known.min(arrivals_end)
    }

    /// Delivery of commands: the share of those due in a second that was answered in time.
    fn command_signals(&self, end: u64) -> Vec<SignalRows> {
        let issuers = self.plan().issuers.iter().enumerate();
        let signals = issuers.map(|(issuer, group)| {
            let account = |second| self.ledger().second(issuer, second);
            let rows = (0..end).map(|second| {
                let account = account(second).filter(|account| account.due > 0)?;
                Some(account.of(State::InTime) as f64 / account.due as f64)
            });
            let attempts =
                (0..end).map(|second| account(second).map_or(0.0, |account| account.due as f64));
            SignalRows {
                name: format!("{} in time", group.name),
                kind: SignalKind::Goodput,
                rows: rows.collect(),
                activity: Some(Activity {
                    attempts: attempts.collect(),
                    offered: self.offered(&group.arrivals, end),
                }),
            }
        });
        signals.collect()
    }

    /// Success of the steps of journeys: the share that was ok of those that ended in a second, declined ones left out.
    fn step_signals(&self, end: u64) -> Vec<SignalRows> {
        let mut signals = Vec::new();
        let mut first_of = None;
        for (row, operation) in self.plan().operations.iter().enumerate() {
            let OperationKind::Step { riders, .. } = operation.kind else {
                continue;
            };
            let points = || {
                (0..end).map(move |second| {
                    self.series()
                        .get(second)
                        .and_then(|point| point.operations.get(row))
                })
            };
            let rows = points().map(|point| {
                let point = point?;
                let ended = point.finished() - point.declined - point.not_sent;
                (ended > 0).then(|| f64::from(point.ok) / f64::from(ended))
            });
            // Only of the first step is it known how often it should be tried: a journey may end early, and well.
            let is_first = first_of != Some(riders);
            first_of = Some(riders);
            let arrivals = self
                .plan()
                .riders
                .get(riders)
                .map(|group| &group.arrivals)
                .filter(|_| is_first);
            signals.push(SignalRows {
                name: format!("{} success", operation.name),
                kind: SignalKind::Goodput,
                rows: rows.collect(),
                activity: arrivals.map(|arrivals| Activity {
                    attempts: points()
                        .map(|point| point.map_or(0.0, |point| f64::from(point.started)))
                        .collect(),
                    offered: self.offered(arrivals, end),
                }),
            });
        }
        signals
    }

    fn hub_signals(&self, end: u64) -> Vec<SignalRows> {
        let groups = self.plan().hubs.iter().enumerate();
        let signals = groups.map(|(row, group)| SignalRows {
            name: format!("{} connected", group.name),
            kind: SignalKind::Connected,
            rows: (0..end)
                .map(|second| {
                    Some(f64::from(
                        self.series().get(second)?.hubs.get(row)?.standing,
                    ))
                })
                .collect(),
            activity: None,
        });
        signals.collect()
    }

    fn pool_signals(&self, pools: &[PoolSeries], end: u64) -> Vec<SignalRows> {
        let sources = self.plan().target.probes.sources.iter().zip(pools);
        let pools = sources.filter(|(source, _)| source.plays == Plays::Pool);
        let signals = pools.map(|(source, series)| SignalRows {
            name: format!("{} wait", source.name),
            kind: SignalKind::Wait {
                slack: WAIT_SLACK_US,
            },
            rows: series.wait_by_second(0, end),
            activity: None,
        });
        signals.collect()
    }

    fn hub_rows(&self, end: u64) -> Option<HubRows> {
        let hubs: u64 = self
            .plan()
            .hubs
            .iter()
            .map(|group| u64::from(group.count))
            .sum();
        let connects = |second| {
            let point = self.series().get(second)?;
            Some(point.hubs.iter().map(|row| f64::from(row.connects)).sum())
        };
        let tenths = |second| {
            let point = self.series().get(second);
            point.map_or([0; 10], |point| {
                self.tenths(point, |kind| matches!(kind, OperationKind::Connect { .. }))
            })
        };
        (hubs > 0).then(|| HubRows {
            hubs,
            reconnects: (0..end)
                .map(|second| connects(second).unwrap_or(0.0))
                .collect(),
            tenths: (0..end).map(tenths).collect(),
            period: self.retry_period(),
        })
    }

    /// Attempts by tenths of one second, of the operations that are wanted.
    pub(super) fn tenths(&self, point: &Point, wanted: fn(OperationKind) -> bool) -> Tenths {
        let mut sum = Tenths::default();
        let rows = self.plan().operations.iter().zip(&point.operations);
        for (_, row) in rows.filter(|(operation, _)| wanted(operation.kind)) {
            for (sum, count) in sum.iter_mut().zip(row.tenths) {
                *sum = sum.saturating_add(count);
            }
        }
        sum
    }

    /// From one attempt of a hub to its next, where all groups have the same.
    fn retry_period(&self) -> Option<Duration> {
        let periods = self
            .plan()
            .hubs
            .iter()
            .map(|group| group.timeout + group.reconnect.retry.backoff.mean_at_cap());
        let mut periods: Vec<Duration> = periods.collect();
        periods.dedup();
        match periods.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// What is asked for by everyone: not what hubs tell by themselves, and not what is made of other operations.
    fn work_rows(&self, end: u64) -> Option<WorkRows> {
        let wanted: Vec<usize> = self.rows_of(is_asked);
        let journeys = self.rows_of(|kind| matches!(kind, OperationKind::Journey { .. }));
        let sum = |rows: &[usize], of: fn(&OperationPoint) -> u32| -> Vec<f64> {
            (0..end)
                .map(|second| {
                    let point = self.series().get(second);
                    let chosen = rows.iter().filter_map(|row| point?.operations.get(*row));
                    chosen.map(|row| f64::from(of(row))).sum()
                })
                .collect()
        };
        (!wanted.is_empty()).then(|| WorkRows {
            started: sum(&wanted, |row| row.started),
            attempted: sum(&wanted, |row| row.attempted),
            under_way: sum(&wanted, |row| row.in_flight),
            failed_journeys: sum(&journeys, |row| row.failed + row.timed_out),
        })
    }

    fn rows_of(&self, wanted: fn(OperationKind) -> bool) -> Vec<usize> {
        let rows = self.plan().operations.iter().enumerate();
        rows.filter(|(_, operation)| wanted(operation.kind))
            .map(|(row, _)| row)
            .collect()
    }

    /// What piles up: open commands, returns that docks hold, queues of the target.
    fn backlog_signals(&self, pools: &[PoolSeries], end: u64) -> Vec<SignalRows> {
        let backlog = |name: String, slack: f64, rows: Vec<Option<f64>>| SignalRows {
            name,
            kind: SignalKind::Backlog { slack },
            rows,
            activity: None,
        };
        let points = |of: &dyn Fn(&Point) -> Option<f64>| -> Vec<Option<f64>> {
            (0..end)
                .map(|second| of(self.series().get(second)?))
                .collect()
        };
        let issuers = self.plan().issuers.iter().enumerate();
        let open = issuers.map(|(row, group)| {
            let rows = points(&|point| Some(f64::from(point.commands.get(row)?.open)));
            // As many as come within the time in which one is in time are under way, and have not piled up.
            let slack = group.arrivals.peak_per_second() * group.in_time.as_secs_f64();
            backlog(format!("{} commands open", group.name), slack, rows)
        });
        let docks = self.plan().docks.iter().enumerate();
        let stored = docks.map(|(row, group)| {
            let rows = points(&|point| Some(point.docks.get(row)?.stored as f64));
            backlog(format!("{} returns stored", group.name), ON_THE_WAY, rows)
        });
        let sources = self.plan().target.probes.sources.iter().zip(pools);
        let queues = sources.filter(|(source, _)| source.plays == Plays::Queue);
        let queues = queues.map(|(source, series)| {
            let depth = |second: u64| {
                let window = Offset(second * 1_000_000)..Offset((second + 1) * 1_000_000);
                series.gauge(Signal::Depth, window).map(|span| span.mean)
            };
            backlog(
                format!("{} depth", source.name),
                ON_THE_WAY,
                (0..end).map(depth).collect(),
            )
        });
        open.chain(stored).chain(queues).collect()
    }

    /// The share of attempts that are retries, where there are enough of them to say so.
    fn retry_signal(&self, end: u64) -> Option<SignalRows> {
        let work = self.work_rows(end)?;
        let share = |(attempted, started): (&f64, &f64)| {
            let retries = attempted - started;
            Some(if retries >= FEWEST_RETRIES {
                retries / attempted
            } else {
                0.0
            })
        };
        Some(SignalRows {
            name: "retries".to_owned(),
            kind: SignalKind::Wait { slack: RETRY_SLACK },
            rows: work
                .attempted
                .iter()
                .zip(&work.started)
                .map(share)
                .collect(),
            activity: None,
        })
    }

    /// Arrivals by the plan in each second of the clock; after the plan's end they go on at the last rate.
    fn offered(&self, arrivals: &Schedule, end: u64) -> Vec<f64> {
        let zero = self.marks().zero.map_or(u64::MAX, Offset::second);
        let until = |seconds: u64| {
            let at = Duration::from_secs(seconds);
            let beyond = at.saturating_sub(arrivals.lasts()).as_secs_f64();
            arrivals.expected_until(at) + beyond * arrivals.last_rate()
        };
        let in_second = |second: u64| match second.checked_sub(zero) {
            Some(since) => until(since + 1) - until(since),
            None => 0.0,
        };
        (0..end).map(in_second).collect()
    }
}

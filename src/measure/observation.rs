//! The run as the columns that the analysis of recovery looks at.

use super::Collector;
use super::ledger::State;
use super::pool::PoolSeries;
use super::recovery::{
    Activity, Ending, HubRows, MarkSpan, Observation, Recovery, Settings, SignalKind, SignalRows,
    analyse,
};
use crate::arrivals::Schedule;
use crate::event::Offset;
use crate::plan::OperationKind;
use crate::plan::target::Plays;
use std::time::Duration;

/// A pool wait up to this much above the quiet time's is never worse, in microseconds.
const WAIT_SLACK_US: f64 = 5_000.0;

impl Collector {
    /// The recovery from every trigger and fault that began, as far as it can be told now. `pools` is parallel to `Probes::sources`.
    #[must_use]
    pub fn recoveries(&self, pools: &[PoolSeries], ending: Ending) -> Vec<Recovery> {
        let plan = self.plan();
        let settings = Settings {
            baseline: plan.baseline,
            sustain: plan.sustain,
        };
        analyse(&self.observation(pools, ending), &settings)
    }

    fn observation(&self, pools: &[PoolSeries], ending: Ending) -> Observation {
        let end = self.complete();
        let mut signals = self.command_signals(end);
        signals.extend(self.step_signals(end));
        signals.extend(self.hub_signals(end));
        signals.extend(self.pool_signals(pools, end));
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
        self.series().end().saturating_sub(young)
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
        (hubs > 0).then(|| HubRows {
            hubs,
            reconnects: (0..end)
                .map(|second| connects(second).unwrap_or(0.0))
                .collect(),
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

//! How the run stands now, for those who watch it.

use super::Collector;
use super::pool::PoolSeries;
use crate::event::Offset;
use crate::plan::OperationKind;
use crate::plan::Plan;
use crate::plan::target::Plays;

/// Seconds over which rates and percentiles of the live line are taken.
const WINDOW_SECONDS: u64 = 5;

/// The run at the end of the last closed second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Live {
    /// Seconds from 0:00; while the groups connect, since the clock began.
    pub time_s: i64,
    /// `connecting`, `load`, `settling`; with the triggers and faults that act.
    pub phase: String,
    pub hubs_connected: u64,
    pub hubs_total: u64,
    /// Journeys and commands started per second, over the last seconds.
    pub arrivals_per_second: f64,
    /// Share of requests and commands that were ok, 0 to 1, over the last seconds; `None` if nothing ended.
    pub success: Option<f64>,
    /// Name and p95 of the latency in microseconds of the main steps: those with most starts, at most three.
    pub latency_p95_us: Vec<(String, u64)>,
    /// Actions under way, connects and whole journeys left out.
    pub in_flight: u64,
    /// Commands that are open.
    pub commands_open: u64,
    /// The worst mean wait of any pool over the last seconds, in microseconds; `None` if none is probed.
    pub pool_wait_us: Option<f64>,
}

impl Collector {
    /// How the run stands at the end of the last closed second. `pools` is parallel to `Probes::sources`.
    #[must_use]
    pub fn live(&self, pools: &[PoolSeries]) -> Live {
        let end = self.series().end();
        let from = end.saturating_sub(WINDOW_SECONDS);
        let plan = self.plan();
        let zero = self.marks().zero.map_or(0, |zero| zero.second());
        let mut live = Live {
            time_s: i64::try_from(end).unwrap_or(i64::MAX)
                - i64::try_from(zero).unwrap_or(i64::MAX),
            phase: self.phase(end),
            hubs_total: plan.hubs.iter().map(|group| u64::from(group.count)).sum(),
            hubs_connected: self
                .totals()
                .hubs
                .iter()
                .map(super::totals::HubTotal::standing)
                .sum(),
            commands_open: (0..plan.issuers.len())
                .map(|issuer| self.ledger().total(issuer).of(super::State::Open))
                .sum(),
            pool_wait_us: self.pool_wait_us(pools, from, end),
            ..Live::default()
        };
        let (mut started, mut ok, mut ended) = (0, 0, 0);
        let seconds = end.saturating_sub(from).max(1);
        let mut busiest = Vec::new();
        for (row, operation) in plan.operations.iter().enumerate() {
            let points =
                (from..end).filter_map(|second| self.series().get(second)?.operations.get(row));
            let (mut starts, mut p95_us) = (0, None);
            for point in points {
                starts += u64::from(point.started);
                if user_facing(plan, row) {
                    ok += u64::from(point.ok);
                    ended += u64::from(point.finished() - point.declined - point.not_sent);
                }
                p95_us = point.p95_us.into_iter().chain(p95_us).reduce(f32::max);
            }
            if matches!(
                operation.kind,
                OperationKind::Journey { .. } | OperationKind::Issue { .. }
            ) {
                started += starts;
            }
            if user_facing(plan, row) {
                busiest.extend(p95_us.map(|us| (starts, operation.name.clone(), us as u64)));
                live.in_flight += self.totals().operations[row].unfinished();
            }
        }
        busiest.sort_by_key(|(starts, _, _)| std::cmp::Reverse(*starts));
        live.latency_p95_us = busiest
            .into_iter()
            .take(3)
            .map(|(_, name, us)| (name, us))
            .collect();
        live.arrivals_per_second = started as f64 / seconds as f64;
        live.success = (ended > 0).then(|| ok as f64 / ended as f64);
        live
    }

    fn pool_wait_us(&self, pools: &[PoolSeries], from: u64, end: u64) -> Option<f64> {
        let sources = self.plan().target.probes.sources.iter().zip(pools);
        let waits = sources
            .filter(|(source, _)| source.plays == Plays::Pool)
            .filter_map(|(_, series)| {
                let window = Offset(from * 1_000_000)..Offset(end * 1_000_000);
                series.wait_mean(window).map(|wait| wait.judged_us)
            });
        waits.reduce(f64::max)
    }

    fn phase(&self, end: u64) -> String {
        let marks = self.marks();
        let mut phase = match (marks.zero, marks.load_end) {
            (None, _) => "connecting".to_owned(),
            (Some(zero), _) if end < zero.second() => "connecting".to_owned(),
            (_, Some(load_end)) if end > load_end.second() => "settling".to_owned(),
            _ => "load".to_owned(),
        };
        for mark in marks
            .rows
            .iter()
            .filter(|mark| mark.begin.is_some() && mark.end.is_none())
        {
            phase.push_str(", ");
            phase.push_str(&mark.name);
        }
        phase
    }
}

/// Steps and commands end to end: what people wait for.
fn user_facing(plan: &Plan, row: usize) -> bool {
    matches!(
        plan.operations[row].kind,
        OperationKind::Step { .. } | OperationKind::Command { .. }
    )
}

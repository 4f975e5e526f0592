//! From what was measured to a report: every number of every form is computed here.

use super::data::{
    CauseRow, GeneratorSection, HubRow, JudgementRow, LedgerRow, MarkRow, PacketRow, PauseRow,
    PublisherRow, ReadmissionRow, Report, RunSection, SCHEMA_VERSION, ShardRow, StateCount,
    VerdictSection,
};
use super::{
    certificates, critical, interference, operations, places, pools, probes, recoveries, returns,
    timeline, troubles,
};
use crate::event::{Cause, Outcome, PacketKind};
use crate::measure::marks::MarkState;
use crate::measure::pool::PoolSeries;
use crate::measure::recovery::Recovery;
use crate::measure::shard::PacketCount;
use crate::measure::{Collector, Judge, Judged, Judgement, State, Verdict};
use crate::plan::{OperationKind, Plan};
use std::collections::BTreeMap;

/// What only the run knows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facts {
    pub run_id: String,
    /// The folder with the run's files.
    pub folder: String,
    /// When it started, as a date with its zone.
    pub started: String,
    /// The command that runs it again.
    pub replay: String,
    /// It is written while the run goes on.
    pub unfinished: bool,
    /// What ended it before its time: a guard, a signal.
    pub stopped: Option<String>,
    pub exit_code: u8,
    pub exit_text: String,
    pub workers: usize,
    /// Of one core: 2.0 means that two were busy.
    pub cpu_share: Option<f64>,
    pub resident_bytes: Option<u64>,
    pub notes: Vec<String>,
}

/// The report of a run. `pools` is parallel to `Probes::sources`; the collector is finished.
#[must_use]
pub fn build(
    collector: &Collector,
    judged: &Judged,
    pools: &[PoolSeries],
    found: &[Recovery],
    mut facts: Facts,
) -> Report {
    let plan = collector.plan();
    let judge = Judge::new(collector, pools, found);
    let rehearsals = judge.rehearsals();
    facts.notes.extend(judge.unrehearsed());
    Report {
        schema_version: SCHEMA_VERSION,
        verdict: verdict(judged, &facts),
        judgements: judged
            .judgements
            .iter()
            .map(|row| judgement(collector, row))
            .collect(),
        operations: operations::rows(collector),
        troubles: troubles::rows(collector),
        hubs: hubs(collector),
        places: places::rows(collector),
        certificates: certificates::rows(collector),
        publishers: publishers(collector),
        ledger: ledger(collector),
        returns: returns::rows(collector),
        marks: collector
            .marks()
            .rows
            .iter()
            .map(|row| mark(collector, row))
            .collect(),
        timeline: timeline::timeline(collector, pools),
        pools: pools::rows(collector, pools),
        inferred: probes::inferred(collector, pools),
        recoveries: recoveries::rows(collector, found, &rehearsals),
        critical: critical::rows(collector, pools),
        interference: interference::rows(collector, found),
        latency_over_connects: interference::slope(collector),
        generator: generator(collector, &facts),
        notes: facts.notes.clone(),
        run: run(collector, plan, facts),
    }
}

fn run(collector: &Collector, plan: &Plan, facts: Facts) -> RunSection {
    let end = collector.series().end();
    let zero = collector.marks().zero.map_or(end, |zero| zero.second());
    let arrivals = plan.operations.iter().zip(&collector.totals().operations);
    let arrivals = arrivals
        .filter(|(row, _)| {
            matches!(
                row.kind,
                OperationKind::Journey { .. } | OperationKind::Issue { .. }
            )
        })
        .map(|(_, total)| total.started)
        .sum();
    RunSection {
        id: facts.run_id,
        profile: plan.profile.display().to_string(),
        about: plan.about.clone(),
        series: plan.series.clone(),
        target: plan.target.file.display().to_string(),
        environment: environment(plan),
        seed: plan.seed,
        plan: plan.fingerprint(),
        started: facts.started,
        duration_s: plan.duration.as_secs(),
        lasted_s: end.saturating_sub(zero),
        hubs: plan.hubs.iter().map(|group| u64::from(group.count)).sum(),
        arrivals,
        replay: facts.replay,
        folder: facts.folder,
        unfinished: facts.unfinished,
        stopped: facts.stopped,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

fn environment(plan: &Plan) -> String {
    use crate::plan::target::Environment;
    match plan.target.environment {
        Environment::Lab => "lab",
        Environment::Test => "test",
        Environment::Staging => "staging",
        Environment::PreProduction => "pre-production",
        Environment::Production => "production",
    }
    .to_owned()
}

/// The failed lines first, then what keeps the run from passing; if the run has a reason of its own, that before all.
fn verdict(judged: &Judged, facts: &Facts) -> VerdictSection {
    let of_lines = |failed: bool| {
        judged
            .judgements
            .iter()
            .filter_map(move |row| match &row.verdict {
                Some(Verdict::Fail { why }) if failed => Some(format!("`{}`: {why}", row.text)),
                Some(Verdict::Inconclusive { why }) if !failed => {
                    Some(format!("`{}`: {why}", row.text))
                }
                _ => None,
            })
    };
    let mut reasons: Vec<String> = of_lines(true)
        .chain(judged.doubts.iter().cloned())
        .chain(of_lines(false))
        .collect();
    if let Some(why) = judged.verdict.why()
        && !reasons.iter().any(|reason| reason == why)
    {
        reasons.insert(0, why.to_owned());
    }
    VerdictSection {
        verdict: judged.verdict.name().to_owned(),
        exit_code: facts.exit_code,
        exit_text: facts.exit_text.clone(),
        reasons,
    }
}

fn judgement(collector: &Collector, row: &Judgement) -> JudgementRow {
    JudgementRow {
        text: row.text.clone(),
        place: row.place.clone(),
        limit: row.limit.clone(),
        measured: row.measured.clone(),
        value: row.value,
        at_s: row.at.map(|second| from_zero_s(collector, second)),
        verdict: row
            .verdict
            .as_ref()
            .map_or("not judged", Verdict::name)
            .to_owned(),
        why: row
            .verdict
            .as_ref()
            .and_then(Verdict::why)
            .map(str::to_owned),
    }
}

/// A second of the clock as seconds from 0:00.
pub(super) fn from_zero_s(collector: &Collector, second: u64) -> i64 {
    let zero = collector.marks().zero.map_or(0, |zero| zero.second());
    i64::try_from(second).unwrap_or(i64::MAX) - i64::try_from(zero).unwrap_or(i64::MAX)
}

fn hubs(collector: &Collector) -> Vec<HubRow> {
    let plan = collector.plan();
    let rows = plan.hubs.iter().zip(&collector.totals().hubs).enumerate();
    let rows = rows.map(|(hubs, (group, total))| {
        let connect = plan
            .operation(OperationKind::Connect { hubs })
            .and_then(|id| collector.totals().operations.get(usize::from(id.0)));
        let refusals = |counts: fn(Outcome) -> bool| {
            connect.map_or(0, |connect| {
                let outcomes = connect.outcomes.iter();
                let refused = outcomes.filter(|(outcome, _)| counts(**outcome));
                refused.map(|(_, tally)| tally.attempts).sum()
            })
        };
        let standing = || {
            let points = timeline::load_seconds(collector);
            points
                .filter_map(|second| Some(collector.series().get(second)?.hubs.get(hubs)?.standing))
        };
        let stuck = || {
            let points = timeline::load_seconds(collector);
            points.filter_map(|second| {
                let row = collector.series().get(second)?.hubs.get(hubs)?;
                Some(u64::from(row.standing_stuck))
            })
        };
        HubRow {
            group: group.name.clone(),
            count: u64::from(group.count),
            opened: total.opened,
            accepted: total.accepted,
            standing: standing().next_back().map_or(total.standing(), u64::from),
            standing_least: standing().min().map(u64::from),
            lost: total.lost,
            losses: losses(collector, hubs),
            handshakes_full: total.handshakes.full,
            handshakes_resumed: total.handshakes.resumed,
            stuck: total.stuck,
            stuck_most: stuck().max().unwrap_or_default(),
            retained: total.retained,
            left: total.left,
            refused: refusals(|outcome| matches!(outcome, Outcome::Refused(_))),
            throttled: refusals(Outcome::is_throttling),
            reconnects: total.reconnects,
            foreign: total.foreign,
            packets: packets(&total.packets),
        }
    });
    rows.collect()
}

fn losses(collector: &Collector, hubs: usize) -> Vec<CauseRow> {
    let causes = collector.totals().losses.get(hubs);
    causes.map_or_else(Vec::new, |causes| by_cause(causes, Cause::to_string))
}

/// The most frequent cause first.
fn by_cause<C>(counts: &BTreeMap<C, u64>, name: impl Fn(&C) -> String) -> Vec<CauseRow> {
    let mut rows: Vec<CauseRow> = counts
        .iter()
        .map(|(cause, count)| CauseRow {
            cause: name(cause),
            count: *count,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}

fn publishers(collector: &Collector) -> Vec<PublisherRow> {
    let devices = &collector.plan().target.devices;
    let rows = devices.iter().zip(&collector.totals().publishers);
    rows.filter(|(_, total)| total.opened > 0 || !total.failures.is_empty())
        .map(|(device, total)| PublisherRow {
            device: device.name.clone(),
            opened: total.opened,
            accepted: total.accepted,
            lost: total.lost(),
            losses: by_cause(&total.losses, Cause::to_string),
            failures: by_cause(&total.failures, |outcome| {
                device.version.outcome_text(*outcome)
            }),
            packets: packets(&total.packets),
        })
        .collect()
}

fn packets(counts: &[PacketCount; PacketKind::ALL.len()]) -> Vec<PacketRow> {
    let rows = PacketKind::ALL.iter().zip(counts);
    rows.map(|(kind, count)| PacketRow {
        kind: packet_name(*kind).to_owned(),
        sent: count.sent,
        received: count.received,
    })
    .collect()
}

fn packet_name(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Connect => "CONNECT",
        PacketKind::ConnAck => "CONNACK",
        PacketKind::Publish => "PUBLISH",
        PacketKind::PubAck => "PUBACK",
        PacketKind::Subscribe => "SUBSCRIBE",
        PacketKind::SubAck => "SUBACK",
        PacketKind::PingReq => "PINGREQ",
        PacketKind::PingResp => "PINGRESP",
        PacketKind::Disconnect => "DISCONNECT",
        PacketKind::Auth => "AUTH",
    }
}

fn ledger(collector: &Collector) -> Vec<LedgerRow> {
    let plan = collector.plan();
    let rows = plan.issuers.iter().enumerate().map(|(issuers, group)| {
        let account = collector.ledger().total(issuers);
        let issue = plan
            .operation(OperationKind::Issue { issuers })
            .and_then(|id| collector.totals().operations.get(usize::from(id.0)));
        LedgerRow {
            group: group.name.clone(),
            due: account.due,
            states: state_counts(&account.states),
            adds_up: account.adds_up(),
            duplicated: account.duplicated,
            unexpected: account.unexpected,
            after_give_up: account.after_give_up,
            after_closing: account.after_closing,
            retries: issue.map_or(0, |total| total.attempted.saturating_sub(total.started)),
            shards: shards(collector, issuers),
        }
    });
    rows.collect()
}

fn state_counts(states: &[u64; State::ALL.len()]) -> Vec<StateCount> {
    let rows = State::ALL.iter().zip(states);
    rows.map(|(state, count)| StateCount {
        state: state.name().to_owned(),
        count: *count,
    })
    .collect()
}

fn shards(collector: &Collector, issuers: usize) -> Vec<ShardRow> {
    let plan = collector.plan();
    let device = plan.hubs[plan.issuers[issuers].to].device;
    let named = &plan.target.devices[device].shards;
    if named.len() < 2 {
        return Vec::new();
    }
    let rows = named.iter().zip(&collector.totals().by_shard[issuers]);
    rows.map(|((name, _), states)| ShardRow {
        shard: name.clone(),
        states: state_counts(states),
    })
    .collect()
}

fn mark(collector: &Collector, row: &MarkState) -> MarkRow {
    let marks = collector.marks();
    let (observed, unseen) = match &row.observed {
        Some(Ok(how)) => (Some(how.clone()), None),
        Some(Err(why)) => (None, Some(format!("not observed to take effect: {why}"))),
        None => (None, None),
    };
    MarkRow {
        name: row.name.clone(),
        kind: if row.is_fault { "fault" } else { "trigger" }.to_owned(),
        what: collector.plan().mark_text(row.id),
        planned_us: row.planned_us,
        begin_us: row.begin.map(|at| marks.from_zero_us(at)),
        end_us: row.end.map(|at| marks.from_zero_us(at)),
        observed,
        problem: row.failed.clone().or(unseen),
        readmission: row.readmission.as_ref().map(|back| ReadmissionRow {
            hubs: back.hubs,
            batches: back.orders,
            first_us: back.first.map(|at| marks.from_zero_us(at)),
            last_us: back.last.map(|at| marks.from_zero_us(at)),
            paused: back.paused,
            pauses: back
                .pauses
                .iter()
                .map(|(from, to, why)| PauseRow {
                    from_us: marks.from_zero_us(*from),
                    to_us: to.map(|at| marks.from_zero_us(at)),
                    why: why.clone(),
                })
                .collect(),
        }),
    }
}

fn generator(collector: &Collector, facts: &Facts) -> GeneratorSection {
    let totals = collector.totals();
    let lag = collector.lag();
    let sent_by_us = collector.plan().operations.iter().zip(&totals.operations);
    GeneratorSection {
        workers: facts.workers as u64,
        lag: operations::times(lag.whole()),
        lag_worst_us: lag.worst_us(),
        lag_allowed_us: lag.allowed_us(),
        not_sent: sent_by_us
            .filter(|(row, _)| {
                !row.kind.is_made_of_steps() && !matches!(row.kind, OperationKind::Command { .. })
            })
            .map(|(_, total)| total.not_sent)
            .sum(),
        lost_steps: totals.lost_steps,
        cpu_share: facts.cpu_share,
        resident_bytes: facts.resident_bytes,
    }
}

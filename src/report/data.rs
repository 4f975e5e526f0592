//! The report as data. Times are microseconds (`_us`) or seconds from 0:00 (`_s`), shares 0 to 1, rates per second.

mod fleet;

pub use fleet::{
    CertificateExample, CertificateRow, PlaceRow, ReferenceRow, SeenRow, ShardHubs, TroubleRow,
};

mod hubs;
mod probes;

pub use hubs::{CauseRow, HubRow, PacketRow, PublisherRow};
pub use probes::{InferredRow, ProbeCost, SignalFigures};

mod recovery;

pub use recovery::{
    AlertRow, BacklogRow, CollapseRow, CommandsRow, CriticalRow, InterferenceRow, IntervalRow,
    LossRow, ReconnectRow, RecoveryRow, SignalRow, SlopeRow,
};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of [`Report`]'s form; it grows when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema_version: u32,
    pub run: RunSection,
    pub verdict: VerdictSection,
    /// In the order of the files.
    pub judgements: Vec<JudgementRow>,
    pub operations: Vec<OperationRow>,
    /// What exactly was wrong, where an outcome's class does not say it all.
    #[serde(default)]
    pub troubles: Vec<TroubleRow>,
    pub hubs: Vec<HubRow>,
    /// One row for each group of hubs with several shards.
    #[serde(default)]
    pub places: Vec<PlaceRow>,
    /// One row for each group of hubs that renew their certificates.
    #[serde(default)]
    pub certificates: Vec<CertificateRow>,
    /// One row for each device to whose brokers issuers publish.
    pub publishers: Vec<PublisherRow>,
    /// One row for each issuer group.
    pub ledger: Vec<LedgerRow>,
    /// One row for each group of docks.
    pub returns: Vec<ReturnRow>,
    /// Triggers first, then faults.
    pub marks: Vec<MarkRow>,
    pub timeline: Timeline,
    /// One row for each probed source.
    pub pools: Vec<PoolRow>,
    /// What can be said of pools without reading them.
    #[serde(default)]
    pub inferred: Vec<InferredRow>,
    pub recoveries: Vec<RecoveryRow>,
    /// One row for each disconnect that says something about it.
    #[serde(default)]
    pub critical: Vec<CriticalRow>,
    /// One row for each mark, where somebody sends commands.
    #[serde(default)]
    pub interference: Vec<InterferenceRow>,
    #[serde(default)]
    pub latency_over_connects: Option<SlopeRow>,
    pub generator: GeneratorSection,
    /// What a reader should know besides.
    pub notes: Vec<String>,
}

/// Which run it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSection {
    pub id: String,
    pub profile: String,
    pub about: String,
    pub series: Option<String>,
    pub target: String,
    pub environment: String,
    pub seed: u64,
    /// The same for runs that asked the same of their target, whatever their seed.
    #[serde(default)]
    pub plan: String,
    /// When it started, as a date with its zone.
    pub started: String,
    /// The load by plan, in seconds.
    pub duration_s: u64,
    /// From 0:00 to the last closed second.
    pub lasted_s: u64,
    pub hubs: u64,
    /// Arrivals of riders and commands by now.
    pub arrivals: u64,
    /// The command that runs it again.
    pub replay: String,
    /// The folder with its files.
    pub folder: String,
    /// It was written while the run went on: the run was killed, or still goes on.
    #[serde(default)]
    pub unfinished: bool,
    /// What ended it before its time: a guard, a signal.
    pub stopped: Option<String>,
    pub version: String,
}

/// What it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictSection {
    /// `pass`, `inconclusive`, `fail`.
    pub verdict: String,
    pub exit_code: u8,
    pub exit_text: String,
    /// The failed lines, then what keeps the run from passing.
    pub reasons: Vec<String>,
}

/// One expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgementRow {
    pub text: String,
    pub place: String,
    pub limit: String,
    pub measured: String,
    pub value: Option<f64>,
    /// When the worst was seen.
    pub at_s: Option<i64>,
    /// `pass`, `inconclusive`, `fail`, `not judged`.
    pub verdict: String,
    pub why: Option<String>,
}

/// One measured kind of action of one group, over the whole run. started = ok + declined + failed + timed out + unfinished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperationRow {
    pub name: String,
    pub group: String,
    /// `find`, `connect`, `telemetry`, `answer`, `step`, `journey`, `span`, `always`, `issue`, `command`, `status`, `return`, `token`.
    pub kind: String,
    pub started: u64,
    pub ok: u64,
    pub declined: u64,
    /// `not_sent` is among them, `timed_out` is not.
    pub failed: u64,
    pub timed_out: u64,
    pub not_sent: u64,
    pub unfinished: u64,
    /// How long the unfinished had been due at the end.
    pub unfinished_ages: Option<Times>,
    /// ok ÷ (ended − declined − not sent).
    pub success: Option<f64>,
    /// Attempts that left: what the target counts.
    pub attempts: u64,
    /// Those among them that were meant and no retries.
    pub continued: u64,
    /// What these are: `polls`, `further candidates`, or empty.
    pub continued_as: String,
    /// Actions that the target did twice, as its answers show.
    pub duplicated: u64,
    /// Actions that it may have done twice: an attempt without an answer was repeated, and nothing told the target so.
    pub doubtful: u64,
    /// Journeys whose rider had to take an account that another one was using.
    pub shared_accounts: u64,
    /// Attempts that were not `continued` ÷ started actions.
    pub amplification: Option<f64>,
    pub amplification_worst: Option<WorstTen>,
    /// How attempts and actions ended: class and code.
    pub outcomes: Vec<OutcomeRow>,
    /// Retries that a budget or the target held back.
    pub retries: RetryRow,
    /// From the due time; of what was ok, declined or timed out.
    pub latency: Option<Times>,
    /// From the start; of the same.
    pub service: Option<Times>,
    /// Start − due.
    pub lag: Option<Times>,
    /// Latency before any trigger or fault, during (to its end and the time allowed for recovery), and after.
    pub spans: Vec<SpanRow>,
}

/// What held retries back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RetryRow {
    /// Did not leave: the group's retry budget was spent.
    pub denied: u64,
    /// Refusals with 429 or 503 that carried `Retry-After`.
    pub asked_to_wait: u64,
    /// Left later than the policy's own wait, because `Retry-After` was respected.
    pub postponed: u64,
}

/// Percentiles of times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub count: u64,
    pub mean_us: f64,
    pub p50_us: u64,
    pub p95_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
}

/// The ten seconds with the most attempts for each started action.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WorstTen {
    pub attempts_per_action: f64,
    /// Where they began.
    pub at_s: i64,
}

/// How often something ended in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeRow {
    /// The class, with the code of a refusal.
    pub outcome: String,
    pub attempts: u64,
    pub actions: u64,
}

/// Latency in one part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanRow {
    /// `before`, `during`, `after`.
    pub span: String,
    pub latency: Option<Times>,
    pub success: Option<f64>,
}

/// The account of the commands of one group. due = the sum of `states`, or the run can't pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    pub group: String,
    pub due: u64,
    /// Every state with its count, in the order of the table in the documentation.
    pub states: Vec<StateCount>,
    pub adds_up: bool,
    pub duplicated: u64,
    pub unexpected: u64,
    /// Delivered after the issuer had given up.
    pub after_give_up: u64,
    /// Delivered after the command had counted as lost, in doubt or refused.
    pub after_closing: u64,
    /// Attempts beyond the first.
    pub retries: u64,
    /// By shard of the hubs that the commands were for, where there are several.
    pub shards: Vec<ShardRow>,
}

/// The account of the returns of one group of docks. created = the sum of `states`, or the run can't pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReturnRow {
    pub group: String,
    pub docks: u64,
    /// Handed over by riders, each acknowledged at once.
    pub created: u64,
    /// Every state with its count: stored, delivered once, duplicated, in doubt, lost.
    pub states: Vec<StateCount>,
    pub adds_up: bool,
    /// Attempts beyond the first.
    pub retries: u64,
    /// Returns that the target was asked for at the end, and answered.
    pub asked: u64,
    /// Those for which it gave no answer.
    pub unanswered: u64,
    /// Trips still under way when first asked for, and when last asked for.
    pub active_first: u64,
    pub active: u64,
    /// The most returns that docks held at the end of a second of the load, and when; `None` if they never held one.
    pub stored_peak: Option<u64>,
    pub stored_peak_at_s: Option<i64>,
    /// When they held no more than usual again.
    pub drained_at_s: Option<i64>,
    /// Refreshes of the status that were left out for want of a network, and shed.
    pub left_out_offline: u64,
    pub left_out_shed: u64,
    /// From the hand-over to the target's yes.
    pub delay: Option<Times>,
}

/// The commands of one group for the hubs of one shard, by the state in which they were first settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRow {
    pub shard: String,
    pub states: Vec<StateCount>,
}

/// Commands in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateCount {
    pub state: String,
    pub count: u64,
}

/// A trigger or a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarkRow {
    pub name: String,
    /// `trigger` or `fault`.
    pub kind: String,
    /// What it does.
    pub what: String,
    pub planned_us: u64,
    /// Microseconds from 0:00; `None` if it never began.
    pub begin_us: Option<i64>,
    pub end_us: Option<i64>,
    /// How its effect was seen.
    pub observed: Option<String>,
    /// Why its effect could not be seen, or why it could not be done or undone.
    pub problem: Option<String>,
    /// How the hubs that it had disconnected were let back in stages.
    pub readmission: Option<ReadmissionRow>,
}

/// Hubs that were let back in stages. Times from 0:00.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadmissionRow {
    /// Let back so far.
    pub hubs: u64,
    /// In so many batches; a rate is kept by one a second.
    pub batches: u64,
    pub first_us: Option<i64>,
    pub last_us: Option<i64>,
    /// How often it paused; the first ones are listed.
    pub paused: u64,
    pub pauses: Vec<PauseRow>,
}

/// A time in which nobody was let back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PauseRow {
    pub from_us: i64,
    /// `None`: to the end of the run.
    pub to_us: Option<i64>,
    /// The line that held, with what was measured.
    pub why: String,
}

/// The run by time, in steps of the same length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The first step's begin, from 0:00 (negative: the groups were still connecting).
    pub from_s: i64,
    pub step_s: u64,
    pub lines: Vec<TimelineRow>,
}

/// One quantity over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimelineRow {
    pub name: String,
    /// `/s`, `us`, `share`, or empty for a count.
    pub unit: String,
    /// How the seconds of a step became one value: `mean`, `highest`, `lowest`.
    pub by: Join,
    /// One value a step; `None` where nothing was measured.
    pub values: Vec<Option<f64>>,
}

/// How several values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    Mean,
    Highest,
    Lowest,
}

impl Join {
    /// The one value of the known ones among these; `None` without any.
    #[must_use]
    pub fn of(self, values: &[Option<f64>]) -> Option<f64> {
        let known = || values.iter().flatten().copied();
        match self {
            Join::Mean => {
                let count = known().count();
                (count > 0).then(|| known().sum::<f64>() / count as f64)
            }
            Join::Highest => known().reduce(f64::max),
            Join::Lowest => known().reduce(f64::min),
        }
    }
}

/// A number that was read from the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ValueRow {
    pub least: f64,
    pub mean: f64,
    pub most: f64,
    pub last: f64,
}

/// What a probed source said over the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolRow {
    pub source: String,
    /// `pool`, `queue`, `broker`, `value`.
    pub plays: String,
    pub readings: u64,
    /// Share of the load without a reading, and the longest time without one.
    pub blind: f64,
    pub blind_longest_us: u64,
    /// Readings that did not come about, by reason.
    pub gaps: BTreeMap<String, u64>,
    pub last_gap: Option<String>,
    pub restarts: u64,
    pub overall: Option<PoolSpan>,
    /// Of what is no pool: its value, or the depth of a queue, over the load.
    pub value: Option<ValueRow>,
    /// Before, during and after each trigger and fault.
    pub spans: Vec<PoolSpan>,
    /// Everything that was read, in the order of the signals.
    #[serde(default)]
    pub signals: Vec<SignalFigures>,
    #[serde(default)]
    pub cost: Option<ProbeCost>,
    /// What has to be true for its figures, where they are inferred.
    #[serde(default)]
    pub assumption: Option<String>,
}

/// A pool in one part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolSpan {
    /// `load`, or `before drop`, `during drop`, `after drop`.
    pub span: String,
    /// The larger of the next two, unless the second is noise.
    pub wait_mean_us: Option<f64>,
    pub wait_by_counters_us: Option<f64>,
    pub wait_by_little_us: Option<f64>,
    pub wait_p99_us: Option<f64>,
    /// The p99 lies beyond the last bucket of the target's histogram.
    pub wait_p99_at_least: bool,
    pub waiting_max: Option<f64>,
    pub in_use_max: Option<f64>,
    pub max: Option<f64>,
    pub saturation_max: Option<f64>,
    pub stalled_us: Option<u64>,
    pub timeouts: Option<f64>,
    pub acquires: Option<f64>,
    /// Of the HTTP requests that all agents sent at the same time.
    #[serde(default)]
    pub acquires_per_request: Option<f64>,
}

/// Why the numbers can be trusted, or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorSection {
    pub workers: u64,
    /// Start − due of everything that was started after 0:00.
    pub lag: Option<Times>,
    /// The worst p99 of the lag in any ten seconds.
    pub lag_worst_us: Option<u64>,
    /// What lag would spoil the tightest limit on a latency.
    pub lag_allowed_us: Option<u64>,
    pub not_sent: u64,
    /// Steps of commands that could not be counted.
    pub lost_steps: u64,
    /// Of one core: 2.0 means that two were busy.
    pub cpu_share: Option<f64>,
    pub resident_bytes: Option<u64>,
}

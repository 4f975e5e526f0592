//! Recovery, as the report holds it.

use serde::{Deserialize, Serialize};

/// Recovery from one trigger or fault. Moments are microseconds from 0:00.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecoveryRow {
    pub mark: String,
    /// `unharmed`, `recovered`, `recovering`, `metastable`, `censored`, `undecided`.
    pub outcome: String,
    /// In a sentence, with the reason.
    pub text: String,
    pub from_injection_us: Option<u64>,
    pub from_removal_us: Option<u64>,
    /// Where it has not recovered: for so long after the removal.
    #[serde(default)]
    pub not_within_us: Option<u64>,
    /// Where it is on the way: so much longer, at the last rate.
    #[serde(default)]
    pub eta_us: Option<u64>,
    #[serde(default)]
    pub onset_us: Option<i64>,
    #[serde(default)]
    pub recovered_us: Option<i64>,
    /// The sustain time after that.
    #[serde(default)]
    pub declared_us: Option<i64>,
    pub reconnects: Option<ReconnectRow>,
    /// Each signal by itself.
    pub signals: Vec<SignalRow>,
    #[serde(default)]
    pub alerts: Vec<AlertRow>,
    #[serde(default)]
    pub collapses: Vec<CollapseRow>,
    #[serde(default)]
    pub backlogs: Vec<BacklogRow>,
    #[serde(default)]
    pub losses: Vec<LossRow>,
    #[serde(default)]
    pub offline_hub_minutes: Option<f64>,
    /// Different hubs that lost a session.
    #[serde(default)]
    pub hubs_affected: Option<u64>,
    /// Different riders whose journey did not succeed.
    #[serde(default)]
    pub riders_affected: Option<u64>,
    #[serde(default)]
    pub amplification: Option<f64>,
    #[serde(default)]
    pub amplification_worst: Option<f64>,
    /// Begin of the ten seconds with the worst amplification.
    #[serde(default)]
    pub amplification_worst_us: Option<i64>,
    /// Variance ÷ mean of attempts to connect a tenth of a second; 1 is chance.
    #[serde(default)]
    pub synchronisation: Option<f64>,
    /// At the retry period: 0 is spread, 1 is all in step.
    #[serde(default)]
    pub phase_concentration: Option<f64>,
}

/// By how much reconnects multiplied: the peak over 60 s against the quiet time, in which one an hour stands in for none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReconnectRow {
    pub times: f64,
    pub baseline_per_second: f64,
    pub peak_per_second: f64,
    /// Reconnects beyond the baseline, for each hub of the fleet.
    pub extra_per_hub: f64,
    /// Seconds in which the rate was above twice the baseline.
    #[serde(default)]
    pub above_double_seconds: u64,
}

/// One signal's way back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SignalRow {
    pub signal: String,
    pub text: String,
    /// Of the quiet time: median, and 1.4826 × the median absolute deviation.
    #[serde(default)]
    pub baseline: Option<f64>,
    #[serde(default)]
    pub deviation: Option<f64>,
    /// Beyond this it is out of its band, and within that back.
    #[serde(default)]
    pub enter: Option<f64>,
    #[serde(default)]
    pub leave: Option<f64>,
    #[serde(default)]
    pub onset_us: Option<i64>,
    #[serde(default)]
    pub recovered_us: Option<i64>,
    #[serde(default)]
    pub worst: Option<f64>,
    #[serde(default)]
    pub worst_us: Option<i64>,
    #[serde(default)]
    pub bad_seconds: u64,
}

/// When an alert rule of the target file would have fired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlertRow {
    pub alert: String,
    pub rule: String,
    /// `None`: never.
    pub fired_us: Option<i64>,
    /// From the mark's begin, and from the onset, to then.
    pub after_injection_us: Option<u64>,
    pub after_onset_us: Option<u64>,
    /// It held already when the mark began.
    pub before: bool,
}

/// The target went down again after it had been back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollapseRow {
    pub at_us: i64,
    pub signal: String,
    pub back_us: Option<i64>,
}

/// What piled up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BacklogRow {
    pub backlog: String,
    pub baseline: f64,
    pub peak: f64,
    pub peak_us: i64,
    /// From when on more left than came.
    pub turned_us: Option<i64>,
    pub drained_us: Option<i64>,
    /// From the mark's end to then.
    pub drain_us: Option<u64>,
    pub at_end: f64,
}

/// What one signal of useful work lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossRow {
    pub signal: String,
    pub lost_successes: Option<f64>,
    /// The share of the goodput that was missing from begin to recovery, on average.
    pub area: f64,
    pub nadir: f64,
    pub nadir_us: i64,
    pub rapidity_per_second: Option<f64>,
}

/// How many hubs may be disconnected at once so that the target comes back by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriticalRow {
    pub mark: String,
    pub group: String,
    pub fleet: u64,
    /// Hubs that the trigger disconnected.
    pub dropped: u64,
    pub number: IntervalRow,
    /// The number as a share of the fleet.
    pub share: IntervalRow,
    /// The target never was busy for long: the numbers are lower bounds.
    pub at_least: bool,
    /// Where the trigger lies: `below`, `near`, `above`.
    pub side: String,
    pub connects_per_second: IntervalRow,
    /// How that was seen.
    pub seen: String,
    /// Share of it that was used before the trigger.
    pub background: IntervalRow,
    pub timeout_us: u64,
    pub mean_wait_us: u64,
    pub spread_us: u64,
}

/// A number with its 95 % interval; without `high` there is no upper end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    pub low: f64,
    pub middle: f64,
    pub high: Option<f64>,
}

/// Commands for hubs that a mark did not touch: on other shards, or of other groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterferenceRow {
    pub mark: String,
    /// Classes (a group of issuers and a shard of its hubs) that lost hubs, and that did not.
    pub hit: u64,
    pub others: u64,
    /// Of the others: in the quiet time, and from the mark's begin to the next one.
    pub before: Option<CommandsRow>,
    pub during: Option<CommandsRow>,
}

/// Commands in one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommandsRow {
    pub settled: u64,
    pub in_time: f64,
    pub latency_mean_us: f64,
}

/// Microseconds of command latency for each connect a second more, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SlopeRow {
    pub us_per_connect: f64,
    pub low: f64,
    pub high: f64,
    /// Means of five seconds that it was made of.
    pub blocks: u64,
}

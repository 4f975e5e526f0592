//! Whether and when the target recovered from each trigger and fault.
//!
//! A mark's effect begins at its *onset* (3 of 5 seconds outside the band entered from the quiet time before it) and is over at the
//! first second from which every signal stays in its band for the sustain time: silence is not health, a second dip is not recovery,
//! and a healthy signal may leave its band as often as it did before. The answer is never a missing number: not recovered says
//! within which time, and a look that was cut short says why. Seconds come in as plain columns; this module knows neither the plan
//! nor how anything is measured.

mod analysis;
mod band;
mod reconnects;
mod sustained;

pub use analysis::{analyse, decided};
pub use band::{Band, Baseline};
pub use reconnects::ReconnectMultiplier;

use crate::event::{MarkId, Offset};
use serde::Serialize;
use std::time::Duration;

/// Everything that was seen, by whole seconds of the run's clock. All columns have the same length: seconds that are complete.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Second of the clock of row 0.
    pub first_second: u64,
    /// `0:00`: what was before is no quiet time.
    pub quiet_from: Offset,
    pub signals: Vec<SignalRows>,
    /// Triggers and faults that began, in any order.
    pub marks: Vec<MarkSpan>,
    pub hubs: Option<HubRows>,
    pub ending: Ending,
}

/// One signal by the second.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalRows {
    /// As reports call it: `commands in time`, `unlock success`, `homes connected`, `pool wait`.
    pub name: String,
    pub kind: SignalKind,
    /// `None` where nothing happened or nothing could be read.
    pub rows: Vec<Option<f64>>,
    /// What is done against what should be; `None` for what does not depend on activity.
    pub activity: Option<Activity>,
}

/// What a signal's values mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// Useful work, as a share or a rate: lower is worse.
    Goodput,
    /// Hubs connected: healthy at 99 % of the quiet time's number or more.
    Connected,
    /// What is still to be done: healthy within three deviations of the quiet time's.
    Backlog,
    /// A time: higher is worse. Up to `slack` above the quiet time's median is never worse, so that a wait of microseconds
    /// may double.
    Wait { slack: f64 },
}

/// What the plan offers and what was tried, by the second, in the same rows as the signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    pub attempts: Vec<f64>,
    /// Due by the plan. For a later step of a journey: the journeys due.
    pub offered: Vec<f64>,
}

/// When a trigger or fault acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkSpan {
    pub id: MarkId,
    pub begin: Offset,
    /// `None` while it still acts.
    pub end: Option<Offset>,
}

/// Reconnects of all hubs, by the second.
#[derive(Debug, Clone, PartialEq)]
pub struct HubRows {
    pub hubs: u64,
    pub reconnects: Vec<f64>,
}

/// Why the columns end where they end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The run goes on.
    Running,
    /// The run went on as long as it may: what has not recovered by now has not recovered.
    Settled,
    /// The run was cut short; the text says by what.
    Interrupted(String),
}

/// Times that the profile sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Quiet time read before a mark.
    pub baseline: Duration,
    /// How long "recovered" must hold.
    pub sustain: Duration,
}

/// The answer for one mark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recovery {
    pub mark: MarkId,
    pub begin: Offset,
    pub end: Option<Offset>,
    /// The first onset of any signal.
    pub onset: Option<Offset>,
    pub outcome: RecoveryOutcome,
    /// A signal left its band again after recovery, with no other mark in between.
    pub left_again: Option<Offset>,
    pub signals: Vec<SignalRecovery>,
    pub reconnects: Option<ReconnectMultiplier>,
}

/// How it ended. Times of length are microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryOutcome {
    /// No signal left its band: the recovery took 0 s.
    NotNeeded,
    /// All signals are in their bands from `at` on; `declared` is the sustain time later.
    Recovered {
        at: Offset,
        from_injection_us: u64,
        from_removal_us: u64,
        declared: Offset,
    },
    /// Watched to the end and not recovered: it takes longer than this after the removal.
    NotRecovered { within_us: u64 },
    /// It cannot be told; a recovery, if there was one, took at least this long after the removal.
    Censored { why: String, at_least_us: u64 },
    /// The run goes on and it is too early to tell.
    Undecided,
}

/// One signal's part in a recovery.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignalRecovery {
    pub name: String,
    /// The quiet time and the band made of it; `None` if there were too few quiet seconds: then the signal is not judged.
    pub band: Option<Band>,
    pub onset: Option<Offset>,
    /// The first second after onset and removal from which this signal alone stays in its band.
    pub recovered: Option<Offset>,
    /// Its worst value from the mark's begin on, and when.
    pub worst: Option<(f64, Offset)>,
    /// Seconds outside the band from the mark's begin on.
    pub bad_seconds: u64,
}

impl RecoveryOutcome {
    /// The recovery's length for a comparison: from the removal, or from the injection.
    #[must_use]
    pub fn length(&self, from_removal: bool) -> RecoveryLength {
        match self {
            RecoveryOutcome::NotNeeded => RecoveryLength::Exactly(Duration::ZERO),
            RecoveryOutcome::Recovered {
                from_injection_us,
                from_removal_us,
                ..
            } => {
                let length = if from_removal {
                    from_removal_us
                } else {
                    from_injection_us
                };
                RecoveryLength::Exactly(Duration::from_micros(*length))
            }
            RecoveryOutcome::NotRecovered { within_us } => {
                RecoveryLength::Longer(Duration::from_micros(*within_us))
            }
            RecoveryOutcome::Censored { why, at_least_us } => RecoveryLength::Unknown {
                at_least: Duration::from_micros(*at_least_us),
                why: why.clone(),
            },
            RecoveryOutcome::Undecided => RecoveryLength::Unknown {
                at_least: Duration::ZERO,
                why: "the run has not gone on long enough".to_owned(),
            },
        }
    }
}

/// A recovery's length as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryLength {
    Exactly(Duration),
    /// Not recovered within this time.
    Longer(Duration),
    /// At least this long, and not known further.
    Unknown {
        at_least: Duration,
        why: String,
    },
}

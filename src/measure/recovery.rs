//! Whether and when the target recovered from each trigger and fault.
//!
//! A mark's effect begins at its *onset* (3 of 5 seconds outside the band entered from the quiet time before it) and is over at the
//! first second from which every signal stays in its band for the sustain time: silence is not health, a second dip is not recovery,
//! and a healthy signal may leave its band as often as it did before. The answer is never a missing number: what has not recovered
//! either drains (with the time that it will take), or is metastable, or is not known, and then it says why. Seconds come in as plain
//! columns; this module knows neither the plan nor how anything is measured. Formulas: field notes on recovery, §2.2.

mod analysis;
mod band;
mod collapse;
mod effect;
mod fate;
mod reconnects;
mod stocks;
mod sustained;
mod synchronisation;
mod trend;

pub use analysis::{analyse, decided};
pub use band::{Band, Baseline};
pub use collapse::Collapse;
pub use effect::{Amplification, Effect, Loss, Synchronisation};
pub use reconnects::ReconnectMultiplier;
pub use stocks::Backlog;
pub use synchronisation::{TENTHS, Tenths, dispersion, phase_concentration};

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
    /// `None` where nobody asks for anything.
    pub work: Option<WorkRows>,
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
    /// What is still to be done: healthy within three deviations of the quiet time's. Up to `slack` above its median is what is
    /// under way anyhow, and nothing that has piled up.
    Backlog { slack: f64 },
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
    /// Attempts to connect by tenths of the second.
    pub tenths: Vec<Tenths>,
    /// From one attempt of a hub to its next: timeout and mean wait; `None` where hubs have different ones.
    pub period: Option<Duration>,
}

/// What all agents ask for, by the second: connecting, requests, commands handed over, returns.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkRows {
    pub started: Vec<f64>,
    pub attempted: Vec<f64>,
    /// Actions under way at the end of the second.
    pub under_way: Vec<f64>,
    /// Journeys that ended without success: each is another rider.
    pub failed_journeys: Vec<f64>,
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
    /// The timeout of one attempt, of the agents that have the longest way round.
    pub timeout: Duration,
    /// Their longest wait between two attempts.
    pub longest_wait: Duration,
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
    /// The target went down again after recovery, with no other mark in between, in order: readmission too early, for example.
    pub collapses: Vec<Collapse>,
    pub signals: Vec<SignalRecovery>,
    pub reconnects: Option<ReconnectMultiplier>,
    pub effect: Effect,
}

impl Recovery {
    /// The recovery's length for a comparison: to the last recovery, where the target collapsed in between.
    #[must_use]
    pub fn length(&self, from_removal: bool) -> RecoveryLength {
        let Some(last) = self.collapses.last() else {
            return self.outcome.length(from_removal);
        };
        let from = self.end.filter(|_| from_removal).unwrap_or(self.begin);
        match last.back {
            Some(back) => RecoveryLength::Exactly(back.since(from)),
            None => RecoveryLength::Longer(last.watched_to.since(from)),
        }
    }
}

impl Recovery {
    /// From the mark's end until everything that had piled up was gone; nothing piled up takes no time.
    #[must_use]
    pub fn drain(&self) -> RecoveryLength {
        let mut longest = Duration::ZERO;
        for backlog in &self.effect.backlogs {
            match backlog.drain_us {
                Some(drain_us) => longest = longest.max(Duration::from_micros(drain_us)),
                None => return self.outcome.length(true),
            }
        }
        if self.onset.is_none() {
            return self.outcome.length(true);
        }
        RecoveryLength::Exactly(longest)
    }
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
    /// Not recovered within this time after the removal, and what piled up shrinks: so much longer, at the last rate, for `stock`.
    Recovering {
        within_us: u64,
        eta_us: u64,
        stock: String,
    },
    /// Not recovered within this time after the removal, at no more load than before: `signal` has this share of its quiet
    /// time's goodput, below a half, and nothing shrank over two windows.
    Metastable {
        within_us: u64,
        signal: String,
        goodput: f64,
    },
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
            RecoveryOutcome::Recovering { within_us, .. } => {
                RecoveryLength::Longer(Duration::from_micros(*within_us))
            }
            RecoveryOutcome::Metastable { within_us, .. } => {
                RecoveryLength::Never(Duration::from_micros(*within_us))
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
    /// Not recovered within this time, and on the way.
    Longer(Duration),
    /// Not recovered within this time, and not going to by itself.
    Never(Duration),
    /// At least this long, and not known further.
    Unknown {
        at_least: Duration,
        why: String,
    },
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

//! Columns made by hand: a run of some seconds with signals and marks.

use rushhour::event::{MarkId, Offset};
use rushhour::measure::recovery::{
    Activity, Ending, HubRows, MarkSpan, Observation, Recovery, RecoveryOutcome, Settings,
    SignalKind, SignalRows, analyse,
};
use std::time::Duration;

pub const MINUTE: Duration = Duration::from_secs(60);
pub const HALF_MINUTE: Duration = Duration::from_secs(30);

pub fn at(second: u64) -> Offset {
    Offset(second * 1_000_000)
}

pub fn span(id: u16, begin: u64, end: u64) -> MarkSpan {
    MarkSpan {
        id: MarkId(id),
        begin: at(begin),
        end: Some(at(end)),
    }
}

/// One signal of `length` seconds.
pub fn signal(
    name: &str,
    kind: SignalKind,
    length: u64,
    value: impl Fn(u64) -> Option<f64>,
) -> SignalRows {
    SignalRows {
        name: name.to_owned(),
        kind,
        rows: (0..length).map(value).collect(),
        activity: None,
    }
}

/// A share of successes with what was tried and offered.
pub fn success(
    length: u64,
    value: impl Fn(u64) -> Option<f64>,
    attempts: impl Fn(u64) -> f64,
    offered: f64,
) -> SignalRows {
    let activity = Activity {
        attempts: (0..length).map(attempts).collect(),
        offered: (0..length).map(|_| offered).collect(),
    };
    SignalRows {
        activity: Some(activity),
        ..signal("unlock success", SignalKind::Goodput, length, value)
    }
}

/// One run: 60 s of baseline and 30 s of sustain, watched to the end.
#[derive(Debug, Clone)]
pub struct Scene {
    pub observation: Observation,
    pub settings: Settings,
}

impl Scene {
    pub fn new(signals: Vec<SignalRows>, marks: Vec<MarkSpan>) -> Scene {
        let observation = Observation {
            first_second: 0,
            quiet_from: Offset::ZERO,
            signals,
            marks,
            hubs: None,
            work: None,
            ending: Ending::Settled,
        };
        Scene {
            observation,
            settings: Settings {
                baseline: MINUTE,
                sustain: HALF_MINUTE,
                timeout: Duration::from_secs(5),
                longest_wait: Duration::from_secs(15),
            },
        }
    }

    pub fn ending(mut self, ending: Ending) -> Scene {
        self.observation.ending = ending;
        self
    }

    pub fn sustain(mut self, sustain: Duration) -> Scene {
        self.settings.sustain = sustain;
        self
    }

    pub fn hubs(mut self, hubs: u64, reconnects: Vec<f64>) -> Scene {
        self.observation.hubs = Some(HubRows {
            hubs,
            tenths: reconnects.iter().map(|_| [0; 10]).collect(),
            reconnects,
            period: None,
        });
        self
    }

    pub fn analyse(&self) -> Vec<Recovery> {
        analyse(&self.observation, &self.settings)
    }

    /// The outcome of the only mark.
    pub fn outcome(&self) -> RecoveryOutcome {
        let recoveries = self.analyse();
        assert_eq!(recoveries.len(), 1);
        recoveries[0].outcome.clone()
    }
}

/// Recovered at this second, for a mark of this begin and end, with 30 s of sustain.
pub fn recovered(second: u64, begin: u64, end: u64) -> RecoveryOutcome {
    RecoveryOutcome::Recovered {
        at: at(second),
        from_injection_us: (second - begin) * 1_000_000,
        from_removal_us: (second - end) * 1_000_000,
        declared: at(second + 30),
    }
}

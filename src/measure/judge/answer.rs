//! What was measured for one line, held against its limit and put into words.

use super::value::{Found, Pick};
use crate::measure::figures;
use crate::measure::recovery::RecoveryLength;
use crate::measure::verdict::Verdict;
use crate::plan::expect::{Comparison, Expectation, Unit};
use std::time::Duration;

/// One line for one instance and one row, before it is put into words.
pub(super) struct Answer {
    pub verdict: Verdict,
    pub value: Option<f64>,
    pub measured: String,
    pub limit: String,
    pub at: Option<u64>,
    /// How far beyond the limit, for comparing answers: larger is worse.
    excess: f64,
}

impl Answer {
    /// Compares what was found with the limit. What is still open counts both ways: only if both agree is there an answer.
    pub(super) fn new(
        line: &Expectation,
        found: Option<Found>,
        limit: f64,
        unit: Unit,
        label: Option<String>,
    ) -> Answer {
        let Some(found) = found else {
            return Answer::nothing(line, "no data", label);
        };
        let (low, high) = (
            line.comparison.holds(found.low, limit),
            line.comparison.holds(found.high, limit),
        );
        let mut measured = figures::value(found.low, unit);
        if found.high.is_infinite() {
            measured = format!("at least {measured}");
        } else if found.low != found.high {
            measured = format!("{measured} to {}", figures::value(found.high, unit));
        }
        if let Some(label) = label {
            measured = format!("{measured} ({label})");
        }
        let written = written(line, limit, unit);
        let verdict = match (low, high) {
            (true, true) => Verdict::Pass,
            (false, false) => Verdict::Fail {
                why: format!("{measured}, limit {written}"),
            },
            _ if found.high.is_infinite() => Verdict::Inconclusive {
                why: match unit {
                    Unit::Time => format!(
                        "{measured}: the target's histogram ends there; longer buckets decide"
                    ),
                    _ => format!(
                        "{measured}: a ghost lost its connection, and nobody knows what it missed"
                    ),
                },
            },
            _ => Verdict::Inconclusive {
                why: format!(
                    "{measured}: some commands were still open when the run ended; a longer drain decides"
                ),
            },
        };
        let excess = match worse(line.comparison) {
            Pick::Lowest => limit - found.low,
            _ if found.high.is_infinite() => found.low - limit,
            _ => found.high - limit,
        };
        Answer {
            verdict,
            value: Some(found.low),
            measured,
            limit: written,
            at: found.at,
            excess,
        }
    }

    /// A line without anything measured: never a pass.
    pub(super) fn nothing(line: &Expectation, why: &str, label: Option<String>) -> Answer {
        let why = label.map_or_else(|| why.to_owned(), |label| format!("{why} ({label})"));
        Answer {
            verdict: Verdict::Inconclusive { why: why.clone() },
            value: None,
            measured: why,
            limit: written(line, line.limit.value, line.limit.unit),
            at: None,
            excess: 0.0,
        }
    }

    /// `for D`: the longest time without a break.
    pub(super) fn held(
        line: &Expectation,
        longest: u64,
        needed: u64,
        samples: u64,
        label: Option<String>,
    ) -> Answer {
        if samples == 0 {
            return Answer::nothing(line, "no data", label);
        }
        let found = Duration::from_secs(longest).as_micros() as f64;
        let mut measured = format!("held for {}", figures::short_time(found));
        if let Some(label) = label {
            measured = format!("{measured} ({label})");
        }
        let limit = format!(
            "{} for {}",
            written(line, line.limit.value, line.limit.unit),
            figures::short_time(needed as f64 * 1e6)
        );
        let verdict = if longest >= needed {
            Verdict::Pass
        } else {
            Verdict::Fail {
                why: format!("{measured}, limit {limit}"),
            }
        };
        Answer {
            verdict,
            value: Some(found),
            measured,
            limit,
            at: None,
            excess: needed as f64 - longest as f64,
        }
    }

    pub(super) fn recovered(
        line: &Expectation,
        length: &RecoveryLength,
        limit: f64,
        label: Option<String>,
    ) -> Answer {
        let us = |length: &Duration| length.as_micros() as f64;
        let with = |measured: String| match &label {
            Some(label) => format!("{measured} ({label})"),
            None => measured,
        };
        let (at_least, measured, open) = match length {
            RecoveryLength::Exactly(length) => {
                let found = Found {
                    low: us(length),
                    high: us(length),
                    at: None,
                    samples: 1,
                };
                return Answer::new(line, Some(found), limit, Unit::Time, label);
            }
            RecoveryLength::Longer(length) => {
                let watched = figures::short_time(us(length));
                (
                    us(length),
                    with(format!("not recovered within {watched}")),
                    "the run watched no longer".to_owned(),
                )
            }
            RecoveryLength::Never(watched) => {
                let watched = figures::short_time(us(watched));
                let measured = with(format!("metastable after {watched}"));
                return Answer::beyond(line, measured, limit);
            }
            RecoveryLength::Unknown { at_least, why } => (
                us(at_least),
                with(format!("at least {}", figures::short_time(us(at_least)))),
                why.clone(),
            ),
        };
        let written = written(line, limit, Unit::Time);
        let verdict = if line.comparison.holds(at_least, limit) {
            Verdict::Inconclusive {
                why: format!("{measured}: {open}"),
            }
        } else {
            Verdict::Fail {
                why: format!("{measured}, limit {written}"),
            }
        };
        Answer {
            verdict,
            value: None,
            measured,
            limit: written,
            at: None,
            excess: at_least - limit,
        }
    }

    /// What has not come about by the end.
    pub(super) fn never(line: &Expectation, measured: &str, label: Option<String>) -> Answer {
        let measured = match label {
            Some(label) => format!("{measured} ({label})"),
            None => measured.to_owned(),
        };
        Answer::beyond(line, measured, line.limit.value)
    }

    /// An answer without a limit keeps what was measured, so that a later run can be compared with it.
    pub(super) fn measuring(mut self, length: &RecoveryLength) -> Answer {
        if let RecoveryLength::Exactly(length) = length {
            self.value = Some(length.as_micros() as f64);
        }
        self
    }

    /// A number that is known within an interval: it keeps the limit if all of the interval does.
    pub(super) fn interval(
        line: &Expectation,
        found: Found,
        limit: f64,
        label: Option<String>,
    ) -> Answer {
        let answer = Answer::new(line, Some(found), limit, Unit::Share, label);
        match answer.verdict {
            Verdict::Inconclusive { .. } => Answer {
                verdict: Verdict::Inconclusive {
                    why: format!(
                        "{}: the limit {} lies within what is not known more exactly",
                        answer.measured, answer.limit
                    ),
                },
                ..answer
            },
            _ => answer,
        }
    }

    /// No limit is long enough for what does not come about by itself.
    fn beyond(line: &Expectation, measured: String, limit: f64) -> Answer {
        let written = written(line, limit, Unit::Time);
        let verdict = if line.comparison.holds(f64::INFINITY, limit) {
            Verdict::Pass
        } else {
            Verdict::Fail {
                why: format!("{measured}, limit {written}"),
            }
        };
        Answer {
            verdict,
            value: None,
            measured,
            limit: written,
            at: None,
            excess: f64::INFINITY,
        }
    }

    pub(super) fn is_worse_than(&self, other: &Answer) -> bool {
        let rank = |answer: &Answer| match answer.verdict {
            Verdict::Pass => 0,
            Verdict::Inconclusive { .. } => 1,
            Verdict::Fail { .. } => 2,
        };
        (rank(self), self.excess) > (rank(other), other.excess)
    }
}

/// The limit as written; of a multiple, with what it came to.
fn written(line: &Expectation, limit: f64, unit: Unit) -> String {
    let text = figures::limit(line.comparison, line.limit.value, line.limit.unit);
    if line.limit.unit.is_multiple() && unit != line.limit.unit {
        return format!("{text} = {}", figures::value(limit, unit));
    }
    text
}

/// Which way is worse.
pub(super) fn worse(comparison: Comparison) -> Pick {
    match comparison {
        Comparison::AtLeast | Comparison::Above => Pick::Lowest,
        Comparison::Below | Comparison::AtMost | Comparison::Equal => Pick::Highest,
    }
}

pub(super) fn is_worse(a: Found, b: Found, pick: Pick) -> bool {
    if pick == Pick::Lowest {
        a.low < b.low
    } else {
        a.high > b.high
    }
}

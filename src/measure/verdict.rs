//! What a run, and each line that was expected of it, comes to.

use serde::{Deserialize, Serialize};

/// Worst wins: a Fail stands whatever else is unknown, and what is unknown can't pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Inconclusive { why: String },
    Fail { why: String },
}

impl Verdict {
    /// The worse of the two; of two that are equally bad, the first.
    #[must_use]
    pub fn worst(self, other: Verdict) -> Verdict {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }

    /// Its word in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Inconclusive { .. } => "inconclusive",
            Verdict::Fail { .. } => "fail",
        }
    }

    /// Why it is not a pass.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Verdict::Pass => None,
            Verdict::Inconclusive { why } | Verdict::Fail { why } => Some(why),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Verdict::Pass => 0,
            Verdict::Inconclusive { .. } => 1,
            Verdict::Fail { .. } => 2,
        }
    }
}

/// One expectation, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The line as written.
    pub text: String,
    /// `file:line:column`
    pub place: String,
    /// The limit with its unit; of a multiple of the baseline, what it came to.
    pub limit: String,
    /// What was measured, with its unit and the row or mark that it comes from; `no data` without.
    pub measured: String,
    /// In the base unit of the subject: shares 0 to 1, times in microseconds, rates per second.
    pub value: Option<f64>,
    /// The second of the clock in which the worst was seen, for what is worst somewhere.
    pub at: Option<u64>,
    /// `None`: the line says `if probed`, and nothing is probed.
    pub verdict: Option<Verdict>,
}

/// The run, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    /// Parallel to `Plan::expect`.
    pub judgements: Vec<Judgement>,
    /// What keeps the run from passing although no line failed.
    pub doubts: Vec<String>,
}

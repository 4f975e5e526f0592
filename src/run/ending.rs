//! How a run ended, and the one table of exit codes.

use std::fmt::Write;

/// The ways in which the program ends. Where several apply, the first in this order is the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// A fault could not be healed.
    Unhealed,
    /// SIGINT.
    Interrupted,
    /// SIGTERM or SIGHUP.
    Terminated,
    /// Something in the program itself went wrong.
    Internal,
    /// Bad arguments or a bad file; no load was sent.
    Refused,
    /// An expectation failed, or a guard stopped the run.
    Failed,
    /// The run can't be judged.
    Inconclusive,
    /// Every expectation held.
    Passed,
}

impl Ending {
    /// Every ending, in order of precedence.
    pub const ALL: [Ending; 8] = [
        Ending::Unhealed,
        Ending::Interrupted,
        Ending::Terminated,
        Ending::Internal,
        Ending::Refused,
        Ending::Failed,
        Ending::Inconclusive,
        Ending::Passed,
    ];

    /// The exit code of the process.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Ending::Unhealed => 5,
            Ending::Interrupted => 130,
            Ending::Terminated => 143,
            Ending::Internal => 1,
            Ending::Refused => 2,
            Ending::Failed => 3,
            Ending::Inconclusive => 4,
            Ending::Passed => 0,
        }
    }

    /// What the code says, in a few words.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Ending::Unhealed => "a fault could not be healed; `rushhour heal --all` tries again",
            Ending::Interrupted => "interrupted by Ctrl-C (after healing and writing the report)",
            Ending::Terminated => {
                "terminated by SIGTERM or SIGHUP (after healing and writing the report)"
            }
            Ending::Internal => "internal error",
            Ending::Refused => "bad arguments or a bad file; no load was sent",
            Ending::Failed => "an expectation failed, or a guard stopped the run",
            Ending::Inconclusive => {
                "inconclusive: the run can't be judged, and the report says why"
            }
            Ending::Passed => "passed: every expectation held",
        }
    }

    /// The table as `--help` prints it; the first that applies, from the top.
    #[must_use]
    pub fn table() -> String {
        let mut text = String::from("Exit codes; the first that applies, from the top:\n");
        for ending in Ending::ALL {
            let _ = writeln!(text, "  {:>3}  {}", ending.code(), ending.meaning());
        }
        text
    }
}

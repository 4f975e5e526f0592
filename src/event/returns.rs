//! What is told of returns and docks.

use serde::{Deserialize, Serialize};

/// One return that a rider handed to a dock: the rider's group, the number of its arrival (from 1), and the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReturnId {
    pub riders: u16,
    pub number: u64,
    pub step: u16,
}

impl ReturnId {
    /// The id as it travels, the same on every attempt; the run's tag keeps two runs against one target apart.
    #[must_use]
    pub fn wire(self, run_tag: &str) -> String {
        format!("{run_tag}-r{}-{}-{}", self.riders, self.number, self.step)
    }
}

/// Where a return stands. A closed list: every report shows all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnState {
    /// The dock still holds it.
    Stored,
    /// The target took it, once as far as anybody knows.
    Delivered,
    /// The target says that it booked it more than once.
    Duplicated,
    /// The dock gave it up after an attempt without an answer: the target may have it.
    InDoubt,
    /// The dock gave it up and the target never had it, or the target says that it does not know it.
    Lost,
}

impl ReturnState {
    /// All states, in the order of their discriminants.
    pub const ALL: [ReturnState; 5] = [
        ReturnState::Stored,
        ReturnState::Delivered,
        ReturnState::Duplicated,
        ReturnState::InDoubt,
        ReturnState::Lost,
    ];

    /// As reports call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReturnState::Stored => "stored",
            ReturnState::Delivered => "delivered once",
            ReturnState::Duplicated => "duplicated",
            ReturnState::InDoubt => "in doubt",
            ReturnState::Lost => "lost",
        }
    }
}

/// What happened to one return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnStep {
    /// A rider handed it over; the dock acknowledged it at once and holds it.
    Created,
    /// The dock is rid of it.
    Settled(ReturnState),
    /// The target was asked for it at the end of the run, and answered.
    Asked {
        was: ReturnState,
        now: ReturnState,
        /// The trip was still under way when first asked, and when last asked.
        active_first: bool,
        active: bool,
    },
    /// The target was asked for it at the end of the run, and gave no answer that could be read.
    Unanswered,
}

/// Why a dock left out a refresh of its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    Offline,
    Shed,
}

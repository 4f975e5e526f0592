//! What ended before any trigger or fault, during them, and after: the three columns in which people compare.
//!
//! "During" lasts from a mark's begin to its end plus the time that the profile allows for recovery: the opposite of the scope `outside`.

use super::judge::during;
use super::marks::Marks;
use super::second::{OperationSecond, Second};
use crate::plan::Plan;
use crate::plan::expect::{Subject, Unit};
use std::time::Duration;

/// A part of the load. A closed list: every table has all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Before,
    During,
    After,
}

impl Phase {
    /// All phases, in the order of time and of their discriminants.
    pub const ALL: [Phase; 3] = [Phase::Before, Phase::During, Phase::After];

    /// As reports call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::During => "during",
            Phase::After => "after",
        }
    }
}

/// Sums of every operation, by phase. Only of seconds of the load.
#[derive(Debug)]
pub struct Phases {
    grace: Duration,
    sums: [Vec<OperationSecond>; Phase::ALL.len()],
}

impl Phases {
    pub(super) fn new(plan: &Plan) -> Phases {
        let empty = || vec![OperationSecond::default(); plan.operations.len()];
        Phases {
            grace: grace(plan),
            sums: [empty(), empty(), empty()],
        }
    }

    /// The phase of a second of the clock; `None` outside the load.
    #[must_use]
    pub fn of(&self, marks: &Marks, second: u64) -> Option<Phase> {
        let zero = marks.zero?;
        if second < zero.second() || marks.load_end.is_some_and(|end| second >= end.second()) {
            return None;
        }
        let begun = |second| {
            marks
                .rows
                .iter()
                .any(|row| row.begin.is_some_and(|begin| begin.second() <= second))
        };
        if marks.rows.iter().any(|row| during(row, self.grace, second)) {
            Some(Phase::During)
        } else if begun(second) {
            Some(Phase::After)
        } else {
            Some(Phase::Before)
        }
    }

    /// One operation in one phase.
    #[must_use]
    pub fn operation(&self, phase: Phase, row: usize) -> Option<&OperationSecond> {
        self.sums[phase as usize].get(row)
    }

    pub(super) fn second(&mut self, marks: &Marks, second: &Second) {
        if let Some(phase) = self.of(marks, second.index) {
            self.add(phase, second);
        }
    }

    pub(super) fn carried(&mut self, marks: &Marks, carried: &Second) {
        let last = marks.load_end.and_then(|end| end.second().checked_sub(1));
        if let Some(phase) = last.and_then(|last| self.of(marks, last)) {
            self.add(phase, carried);
        }
    }

    fn add(&mut self, phase: Phase, second: &Second) {
        for (sum, row) in self.sums[phase as usize].iter_mut().zip(&second.operations) {
            sum.add(row);
        }
    }
}

/// The longest recovery that the profile allows; without one, its sustain time.
fn grace(plan: &Plan) -> Duration {
    let recoveries = plan
        .expect
        .iter()
        .filter(|line| matches!(line.subject, Subject::Recovery) && line.limit.unit == Unit::Time);
    let longest = recoveries
        .map(|line| Duration::from_micros(line.limit.value.max(0.0) as u64))
        .max();
    longest.unwrap_or(plan.sustain)
}

//! When triggers and faults began and ended, and when the load did.

use crate::event::{Mark, MarkId, MarkPhase, Offset};
use crate::plan::Plan;

/// All marks of a plan with what is known of them so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Marks {
    /// `0:00`, once all groups stand.
    pub zero: Option<Offset>,
    /// The load's end: by plan as soon as 0:00 is known, earlier if the run was stopped.
    pub load_end: Option<Offset>,
    /// When the last arrivals were due: later than `load_end` if the run went on until recovery was decided.
    pub arrivals_end: Option<Offset>,
    /// By `MarkId`: triggers first, then faults.
    pub rows: Vec<MarkState>,
}

/// One trigger or fault.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkState {
    pub id: MarkId,
    pub name: String,
    pub is_fault: bool,
    /// By plan, microseconds from 0:00; the earliest time of a fault that waits for something.
    pub planned_us: u64,
    /// Where the quiet time ends that it is compared with, by plan, microseconds from 0:00.
    pub quiet_us: u64,
    /// Of several repetitions the first; otherwise itself.
    pub first: MarkId,
    pub begin: Option<Offset>,
    pub end: Option<Offset>,
    /// How the effect was seen, or why it could not be.
    pub observed: Option<Result<String, String>>,
    /// Why it could not be done or undone.
    pub failed: Option<String>,
    pub readmission: Option<Readmitted>,
}

/// How the hubs that a trigger had disconnected were let back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Readmitted {
    pub hubs: u64,
    pub orders: u64,
    pub first: Option<Offset>,
    pub last: Option<Offset>,
    /// Begin, end and reason; the first [`MOST_PAUSES`] of them.
    pub pauses: Vec<(Offset, Option<Offset>, String)>,
    /// How many there were.
    pub paused: u64,
}

/// Pauses that are kept one by one.
pub const MOST_PAUSES: usize = 50;

impl Readmitted {
    fn admit(&mut self, hubs: u32, at: Offset) {
        self.hubs += u64::from(hubs);
        self.orders += 1;
        self.first.get_or_insert(at);
        self.last = Some(at);
    }

    fn pause(&mut self, at: Offset, why: &str) {
        self.paused += 1;
        if self.pauses.len() < MOST_PAUSES {
            self.pauses.push((at, None, why.to_owned()));
        }
    }

    fn resume(&mut self, at: Offset) {
        if let Some((_, end, _)) = self.pauses.last_mut() {
            end.get_or_insert(at);
        }
    }
}

impl Marks {
    /// The marks of a plan, before anything happened.
    #[must_use]
    pub fn new(plan: &Plan) -> Marks {
        let triggers = plan
            .triggers
            .iter()
            .map(|trigger| (&trigger.name, trigger.at, false));
        let faults = plan
            .faults
            .iter()
            .map(|fault| (&fault.name, fault.at, true));
        let rows = (0..)
            .zip(triggers.chain(faults))
            .map(|(id, (name, at, is_fault))| MarkState {
                id: MarkId(id),
                name: name.clone(),
                is_fault,
                planned_us: micros(at),
                quiet_us: micros(plan.quiet_end(MarkId(id))),
                first: plan.first_of(MarkId(id)),
                begin: None,
                end: None,
                observed: None,
                failed: None,
                readmission: None,
            })
            .collect();
        Marks {
            zero: None,
            load_end: None,
            arrivals_end: None,
            rows,
        }
    }

    /// Takes in a change of phase.
    pub fn apply(&mut self, mark: &Mark) {
        let Some(row) = self.rows.get_mut(usize::from(mark.id.0)) else {
            return;
        };
        match &mark.phase {
            MarkPhase::Begin => row.begin = row.begin.or(Some(mark.at)),
            MarkPhase::Observed(how) => row.observed = Some(Ok(how.clone())),
            MarkPhase::NotObserved(why) => row.observed = Some(Err(why.clone())),
            MarkPhase::End => row.end = row.end.or(Some(mark.at)),
            MarkPhase::Admitted(hubs) => row
                .readmission
                .get_or_insert_default()
                .admit(*hubs, mark.at),
            MarkPhase::Paused(why) => row.readmission.get_or_insert_default().pause(mark.at, why),
            MarkPhase::Resumed => row.readmission.get_or_insert_default().resume(mark.at),
            MarkPhase::Failed(why) => row.failed = Some(why.clone()),
        }
    }

    /// One mark.
    #[must_use]
    pub fn get(&self, id: MarkId) -> Option<&MarkState> {
        self.rows.get(usize::from(id.0))
    }

    /// `at` in microseconds from 0:00; negative before it, and counted from the clock's beginning while 0:00 is not known.
    #[must_use]
    pub fn from_zero_us(&self, at: Offset) -> i64 {
        let zero = self.zero.unwrap_or(Offset::ZERO);
        i64::try_from(at.0).unwrap_or(i64::MAX) - i64::try_from(zero.0).unwrap_or(i64::MAX)
    }
}

fn micros(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl MarkState {
    /// Its first and last second of the clock; while it acts, the last one is `now`.
    #[must_use]
    pub fn seconds(&self, now: u64) -> Option<(u64, u64)> {
        let begin = self.begin?.second();
        Some((begin, self.end.map_or(now, Offset::second).max(begin)))
    }
}

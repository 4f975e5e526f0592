//! The account of the returns that riders handed to docks.
//!
//! Each return that was handed over is in exactly one [`ReturnState`], so created = delivered once + duplicated + in doubt + stored +
//! lost at every moment. The docks tell when they are rid of one; what the target says at the end may move it.

use crate::event::{LeftOut, Offset, ReturnId, ReturnState, ReturnStep};
use crate::plan::Plan;
use std::collections::BTreeMap;

/// Counts of returns, of one group or of those handed over in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReturnAccount {
    pub created: u64,
    /// By the discriminant of [`ReturnState`]. As a sum over workers each is zero or more; one worker may know the end of a return and
    /// another its beginning.
    pub states: [i64; ReturnState::ALL.len()],
    /// The target was asked for so many at the end, and answered.
    pub asked: u64,
    /// The target was asked for so many at the end, and gave no answer.
    pub unanswered: u64,
    /// Trips still under way when first asked for.
    pub active_first: u64,
    /// Trips still under way when last asked for.
    pub active: u64,
}

impl ReturnAccount {
    /// Returns in this state.
    #[must_use]
    pub fn of(&self, state: ReturnState) -> u64 {
        u64::try_from(self.states[state as usize]).unwrap_or(0)
    }

    /// Whether every return that was created is in exactly one state.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let sum: i64 = self.states.iter().sum();
        self.states.iter().all(|count| *count >= 0) && u64::try_from(sum) == Ok(self.created)
    }

    pub(super) fn step(&mut self, step: ReturnStep) {
        match step {
            ReturnStep::Created => {
                self.created += 1;
                self.states[ReturnState::Stored as usize] += 1;
            }
            ReturnStep::Settled(state) => self.moved(ReturnState::Stored, state),
            ReturnStep::Asked {
                was,
                now,
                active_first,
                active,
            } => {
                self.moved(was, now);
                self.asked += 1;
                self.active_first += u64::from(active_first);
                self.active += u64::from(active);
            }
            ReturnStep::Unanswered => self.unanswered += 1,
        }
    }

    fn moved(&mut self, from: ReturnState, to: ReturnState) {
        self.states[from as usize] -= 1;
        self.states[to as usize] += 1;
    }

    pub(in crate::measure) fn add(&mut self, other: &ReturnAccount) {
        self.created += other.created;
        for (mine, theirs) in self.states.iter_mut().zip(other.states) {
            *mine += theirs;
        }
        self.asked += other.asked;
        self.unanswered += other.unanswered;
        self.active_first += other.active_first;
        self.active += other.active;
    }
}

/// Docks of one group in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DockSecond {
    /// Returns handed over.
    pub created: u32,
    /// Returns that their dock got rid of.
    pub settled: u32,
    /// Refreshes left out because the dock had no network.
    pub offline: u32,
    /// Refreshes left out because they were shed.
    pub shed: u32,
    /// Returns that docks hold at the end of the second; known once the second is closed.
    pub stored: u32,
}

impl DockSecond {
    pub(super) fn step(&mut self, step: ReturnStep) {
        match step {
            ReturnStep::Created => self.created += 1,
            ReturnStep::Settled(_) => self.settled += 1,
            ReturnStep::Asked { .. } | ReturnStep::Unanswered => {}
        }
    }

    pub(super) fn left_out(&mut self, why: LeftOut) {
        match why {
            LeftOut::Offline => self.offline += 1,
            LeftOut::Shed => self.shed += 1,
        }
    }

    pub(super) fn add(&mut self, other: &DockSecond) {
        self.created += other.created;
        self.settled += other.settled;
        self.offline += other.offline;
        self.shed += other.shed;
    }
}

/// A return that did not end as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadReturn {
    /// Row in `Plan::docks`.
    pub docks: u16,
    pub id: ReturnId,
    pub state: ReturnState,
    /// The target was asked, and its trip is still under way.
    pub is_active: bool,
    pub at: Offset,
}

impl BadReturn {
    pub(super) fn of(docks: u16, id: ReturnId, step: ReturnStep, at: Offset) -> Option<BadReturn> {
        let (state, is_active) = match step {
            ReturnStep::Settled(state) => (state, false),
            ReturnStep::Asked { now, active, .. } => (now, active),
            ReturnStep::Created | ReturnStep::Unanswered => return None,
        };
        (is_active || state != ReturnState::Delivered).then_some(BadReturn {
            docks,
            id,
            state,
            is_active,
            at,
        })
    }
}

/// What one worker knows of returns, by group and the second in which they were handed over.
pub(super) type Told = BTreeMap<(u16, u64), ReturnAccount>;

/// Adds one step to what a worker knows.
pub(super) fn tell(told: &mut Told, docks: u16, created: Offset, step: ReturnStep) {
    told.entry((docks, created.second()))
        .or_default()
        .step(step);
}

/// The returns of all groups of docks.
#[derive(Debug)]
pub struct Returns {
    groups: Vec<Group>,
}

#[derive(Debug, Clone, Default)]
struct Group {
    total: ReturnAccount,
    by_second: BTreeMap<u64, ReturnAccount>,
    offline: u64,
    shed: u64,
}

impl Returns {
    pub(super) fn new(plan: &Plan) -> Returns {
        Returns {
            groups: vec![Group::default(); plan.docks.len()],
        }
    }

    /// The account of one group since the clock began.
    #[must_use]
    pub fn total(&self, docks: usize) -> ReturnAccount {
        self.groups
            .get(docks)
            .map_or_else(ReturnAccount::default, |group| group.total)
    }

    /// The account of the returns of one group that were handed over in this second of the clock.
    #[must_use]
    pub fn second(&self, docks: usize, second: u64) -> Option<&ReturnAccount> {
        self.groups.get(docks)?.by_second.get(&second)
    }

    /// Refreshes that one group left out: without a network, and shed.
    #[must_use]
    pub fn left_out(&self, docks: usize) -> (u64, u64) {
        self.groups
            .get(docks)
            .map_or((0, 0), |group| (group.offline, group.shed))
    }

    pub(super) fn add(&mut self, told: Told) {
        for ((docks, second), account) in told {
            if let Some(group) = self.groups.get_mut(usize::from(docks)) {
                group.total.add(&account);
                group.by_second.entry(second).or_default().add(&account);
            }
        }
    }

    /// Closes a second: what docks hold at its end is what they held before, and what changed.
    pub(super) fn close(&mut self, before: Option<&[DockSecond]>, second: &mut [DockSecond]) {
        for (row, (now, group)) in second.iter_mut().zip(&mut self.groups).enumerate() {
            let held = before
                .and_then(|before| before.get(row))
                .map_or(0, |before| before.stored);
            now.stored = (held + now.created).saturating_sub(now.settled);
            group.offline += u64::from(now.offline);
            group.shed += u64::from(now.shed);
        }
    }
}

//! The account of every command.
//!
//! Each command that was due is in exactly one [`State`], so the states add up to what was due at every moment. What cannot be
//! a state of a command (a second delivery, a message that nobody sent) is counted apart. Steps may arrive in any order: a
//! state is a function of the facts known, never of the order in which they were told.
//!
//! Memory: a command is kept for its time to live plus [`GRACE`]; after that two bits say that it is closed and whether it was
//! delivered, for the last [`REMEMBERED`](super::remembered::REMEMBERED) commands of each group (1 MiB a group); a delivery of an older one counts as a duplicate.

use super::ledger_entry::{Entry, Rules};
use super::remembered::Remembered;
use crate::event::{CommandId, CommandStep, Offset};
use crate::plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// How long after its time to live a command is waited for before it counts as lost.
pub const GRACE: Duration = Duration::from_secs(5);

/// Where a command stands. A closed list: every report shows all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing is decided yet.
    Open,
    /// Answered within the channel's `in_time` (delivered, where the device does not answer).
    InTime,
    /// Answered later, delivered within the time to live.
    Late,
    /// Delivered after its time to live: the target should have dropped it.
    AfterTtl,
    /// Delivered within the time to live, but the answer never came.
    Unanswered,
    /// The target reported that its time to live had passed.
    Expired,
    /// Accepted by the target and not delivered by the time to live plus grace.
    Lost,
    /// Every attempt was refused or never reached the target.
    Refused,
    /// An attempt ended without an answer and nothing was delivered: the target may have it.
    InDoubt,
    /// It never left.
    NotSent,
}

impl State {
    /// All states, in the order of their discriminants.
    pub const ALL: [State; 10] = [
        State::Open,
        State::InTime,
        State::Late,
        State::AfterTtl,
        State::Unanswered,
        State::Expired,
        State::Lost,
        State::Refused,
        State::InDoubt,
        State::NotSent,
    ];

    /// As reports call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Open => "open",
            State::InTime => "in time",
            State::Late => "late",
            State::AfterTtl => "delivered after TTL",
            State::Unanswered => "unanswered",
            State::Expired => "expired",
            State::Lost => "lost",
            State::Refused => "refused",
            State::InDoubt => "in doubt",
            State::NotSent => "not sent",
        }
    }
}

/// Counts of commands, of one group or one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    pub due: u64,
    /// By the discriminant of [`State`].
    pub states: [u64; State::ALL.len()],
    /// Deliveries beyond the first.
    pub duplicated: u64,
    /// Deliveries of commands that were never due.
    pub unexpected: u64,
    /// First deliveries after the issuer had given up.
    pub after_give_up: u64,
    /// First deliveries after the account of the command was closed (as lost, in doubt, …).
    pub after_closing: u64,
}

impl Account {
    /// Commands in this state.
    #[must_use]
    pub fn of(&self, state: State) -> u64 {
        self.states[state as usize]
    }

    /// Whether every command that was due is in exactly one state.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        self.states.iter().sum::<u64>() == self.due
    }

    /// Adds another account.
    pub fn add(&mut self, other: &Account) {
        self.due += other.due;
        for (mine, theirs) in self.states.iter_mut().zip(other.states) {
            *mine += theirs;
        }
        self.duplicated += other.duplicated;
        self.unexpected += other.unexpected;
        self.after_give_up += other.after_give_up;
        self.after_closing += other.after_closing;
    }
}

/// A command of which nothing is decided yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    pub due: Offset,
    pub may_be_in_time: bool,
    pub delivered: bool,
}

/// What became known of a command, for those who count or tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Movement {
    pub id: CommandId,
    pub kind: MovementKind,
    pub at: Offset,
    /// Of a command that was due.
    pub due: Option<Offset>,
}

/// The kinds of movement; each but the last four happens once a command at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovementKind {
    Due,
    Accepted,
    Delivered,
    Acknowledged,
    /// Its state is decided.
    Settled(State),
    /// It was settled, and a late step changed its state.
    Moved(State),
    Duplicated,
    Unexpected,
    AfterClosing,
}

/// The commands of all issuer groups.
#[derive(Debug)]
pub struct Ledger {
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    rules: Rules,
    entries: HashMap<u64, Entry>,
    /// When each entry is closed.
    closings: BTreeSet<(Offset, u64)>,
    /// By the second in which a command was due (unexpected ones: were delivered).
    by_second: BTreeMap<u64, Account>,
    total: Account,
    delivered: Remembered,
}

impl Ledger {
    /// An empty account for the issuers of a plan.
    #[must_use]
    pub fn new(plan: &Plan) -> Ledger {
        let groups = plan
            .issuers
            .iter()
            .map(|issuer| Group::new(Rules::of(plan, issuer)))
            .collect();
        Ledger { groups }
    }

    /// Takes in one step; what it changed is appended to `out`.
    pub fn apply(&mut self, id: CommandId, step: CommandStep, at: Offset, out: &mut Vec<Movement>) {
        if let Some(group) = self.groups.get_mut(usize::from(id.issuer)) {
            group.apply(id, step, at, out);
        } else if step == CommandStep::Delivered {
            out.push(Movement {
                id,
                kind: MovementKind::Unexpected,
                at,
                due: None,
            });
        }
    }

    /// Closes every command whose time to live and grace are over at `now`.
    pub fn settle(&mut self, now: Offset, out: &mut Vec<Movement>) {
        for (issuer, group) in (0..).zip(&mut self.groups) {
            group.settle(issuer, now, out);
        }
    }

    /// The account of one issuer group since the clock began.
    #[must_use]
    pub fn total(&self, issuer: usize) -> Account {
        self.groups
            .get(issuer)
            .map_or_else(Account::default, |group| group.total)
    }

    /// The account of the commands of one group that were due in this second of the clock.
    #[must_use]
    pub fn second(&self, issuer: usize, second: u64) -> Option<&Account> {
        self.groups.get(issuer)?.by_second.get(&second)
    }

    /// The commands of the group that are open at `now`.
    pub fn pending(&self, issuer: usize, now: Offset) -> impl Iterator<Item = Pending> {
        let groups = self.groups.get(issuer).into_iter();
        groups.flat_map(move |group| {
            let open = group
                .entries
                .values()
                .filter(|entry| entry.state == State::Open);
            open.filter_map(move |entry| {
                Some(Pending {
                    due: entry.due?,
                    may_be_in_time: entry.may_be_in_time(&group.rules, now),
                    delivered: entry.delivered.is_some(),
                })
            })
        })
    }

    /// Commands held in memory, over all groups.
    #[must_use]
    pub fn held(&self) -> usize {
        self.groups.iter().map(|group| group.entries.len()).sum()
    }
}

impl Group {
    fn new(rules: Rules) -> Group {
        Group {
            rules,
            entries: HashMap::new(),
            closings: BTreeSet::new(),
            by_second: BTreeMap::new(),
            total: Account::default(),
            delivered: Remembered::default(),
        }
    }

    fn apply(&mut self, id: CommandId, step: CommandStep, at: Offset, out: &mut Vec<Movement>) {
        if !self.entries.contains_key(&id.number) && self.was_closed(id.number, step) {
            self.after_closing(id, step, at, out);
            return;
        }
        let entry = self
            .entries
            .entry(id.number)
            .or_insert_with(|| Entry::new(at));
        let before = *entry;
        entry.take(step, at);
        entry.state = entry.state_at(&self.rules, at);
        let after = *entry;
        self.schedule_closing(id.number, &before, &after, before.steps == 0);
        self.book(id, at, &before, &after, out);
    }

    /// An id without an entry that was due before: its account is closed.
    fn was_closed(&self, number: u64, step: CommandStep) -> bool {
        step != CommandStep::Due && self.delivered.knows(number)
    }

    fn after_closing(
        &mut self,
        id: CommandId,
        step: CommandStep,
        at: Offset,
        out: &mut Vec<Movement>,
    ) {
        if step != CommandStep::Delivered {
            return;
        }
        let again = self.delivered.was_delivered(id.number);
        self.delivered.set(id.number, true);
        let kind = if again {
            self.total.duplicated += 1;
            self.by_second.entry(at.second()).or_default().duplicated += 1;
            MovementKind::Duplicated
        } else {
            self.total.after_closing += 1;
            self.by_second.entry(at.second()).or_default().after_closing += 1;
            MovementKind::AfterClosing
        };
        out.push(Movement {
            id,
            kind,
            at,
            due: None,
        });
    }

    fn schedule_closing(&mut self, number: u64, before: &Entry, after: &Entry, new: bool) {
        let (old, next) = (before.closes(&self.rules), after.closes(&self.rules));
        if new || old != next {
            self.closings.remove(&(old, number));
            self.closings.insert((next, number));
        }
    }

    /// Brings the accounts from what `before` said to what `after` says.
    fn book(
        &mut self,
        id: CommandId,
        at: Offset,
        before: &Entry,
        after: &Entry,
        out: &mut Vec<Movement>,
    ) {
        let Some(due) = after.due else { return };
        let mut tell = |kind, at| {
            out.push(Movement {
                id,
                kind,
                at,
                due: Some(due),
            })
        };
        let known = before.due.is_some();
        let mut change = Change::default();
        if !known {
            change.due = 1;
            tell(MovementKind::Due, due);
        }
        let first = |was: bool, is: bool| is && !(known && was);
        if first(before.accepted, after.accepted) {
            tell(MovementKind::Accepted, at);
        }
        if let Some(at) = after
            .delivered
            .filter(|_| first(before.delivered.is_some(), true))
        {
            tell(MovementKind::Delivered, at);
        }
        if let Some(at) = after
            .acknowledged
            .filter(|_| first(before.acknowledged.is_some(), true))
        {
            tell(MovementKind::Acknowledged, at);
        }
        let extra = |entry: &Entry| u64::from(entry.deliveries.saturating_sub(1));
        change.duplicated = extra(after) - if known { extra(before) } else { 0 };
        for _ in 0..change.duplicated {
            tell(MovementKind::Duplicated, at);
        }
        change.after_give_up = u64::from(after.after_give_up()) as i64
            - if known {
                i64::from(before.after_give_up())
            } else {
                0
            };
        let was = known.then_some(before.state);
        if was != Some(after.state) && after.state != State::Open {
            let settled = !before.settled || !known;
            let kind = if settled {
                MovementKind::Settled(after.state)
            } else {
                MovementKind::Moved(after.state)
            };
            tell(kind, after.decided_at(at));
            if let Some(entry) = self.entries.get_mut(&id.number) {
                entry.settled = true;
            }
        }
        change.states = (was, after.state);
        change.apply(&mut self.total);
        change.apply(self.by_second.entry(due.second()).or_default());
    }

    fn settle(&mut self, issuer: u16, now: Offset, out: &mut Vec<Movement>) {
        while let Some((closes, number)) = self
            .closings
            .first()
            .copied()
            .filter(|(closes, _)| *closes <= now)
        {
            self.closings.pop_first();
            let Some(entry) = self.entries.get_mut(&number) else {
                continue;
            };
            let before = *entry;
            let id = CommandId { issuer, number };
            if before.due.is_none() {
                self.entries.remove(&number);
                self.nobody_sent(id, &before, out);
                continue;
            }
            entry.state = entry.state_at(&self.rules, closes);
            let after = *entry;
            self.book(id, closes, &before, &after, out);
            self.entries.remove(&number);
            self.delivered.set(number, after.delivered.is_some());
        }
    }

    fn nobody_sent(&mut self, id: CommandId, entry: &Entry, out: &mut Vec<Movement>) {
        let count = u64::from(entry.deliveries);
        self.total.unexpected += count;
        self.by_second
            .entry(entry.first.second())
            .or_default()
            .unexpected += count;
        for _ in 0..count {
            out.push(Movement {
                id,
                kind: MovementKind::Unexpected,
                at: entry.first,
                due: None,
            });
        }
    }
}

/// What one step changes in an account.
#[derive(Debug, Clone, Copy)]
struct Change {
    due: u64,
    /// From (if it was counted) and to.
    states: (Option<State>, State),
    duplicated: u64,
    after_give_up: i64,
}

impl Default for Change {
    fn default() -> Self {
        Change {
            due: 0,
            states: (None, State::Open),
            duplicated: 0,
            after_give_up: 0,
        }
    }
}

impl Change {
    fn apply(&self, account: &mut Account) {
        account.due += self.due;
        if let Some(from) = self.states.0 {
            account.states[from as usize] -= 1;
        }
        account.states[self.states.1 as usize] += 1;
        account.duplicated += self.duplicated;
        account.after_give_up = account
            .after_give_up
            .saturating_add_signed(self.after_give_up);
    }
}

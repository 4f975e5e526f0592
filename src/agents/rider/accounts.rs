//! The accounts of a group of riders: nobody gets one that somebody is using, as long as there is another.

use super::super::Action;
use super::Rider;
use crate::event::{Event, Offset};
use crate::plan::identity::Rows;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which accounts are in use.
#[derive(Debug)]
pub(super) struct Accounts {
    rows: Rows,
    taken: Mutex<Taken>,
}

#[derive(Debug)]
struct Taken {
    /// Riders on each account.
    riders: Vec<u32>,
    free: usize,
}

/// A rider's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    /// Among those of the group.
    index: usize,
    /// Somebody else is on it, too.
    pub is_shared: bool,
}

/// One account of the target: the row of its set in `Target::identities`, and its own within that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountRow {
    pub set: usize,
    pub row: usize,
}

impl Accounts {
    /// All of them free.
    pub fn new(rows: Rows) -> Accounts {
        let count = rows.count.max(1);
        Accounts {
            rows,
            taken: Mutex::new(Taken {
                riders: vec![0; count],
                free: count,
            }),
        }
    }

    /// The account of rider `number` (from 1): that of its turn, the next free one if that is in use, and that of its turn all the
    /// same if there is no free one.
    pub fn take(&self, number: u64) -> Account {
        let mut taken = self.lock();
        let count = taken.riders.len();
        let turn = usize::try_from((number - 1) % count as u64).unwrap_or_default();
        let mut from_turn = (turn..count).chain(0..turn);
        let free = match taken.free {
            0 => None,
            _ => from_turn.find(|index| taken.riders[*index] == 0),
        };
        let index = free.unwrap_or(turn);
        taken.riders[index] += 1;
        taken.free -= usize::from(free.is_some());
        Account {
            index,
            is_shared: free.is_none(),
        }
    }

    /// The rider has no more use for it.
    pub fn release(&self, account: Account) {
        let mut taken = self.lock();
        taken.riders[account.index] -= 1;
        taken.free += usize::from(taken.riders[account.index] == 0);
    }

    /// What the column holds for an account.
    pub fn value(&self, account: Account, column: &str) -> Option<&str> {
        self.rows.value(account.index as u64, column)
    }

    /// Set and row of its identity.
    pub fn row(&self, account: Account) -> AccountRow {
        AccountRow {
            set: self.rows.set,
            row: self.rows.row(account.index as u64),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Counts are whole whenever somebody else can see them.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rider {
    /// Takes an account for as long as it is on the way; somebody else may be on it if there is no other.
    pub(super) fn take_account(&mut self, now: Offset, out: &mut Vec<Action>) {
        let Some(accounts) = &self.config.accounts else {
            return;
        };
        let account = accounts.take(self.number);
        self.account = Some(account);
        if account.is_shared {
            out.push(Action::Tell(Event::AccountShared {
                operation: self.config.journey_operation,
                at: now,
            }));
        }
    }

    /// The account that it is on.
    #[must_use]
    pub fn account(&self) -> Option<AccountRow> {
        let accounts = self.config.accounts.as_ref()?;
        Some(accounts.row(self.account?))
    }

    pub(super) fn give_account_back(&mut self) {
        if let (Some(accounts), Some(account)) = (&self.config.accounts, self.account.take()) {
            accounts.release(account);
        }
    }
}

impl Drop for Rider {
    /// Who is dropped on the way needs its account no more.
    fn drop(&mut self) {
        self.give_account_back();
    }
}

//! Tokens of accounts: had when a rider of the account needs one first, and shared by all who are on it.
//!
//! Whoever needs it first asks, the others wait for that. From `renew` before its end on, the next rider renews it while everybody goes on
//! with the old one; after a refusal it is had anew. Nobody asks for the account sooner than [`FIRST_WAIT`] after it was in vain.

use super::asking::{Asking, Current};
use super::{FIRST_WAIT, LONGEST_WAIT};
use crate::event::Offset;
use crate::plan::identity::{IdentitySet, IdentitySource, IdentityTable};
use crate::plan::token::TokenSpec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Turn;

/// The tokens of the accounts of one set.
pub(super) struct AccountTokens {
    asking: Asking,
    set: usize,
    table: Option<Arc<IdentityTable>>,
    accounts: Mutex<HashMap<usize, Arc<Account>>>,
}

/// One account's token.
#[derive(Default)]
struct Account {
    /// Held by who asks.
    turn: Turn<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    /// Counts what was had.
    number: u64,
    /// After a failure nobody asks before this.
    not_before: Offset,
    wait: Duration,
}

impl AccountTokens {
    /// Tokens for the accounts of row `set` of the target's identities; none has been had yet.
    pub fn new(asking: Asking, set: usize, identities: Option<&IdentitySet>) -> AccountTokens {
        let table = identities.and_then(|identities| match &identities.source {
            IdentitySource::Csv(table) => Some(Arc::clone(table)),
            IdentitySource::Issue(_) => None,
        });
        AccountTokens {
            asking,
            set,
            table,
            accounts: Mutex::default(),
        }
    }

    pub fn set(&self) -> usize {
        self.set
    }

    pub fn spec(&self) -> &TokenSpec {
        &self.asking.spec
    }

    /// The token of the account in this row; `None` if it can't be had now.
    pub async fn have(self: &Arc<Self>, row: usize) -> Option<Current> {
        let account = self.account(row);
        let now = self.asking.clock.now();
        if let Some(current) = account.lasting(now) {
            let renew_at = current.until.map(|until| {
                let before = self.asking.spec.renew_before.as_micros();
                Offset(
                    until
                        .0
                        .saturating_sub(u64::try_from(before).unwrap_or(u64::MAX)),
                )
            });
            if renew_at.is_some_and(|at| at <= now) && account.turn.try_lock().is_ok() {
                let (tokens, account) = (Arc::clone(self), Arc::clone(&account));
                tokio::spawn(async move { tokens.renew(row, &account, current.number).await });
            }
            return Some(current);
        }
        self.renew(row, &account, account.number()).await;
        account.lasting(self.asking.clock.now())
    }

    /// The target has refused the token of this number.
    pub fn refused(&self, row: usize, number: u64) {
        let account = self.account(row);
        let mut state = account.state();
        if state.number == number {
            state.current = None;
        }
    }

    /// Has a token in place of that of number `known`, unless somebody has done so meanwhile or it was in vain a moment ago.
    async fn renew(&self, row: usize, account: &Account, known: u64) {
        let _turn = account.turn.lock().await;
        let now = self.asking.clock.now();
        {
            let state = account.state();
            if state.number != known || now < state.not_before {
                return;
            }
        }
        let mut value = |name: &str, out: &mut String| {
            let found = self.table.as_ref().and_then(|table| table.value(row, name));
            found.inspect(|text| out.push_str(text)).is_some()
        };
        let had = self.asking.ask(now, &mut value).await;
        let mut state = account.state();
        let wait = match &had {
            Ok(_) => FIRST_WAIT,
            Err(_) => (state.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT),
        };
        state.wait = wait;
        // After a success too: who is refused with a token that is new gets no better one.
        state.not_before = self.asking.clock.now().after(wait);
        if let Ok(had) = had {
            state.number += 1;
            let number = state.number;
            state.current = Some(Current { number, ..had });
        }
    }

    fn account(&self, row: usize) -> Arc<Account> {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(accounts.entry(row).or_default())
    }
}

impl Account {
    /// Its token, if there is one that still counts.
    fn lasting(&self, now: Offset) -> Option<Current> {
        let state = self.state();
        let current = state.current.as_ref();
        current
            .filter(|current| current.until.is_none_or(|until| now < until))
            .cloned()
    }

    fn number(&self) -> u64 {
        self.state().number
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

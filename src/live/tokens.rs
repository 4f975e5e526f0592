//! Tokens that requests carry: had before the load, renewed before they end or when the target refuses one.
//!
//! Of a token that everybody shares, one task is the only one that asks for it, so that a thousand refusals in one moment lead to one renewal. After a
//! renewal that helped nobody the next one waits longer, up to [`LONGEST_WAIT`]. Values are in memory only: no event and no error holds
//! one.

mod accounts;
mod asking;

use crate::agents::AccountRow;
use crate::dice::Dice;
use crate::event::{Offset, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::{Answer, Http, NoClient};
use crate::plan::target::Request;
use crate::plan::token::Per;
use crate::plan::{OperationKind, Plan};
use accounts::AccountTokens;
use asking::{Asking, Current};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Idle connections that are kept to where tokens come from.
const IDLE: usize = 16;
/// Of one request for a token.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between a renewal and the next one that a refusal asks for, or that follows a failure; doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A token that is about to end is renewed no more often than this.
const SHORTEST_LIFE: Duration = Duration::from_secs(1);
/// Keeps these draws apart from others under the same seed: "toke" in ASCII.
const WAITS: u64 = 0x746f_6b65;

/// Why a token can't be had.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(transparent)]
    Client(#[from] NoClient),
    #[error(
        "error: token `{name}`: {address} {what}; look at the token in the target file and at what it is asked with"
    )]
    NotHad {
        name: String,
        /// Without its query.
        address: String,
        what: String,
    },
}

/// The tokens of a run; clones share them. They are renewed until the last clone is gone.
#[derive(Clone, Default)]
pub struct Tokens {
    rows: Arc<[Arc<Token>]>,
    accounts: Arc<[Arc<AccountTokens>]>,
    _renewing: Option<Arc<DropGuard>>,
}

/// Which tokens were current when a request was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64);

/// What one request carries.
pub(super) struct Held {
    stamp: Stamp,
    /// Row in the tokens for accounts, whose it is, and the token.
    accounts: Vec<(usize, AccountRow, Current)>,
}

struct Token {
    asking: Asking,
    current: RwLock<Current>,
    /// The target refused the current one.
    refused: Notify,
}

impl Tokens {
    /// Has every token that the plan's riders and issuers carry, and renews them from then on.
    ///
    /// # Errors
    /// If one can't be had: nobody could ask anything of the target.
    pub async fn start(
        plan: &Plan,
        hosts: &Arc<Hosts>,
        clock: Clock,
        sink: &Sink,
    ) -> Result<Tokens, TokenError> {
        let (mut rows, mut accounts) = (Vec::new(), Vec::new());
        let cut = CancellationToken::new();
        for (token, spec) in plan.target.tokens.iter().enumerate() {
            let Some(operation) = plan.operation(OperationKind::Token { token }) else {
                continue;
            };
            let asking = Asking {
                spec: spec.clone(),
                operation,
                http: Http::new(Arc::clone(hosts), IDLE, TIMEOUT)?,
                clock,
                sink: Arc::clone(sink),
            };
            if let Per::Account(set) = spec.per {
                let identities = plan.target.identities.get(set);
                accounts.push(Arc::new(AccountTokens::new(asking, set, identities)));
                continue;
            }
            let token = Token {
                asking,
                current: RwLock::default(),
                refused: Notify::new(),
            };
            let asked = token.ask(clock.now()).await;
            asked.map_err(|what| token.not_had(what))?;
            rows.push(Arc::new(token));
        }
        for (row, token) in (0..).zip(&rows) {
            let (token, cut) = (Arc::clone(token), cut.clone());
            let dice = Dice::named(plan.seed, WAITS, row);
            tokio::spawn(async move { token.renew(dice, &cut).await });
        }
        Ok(Tokens {
            rows: rows.into(),
            accounts: accounts.into(),
            _renewing: Some(Arc::new(cut.drop_guard())),
        })
    }

    /// Has what a request of this account carries, or waits until somebody else has had it. `None`: it can't be had now.
    pub(super) async fn hold(
        &self,
        account: Option<AccountRow>,
        request: Option<&Request>,
    ) -> Option<Held> {
        let mut held = Held {
            stamp: self.stamp(),
            accounts: Vec::new(),
        };
        let (Some(account), Some(request)) = (account, request) else {
            return Some(held);
        };
        for (row, tokens) in self.accounts.iter().enumerate() {
            if tokens.set() == account.set && tokens.spec().is_in(request) {
                held.accounts
                    .push((row, account, tokens.have(account.row).await?));
            }
        }
        Some(held)
    }

    /// Appends the token that `token.NAME` stands for in a request with what is held; false if there is none of that name.
    pub(super) fn held_value(&self, held: &Held, name: &str, out: &mut String) -> bool {
        let own = name.strip_prefix("token.").and_then(|name| {
            let mut own = held.accounts.iter();
            own.find(|(row, ..)| self.accounts[*row].spec().name == name)
        });
        own.inspect(|(_, _, current)| out.push_str(&current.text))
            .is_some()
            || self.value(name, out)
    }

    /// Renews what a request carried that was answered with 401, unless that has happened since it was made.
    pub(super) fn answered_with(&self, held: &Held, request: Option<&Request>, answer: &Answer) {
        self.answered(request, held.stamp, answer);
        if answer.result == Ok(401) {
            for (row, account, current) in &held.accounts {
                self.accounts[*row].refused(account.row, current.number);
            }
        }
    }

    /// Appends the token that `token.NAME` stands for; false if there is none of that name.
    pub(super) fn value(&self, name: &str, out: &mut String) -> bool {
        let token = name.strip_prefix("token.").and_then(|name| {
            self.rows
                .iter()
                .find(|token| token.asking.spec.name == name)
        });
        token
            .inspect(|token| out.push_str(&token.read().text))
            .is_some()
    }

    /// To be taken before a request is made, for [`Tokens::answered`].
    pub(super) fn stamp(&self) -> Stamp {
        Stamp(self.rows.iter().map(|token| token.read().number).sum())
    }

    /// Renews what a request carried that was answered with 401, unless that has happened since it was made.
    pub(super) fn answered(&self, request: Option<&Request>, stamp: Stamp, answer: &Answer) {
        if answer.result != Ok(401) || self.stamp() != stamp {
            return;
        }
        let Some(request) = request else { return };
        for token in self
            .rows
            .iter()
            .filter(|token| token.asking.spec.is_in(request))
        {
            token.refused.notify_one();
        }
    }
}

impl Token {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the token when it is time, until `cut`.
    async fn renew(&self, mut dice: Dice, cut: &CancellationToken) {
        let mut wait = FIRST_WAIT;
        loop {
            let until = self.read().until;
            let due = until.map(|until| {
                let due = Offset(
                    until
                        .0
                        .saturating_sub(microseconds(self.asking.spec.renew_before)),
                );
                due.max(self.asking.clock.now().after(SHORTEST_LIFE))
            });
            let sleep = async {
                match due {
                    Some(due) => tokio::time::sleep_until(self.asking.clock.instant(due)).await,
                    None => std::future::pending().await,
                }
            };
            let was_refused = tokio::select! {
                () = cut.cancelled() => return,
                () = sleep => false,
                () = self.refused.notified() => true,
            };
            let began = self.asking.clock.now();
            let due = due.filter(|_| !was_refused).unwrap_or(began);
            let renewed = self.ask(due).await.is_ok();
            if renewed {
                // Said of the old one while the new one was on its way.
                tokio::select! {
                    biased;
                    () = self.refused.notified() => {}
                    () = std::future::ready(()) => {}
                }
            }
            wait = match (renewed, was_refused) {
                (true, false) => FIRST_WAIT,
                _ => (wait * 2).min(LONGEST_WAIT),
            };
            if renewed && !was_refused {
                continue;
            }
            // Whatever is refused meanwhile is heard afterwards, once.
            let pause = wait / 2 + dice.between(Duration::ZERO, wait / 2);
            tokio::select! {
                () = cut.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            if !renewed {
                self.refused.notify_one();
            }
        }
    }

    /// Asks for the token once and keeps it; what went wrong in a few words.
    async fn ask(&self, due: Offset) -> Result<(), String> {
        let had = self.asking.ask(due, &mut |_, _| false).await?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let number = current.number + 1;
        *current = Current { number, ..had };
        Ok(())
    }

    fn not_had(&self, what: String) -> TokenError {
        let address = self.asking.spec.request.url.to_string();
        let end = address.find(['?', '#']).unwrap_or(address.len());
        TokenError::NotHad {
            name: self.asking.spec.name.clone(),
            address: address[..end].to_owned(),
            what,
        }
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

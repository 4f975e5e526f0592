//! Tokens that requests carry: had before the load, renewed before they end or when the target refuses one.
//!
//! One task for each token is the only one that asks for it, so that a thousand refusals in one moment lead to one renewal. After a
//! renewal that helped nobody the next one waits longer, up to [`LONGEST_WAIT`]. Values are in memory only: no event and no error holds
//! one.

use super::explain::tell;
use crate::dice::Dice;
use crate::event::{Event, Offset, OperationId, Outcome, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::{Answer, Http, NoClient};
use crate::plan::target::Request;
use crate::plan::token::{Lasts, TokenSpec};
use crate::plan::{OperationKind, Plan};
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

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
    _renewing: Option<Arc<DropGuard>>,
}

/// Which tokens were current when a request was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64);

struct Token {
    spec: TokenSpec,
    operation: OperationId,
    http: Http,
    clock: Clock,
    sink: Sink,
    current: RwLock<Current>,
    /// The target refused the current one.
    refused: Notify,
}

/// What requests carry now.
#[derive(Default)]
struct Current {
    text: String,
    /// Counts renewals.
    number: u64,
    until: Option<Offset>,
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
        let mut rows = Vec::new();
        let cut = CancellationToken::new();
        for (token, spec) in plan.target.tokens.iter().enumerate() {
            let Some(operation) = plan.operation(OperationKind::Token { token }) else {
                continue;
            };
            let token = Token {
                spec: spec.clone(),
                operation,
                http: Http::new(Arc::clone(hosts), 1, TIMEOUT)?,
                clock,
                sink: Arc::clone(sink),
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
            _renewing: Some(Arc::new(cut.drop_guard())),
        })
    }

    /// Appends the token that `token.NAME` stands for; false if there is none of that name.
    pub(super) fn value(&self, name: &str, out: &mut String) -> bool {
        let token = name
            .strip_prefix("token.")
            .and_then(|name| self.rows.iter().find(|token| token.spec.name == name));
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
        for token in self.rows.iter().filter(|token| token.spec.is_in(request)) {
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
                let due = Offset(until.0.saturating_sub(microseconds(self.spec.renew_before)));
                due.max(self.clock.now().after(SHORTEST_LIFE))
            });
            let sleep = async {
                match due {
                    Some(due) => tokio::time::sleep_until(self.clock.instant(due)).await,
                    None => std::future::pending().await,
                }
            };
            let was_refused = tokio::select! {
                () = cut.cancelled() => return,
                () = sleep => false,
                () = self.refused.notified() => true,
            };
            let began = self.clock.now();
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
        let (operation, started) = (self.operation, self.clock.now());
        (self.sink)(Event::Started {
            operation,
            due,
            at: started,
        });
        (self.sink)(Event::Attempted {
            operation,
            at: started,
        });
        let answer = self.send().await;
        let at = self.clock.now();
        let had = self.take(&answer, at);
        let outcome = match &had {
            Ok(()) => Outcome::Ok,
            Err((outcome, _)) => *outcome,
        };
        let answered = Event::Answered {
            operation,
            sent: started,
            at,
            outcome,
        };
        tell(&self.sink, answered, answer.why.as_deref());
        (self.sink)(Event::Finished {
            operation,
            due,
            started,
            at,
            outcome,
            attempts: 1,
        });
        had.map_err(|(_, what)| what)
    }

    async fn send(&self) -> Answer {
        let nothing = &mut |_: &str, _: &mut String| false;
        if self.spec.form.is_empty() {
            return self
                .http
                .perform(&self.spec.request, nothing, TIMEOUT)
                .await;
        }
        let Ok(builder) = self.http.prepare(&self.spec.request, nothing, TIMEOUT) else {
            return Answer::failed(Outcome::NotSent);
        };
        let Some(body) = self.form() else {
            return Answer::failed(Outcome::NotSent);
        };
        let builder = builder
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        self.http.receive(builder.send().await).await
    }

    /// The form as it is sent; `None` if a name in it is unknown.
    fn form(&self) -> Option<String> {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.spec.form {
            let mut text = String::new();
            value.render_into(&mut text, |_, _| false).ok()?;
            body.append_pair(name, &text);
        }
        Some(body.finish())
    }

    fn take(&self, answer: &Answer, now: Offset) -> Result<(), (Outcome, String)> {
        let status = answer
            .result
            .map_err(|outcome| (outcome, answer.in_words(outcome)))?;
        let document = serde_json::from_slice::<Value>(&answer.body).ok();
        if !self.spec.request.answer.is_ok(status) {
            let code = document.as_ref().and_then(error_code);
            let code = code.map_or_else(String::new, |code| format!(" ({code})"));
            return Err((Outcome::Refused(status), format!("answered {status}{code}")));
        }
        let broken = |what: &str| (Outcome::Protocol, format!("answered {status} {what}"));
        let document = document.ok_or_else(|| broken("without JSON"))?;
        let text = self.spec.keep.text(&document);
        let text =
            text.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()));
        let text = text.ok_or_else(|| broken(&format!("without a token at {}", self.spec.keep)))?;
        let lasts = match &self.spec.lasts {
            Lasts::Fixed(lasts) => Some(*lasts),
            Lasts::Stated(path) => path.text(&document).and_then(|seconds| {
                let seconds = seconds.parse::<f64>().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }),
        };
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Current {
            text,
            number: current.number + 1,
            until: lasts.map(|lasts| now.after(lasts)),
        };
        Ok(())
    }

    fn not_had(&self, what: String) -> TokenError {
        let address = self.spec.request.url.to_string();
        let end = address.find(['?', '#']).unwrap_or(address.len());
        TokenError::NotHad {
            name: self.spec.name.clone(),
            address: address[..end].to_owned(),
            what,
        }
    }
}

/// The code by which OAuth 2 says what is wrong (RFC 6749 §5.2), if it looks like one.
fn error_code(document: &Value) -> Option<&str> {
    let code = document.get("error")?.as_str()?;
    let is_code = code.len() <= 40 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_code.then_some(code)
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

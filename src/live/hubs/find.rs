//! Asks the target for the shard of a hub.

use crate::event::{Event, Offset, Outcome, ReferenceVerdict};
use crate::live::carrier::Failure;
use crate::live::shards::{Shards, Speaker, value};
use crate::net::hosts::Hosts;
use crate::net::http::{Http, NoClient};
use crate::plan::HubGroup;
use crate::plan::target::{Ask, Device, Find};
use std::sync::Arc;
use std::time::Duration;

/// Idle connections kept for the next question; hubs ask seldom, and in crowds.
const IDLE_CONNECTIONS: usize = 64;
/// A name of a place is cut to so many characters where it is told.
const LONGEST_TOLD: usize = 80;

/// What came of a question: a row of the shards, or why there is none, and what is to be told of it.
pub(super) struct Found {
    pub shard: Result<u16, Outcome>,
    pub told: Option<(String, ReferenceVerdict)>,
    /// What exactly was wrong with the question, where the class does not say it all.
    pub why: Option<Failure>,
}

/// How the hubs of a group ask.
pub(super) struct Asker {
    http: Http,
    ask: Box<Ask>,
    timeout: Duration,
}

impl Asker {
    /// `None` for a device whose hubs do not ask.
    ///
    /// # Errors
    /// If the TLS library can't be set up.
    pub(super) fn of(
        device: &Device,
        hubs: &HubGroup,
        hosts: &Arc<Hosts>,
    ) -> Result<Option<Asker>, NoClient> {
        let Find::Ask(ask) = &device.find else {
            return Ok(None);
        };
        Ok(Some(Asker {
            http: Http::new(Arc::clone(hosts), IDLE_CONNECTIONS, hubs.timeout)?,
            ask: ask.clone(),
            timeout: hubs.timeout,
        }))
    }

    /// Asks for the hub that speaks.
    pub(super) fn ask(
        &self,
        shards: &Arc<Shards>,
        speaker: Speaker<'_>,
    ) -> impl Future<Output = Found> + Send + use<> {
        let asked = self.http.perform(
            &self.ask.request,
            &mut |name, out| value(name, speaker, out),
            self.timeout,
        );
        let (shards, ask) = (Arc::clone(shards), self.ask.clone());
        async move {
            let answer = asked.await;
            let status = match answer.result {
                Ok(status) => status,
                Err(outcome) => {
                    let text = answer.why.map(String::from);
                    return Found {
                        why: Some(Failure { outcome, text }),
                        ..Found::failed(outcome)
                    };
                }
            };
            if !ask.request.answer.is_ok(status) {
                return Found::failed(Outcome::Refused(status));
            }
            let place = serde_json::from_slice(&answer.body)
                .ok()
                .and_then(|body: serde_json::Value| ask.keep.text(&body));
            let Some(place) = place else {
                return Found::failed(Outcome::Protocol);
            };
            match shards.named(&place) {
                Some(shard) => Found {
                    shard: Ok(shard),
                    told: None,
                    why: None,
                },
                None => Found {
                    shard: Err(Outcome::Protocol),
                    told: Some((cut(&place), ReferenceVerdict::Refused)),
                    why: None,
                },
            }
        }
    }
}

impl Found {
    fn failed(outcome: Outcome) -> Found {
        Found {
            shard: Err(outcome),
            told: None,
            why: None,
        }
    }

    /// The event about a place that must not be contacted.
    pub(super) fn event(&self, group: u16, at: Offset) -> Option<Event> {
        let (text, verdict) = self.told.clone()?;
        Some(Event::Reference {
            group,
            text,
            verdict,
            at,
        })
    }
}

/// A text of the target's, short enough to be shown.
pub(super) fn cut(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(LONGEST_TOLD)
        .collect()
}

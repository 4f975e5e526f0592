//! What the target saw: its own list of live sessions, with the client certificates that it was shown.

use super::shards::{Speaker, render};
use crate::event::{CertificateSerial, Event, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::{Http, NoClient};
use crate::plan::Plan;
use crate::plan::fault::TriggerKind;
use crate::plan::witness::LiveSessions;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Of one page.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A list with more pages than this has no end.
const MOST_PAGES: u32 = 100_000;

/// Why the target's list could not be read.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    #[error(transparent)]
    Client(#[from] NoClient),
    #[error("the live sessions of `{device}` could not be read from the target: {why}")]
    Unread { device: String, why: String },
}

/// Asks for the live sessions of every group that renews its certificates, and tells each session of one of our hubs.
///
/// # Errors
/// If a list could not be read to its end.
pub async fn ask(
    plan: &Plan,
    hosts: &Arc<Hosts>,
    clock: Clock,
    sink: &Sink,
) -> Result<(), WitnessError> {
    for (group, hubs) in plan.hubs.iter().enumerate() {
        let renews = plan.triggers.iter().any(|trigger| {
            matches!(trigger.kind, TriggerKind::Renew(_)) && trigger.kind.group() == Some(group)
        });
        let device = &plan.target.devices[hubs.device];
        let (true, Some(sessions)) = (renews, &device.live_sessions) else {
            continue;
        };
        let list = List {
            http: Http::new(Arc::clone(hosts), 1, TIMEOUT)?,
            sessions,
            clients: clients(plan, group),
        };
        let seen = list.read().await.map_err(|why| WitnessError::Unread {
            device: device.name.clone(),
            why,
        })?;
        for (hub, certificate) in seen {
            sink(Event::SessionSeen {
                group: u16::try_from(group).unwrap_or(u16::MAX),
                hub,
                certificate,
                at: clock.now(),
            });
        }
    }
    Ok(())
}

/// The hubs of a group by their client ids.
fn clients(plan: &Plan, group: usize) -> HashMap<String, u32> {
    let hubs = &plan.hubs[group];
    let template = &plan.target.devices[hubs.device].client_id;
    (0..hubs.count)
        .map(|hub| {
            let index = u64::from(hub);
            let serial = hubs.serial(index);
            let speaker = Speaker {
                serial: &serial,
                columns: hubs.identity.as_ref().map(|rows| (rows, index)),
            };
            (render(template, speaker), hub)
        })
        .collect()
}

struct List<'a> {
    http: Http,
    sessions: &'a LiveSessions,
    clients: HashMap<String, u32>,
}

impl List<'_> {
    /// Every session of one of our hubs, page by page.
    async fn read(&self) -> Result<Vec<(u32, Option<CertificateSerial>)>, String> {
        let mut seen = Vec::new();
        let mut after = String::new();
        for _ in 0..MOST_PAGES {
            let page = self.page(&after).await?;
            let entries = self.sessions.list.find(&page);
            let entries = entries
                .and_then(serde_json::Value::as_array)
                .ok_or("the answer has no such list")?;
            for entry in entries {
                let client = self.sessions.client_id.text(entry);
                if let Some(hub) = client.and_then(|client| self.clients.get(&client)) {
                    let certificate = self.sessions.certificate.text(entry);
                    seen.push((*hub, certificate.and_then(|text| serial_number(&text))));
                }
            }
            let next = self.sessions.next.as_ref();
            match next.and_then(|next| next.text(&page)) {
                Some(next) if next != after => after = next,
                _ => return Ok(seen),
            }
        }
        Err(format!("it goes on after {MOST_PAGES} pages"))
    }

    async fn page(&self, after: &str) -> Result<serde_json::Value, String> {
        let request = &self.sessions.request;
        let mut value = |name: &str, out: &mut String| {
            out.push_str(after);
            name == "after"
        };
        let answer = self.http.perform(request, &mut value, TIMEOUT).await;
        let status = answer
            .result
            .map_err(|outcome| format!("{}: {}", request.url, answer.in_words(outcome)))?;
        if !request.answer.is_ok(status) {
            return Err(format!("{} answered {status}", request.url));
        }
        serde_json::from_slice(&answer.body).map_err(|error| format!("{}: {error}", request.url))
    }
}

/// Reads hexadecimal digits, with or without colons between them.
fn serial_number(text: &str) -> Option<CertificateSerial> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|letter| *letter != ':')
        .map(|letter| {
            letter
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        })
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .rchunks(2)
        .rev()
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect();
    CertificateSerial::from_bytes(&bytes)
}

//! Speaks to the control port of a proxy, and finds the proxies that are running.

use super::carrier::{Carrier, Remote};
use super::wire::{
    CanaryEnd, CanaryOrder, CanaryReading, Carried, CutAnswer, CutConnections, LinkAddress,
    LinkState, PREFIX, Registration, Removed, SetFault, Speaks,
};
use crate::event::Outcome;
use crate::net::hosts::{HostError, Hosts};
use crate::net::http::{self, Http, NoClient, percent_encode};
use crate::net::state::{self, StateDirectory, StateError};
use crate::plan::fault::Link;
use crate::plan::target::Target;
use crate::plan::template::Template;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Nothing that the control port does waits for a peer of a link.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A running proxy.
#[derive(Clone)]
pub struct ProxyClient {
    carrier: Carrier,
    /// `http://host:port`
    url: String,
    token: Option<String>,
    /// Of a process of this machine.
    registration: Option<Registration>,
    http: Http,
}

/// Why a proxy could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Client(#[from] NoClient),
    #[error("fault proxy {url}: {why}")]
    Unusable { url: String, why: String },
    #[error("{proxy}, {what}: {why}")]
    Failed {
        proxy: Box<Carrier>,
        what: String,
        why: String,
    },
}

/// The proxies of this user that are running. What dead ones left is removed.
///
/// # Errors
/// If the state directory can't be read or is not ours alone.
pub fn running(state: &StateDirectory) -> Result<Vec<Registration>, StateError> {
    let directory = state.proxies()?;
    let mut running = Vec::new();
    for name in state::names_in(&directory)? {
        let path = directory.join(&name);
        // It may end between the look at the directory and at its file.
        let Ok(text) = state::read_private(&path) else {
            continue;
        };
        match serde_json::from_str::<Registration>(&text) {
            Ok(registration) if registration.process.runs() => running.push(registration),
            _ if name.ends_with(".json") => {
                let _ = std::fs::remove_file(&path);
            }
            _ => {}
        }
    }
    running.sort_by_key(|registration| registration.process.started_ticks);
    Ok(running)
}

impl ProxyClient {
    /// A client of this proxy.
    ///
    /// # Errors
    /// If the HTTP client can't be set up.
    pub fn new(registration: Registration) -> Result<ProxyClient, ClientError> {
        let control = registration.control.to_string();
        Ok(ProxyClient {
            carrier: Carrier::Process(registration.process.clone()),
            url: format!("http://{control}"),
            token: Some(registration.token.clone()),
            http: http(&control, &[], None)?,
            registration: Some(registration),
        })
    }

    /// A client of a proxy elsewhere.
    ///
    /// # Errors
    /// If a secret that it needs can't be read, or its host must not be contacted.
    pub fn remote(remote: &Remote) -> Result<ProxyClient, ClientError> {
        let unusable = |why: String| ClientError::Unusable {
            url: remote.url.clone(),
            why,
        };
        let (url, token) = remote.revealed().map_err(unusable)?;
        Ok(ProxyClient {
            carrier: Carrier::Remote(remote.clone()),
            token,
            registration: None,
            http: http(&url, &remote.never, remote.trust.as_deref())?,
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    /// The client of this proxy; `None` if it was a process that has ended.
    ///
    /// # Errors
    /// If the state directory or the client can't be used.
    pub fn of(
        state: &StateDirectory,
        carrier: &Carrier,
    ) -> Result<Option<ProxyClient>, ClientError> {
        let process = match carrier {
            Carrier::Process(process) => process,
            Carrier::Remote(remote) => return ProxyClient::remote(remote).map(Some),
        };
        let found = running(state)?
            .into_iter()
            .find(|registration| registration.process == *process);
        found.map(ProxyClient::new).transpose()
    }

    /// Which proxy it is.
    #[must_use]
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// What it registered; `None` for one elsewhere.
    #[must_use]
    pub fn registration(&self) -> Option<&Registration> {
        self.registration.as_ref()
    }

    /// Has it carry a link, unless it does so already; true if it did.
    ///
    /// # Errors
    /// If it carries another one of this name, or can't listen there.
    pub async fn carry(&self, link: &LinkAddress) -> Result<bool, ClientError> {
        let carried: Carried = self
            .ask(reqwest::Method::POST, "/links", Some(link), TIMEOUT)
            .await?;
        Ok(carried.already)
    }

    /// Its links with their counters and faults.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn links(&self) -> Result<Vec<LinkState>, ClientError> {
        self.ask::<(), _>(reqwest::Method::GET, "/links", None, TIMEOUT)
            .await
    }

    /// Sets a fault on a link.
    ///
    /// # Errors
    /// If it does not answer or has no such link.
    pub async fn set_fault(&self, link: &str, fault: &SetFault) -> Result<(), ClientError> {
        let path = format!("/links/{}/faults", segment(link));
        self.send(reqwest::Method::PUT, &path, Some(fault), TIMEOUT)
            .await
            .map(drop)
    }

    /// Cuts a share of the connections that a link carries now.
    ///
    /// # Errors
    /// If it does not answer or has no such link.
    pub async fn cut(&self, link: &str, cut: &CutConnections) -> Result<CutAnswer, ClientError> {
        let path = format!("/links/{}/cut", segment(link));
        self.ask(reqwest::Method::POST, &path, Some(cut), TIMEOUT)
            .await
    }

    /// Removes a fault; false if there was none of this id.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn remove(&self, id: &str) -> Result<bool, ClientError> {
        let path = format!("/faults/{}", segment(id));
        let removed: Removed = self
            .ask::<(), _>(reqwest::Method::DELETE, &path, None, TIMEOUT)
            .await?;
        Ok(removed.removed)
    }

    /// Sends a canary through the link's chain.
    ///
    /// # Errors
    /// If the proxy does not answer; a canary that doesn't come back is a reading like another.
    pub async fn fly(&self, link: &str, order: &CanaryOrder) -> Result<CanaryReading, ClientError> {
        let path = format!("/links/{}/canary", segment(link));
        let limit = Duration::from_millis(order.limit_ms) + TIMEOUT;
        self.ask(reqwest::Method::POST, &path, Some(order), limit)
            .await
    }

    /// One round trip of a byte through the link's chain, which takes as long as its faults make it, at most `limit`.
    ///
    /// # Errors
    /// If it does not come back within `limit`.
    pub async fn canary(&self, link: &str, limit: Duration) -> Result<Duration, ClientError> {
        let order = CanaryOrder {
            bytes: 1,
            close: false,
            limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            speaks: Speaks::Bytes,
        };
        let reading = self.fly(link, &order).await?;
        match reading.end {
            CanaryEnd::Open => Ok(Duration::from_micros(reading.round_trip_us)),
            CanaryEnd::Silent => Err(self.failed(link, format!("no canary back within {limit:?}"))),
            CanaryEnd::Finished | CanaryEnd::Reset => {
                Err(self.failed(link, "the canary's connection ended".to_owned()))
            }
        }
    }

    /// Asks it to end, with every connection that it carries. Whether it has ended is for the caller to look: it may be gone
    /// before its answer is through.
    ///
    /// # Errors
    /// If it says no, or says nothing.
    pub async fn stop(&self) -> Result<(), ClientError> {
        let answer = self
            .exchange::<()>(reqwest::Method::POST, "/stop", None, TIMEOUT)
            .await;
        match answer.result {
            Err(Outcome::Reset | Outcome::Unreachable) => Ok(()),
            _ => self.accepted("/stop", answer).map(drop),
        }
    }

    async fn ask<Body: Serialize, Answer: DeserializeOwned>(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<&Body>,
        timeout: Duration,
    ) -> Result<Answer, ClientError> {
        let answer = self.send(method, path, body, timeout).await?;
        serde_json::from_slice(&answer).map_err(|error| self.failed(path, error.to_string()))
    }

    async fn send<Body: Serialize>(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<&Body>,
        timeout: Duration,
    ) -> Result<Vec<u8>, ClientError> {
        let answer = self.exchange(method, path, body, timeout).await;
        self.accepted(path, answer)
    }

    async fn exchange<Body: Serialize>(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<&Body>,
        timeout: Duration,
    ) -> http::Answer {
        let address = format!("{}{PREFIX}{path}", self.url);
        let mut request = self.http.client().request(method, address);
        request = request.timeout(timeout);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        self.http.receive(request.send().await).await
    }

    fn accepted(&self, path: &str, answer: http::Answer) -> Result<Vec<u8>, ClientError> {
        match answer.result {
            Ok(200..=299) => Ok(answer.body),
            Ok(status) => {
                let why = String::from_utf8_lossy(&answer.body);
                Err(self.failed(path, format!("status {status} {}", why.trim())))
            }
            Err(outcome) => Err(self.failed(path, answer.in_words(outcome))),
        }
    }

    fn failed(&self, what: &str, why: String) -> ClientError {
        ClientError::Failed {
            proxy: Box::new(self.carrier.clone()),
            what: what.to_owned(),
            why,
        }
    }
}

/// A client that reaches this address and no other.
fn http(address: &str, never: &[String], trust: Option<&str>) -> Result<Http, ClientError> {
    let place = Template::literal(address);
    let target = Target {
        links: vec![Link::between("control", place.clone(), place)],
        never: never.to_vec(),
        trust: trust.map(Template::literal),
        ..Target::default()
    };
    // No connection is kept: it would belong to the runtime that opened it, and this client is used from several.
    Ok(Http::new(
        Arc::new(Hosts::of(&target)?),
        0,
        CONNECT_TIMEOUT,
    )?)
}

fn segment(text: &str) -> String {
    let mut encoded = String::new();
    percent_encode(text, &mut encoded);
    encoded
}

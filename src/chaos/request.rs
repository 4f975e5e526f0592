//! A request as it lies in the journal: texts as written, with `<secret.NAME>` in place of every secret, and where the secrets are
//! to be read again. It can be sent by a process that has nothing but the journal, and reaches no host but its own.

use crate::net::connect::{Source, connect};
use crate::net::hosts::{Endpoint, HostError, Hosts, Peer};
use crate::net::http::{CannotSend, Http, NoClient};
use crate::net::secrets::{Redactor, Secrets};
use crate::plan::component::{Body, Component};
use crate::plan::fault::{OperationSpec, Question};
use crate::plan::json_path::JsonPath;
use crate::plan::target::{Answer, Method, Request, SecretSource, Target};
use crate::plan::template::{JsonTemplate, Template, Unclosed};
use crate::plan::tls::{HttpTls, KeyFiles};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const SECRET: &str = "secret.";
/// Bytes of a refusal's body that are shown.
const SHOWN_BYTES: usize = 200;

/// A request with everything that sending it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRequest {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub bearer: Option<String>,
    pub json: Option<Value>,
    /// Statuses that mean success; empty means 200 to 299.
    pub ok: Vec<u16>,
    /// Where the secrets that it names come from.
    pub secrets: BTreeMap<String, SecretSource>,
    /// The target's `never`.
    pub never: Vec<String>,
    /// The target's `trust`; a whole path, since healing may begin in another folder.
    #[serde(default)]
    pub trust: Option<String>,
    /// Whole paths of the certificate that requests show, and of its key.
    #[serde(default)]
    pub shown: Option<(String, String)>,
}

/// Why a stored request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("{0}")]
    Secrets(String),
    #[error(transparent)]
    Template(#[from] Unclosed),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Client(#[from] NoClient),
    #[error(transparent)]
    CannotSend(#[from] CannotSend),
    #[error("{request}: {outcome}")]
    Failed { request: String, outcome: String },
}

impl StoredRequest {
    /// The request for the journal. Secrets that have become text already are turned back into their placeholders.
    ///
    /// # Errors
    /// If a secret of the target can't be read: an undo that needs it could not be sent either.
    pub fn of(request: &Request, target: &Target) -> Result<StoredRequest, RequestError> {
        let redactor = read(&target.secrets)?.redactor();
        let text = |template: &Template| redactor.redact(&template.to_string()).into_owned();
        let mut stored = StoredRequest {
            method: request.method,
            url: text(&request.url),
            headers: request
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            bearer: request.bearer.as_ref().map(text),
            json: request.json.as_ref().map(|json| written(json, &redactor)),
            ok: request.answer.ok.clone(),
            secrets: BTreeMap::new(),
            never: target.never.clone(),
            trust: target.trust.as_ref().map(whole),
            shown: target
                .tls
                .files
                .as_ref()
                .map(|files| (whole(&files.cert), whole(&files.key))),
        };
        let mut named = Vec::new();
        stored
            .request()?
            .names(&mut |name| named.extend(name.strip_prefix(SECRET).map(str::to_owned)));
        stored.secrets = target.secrets.clone();
        stored.secrets.retain(|name, _| named.contains(name));
        Ok(stored)
    }

    /// Sends it once and reads the answer within `timeout`; gives the status.
    ///
    /// # Errors
    /// If it could not be sent, was not answered, or was refused.
    pub async fn send(&self, timeout: Duration) -> Result<u16, RequestError> {
        self.ask(timeout).await.map(|(status, _)| status)
    }

    /// Sends it once and reads the answer within `timeout`; gives status and body.
    ///
    /// # Errors
    /// As [`StoredRequest::send`].
    pub async fn ask(&self, timeout: Duration) -> Result<(u16, Vec<u8>), RequestError> {
        let request = self.request()?;
        let secrets = read(&self.secrets)?;
        let operation = OperationSpec {
            name: "undo".to_owned(),
            request: request.clone(),
            undo: None,
            observe: None,
            undone: None,
        };
        let target = Target {
            never: self.never.clone(),
            trust: self.trust.as_deref().map(Template::parse).transpose()?,
            tls: self.tls()?,
            operations: vec![operation],
            ..Target::default()
        };
        let http = Http::new(Arc::new(Hosts::of(&target)?), 0, CONNECT_TIMEOUT)?;
        let mut value = |name: &str, out: &mut String| {
            let secret = name
                .strip_prefix(SECRET)
                .and_then(|name| secrets.value(name));
            out.push_str(secret.unwrap_or_default());
            secret.is_some()
        };
        let prepared = http.prepare(&request, &mut value, timeout)?;
        let answer = http.receive(prepared.send().await).await;
        match answer.result {
            Ok(status) if request.answer.is_ok(status) => Ok((status, answer.body)),
            Ok(status) => {
                let body =
                    String::from_utf8_lossy(&answer.body[..answer.body.len().min(SHOWN_BYTES)]);
                let outcome = secrets
                    .redactor()
                    .redact(&format!("status {status} {body}"))
                    .into_owned();
                Err(RequestError::Failed {
                    request: self.to_string(),
                    outcome,
                })
            }
            Err(outcome) => Err(RequestError::Failed {
                request: self.to_string(),
                outcome: answer.in_words(outcome),
            }),
        }
    }

    fn tls(&self) -> Result<HttpTls, Unclosed> {
        let files = self.shown.as_ref().map(|(cert, key)| {
            Ok(KeyFiles {
                cert: Template::parse(cert)?,
                key: Template::parse(key)?,
            })
        });
        Ok(HttpTls {
            files: files.transpose()?,
            ..HttpTls::default()
        })
    }

    fn request(&self) -> Result<Request, Unclosed> {
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| Ok((name.clone(), Template::parse(value)?)));
        Ok(Request {
            method: self.method,
            url: Template::parse(&self.url)?,
            headers: headers.collect::<Result<_, Unclosed>>()?,
            bearer: self.bearer.as_deref().map(Template::parse).transpose()?,
            json: self.json.as_ref().map(understood).transpose()?,
            answer: Answer {
                ok: self.ok.clone(),
                ..Answer::default()
            },
        })
    }
}

fn whole(path: &Template) -> String {
    let path = path.to_string();
    match std::path::absolute(&path) {
        Ok(whole) => whole.display().to_string(),
        // Nothing stands there: reading it says so.
        Err(_) => path,
    }
}

impl std::fmt::Display for StoredRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let method = serde_json::to_value(self.method).ok();
        write!(
            formatter,
            "{} {}",
            method.as_ref().and_then(Value::as_str).unwrap_or("?"),
            self.url
        )
    }
}

/// A request whose answer says whether something holds, as it lies in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredQuestion {
    pub request: StoredRequest,
    /// Paths as written, each with the texts of which one is wanted.
    pub is: Vec<(String, Vec<String>)>,
}

impl StoredQuestion {
    /// The question for the journal.
    ///
    /// # Errors
    /// As [`StoredRequest::of`].
    pub fn of(question: &Question, target: &Target) -> Result<StoredQuestion, RequestError> {
        let is = question.is.iter();
        Ok(StoredQuestion {
            request: StoredRequest::of(&question.request, target)?,
            is: is
                .map(|(path, texts)| (path.to_string(), texts.clone()))
                .collect(),
        })
    }

    /// Asks; whether it holds, and what was answered.
    ///
    /// # Errors
    /// As [`StoredRequest::send`].
    pub async fn holds(&self, timeout: Duration) -> Result<(bool, String), RequestError> {
        let (status, body) = self.request.ask(timeout).await?;
        let read = |(path, texts): &(String, Vec<String>)| {
            let path = JsonPath::parse(path).ok()?;
            Some((path, texts.clone()))
        };
        let question = Question {
            request: self.request.request()?,
            is: self.is.iter().filter_map(read).collect(),
        };
        let said = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]);
        let said = read_secrets(&self.request.secrets, &said)?;
        let answer = format!("{} answered {status} {said}", self.request);
        Ok((question.holds(&body), answer))
    }
}

fn read_secrets(
    secrets: &BTreeMap<String, SecretSource>,
    text: &str,
) -> Result<String, RequestError> {
    Ok(read(secrets)?.redactor().redact(text.trim()).into_owned())
}

/// The names of the secrets in texts with placeholders.
pub(super) fn secrets_named<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut named = Vec::new();
    for template in texts.filter_map(|text| Template::parse(text).ok()) {
        let secrets = template
            .names()
            .filter_map(|name| name.strip_prefix(SECRET));
        named.extend(secrets.map(str::to_owned));
    }
    named
}

/// The list with nothing but `port` (`host:port`) on it.
///
/// # Errors
/// If it must not be contacted.
pub(super) fn hosts_of(port: &str, never: &[String]) -> Result<Hosts, HostError> {
    let component = Component {
        name: port.to_owned(),
        body: Body::Address(Template::literal(port)),
        port: None,
        irreversible: false,
    };
    let target = Target {
        never: never.to_vec(),
        components: vec![component],
        ..Target::default()
    };
    Hosts::of(&target)
}

async fn permitted(port: &str, never: &[String]) -> Result<Vec<Peer>, HostError> {
    let endpoint = Endpoint::parse(port).map_err(|why| HostError::BadAddress {
        place: "port".to_owned(),
        text: port.to_owned(),
        why,
    })?;
    hosts_of(port, never)?.peers(&endpoint).await
}

/// The addresses behind `port` (`host:port`).
///
/// # Errors
/// If the host must not be contacted or has no address.
pub(super) async fn peers(port: &str, never: &[String]) -> Result<Vec<SocketAddr>, String> {
    let peers = permitted(port, never).await;
    let peers = peers.map_err(|error| error.to_string())?;
    Ok(peers.into_iter().map(Peer::address).collect())
}

/// Whether something accepts connections at `port` (`host:port`).
///
/// # Errors
/// If the host must not be contacted or has no address.
pub async fn accepts(port: &str, never: &[String]) -> Result<bool, HostError> {
    for peer in permitted(port, never).await? {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connect(peer, Source::System)).await;
        if matches!(connected, Ok(Ok(_))) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn read(sources: &BTreeMap<String, SecretSource>) -> Result<Secrets, RequestError> {
    Secrets::read(sources).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        RequestError::Secrets(lines.join("; "))
    })
}

/// A body as JSON whose strings are templates as written.
fn written(body: &JsonTemplate, redactor: &Redactor) -> Value {
    match body {
        JsonTemplate::Plain(plain) => plain.clone(),
        JsonTemplate::Text(template) => {
            Value::String(redactor.redact(&template.to_string()).into_owned())
        }
        JsonTemplate::List(items) => items.iter().map(|item| written(item, redactor)).collect(),
        JsonTemplate::Map(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, item)| (key.clone(), written(item, redactor)))
                .collect(),
        ),
    }
}

/// The reverse of [`written`].
fn understood(body: &Value) -> Result<JsonTemplate, Unclosed> {
    Ok(match body {
        Value::String(text) => JsonTemplate::Text(Template::parse(text)?),
        Value::Array(items) => {
            JsonTemplate::List(items.iter().map(understood).collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, item)| Ok((key.clone(), understood(item)?)));
            JsonTemplate::Map(entries.collect::<Result<_, Unclosed>>()?)
        }
        plain => JsonTemplate::Plain(plain.clone()),
    })
}

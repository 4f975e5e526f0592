//! HTTP as every part of the tool speaks it: one kind of client, one way to send a request, one list of ways to fail.
//!
//! Decides what the wire sees: no proxy of the environment, no redirect followed, no request sent twice (but see [`Sending`]), no
//! compression, no host that the target file does not name. Knows neither agents nor schedules.

mod date;

use super::hosts::{Endpoint, HostError, Hosts};
use super::kept::{Kept, Sending};
use super::stream::tls_error;
use super::tls::{
    HttpTerms, Identity, Lacked, TrustError, explain, trouble, without_a_certificate,
};
use crate::event::{Outcome, TlsTrouble};
use crate::plan::target::{Method, Request};
use crate::plan::tls::HttpTls;
use nix::errno::Errno;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, Url};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An answer with a longer body breaks the protocol: nobody here needs it, and a run must not grow with it.
pub const LONGEST_BODY_BYTES: usize = 16 << 20;

/// A client for the hosts of one target. Copies share its connections.
#[derive(Clone)]
pub struct Http {
    client: Client,
    hosts: Arc<Hosts>,
    kept: Arc<Kept>,
    lacked: Lacked,
}

/// A client that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    #[error("can't set up an HTTP client: {0}")]
    Library(#[from] reqwest::Error),
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// A request that can't leave.
#[derive(Debug, thiserror::Error)]
pub enum CannotSend {
    #[error(transparent)]
    UnknownName(#[from] crate::plan::template::UnknownName),
    #[error("`{0}` is no http or https address")]
    BadAddress(String),
    #[error(
        "the value of the header {0} can't be sent: it holds a line break or a control character"
    )]
    BadHeader(String),
    #[error(transparent)]
    Host(#[from] HostError),
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status, or the class of what went wrong; never `Ok`, `Declined` or `Refused`, which are a matter of the reader.
    pub result: Result<u16, Outcome>,
    /// The whole body; empty where there is none.
    pub body: Vec<u8>,
    /// What `Retry-After` asks for, from now.
    pub retry_after: Option<Duration>,
    /// What exactly was wrong, where the class does not say it all.
    pub why: Option<Box<str>>,
}

impl Answer {
    /// No answer, for this reason.
    #[must_use]
    pub fn failed(outcome: Outcome) -> Answer {
        Answer {
            result: Err(outcome),
            body: Vec::new(),
            retry_after: None,
            why: None,
        }
    }

    /// No answer, because of this error.
    fn of_error(error: &reqwest::Error) -> Answer {
        let peer = error.url().and_then(|url| {
            let port = url.port_or_known_default()?;
            Some(Endpoint::new(url.host_str()?, port).to_string())
        });
        let why = explain_tls(error, peer.as_deref().unwrap_or("the server"));
        Answer {
            why: why.map(String::into_boxed_str),
            ..Answer::failed(outcome(error))
        }
    }

    /// What kept it from being an answer, in words; `outcome` is its class.
    #[must_use]
    pub fn in_words(&self, outcome: Outcome) -> String {
        match &self.why {
            Some(why) => why.to_string(),
            None => outcome.to_string(),
        }
    }
}

impl Http {
    /// A client that contacts only `hosts` and keeps up to `idle_connections` open for reuse. `connect_timeout` bounds name
    /// look-up, TCP and TLS; the time for a whole request is given with each one.
    ///
    /// # Errors
    /// If the client can't be set up, or some host speaks TLS and the target's authorities can't be had.
    pub fn new(
        hosts: Arc<Hosts>,
        idle_connections: usize,
        connect_timeout: Duration,
    ) -> Result<Http, NoClient> {
        Http::open(hosts, idle_connections, connect_timeout, None)
    }

    /// The same with TLS as `tls` says and this certificate, whatever the target says of all requests.
    ///
    /// # Errors
    /// As [`Http::new`].
    pub fn showing(
        hosts: Arc<Hosts>,
        idle_connections: usize,
        connect_timeout: Duration,
        tls: &HttpTls,
        identity: Option<&Identity>,
    ) -> Result<Http, NoClient> {
        let own = Some((tls, identity));
        Http::open(hosts, idle_connections, connect_timeout, own)
    }

    fn open(
        hosts: Arc<Hosts>,
        idle_connections: usize,
        connect_timeout: Duration,
        own: Option<(&HttpTls, Option<&Identity>)>,
    ) -> Result<Http, NoClient> {
        let HttpTerms { config, lacked } = hosts.tls_for_http(own)?;
        let resolver = Arc::new(OnlyTheTarget {
            hosts: Arc::clone(&hosts),
        });
        let client = Client::builder()
            .user_agent(concat!("rushhour/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            // Features of other crates in the build turn these on.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .http1_only()
            .tcp_nodelay(true)
            .connect_timeout(connect_timeout)
            .pool_max_idle_per_host(idle_connections)
            .dns_resolver(resolver)
            .tls_backend_preconfigured(config)
            .build()?;
        Ok(Http {
            client,
            hosts,
            kept: Arc::default(),
            lacked,
        })
    }

    /// The client, for code that sends the requests of [`Http::prepare`] itself.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The request with its placeholders replaced by what `value` knows; inside the address every value is percent-encoded.
    /// It gives up `timeout` after it was sent if the answer's last byte has not arrived by then.
    ///
    /// # Errors
    /// If a name is unknown, or the address or a header can't be sent, or the host is not one of the target.
    pub fn prepare(
        &self,
        request: &Request,
        value: &mut dyn FnMut(&str, &mut String) -> bool,
        timeout: Duration,
    ) -> Result<RequestBuilder, CannotSend> {
        let mut text = String::new();
        let mut plain = String::new();
        request.url.render_into(&mut text, |name, out| {
            plain.clear();
            let known = value(name, &mut plain);
            percent_encode(&plain, out);
            known
        })?;
        let mut builder = self
            .client
            .request(method(request.method), self.address(&text)?)
            .timeout(timeout);
        for (name, template) in &request.headers {
            plain.clear();
            template.render_into(&mut plain, &mut *value)?;
            builder = builder.header(header_name(name)?, header_value(name, &plain)?);
        }
        if let Some(template) = &request.bearer {
            plain.clear();
            plain.push_str("Bearer ");
            template.render_into(&mut plain, &mut *value)?;
            builder = builder.header("authorization", header_value("authorization", &plain)?);
        }
        if let Some(json) = &request.json {
            let body = json.render(value)?.to_string();
            if !request
                .headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
            {
                builder = builder.header(CONTENT_TYPE, "application/json");
            }
            builder = builder.body(body);
        }
        Ok(builder)
    }

    /// Sends a request and reads its whole answer within `timeout`; what can't be prepared is not sent.
    pub fn perform(
        &self,
        request: &Request,
        value: &mut dyn FnMut(&str, &mut String) -> bool,
        timeout: Duration,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let prepared = self.prepare(request, value, timeout);
        let (http, method) = (self.clone(), request.method);
        async move {
            match prepared {
                Ok(builder) => http.exchange(builder, method, timeout).await,
                Err(_) => Answer::failed(Outcome::NotSent),
            }
        }
    }

    /// Gets one address as it stands within `timeout`.
    pub async fn get(&self, address: &str, timeout: Duration) -> Answer {
        match self.address(address) {
            Ok(address) => {
                let request = self.client.get(address);
                self.exchange(request, Method::Get, timeout).await
            }
            Err(_) => Answer::failed(Outcome::NotSent),
        }
    }

    /// Sends a prepared request and reads its whole answer within `timeout`.
    pub async fn exchange(
        &self,
        request: RequestBuilder,
        method: Method,
        timeout: Duration,
    ) -> Answer {
        let mut sending = Sending::new(request, method, timeout);
        while let Some(request) = sending.request() {
            if let Some(answer) = self.received(request.send().await, &sending).await {
                return answer;
            }
        }
        Answer::failed(Outcome::NotSent)
    }

    /// The answer to what was sent; `None` if the request is to be sent again, since the server has closed a connection that it
    /// had kept open.
    pub async fn received(
        &self,
        sent: Result<Response, reqwest::Error>,
        sending: &Sending,
    ) -> Option<Answer> {
        match &sent {
            Ok(response) => self.kept.answered(response),
            Err(error) => {
                let was_kept = self.kept.forget(error);
                if was_kept && outcome(error) == Outcome::Reset && sending.goes_on() {
                    return None;
                }
            }
        }
        Some(self.receive(sent).await)
    }

    /// Reads the whole body of what `sent` became.
    pub async fn receive(&self, sent: Result<Response, reqwest::Error>) -> Answer {
        let mut answer = receive(sent).await;
        if let (Err(outcome), true) = (answer.result, self.lacked.is_so()) {
            let (outcome, why) = without_a_certificate(outcome, answer.why.map(String::from));
            answer.result = Err(outcome);
            answer.why = why.map(String::into_boxed_str);
        }
        answer
    }

    /// The address, if it may be contacted. Hosts that are written as numbers never reach the resolver, so this is the check
    /// for them.
    fn address(&self, text: &str) -> Result<Url, CannotSend> {
        let bad = || CannotSend::BadAddress(text.to_owned());
        let address = Url::parse(text).map_err(|_| bad())?;
        let host = address.host_str().ok_or_else(bad)?;
        let port = address.port_or_known_default().ok_or_else(bad)?;
        self.hosts.permit(&Endpoint::new(host, port))?;
        Ok(address)
    }
}

async fn receive(sent: Result<Response, reqwest::Error>) -> Answer {
    let mut response = match sent {
        Ok(response) => response,
        Err(error) => return Answer::of_error(&error),
    };
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= LONGEST_BODY_BYTES => {
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => return Answer::failed(Outcome::Protocol),
            Ok(None) => {
                return Answer {
                    result: Ok(status),
                    body,
                    retry_after,
                    why: None,
                };
            }
            Err(error) => return Answer::of_error(&error),
        }
    }
}

/// RFC 9110 §10.2.3: whole seconds, or a date. A date is read against the answer's own `Date`, so that clocks that differ don't matter,
/// and against ours where there is none; one that has passed asks for no wait. Anything else asks for nothing.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = text(RETRY_AFTER)?.trim();
    if asked.bytes().all(|byte| byte.is_ascii_digit()) {
        return asked.parse().ok().map(Duration::from_secs);
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let from = text(DATE)
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(SystemTime::now);
    Some(until.duration_since(from).unwrap_or_default())
}

/// The class of an error, by what lies at its bottom.
#[must_use]
pub fn outcome(error: &reqwest::Error) -> Outcome {
    let cause = Cause::of(error);
    if cause.is_shortage || error.is_builder() {
        return Outcome::NotSent;
    }
    if error.is_timeout() {
        return Outcome::TimedOut;
    }
    if let Some(trouble) = cause.tls {
        return Outcome::Tls(trouble);
    }
    if cause.is_closed {
        return Outcome::Reset;
    }
    if error.is_connect() && !cause.is_malformed {
        return Outcome::Unreachable;
    }
    Outcome::Protocol
}

/// What exactly was wrong with TLS; `None` if that was not the matter. `peer` is whom the text speaks of.
fn explain_tls(error: &reqwest::Error, peer: &str) -> Option<String> {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(here) = source {
        if let Some(text) = here
            .downcast_ref::<io::Error>()
            .and_then(|io| explain(io, peer))
        {
            return Some(text);
        }
        source = here.source();
    }
    None
}

/// What the chain of an error's sources says.
#[derive(Default)]
struct Cause {
    /// This machine has no socket, port or buffer left.
    is_shortage: bool,
    /// The peer closed or reset the connection.
    is_closed: bool,
    /// Something arrived that is no HTTP or TLS.
    is_malformed: bool,
    /// TLS did not come about.
    tls: Option<TlsTrouble>,
}

impl Cause {
    fn of(error: &reqwest::Error) -> Cause {
        let mut cause = Cause::default();
        let mut source: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(here) = source {
            if let Some(io) = here.downcast_ref::<io::Error>() {
                cause.is_shortage |= io.raw_os_error().is_some_and(is_shortage);
                cause.is_closed |= matches!(
                    io.kind(),
                    io::ErrorKind::ConnectionReset
                        | io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::BrokenPipe
                        | io::ErrorKind::UnexpectedEof
                );
                cause.is_malformed |= io.kind() == io::ErrorKind::InvalidData;
                cause.tls = cause.tls.or(tls_error(io).and_then(trouble));
            }
            if let Some(http) = here.downcast_ref::<hyper::Error>() {
                cause.is_malformed |= http.is_parse();
                // Closed before the answer, or found closed when the request was handed to it.
                cause.is_closed |=
                    http.is_incomplete_message() || http.is_canceled() || http.is_closed();
            }
            source = here.source();
        }
        cause
    }
}

fn is_shortage(code: i32) -> bool {
    matches!(
        Errno::from_raw(code),
        Errno::EMFILE | Errno::ENFILE | Errno::EADDRNOTAVAIL | Errno::ENOBUFS | Errno::ENOMEM
    )
}

/// Resolves names of the target file and nothing else.
struct OnlyTheTarget {
    hosts: Arc<Hosts>,
}

impl Resolve for OnlyTheTarget {
    fn resolve(&self, name: Name) -> Resolving {
        let hosts = Arc::clone(&self.hosts);
        Box::pin(async move {
            let addresses = hosts.addresses(name.as_str()).await?;
            // The port of the address wins over this one.
            let addresses: Vec<SocketAddr> = addresses
                .iter()
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}

fn header_name(name: &str) -> Result<HeaderName, CannotSend> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| CannotSend::BadHeader(name.to_owned()))
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, CannotSend> {
    HeaderValue::from_str(value).map_err(|_| CannotSend::BadHeader(name.to_owned()))
}

/// Appends `text` with everything but the unreserved characters of RFC 3986 §2.3 percent-encoded, so that a value stays one
/// segment of a path or one value of a query.
pub fn percent_encode(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

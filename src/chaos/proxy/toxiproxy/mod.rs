//! Toxiproxy's HTTP API over the same links, so that its clients and test suites work unchanged.
//!
//! Decides what a request means and how it is answered, to the byte where a client can see it. It waits for no connection: what
//! it asks of a link is done at once, whatever the peers do.

mod answer;
mod decode;
mod proxies;
mod shown;
mod toxics;

use answer::{Failure, Reply};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use proxies::Proxies;
use std::sync::Arc;

pub(super) use proxies::Settings;

/// Browsers are turned away, as Toxiproxy does: a page must not be able to break links.
const BROWSER: &str = "Mozilla/";
const REQUEST_ID: &str = "X-Toxiproxy-Request-Id";

/// The API's requests.
pub(super) fn router(settings: Settings) -> Router {
    Router::new()
        .fallback(handle)
        .with_state(Arc::new(Proxies::new(settings)))
}

/// What a path names.
enum Route {
    Reset,
    All,
    Populate,
    Version,
    Metrics,
    Proxy(String),
    Toxics(String),
    Toxic(String, String),
}

impl Route {
    fn of(path: &str, proxies: &Proxies) -> Option<Route> {
        let segments: Vec<String> = path.strip_prefix('/')?.split('/').map(decoded).collect();
        let names: Vec<&str> = segments.iter().map(String::as_str).collect();
        if names.iter().any(|name| name.is_empty()) {
            return None;
        }
        Some(match names[..] {
            ["reset"] => Route::Reset,
            ["proxies"] => Route::All,
            ["populate"] => Route::Populate,
            ["version"] => Route::Version,
            ["metrics"] if proxies.has_metrics() => Route::Metrics,
            ["proxies", proxy] => Route::Proxy(proxy.to_owned()),
            ["proxies", proxy, "toxics"] => Route::Toxics(proxy.to_owned()),
            ["proxies", proxy, "toxics", toxic] => Route::Toxic(proxy.to_owned(), toxic.to_owned()),
            _ => return None,
        })
    }

    fn takes(&self, method: &Method) -> bool {
        match self {
            Route::Reset | Route::Populate => method == Method::POST,
            Route::All | Route::Toxics(_) => matches!(*method, Method::GET | Method::POST),
            Route::Version => method == Method::GET,
            Route::Metrics => true,
            Route::Proxy(_) | Route::Toxic(..) => matches!(
                *method,
                Method::GET | Method::POST | Method::PATCH | Method::DELETE
            ),
        }
    }
}

async fn handle(
    State(proxies): State<Arc<Proxies>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(route) = Route::of(uri.path(), &proxies) else {
        return answer::plain(StatusCode::NOT_FOUND, "404 page not found\n");
    };
    if !route.takes(&method) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let browser = headers
        .get(header::USER_AGENT)
        .is_some_and(|agent| agent.as_bytes().starts_with(BROWSER.as_bytes()));
    let mut response = if browser {
        answer::plain(StatusCode::FORBIDDEN, "User agent not allowed\n")
    } else if !proxies.lets_in(&headers) {
        answer::plain(
            StatusCode::UNAUTHORIZED,
            "the token of this proxy is needed\n",
        )
    } else {
        match perform(&proxies, route, &method, &body).await {
            Ok(reply) => reply.into_response(),
            Err(failure) => failure.into_response(),
        }
    };
    if let Ok(id) = HeaderValue::from_str(&request_id()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

async fn perform(
    proxies: &Proxies,
    route: Route,
    method: &Method,
    body: &[u8],
) -> Result<Reply, Failure> {
    let reads = *method == Method::GET;
    let deletes = *method == Method::DELETE;
    match route {
        Route::Reset => proxies.reset().await,
        Route::All if reads => Ok(proxies.all()),
        Route::All => proxies.create(body).await,
        Route::Populate => proxies.populate(body).await,
        Route::Version => Ok(Reply::version()),
        Route::Metrics => Ok(proxies.metrics()),
        Route::Proxy(name) if reads => proxies.show(&name),
        Route::Proxy(name) if deletes => proxies.delete(&name).await,
        Route::Proxy(name) => proxies.update(&name, body).await,
        Route::Toxics(name) if reads => proxies.toxics(&name),
        Route::Toxics(name) => proxies.add_toxic(&name, body),
        Route::Toxic(name, toxic) if reads => proxies.show_toxic(&name, &toxic),
        Route::Toxic(name, toxic) if deletes => proxies.delete_toxic(&name, &toxic),
        Route::Toxic(name, toxic) => proxies.update_toxic(&name, &toxic, body),
    }
}

/// Percent-decoded; what is no valid escape stays as it is.
fn decoded(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = segment
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Twenty characters, as the ids of Toxiproxy have: 12 random bytes in the digits of base 32.
fn request_id() -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let mut random = [0_u8; 16];
    // An id only helps to find a request in a log: without randomness it is a plain one.
    let _ = getrandom::fill(&mut random[4..]);
    let bits = u128::from_be_bytes(random);
    (0..20)
        .rev()
        .map(|place| char::from(DIGITS[(bits >> (5 * place)) as usize % 32]))
        .collect()
}

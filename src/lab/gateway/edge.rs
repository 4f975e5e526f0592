//! The gateway's edge: what riders and docks ask is passed on to the station service over HTTP, and tried again if that fails.
//!
//! A layer of its own with retries of its own: what a rider's app tries again is multiplied here, and once more in the service.

use super::Gateway;
use super::api::{Problem, detached};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Idle connections to the service that are kept.
const IDLE: usize = 512;
/// What the service is told of a request besides its body.
const PASSED_ON: [&str; 4] = ["idempotency-key", "content-type", "authorization", "rider"];

/// Where the service is, and how it is asked.
pub struct Edge {
    client: reqwest::Client,
    service: SocketAddr,
    attempts: u64,
    timeout: Duration,
}

impl Edge {
    /// The edge in front of the service at `service`.
    ///
    /// # Errors
    /// If there is no HTTP client to be had.
    pub fn new(
        service: SocketAddr,
        attempts: u64,
        timeout_ms: u64,
    ) -> Result<Edge, reqwest::Error> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(IDLE)
            .build()?;
        Ok(Edge {
            client,
            service,
            attempts,
            timeout: Duration::from_millis(timeout_ms),
        })
    }
}

/// Everything that the station service answers.
pub fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/v1/login", any(pass_on))
        .route("/v1/bikes/{*rest}", any(pass_on))
        .route("/v1/trips/{*rest}", any(pass_on))
        .route("/v1/stations/{*rest}", any(pass_on))
        .route("/v1/returns/{*rest}", any(pass_on))
}

/// One request as the service gets it, on every attempt the same.
struct Asked {
    method: Method,
    address: String,
    headers: HeaderMap,
    body: Bytes,
}

/// What the service said.
struct Answer {
    status: StatusCode,
    kind: Option<HeaderValue>,
    body: Bytes,
}

async fn pass_on(
    State(gateway): State<Arc<Gateway>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    gateway.layers.request();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let asked = Asked {
        address: format!("http://{}{path}", gateway.edge.service),
        headers: PASSED_ON
            .iter()
            .filter_map(|name| Some((name.parse().ok()?, headers.get(*name)?.clone())))
            .collect(),
        method,
        body,
    };
    let answer = detached(async move { gateway.ask_service(&asked).await }).await??;
    let mut response = Response::builder().status(answer.status);
    if let Some(kind) = answer.kind {
        response = response.header(header::CONTENT_TYPE, kind);
    }
    Ok(response
        .body(Body::from(answer.body))
        .unwrap_or_else(|_| StatusCode::BAD_GATEWAY.into_response()))
}

impl Gateway {
    /// Asks until the service answers with something else than a failure of its own, as often as the settings allow.
    async fn ask_service(&self, asked: &Asked) -> Result<Answer, Problem> {
        let mut last = Err(Problem::upstream("the station service was never asked"));
        for _ in 0..self.edge.attempts {
            self.layers.call();
            last = self.ask_once(asked).await;
            if last
                .as_ref()
                .is_ok_and(|answer| !answer.status.is_server_error())
            {
                break;
            }
        }
        last
    }

    async fn ask_once(&self, asked: &Asked) -> Result<Answer, Problem> {
        let edge = &self.edge;
        let failed = |error: reqwest::Error| {
            if error.is_timeout() {
                Problem::late(format!(
                    "the station service gave no answer within {} ms",
                    edge.timeout.as_millis()
                ))
            } else {
                Problem::upstream(format!("the station service can't be asked: {error}"))
            }
        };
        let response = edge
            .client
            .request(asked.method.clone(), &asked.address)
            .headers(asked.headers.clone())
            .body(asked.body.clone())
            .timeout(edge.timeout)
            .send()
            .await
            .map_err(failed)?;
        Ok(Answer {
            status: response.status(),
            kind: response.headers().get(header::CONTENT_TYPE).cloned(),
            body: response.bytes().await.map_err(failed)?,
        })
    }
}

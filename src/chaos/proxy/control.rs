//! The control port: our own requests, each with the token. None of them waits for a connection of a link.

use super::chain::Toxic;
use super::link::{Link, Unreached};
use super::links::Links;
use super::wire::{
    CanaryOrder, CanaryReading, Carried, CutAnswer, CutConnections, LinkAddress, LinkState, PREFIX,
    Removed, SetFault,
};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A canary that takes longer than any sensible fault makes it has failed.
const LONGEST_CANARY_MS: u64 = 60_000;

/// What the control port acts on.
pub(super) struct Control {
    pub(super) links: Arc<Links>,
    pub(super) echo: SocketAddr,
    /// Must be shown with every request; `None` where only this machine reaches it and nobody asked for one.
    pub(super) token: Option<String>,
    pub(super) stop: Arc<Notify>,
    /// Whether whoever asks may end the proxy.
    pub(super) is_own: bool,
}

type Refusal = (StatusCode, String);

/// The requests.
pub(super) fn router(control: Arc<Control>) -> Router {
    let ours = Router::new()
        .route("/links", get(list).post(carry))
        .route("/metrics", get(metrics))
        .route("/links/{link}/faults", put(set_fault))
        .route("/links/{link}/cut", post(cut))
        .route("/links/{link}/canary", post(canary))
        .route("/faults/{id}", delete(remove))
        .route("/stop", post(stop))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&control),
            authorise,
        ))
        .with_state(control);
    Router::new().nest(PREFIX, ours)
}

async fn authorise(State(control): State<Arc<Control>>, request: Request, next: Next) -> Response {
    if control.lets_in(request.headers()) {
        return next.run(request).await;
    }
    let why = if control.is_own {
        "the token of this proxy is in its registration file\n"
    } else {
        "the token of this proxy is needed\n"
    };
    (StatusCode::UNAUTHORIZED, why).into_response()
}

async fn list(State(control): State<Arc<Control>>) -> Json<Vec<LinkState>> {
    Json(
        control
            .links
            .all()
            .iter()
            .map(|link| link.state())
            .collect(),
    )
}

async fn metrics(State(control): State<Arc<Control>>) -> String {
    super::metrics::text(&control.links)
}

/// Has a link carried that is not yet.
async fn carry(
    State(control): State<Arc<Control>>,
    Json(wanted): Json<LinkAddress>,
) -> Result<Json<Carried>, Refusal> {
    if let Some(link) = control.links.find(&wanted.name) {
        let addresses = link.addresses();
        if addresses.contains(&wanted) && link.is_on() {
            return Ok(Json(Carried { already: true }));
        }
        let LinkAddress { name, listen, to } = link.address();
        let why = format!("link `{name}` is carried already, from {listen} to {to}");
        return Err((StatusCode::CONFLICT, why));
    }
    let link = Link::new(&wanted.name.clone(), vec![wanted.clone()], Unreached::Reset);
    if let Err(error) = link.start().await {
        let why = format!("can't listen on {}: {error}", wanted.listen);
        return Err((StatusCode::CONFLICT, why));
    }
    control.links.insert(link);
    Ok(Json(Carried { already: false }))
}

async fn set_fault(
    State(control): State<Arc<Control>>,
    Path(link): Path<String>,
    Json(order): Json<SetFault>,
) -> Result<StatusCode, Refusal> {
    let lasts = order.for_ms.map(Duration::from_millis);
    control.link(&link)?.set(Toxic {
        id: order.id,
        ways: order.way.into(),
        toxicity: order.toxicity,
        kind: order.kind,
        until: lasts.map(|lasts| Instant::now() + lasts),
        seed: order.seed,
        connections: order.connections,
        born: 0,
        tally: Arc::default(),
    });
    Ok(StatusCode::NO_CONTENT)
}

async fn cut(
    State(control): State<Arc<Control>>,
    Path(link): Path<String>,
    Json(order): Json<CutConnections>,
) -> Result<Json<CutAnswer>, Refusal> {
    let within = Duration::from_millis(order.within_ms);
    let link = control.link(&link)?;
    let (chosen, of) = link.cut(&order.id, order.share, within, order.by, order.seed);
    Ok(Json(CutAnswer { chosen, of }))
}

async fn canary(
    State(control): State<Arc<Control>>,
    Path(link): Path<String>,
    Json(order): Json<CanaryOrder>,
) -> Result<Json<CanaryReading>, Refusal> {
    let order = CanaryOrder {
        limit_ms: order.limit_ms.min(LONGEST_CANARY_MS),
        ..order
    };
    match control.link(&link)?.canary(control.echo, &order).await {
        Ok(reading) => Ok(Json(reading)),
        Err(error) => Err((StatusCode::BAD_GATEWAY, error.to_string())),
    }
}

async fn remove(State(control): State<Arc<Control>>, Path(id): Path<String>) -> Json<Removed> {
    let links = control.links.all();
    let removed = links.iter().filter(|link| link.remove(&id)).count();
    Json(Removed {
        removed: removed > 0,
    })
}

async fn stop(State(control): State<Arc<Control>>) -> StatusCode {
    if !control.is_own {
        return StatusCode::FORBIDDEN;
    }
    control.stop.notify_one();
    StatusCode::NO_CONTENT
}

impl Control {
    fn lets_in(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(token) = &self.token else {
            // A page that somebody looks at must not be able to break links.
            let agent = text(header::USER_AGENT);
            return agent.is_none_or(|agent| !agent.starts_with("Mozilla/"));
        };
        let shown = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        shown == Some(token.as_str())
    }

    fn link(&self, name: &str) -> Result<Arc<Link>, Refusal> {
        self.links.find(name).ok_or_else(|| {
            (
                StatusCode::NOT_FOUND,
                format!("no link is named `{name}` here"),
            )
        })
    }
}

//! The HTTP API: commands to hubs, and how problems are answered. What riders and docks ask is passed on at the edge; administration has
//! its own file.

use super::Gateway;
use super::commands::{NewCommand, Refusal};
use super::pool::DatabaseError;
use super::{admin, edge};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use axum::{Json, Router, routing};
use serde::Deserialize;
use serde_json::json;
use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

const LONGEST_BODY: usize = 64 * 1024;
const LONGEST_TTL_MS: u64 = 3_600_000;
const DEFAULT_TTL_MS: u64 = 30_000;

/// Commands that brought neither an id nor a key.
static UNNAMED: AtomicU64 = AtomicU64::new(1);

/// Serves the API for ever.
pub async fn serve(gateway: Arc<Gateway>, listener: TcpListener) -> io::Result<()> {
    let routes = Router::new()
        .route("/ready", routing::get(ready))
        .route("/v1/hubs/{serial}", routing::get(hub))
        .route("/v1/hubs/{serial}/shard", routing::get(shard_of_hub))
        .route("/v1/hubs/{serial}/commands", routing::post(command))
        .route("/v1/commands/{id}", routing::get(command_state))
        .merge(edge::routes())
        .merge(admin::routes())
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(gateway);
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, routes).await
}

/// An answer that is no success.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    text: String,
}

impl Problem {
    /// The request can't be followed as it is.
    pub fn bad(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::BAD_REQUEST,
            text: text.into(),
        }
    }

    /// What is asked for does not exist.
    pub fn unknown(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::NOT_FOUND,
            text: text.into(),
        }
    }

    /// Nobody knows who asks.
    pub fn unauthorized(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::UNAUTHORIZED,
            text: text.into(),
        }
    }

    /// Not now: what is asked for is left out on purpose.
    pub fn busy(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::TOO_MANY_REQUESTS,
            text: text.into(),
        }
    }

    /// Something that the gateway needs did not answer in time.
    pub fn late(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::GATEWAY_TIMEOUT,
            text: text.into(),
        }
    }

    /// Something that the gateway needs did not do its part.
    pub fn upstream(text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::BAD_GATEWAY,
            text: text.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.text }))).into_response()
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Problem {
        let status = match &error {
            DatabaseError::QueryTimeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            DatabaseError::Query { .. } => StatusCode::BAD_GATEWAY,
            DatabaseError::QueueFull { .. }
            | DatabaseError::AcquireTimeout { .. }
            | DatabaseError::Unreachable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem {
            status,
            text: error.to_string(),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        match refusal {
            Refusal::Database(error) => error.into(),
            Refusal::Full { .. } => Problem {
                status: StatusCode::SERVICE_UNAVAILABLE,
                text: refusal.to_string(),
            },
        }
    }
}

/// Does the work to its end even if the client goes away: what stands in a queue is not called back when somebody
/// gives up, which is what made the outages worse.
///
/// # Errors
/// If the work panicked.
pub async fn detached<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work).await.map_err(|error| Problem {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        text: format!("the gateway failed: {error}"),
    })
}

async fn ready(State(gateway): State<Arc<Gateway>>) -> Response {
    let linked = gateway.links.count();
    let database = gateway.database_ready.load(Ordering::Relaxed);
    let all = linked == usize::from(gateway.shards) && database;
    let status = if all {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let state =
        json!({ "ready": all, "database": database, "shards": linked, "of": gateway.shards });
    (status, Json(state)).into_response()
}

async fn hub(State(gateway): State<Arc<Gateway>>, Path(serial): Path<String>) -> Response {
    let place = gateway
        .presence
        .place(&serial)
        .filter(|place| place.connected);
    let shard = place.map(|place| format!("shard-{}", place.shard));
    Json(json!({ "serial": serial, "online": place.is_some(), "shard": shard })).into_response()
}

/// Where a hub has to connect; also one that was never here.
async fn shard_of_hub(State(gateway): State<Arc<Gateway>>, Path(serial): Path<String>) -> Response {
    let is_on = gateway.presence.place(&serial).map(|place| place.shard);
    let (shard, generation) = gateway.map.shard_of(&serial, is_on);
    Json(json!({
        "serial": serial,
        "shard": format!("shard-{shard}"),
        "host": Ipv4Addr::LOCALHOST.to_string(),
        "port": gateway.map.port(shard),
        "address": gateway.map.address(shard),
        "generation": generation,
    }))
    .into_response()
}

#[derive(Deserialize)]
struct CommandBody {
    /// Chosen here if the client leaves it out.
    id: Option<String>,
    action: String,
    #[serde(default = "default_ttl_ms")]
    ttl_ms: u64,
}

fn default_ttl_ms() -> u64 {
    DEFAULT_TTL_MS
}

/// The id of a command that brings none: the same for the same key, another one without a key.
fn own_id(headers: &HeaderMap) -> String {
    let key = headers.get("idempotency-key");
    match key.and_then(|key| key.to_str().ok()) {
        Some(key) => format!("lab-{key}"),
        None => {
            let number = UNNAMED.fetch_add(1, Ordering::Relaxed);
            format!("lab-{}-{number}", std::process::id())
        }
    }
}

async fn command(
    State(gateway): State<Arc<Gateway>>,
    Path(serial): Path<String>,
    headers: HeaderMap,
    Json(body): Json<CommandBody>,
) -> Result<Response, Problem> {
    let id = body.id.unwrap_or_else(|| own_id(&headers));
    if id.is_empty() || id.len() > 200 {
        return Err(Problem::bad("`id` must have 1 to 200 characters"));
    }
    if serial.len() > 128 || serial.contains(['/', '+', '#']) {
        return Err(Problem::bad(
            "the serial number must have 1 to 128 characters, none of them `/`, `+` or `#`",
        ));
    }
    if body.ttl_ms == 0 || body.ttl_ms > LONGEST_TTL_MS {
        return Err(Problem::bad(format!(
            "`ttl_ms` must be from 1 to {LONGEST_TTL_MS}"
        )));
    }
    let command = NewCommand {
        id: id.clone(),
        serial,
        action: body.action,
        ttl: Duration::from_millis(body.ttl_ms),
    };
    detached(async move { gateway.accept(command).await }).await??;
    Ok((StatusCode::ACCEPTED, Json(json!({ "id": id }))).into_response())
}

async fn command_state(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let asked = id.clone();
    let state = detached(async move { gateway.command_state(&asked).await }).await??;
    let state = state.ok_or_else(|| Problem::unknown(format!("there is no command `{id}`")))?;
    Ok(Json(json!({ "id": id, "state": state })).into_response())
}

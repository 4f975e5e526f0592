//! What docks send: refreshes of their status, and returns, which are booked a little later.
//!
//! A return is known by its id: sent again it is answered as known and booked once. Booking ends the trip and frees the bike.

use super::Gateway;
use super::api::{Problem, detached};
use super::pool::{DatabaseError, Endpoint};
use super::store;
use crate::lab::defect::Defect;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

/// Returns that are booked at the same time.
const BOOKED_AT_ONCE: usize = 4;
/// After a booking that failed.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Returns that were taken and are not booked yet.
pub struct Returns {
    sender: mpsc::UnboundedSender<Taken>,
    queued: AtomicU64,
}

/// A return that waits for its booking.
pub struct Taken {
    id: String,
    trip: String,
    at: Instant,
}

impl Returns {
    /// An empty queue, and its end from which [`book_all`] takes.
    pub fn new() -> (Returns, mpsc::UnboundedReceiver<Taken>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let queued = AtomicU64::new(0);
        (Returns { sender, queued }, receiver)
    }

    /// How many wait.
    pub fn queued(&self) -> u64 {
        self.queued.load(Ordering::Relaxed)
    }

    fn take(&self, id: String, trip: String) {
        self.queued.fetch_add(1, Ordering::Relaxed);
        let at = Instant::now();
        // It is taken from for as long as the gateway runs.
        let _ = self.sender.send(Taken { id, trip, at });
    }
}

/// The docks' part of the service.
pub fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/v1/stations/{id}/status", routing::post(status))
        .route("/v1/stations/{id}/returns", routing::post(give_back))
        .route("/v1/returns/{id}", routing::get(returned))
}

async fn status(
    State(gateway): State<Arc<Gateway>>,
    Path(station): Path<String>,
) -> Result<Response, Problem> {
    if gateway.switches.is_on(Defect::ShedStatus) {
        return Err(Problem::busy("status refreshes are shed"));
    }
    detached(async move {
        let station = station.as_str();
        gateway
            .with_connection(Endpoint::Status, |mut lease| async move {
                store::refresh_station(&mut lease, station).await
            })
            .await
    })
    .await??;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[derive(Deserialize)]
struct ReturnBody {
    id: String,
    trip: String,
}

async fn give_back(
    State(gateway): State<Arc<Gateway>>,
    Path(station): Path<String>,
    Json(body): Json<ReturnBody>,
) -> Result<Response, Problem> {
    let ReturnBody { id, trip } = body;
    if id.is_empty() || id.len() > 200 {
        return Err(Problem::bad("`id` must have 1 to 200 characters"));
    }
    let asked = id.clone();
    let is_new = detached(async move {
        let row = (id.as_str(), trip.as_str(), station.as_str());
        let is_new = gateway
            .with_connection(Endpoint::Return, |mut lease| async move {
                store::insert_return(&mut lease, row).await
            })
            .await?;
        let again = gateway.switches.is_on(Defect::ReturnsWithoutIdempotency);
        if (is_new || again) && !gateway.switches.is_on(Defect::AcceptsAndForgets) {
            gateway.returns.take(id, trip);
        }
        Ok::<_, DatabaseError>(is_new || again)
    })
    .await??;
    let status = if is_new {
        StatusCode::ACCEPTED
    } else {
        StatusCode::CONFLICT
    };
    Ok((status, Json(json!({ "id": asked, "known": !is_new }))).into_response())
}

async fn returned(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let asked = id.clone();
    let found = detached(async move {
        let asked = asked.as_str();
        gateway
            .with_connection(Endpoint::Returned, |mut lease| async move {
                store::returned(&mut lease, asked).await
            })
            .await
    })
    .await??;
    let found = found.ok_or_else(|| Problem::unknown(format!("there is no return `{id}`")))?;
    let body =
        json!({ "id": id, "trip": found.trip, "state": found.state, "applied": found.applied });
    Ok(Json(body).into_response())
}

/// Books returns in the order in which they came, each after the delay of the settings, until it has worked.
pub async fn book_all(gateway: Arc<Gateway>, mut taken: mpsc::UnboundedReceiver<Taken>) {
    let places = Arc::new(Semaphore::new(BOOKED_AT_ONCE));
    let delay = Duration::from_millis(gateway.settings.return_delay_ms);
    while let Some(taken) = taken.recv().await {
        tokio::time::sleep_until(taken.at + delay).await;
        let place = Arc::clone(&places)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            while gateway.book(&taken).await.is_err() {
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            gateway.returns.queued.fetch_sub(1, Ordering::Relaxed);
            drop(place);
        });
    }
}

impl Gateway {
    async fn book(&self, taken: &Taken) -> Result<(), DatabaseError> {
        let mut lease = self.pool.acquire(Endpoint::Booking).await?;
        store::end_trip(&mut lease, &taken.trip).await?;
        self.trip_ended(&taken.trip);
        store::book_return(&mut lease, &taken.id).await
    }
}

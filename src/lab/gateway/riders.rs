//! What riders ask: bikes near them, a bike's lock opened, a trip, its end.
//!
//! Each request takes one connection of the pool, once, for all its queries.

use super::Gateway;
use super::api::{Problem, detached};
use super::pool::{DatabaseError, Endpoint};
use super::store::{self, Unlock};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use serde::Deserialize;
use serde_json::json;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Trips of unlock requests that brought no id of their own.
static UNNAMED: AtomicU64 = AtomicU64::new(1);

/// The riders' part of the API.
pub fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/v1/bikes/near", routing::get(near))
        .route("/v1/bikes/{id}/unlock", routing::post(unlock))
        .route("/v1/trips/{id}", routing::get(trip))
        .route("/v1/trips/{id}/end", routing::post(end))
}

#[derive(Deserialize)]
struct Near {
    #[serde(default)]
    rider: String,
}

async fn near(
    State(gateway): State<Arc<Gateway>>,
    Query(near): Query<Near>,
) -> Result<Response, Problem> {
    let bikes = detached(async move { gateway.near(&near.rider).await }).await??;
    let bikes: Vec<_> = bikes.into_iter().map(|id| json!({ "id": id })).collect();
    Ok(Json(json!({ "bikes": bikes })).into_response())
}

async fn unlock(
    State(gateway): State<Arc<Gateway>>,
    Path(bike): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let key = headers
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok());
    let trip = match key {
        Some(key) if key.is_empty() || key.len() > 200 => {
            return Err(Problem::bad(
                "Idempotency-Key must have 1 to 200 characters",
            ));
        }
        Some(key) => format!("trip-{key}"),
        None => format!(
            "trip-{}-unnamed-{}",
            std::process::id(),
            UNNAMED.fetch_add(1, Ordering::Relaxed)
        ),
    };
    let outcome = {
        let trip = trip.clone();
        detached(async move {
            let mut lease = gateway.pool.acquire(Endpoint::Unlock).await?;
            store::unlock(&mut lease, &trip, &bike).await
        })
        .await??
    };
    Ok(match outcome {
        Unlock::Started => (StatusCode::ACCEPTED, Json(json!({ "trip_id": trip }))).into_response(),
        Unlock::Taken => (
            StatusCode::CONFLICT,
            Json(json!({ "error": "this bike is taken" })),
        )
            .into_response(),
    })
}

async fn trip(
    State(gateway): State<Arc<Gateway>>,
    Path(trip): Path<String>,
) -> Result<Response, Problem> {
    let asked = trip.clone();
    let state = detached(async move {
        let mut lease = gateway.pool.acquire(Endpoint::Trip).await?;
        store::trip_state(&mut lease, &asked).await
    })
    .await??;
    let state = state.ok_or_else(|| Problem::unknown(format!("there is no trip `{trip}`")))?;
    Ok(Json(json!({ "trip_id": trip, "state": state })).into_response())
}

async fn end(
    State(gateway): State<Arc<Gateway>>,
    Path(trip): Path<String>,
) -> Result<Response, Problem> {
    let asked = trip.clone();
    let known = detached(async move {
        let mut lease = gateway.pool.acquire(Endpoint::End).await?;
        store::end_trip(&mut lease, &asked).await
    })
    .await??;
    if !known {
        return Err(Problem::unknown(format!("there is no trip `{trip}`")));
    }
    Ok(Json(json!({ "trip_id": trip, "state": "ended" })).into_response())
}

impl Gateway {
    /// Free bikes, from a place that differs from rider to rider and is the same for each.
    async fn near(&self, rider: &str) -> Result<Vec<String>, DatabaseError> {
        let mut hasher = DefaultHasher::new();
        rider.hash(&mut hasher);
        let from = format!("bike-{:06}", 1 + hasher.finish() % self.settings.bikes);
        let mut lease = self.pool.acquire(Endpoint::Near).await?;
        let bikes = store::free_bikes(&mut lease, &from).await?;
        // Behind the last bike comes the first.
        if bikes.is_empty() {
            store::free_bikes(&mut lease, "").await
        } else {
            Ok(bikes)
        }
    }
}

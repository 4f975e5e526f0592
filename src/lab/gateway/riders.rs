//! What riders ask: a token, bikes near them or at a station, a bike's lock opened, a trip, its end.
//!
//! Each request takes one connection of the pool, once, for all its queries, unless the defect of 2026-07-18 is on. Who brings a token is known by it, and refused if it is
//! wrong; who brings none may say who it is in a `Rider` header, as kiosks and key readers do.

use super::Gateway;
use super::api::{Problem, detached};
use super::counts::Count;
use super::pool::{DatabaseError, Endpoint, Lease};
use super::store::{self, Unlock};
use super::trips::Begun;
use crate::lab::defect::Defect;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use serde::Deserialize;
use serde_json::json;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Trips of unlock requests that brought no id of their own.
static UNNAMED: AtomicU64 = AtomicU64::new(1);
/// How often somebody asked for the bikes of a station.
static TURN: AtomicU64 = AtomicU64::new(0);

/// The riders' part of the station service.
pub fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/v1/login", routing::post(login))
        .route("/v1/stations/{station}", routing::get(station))
        .route("/v1/bikes/near", routing::get(near))
        .route("/v1/bikes/{id}/unlock", routing::post(unlock))
        .route("/v1/trips/{id}", routing::get(trip))
        .route("/v1/trips/{id}/end", routing::post(end))
}

#[derive(Deserialize)]
struct Login {
    email: String,
    password: String,
}

async fn login(
    State(gateway): State<Arc<Gateway>>,
    Json(login): Json<Login>,
) -> Result<Response, Problem> {
    let email = login.email.clone();
    let work = Arc::clone(&gateway);
    let password = detached(async move {
        let mut lease = work.pool.acquire(Endpoint::Login).await?;
        store::password(&mut lease, &email).await
    })
    .await??;
    if password.is_none_or(|password| password != login.password) {
        return Err(Problem::unauthorized(
            "no such account, or another password",
        ));
    }
    gateway.counts.add(Count::Logins);
    let token = gateway.tokens.issue(&login.email);
    Ok(Json(json!({ "access_token": token })).into_response())
}

/// Who asks, as far as the request says so.
fn rider(gateway: &Gateway, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(authorization) = text("authorization") else {
        return Ok(text("rider").map(str::to_owned));
    };
    let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
    match gateway.tokens.owner(token) {
        Some(email) => Ok(Some(email.to_owned())),
        None => Err(Problem::unauthorized("this gateway issued no such token")),
    }
}

async fn station(
    State(gateway): State<Arc<Gateway>>,
    Path(station): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    rider(&gateway, &headers)?;
    let number = station
        .strip_prefix("station-")
        .and_then(|text| text.parse::<u64>().ok());
    if !number.is_some_and(|number| (1..=gateway.settings.stations).contains(&number)) {
        return Err(Problem::unknown(format!("there is no station `{station}`")));
    }
    let asked = station.clone();
    let bikes = detached(async move { gateway.at_station(&asked).await }).await??;
    let bikes: Vec<_> = bikes.into_iter().map(|id| json!({ "id": id })).collect();
    Ok(Json(json!({ "station": station, "bikes": bikes })).into_response())
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
    let rider = rider(&gateway, &headers)?;
    let outcome = {
        let trip = trip.clone();
        detached(async move { gateway.unlock(&trip, &bike, rider.as_deref()).await }).await??
    };
    Ok(match outcome {
        Unlock::Opening | Unlock::Ended => {
            (StatusCode::ACCEPTED, Json(json!({ "trip_id": trip }))).into_response()
        }
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    rider(&gateway, &headers)?;
    let asked = trip.clone();
    let state = detached(async move {
        let asked = asked.as_str();
        gateway
            .with_connection(Endpoint::Trip, |mut lease| async move {
                store::trip_state(&mut lease, asked).await
            })
            .await
    })
    .await??;
    let state = state.ok_or_else(|| Problem::unknown(format!("there is no trip `{trip}`")))?;
    Ok(Json(json!({ "trip_id": trip, "state": state })).into_response())
}

async fn end(
    State(gateway): State<Arc<Gateway>>,
    Path(trip): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    rider(&gateway, &headers)?;
    let asked = trip.clone();
    let known = detached(async move {
        let trip = asked.as_str();
        let known = gateway
            .with_connection(Endpoint::End, |mut lease| async move {
                store::end_trip(&mut lease, trip).await
            })
            .await?;
        gateway.trip_ended(trip);
        Ok::<bool, DatabaseError>(known)
    })
    .await??;
    if !known {
        return Err(Problem::unknown(format!("there is no trip `{trip}`")));
    }
    Ok(Json(json!({ "trip_id": trip, "state": "ended" })).into_response())
}

impl Gateway {
    /// A trip is over: it is no longer under way.
    pub(super) fn trip_ended(&self, trip: &str) {
        if self.trips.end(trip) {
            self.counts.add(Count::TripsEnded);
        }
    }

    /// Gives the bike to the trip and notes who is on it.
    async fn unlock(
        &self,
        trip: &str,
        bike: &str,
        rider: Option<&str>,
    ) -> Result<Unlock, DatabaseError> {
        let opens_in = Duration::from_millis(self.settings.unlock_ms);
        let outcome = self
            .with_connection(Endpoint::Unlock, |mut lease| async move {
                let _held = self.check_candidates(&mut lease, bike).await?;
                store::unlock(&mut lease, trip, bike, opens_in).await
            })
            .await?;
        if outcome == Unlock::Opening {
            let begun = self.trips.begin(trip, rider);
            if begun != Begun::Known {
                self.counts.add(Count::TripsStarted);
            }
            if begun == Begun::Second {
                self.counts.add(Count::TripsDuplicated);
            }
        }
        Ok(outcome)
    }

    /// Free bikes of a station, from one on that differs from request to request, so that not everybody wants the same.
    async fn at_station(&self, station: &str) -> Result<Vec<String>, DatabaseError> {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        // A stride that is prime to any number of bikes below it goes round all of them.
        let from = format!(
            "bike-{:06}",
            1 + turn.wrapping_mul(7_919) % self.settings.bikes
        );
        let from = from.as_str();
        self.with_connection(Endpoint::Near, |mut lease| async move {
            let bikes = store::free_bikes_at(&mut lease, station, from).await?;
            // Behind the last bike comes the first.
            if bikes.is_empty() {
                store::free_bikes_at(&mut lease, station, "").await
            } else {
                Ok(bikes)
            }
        })
        .await
    }

    /// Free bikes, from a place that differs from rider to rider and is the same for each.
    async fn near(&self, rider: &str) -> Result<Vec<String>, DatabaseError> {
        let mut hasher = DefaultHasher::new();
        rider.hash(&mut hasher);
        let from = format!("bike-{:06}", 1 + hasher.finish() % self.settings.bikes);
        let from = from.as_str();
        self.with_connection(Endpoint::Near, |mut lease| async move {
            let bikes = store::free_bikes(&mut lease, from).await?;
            // Behind the last bike comes the first.
            if bikes.is_empty() {
                store::free_bikes(&mut lease, "").await
            } else {
                Ok(bikes)
            }
        })
        .await
    }

    /// The eligibility check of 2026-07-18: a query for every candidate bike, each over a connection of its own, while the request holds
    /// the one that it has. They are given back when the unlock is done. Without the defect the statement that takes the bike sees
    /// to it.
    async fn check_candidates(
        &self,
        lease: &mut Lease,
        bike: &str,
    ) -> Result<Vec<Lease>, DatabaseError> {
        let mut held = Vec::new();
        if self.switches.is_on(Defect::ConnectionPerCandidate) {
            let candidates = usize::try_from(self.settings.candidates).unwrap_or(usize::MAX);
            let free = store::free_bikes(lease, bike).await?;
            for candidate in free.into_iter().take(candidates) {
                let mut own = self.pool.acquire(Endpoint::Candidate).await?;
                store::is_rideable(&mut own, &candidate).await?;
                held.push(own);
            }
        }
        Ok(held)
    }
}

//! Administration: operations, defects, and everything that was counted.

use super::Gateway;
use super::api::Problem;
use super::rebalance::Options;
use super::statistics;
use crate::lab::defect::Defect;
use crate::lab::lifeline;
use crate::lab::messages::ChildSays;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Sessions that one answer lists at most.
const MOST_SESSIONS_A_PAGE: usize = 1000;
/// For a shard to stand again after it was asked for.
const RESTART_LIMIT: Duration = Duration::from_secs(10);

/// The administration's part of the API.
pub fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/admin/operations/{name}", routing::post(operate))
        .route("/admin/defects/{name}", routing::post(switch))
        .route("/admin/stats", routing::get(stats))
        .route("/admin/sessions", routing::get(sessions))
}

async fn operate(
    State(gateway): State<Arc<Gateway>>,
    Path(name): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    body: Bytes,
) -> Result<Response, Problem> {
    let options = Options::of(query, &body)?;
    let shard = name
        .strip_prefix("restart-shard-")
        .and_then(|number| number.parse::<u16>().ok());
    let mut done = match (name.as_str(), shard) {
        ("refresh-certificates", _) => {
            options.only(&[])?;
            json!({ "connections": gateway.refresh_certificates().await })
        }
        ("rebalance", _) => gateway.rebalance(&options).await?,
        ("undo-rebalance", _) => gateway.undo_rebalance(&options).await?,
        (_, Some(shard)) if (1..=gateway.shards).contains(&shard) => {
            options.only(&[])?;
            gateway.restart(shard).await?;
            json!({ "shard": format!("shard-{shard}") })
        }
        _ => {
            let last = gateway.shards;
            return Err(Problem::unknown(format!(
                "there is no operation `{name}`; known are `refresh-certificates`, `rebalance`, `undo-rebalance`, \
                 `restart-shard-1` to `restart-shard-{last}`"
            )));
        }
    };
    done["operation"] = json!(name);
    Ok(Json(done).into_response())
}

#[derive(Deserialize)]
struct Switch {
    on: bool,
}

async fn switch(
    State(gateway): State<Arc<Gateway>>,
    Path(name): Path<String>,
    Json(switch): Json<Switch>,
) -> Result<Response, Problem> {
    let defect: Defect = name
        .parse()
        .map_err(|unknown: crate::lab::defect::UnknownDefect| {
            Problem::unknown(unknown.to_string())
        })?;
    gateway.switches.set(defect, switch.on);
    let bounded = gateway.switches.is_on(Defect::BoundedPoolQueue);
    gateway.pool.bound(bounded);
    gateway.status_pool.bound(bounded);
    gateway.announce_expiry().await;
    Ok(Json(json!({ "defect": defect.name(), "on": switch.on })).into_response())
}

/// Which live sessions are asked for.
#[derive(Deserialize)]
struct SessionsQuery {
    #[serde(default)]
    after: String,
    limit: Option<usize>,
    shard: Option<String>,
}

async fn sessions(
    State(gateway): State<Arc<Gateway>>,
    Query(query): Query<SessionsQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.unwrap_or(MOST_SESSIONS_A_PAGE);
    if limit == 0 || limit > MOST_SESSIONS_A_PAGE {
        return Err(Problem::bad(format!(
            "`limit` must be from 1 to {MOST_SESSIONS_A_PAGE}"
        )));
    }
    let shard = query.shard.map(|name| {
        name.strip_prefix("shard-")
            .and_then(|number| number.parse::<u16>().ok())
            .filter(|number| (1..=gateway.shards).contains(number))
            .ok_or_else(|| Problem::bad(format!("there is no shard `{name}`")))
    });
    let page = gateway
        .presence
        .page(&query.after, limit, shard.transpose()?);
    let next = (page.len() == limit)
        .then(|| page.last().map(|(serial, _)| serial.clone()))
        .flatten();
    let sessions: Vec<_> = page
        .into_iter()
        .map(|(serial, session)| {
            json!({
                "serial": serial,
                "shard": format!("shard-{}", session.place.shard),
                "listens": session.place.listens,
                "protocol": session.client.protocol,
                "tls": session.client.tls,
                "resumed": session.client.resumed,
                "certificate": session.client.certificate,
            })
        })
        .collect();
    Ok(Json(json!({ "sessions": sessions, "next": next })).into_response())
}

async fn stats(State(gateway): State<Arc<Gateway>>) -> Response {
    Json(statistics::all(&gateway)).into_response()
}

impl Gateway {
    /// Has the shard started anew, dead or alive, and waits until it is linked again.
    async fn restart(&self, shard: u16) -> Result<(), Problem> {
        let (tell, told) = oneshot::channel();
        self.restarts
            .lock()
            .expect("nobody panics while holding it")
            .entry(shard)
            .or_default()
            .push(tell);
        lifeline::say(&ChildSays::Restart { shard });
        let started = Instant::now();
        let late = || {
            Problem::upstream(format!(
                "shard-{shard} did not stand again within {} s",
                RESTART_LIMIT.as_secs()
            ))
        };
        match tokio::time::timeout(RESTART_LIMIT, told).await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(why))) => {
                return Err(Problem::upstream(format!(
                    "shard-{shard} did not start: {why}"
                )));
            }
            Ok(Err(_)) | Err(_) => return Err(late()),
        }
        while !self.links.has(shard) {
            if started.elapsed() > RESTART_LIMIT {
                return Err(late());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}

//! Administration: operations, defects, and everything that was counted.

use super::Gateway;
use super::api::Problem;
use super::statistics;
use crate::lab::defect::Defect;
use crate::lab::lifeline;
use crate::lab::messages::{ChildSays, ToShard};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// For a shard to stand again after it was asked for.
const RESTART_LIMIT: Duration = Duration::from_secs(10);

/// The administration's part of the API.
pub fn routes() -> Router<Arc<Gateway>> {
    Router::new()
        .route("/admin/operations/{name}", routing::post(operate))
        .route("/admin/defects/{name}", routing::post(switch))
        .route("/admin/stats", routing::get(stats))
}

async fn operate(
    State(gateway): State<Arc<Gateway>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let shard = name
        .strip_prefix("restart-shard-")
        .and_then(|number| number.parse::<u16>().ok());
    let done = match (name.as_str(), shard) {
        ("refresh-certificates", _) => {
            json!({ "operation": name, "connections": gateway.refresh_certificates().await })
        }
        ("rebalance", _) => json!({ "operation": name, "closed": gateway.rebalance() }),
        (_, Some(shard)) if (1..=gateway.shards).contains(&shard) => {
            gateway.restart(shard).await?;
            json!({ "operation": name, "shard": format!("shard-{shard}") })
        }
        _ => {
            let last = gateway.shards;
            return Err(Problem::unknown(format!(
                "there is no operation `{name}`; known are `refresh-certificates`, `rebalance`, `restart-shard-1` to \
                 `restart-shard-{last}`"
            )));
        }
    };
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
    gateway.announce_expiry().await;
    Ok(Json(json!({ "defect": defect.name(), "on": switch.on })).into_response())
}

async fn stats(State(gateway): State<Arc<Gateway>>) -> Response {
    Json(statistics::all(&gateway)).into_response()
}

impl Gateway {
    /// Closes, on every shard that has more than its share, so many sessions as are too many. Gives their number.
    fn rebalance(&self) -> u64 {
        let sessions = self.presence.sessions();
        let share = sessions
            .values()
            .sum::<u64>()
            .div_ceil(u64::from(self.shards));
        let mut closed = 0;
        for (shard, count) in sessions {
            let surplus = count.saturating_sub(share);
            if surplus > 0
                && self
                    .links
                    .try_tell(shard, ToShard::Shed { sessions: surplus })
            {
                closed += surplus;
            }
        }
        closed
    }

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

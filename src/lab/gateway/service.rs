//! The station service: an HTTP server of its own behind the gateway's edge, with its attempts at the database.
//!
//! Each request takes one connection of a pool, once, for all its queries, and tries again as often as the settings allow.

use super::Gateway;
use super::pool::{DatabaseError, Endpoint, Lease, Pool};
use super::{riders, stations};
use crate::lab::defect::Defect;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;

const LONGEST_BODY: usize = 64 * 1024;

/// Serves riders and docks for ever.
pub async fn serve(gateway: Arc<Gateway>, listener: TcpListener) -> io::Result<()> {
    let routes = Router::new()
        .merge(riders::routes())
        .merge(stations::routes())
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(gateway);
    axum::serve(listener, routes).await
}

impl Gateway {
    /// The pool that the endpoint takes its connections from: refreshes of status have one of their own, so that they never keep an
    /// unlock waiting, unless it is shared (2026-07-18).
    pub(super) fn pool_of(&self, endpoint: Endpoint) -> &Arc<Pool> {
        if endpoint == Endpoint::Status && !self.switches.is_on(Defect::SharedPool) {
            &self.status_pool
        } else {
            &self.pool
        }
    }

    /// Does `work` on one connection; a failure is tried again.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub(super) async fn with_connection<T, W, F>(
        &self,
        endpoint: Endpoint,
        work: W,
    ) -> Result<T, DatabaseError>
    where
        W: Fn(Lease) -> F,
        F: Future<Output = Result<T, DatabaseError>>,
    {
        let mut made = 0;
        loop {
            made += 1;
            self.layers.attempt();
            let done = match self.connection(endpoint).await {
                Ok(lease) => work(lease).await,
                Err(problem) => Err(problem),
            };
            if done.is_ok() || made >= self.settings.service_attempts {
                return done;
            }
        }
    }

    async fn connection(&self, endpoint: Endpoint) -> Result<Lease, DatabaseError> {
        if self.switches.is_on(Defect::StationQueriesFail) {
            return Err(DatabaseError::Query {
                place: "the station service".to_owned(),
                reason: "it was switched to fail every request".to_owned(),
            });
        }
        self.pool_of(endpoint).acquire(endpoint).await
    }
}

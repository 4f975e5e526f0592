//! May a hub be connected? Asked at every CONNECT, and of every live connection when certificates are refreshed.

use super::Gateway;
use super::counts::Count;
use super::pool::{DatabaseError, Endpoint};
use super::store;
use crate::lab::defect::Defect;
use crate::lab::messages::{Check, Elsewhere, ToShard};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

impl Gateway {
    /// Answers a shard's check, with the way to its own shard for a hub that comes to another: from the cache, or, with the defect of 2026-07-24, from the database by way of the
    /// pool that commands use.
    pub(super) async fn check(
        self: &Arc<Self>,
        request: u64,
        serial: String,
        comes_to: Option<u16>,
        answers: &mpsc::Sender<ToShard>,
    ) {
        let elsewhere = comes_to
            .and_then(|shard| self.map.elsewhere(&serial, shard))
            .map(|(code, shard)| Elsewhere {
                code,
                reference: self.map.address(shard),
            });
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        if !self.switches.is_on(Defect::AuthFromDatabase) {
            self.counts.add(Count::ChecksFromCache);
            let revoked = self
                .revoked
                .read()
                .expect("nobody panics while holding it")
                .contains(&serial);
            let answer = if revoked {
                Check::Revoked
            } else {
                Check::Allowed
            };
            let _ = answers
                .send(ToShard::Checked {
                    request,
                    answer,
                    generation,
                    elsewhere,
                })
                .await;
            return;
        }
        let (gateway, answers) = (Arc::clone(self), answers.clone());
        // As many may run as the pool's queue allows; it refuses the rest at once.
        tokio::spawn(async move {
            gateway.counts.add(Count::ChecksFromDatabase);
            let answer = match gateway.is_revoked(&serial).await {
                Ok(true) => Check::Revoked,
                Ok(false) => Check::Allowed,
                Err(_) => {
                    gateway.counts.add(Count::ChecksUnanswered);
                    Check::Unknown
                }
            };
            let _ = answers
                .send(ToShard::Checked {
                    request,
                    answer,
                    generation,
                    elsewhere,
                })
                .await;
        });
    }

    async fn is_revoked(&self, serial: &str) -> Result<bool, DatabaseError> {
        // The cure: checks wait for each other, not for the connections that commands need.
        let _admitted = if self.switches.is_on(Defect::AuthenticationAdmission) {
            self.admission.acquire().await.ok()
        } else {
            None
        };
        let mut lease = self.pool.acquire(Endpoint::Authentication).await?;
        store::is_revoked(&mut lease, serial).await
    }

    /// Refreshes the certificate cache: it is read anew, then every live connection is checked again.
    ///
    /// Gives the number of connections. A database that gives no answer leaves the cache as it was.
    pub(super) async fn refresh_certificates(&self) -> u64 {
        if let Ok(mut lease) = self.pool.acquire(Endpoint::Refresh).await
            && let Ok(revoked) = store::revoked(&mut lease).await
        {
            *self
                .revoked
                .write()
                .expect("nobody panics while holding it") = revoked.into_iter().collect();
        }
        let sessions: u64 = self.presence.sessions().values().sum();
        self.counts.add(Count::Rechecks);
        self.links.tell_all(&ToShard::Recheck).await;
        sessions
    }

    /// Tells the shards how slow a check may be.
    pub(super) async fn announce_expiry(&self) {
        self.links.tell_all(&self.expiry()).await;
    }

    /// What shards have to know about slow checks.
    pub(super) fn expiry(&self) -> ToShard {
        let on = self.switches.is_on(Defect::SlowAuthExpiresSession);
        ToShard::ExpireAfter {
            milliseconds: on.then_some(self.settings.auth_expires_after_ms),
        }
    }
}

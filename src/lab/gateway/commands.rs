//! A command's way: accepted, stored, dispatched to its hub's shard, answered by the hub, or expired.

use super::Gateway;
use super::book::{Begin, Stage};
use super::counts::Count;
use super::pool::{DatabaseError, Endpoint};
use super::store;
use crate::lab::defect::Defect;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// How exactly times to live are kept.
const TICK: Duration = Duration::from_millis(20);
/// A note of a command's end that the database refused is tried so often.
const MARK_ATTEMPTS: u32 = 3;
/// Between those attempts.
const MARK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A command as it is handed in.
#[derive(Debug, Clone)]
pub struct NewCommand {
    pub id: String,
    pub serial: String,
    pub action: String,
    pub ttl: Duration,
}

/// Why a command was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error(
        "{most} commands are on their way already; no more are accepted until some arrive or expire"
    )]
    Full { most: u64 },
    #[error("{0}")]
    Database(#[from] DatabaseError),
}

/// What a hub publishes after it has acted on a command.
#[derive(Deserialize)]
struct HubAnswer {
    id: String,
    #[serde(default)]
    ok: bool,
}

/// Starts the keeper of times.
pub fn start(gateway: &Arc<Gateway>) {
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(TICK).await;
            for id in gateway.book.tick() {
                gateway.counts.add(Count::CommandsExpired);
                gateway.mark(id, "expired");
            }
        }
    });
}

impl Gateway {
    /// Accepts a command: from here on it is delivered or reported as expired. An id that is known already is accepted
    /// again and changes nothing.
    pub(super) async fn accept(self: &Arc<Self>, command: NewCommand) -> Result<(), Refusal> {
        match self
            .book
            .begin(&command.id, &command.serial, &command.action, command.ttl)
        {
            Begin::Known => return Ok(()),
            Begin::Full => {
                self.counts.add(Count::CommandsRefused);
                return Err(Refusal::Full {
                    most: self.settings.dispatch_queue,
                });
            }
            Begin::Store => {}
        }
        match self.store_command(&command).await {
            Ok(is_new) => {
                let forgets = self.switches.is_on(Defect::AcceptsAndForgets);
                self.counts.add(Count::CommandsAccepted);
                if is_new && forgets {
                    self.counts.add(Count::CommandsForgotten);
                }
                if is_new && !forgets {
                    self.book.stored(&command.id);
                } else {
                    self.book.not_stored(&command.id);
                }
                Ok(())
            }
            Err(problem) => {
                self.counts.add(Count::CommandsRefused);
                self.book.not_stored(&command.id);
                Err(problem.into())
            }
        }
    }

    /// Writes the command down; true if it has still to be dispatched.
    async fn store_command(&self, command: &NewCommand) -> Result<bool, DatabaseError> {
        let mut lease = self.pool.acquire(Endpoint::Command).await?;
        if store::insert_command(
            &mut lease,
            &command.id,
            &command.serial,
            &command.action,
            command.ttl,
        )
        .await?
        {
            return Ok(true);
        }
        // It is there: from an attempt whose end nobody saw, or long done.
        let state = store::command_state(&mut lease, &command.id).await?;
        Ok(state.as_deref() == Some("accepted"))
    }

    /// A hub answered. Answers to commands that are over, or never were, are only counted.
    pub(super) fn answered(self: &Arc<Self>, serial: &str, payload: &str) {
        let answer = serde_json::from_str::<HubAnswer>(payload).ok();
        match answer {
            Some(answer) if self.book.finish(&answer.id) => {
                self.counts.add(Count::CommandsAcknowledged);
                self.mark(answer.id, if answer.ok { "acknowledged" } else { "failed" });
            }
            _ => {
                log::debug!("{serial} answered nothing that is on its way");
                self.counts.add(Count::AnswersUnknown);
            }
        }
    }

    /// Notes a command's end in the database, in the background.
    fn mark(self: &Arc<Self>, id: String, state: &'static str) {
        let gateway = Arc::clone(self);
        tokio::spawn(async move {
            for _ in 0..MARK_ATTEMPTS {
                if let Ok(mut lease) = gateway.pool.acquire(Endpoint::Acknowledge).await
                    && store::mark_command(&mut lease, &id, state).await.is_ok()
                {
                    return;
                }
                tokio::time::sleep(MARK_AGAIN_AFTER).await;
            }
            gateway.counts.add(Count::CommandsUnmarked);
        });
    }

    /// A session ended; commands that it had not taken wait for the hub.
    pub(super) fn session_lost(&self, serial: &str, generation: u64) {
        self.book.session_lost(serial, generation, |serial| {
            self.presence.reachable(serial).is_some()
        });
    }

    /// The state of a command, by its own word: on its way, or as the database has it.
    pub(super) async fn command_state(&self, id: &str) -> Result<Option<String>, DatabaseError> {
        let on_its_way = self.book.stage(id).map(|stage| match stage {
            Stage::Storing | Stage::Queued | Stage::Parked => "queued",
            Stage::Waiting => "waiting",
            Stage::Sent {
                delivered: false, ..
            } => "dispatched",
            Stage::Sent {
                delivered: true, ..
            } => "delivered",
        });
        if let Some(state) = on_its_way {
            return Ok(Some(state.to_owned()));
        }
        let mut lease = self.pool.acquire(Endpoint::Command).await?;
        store::command_state(&mut lease, id).await
    }
}

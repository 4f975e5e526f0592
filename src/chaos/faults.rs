//! The faults of a run, under way on a thread of their own: writing a journal to the disk must not hold up the load, nor the load an
//! undo.
//!
//! Every fault ends: at its time, or when [`Faults::undo_all`] is called, or, should a panic get in the way, when [`Faults`] is dropped.

use super::bulletin::Bulletin;
use super::heal::{Remaining, undo_left};
use super::journal::{Journal, JournalError};
use super::life::{fault_life, trigger_life};
use super::links::Links;
use super::process::Identity;
use crate::event::{Offset, Sink};
use crate::net::clock::Clock;
use crate::net::state::StateDirectory;
use crate::plan::Plan;
use crate::plan::fault::TriggerKind;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// What faults act on and tell.
pub struct Setup {
    /// With `<lab.…>` as text; `<secret.…>` must still be placeholders, because undos are written to the journal.
    pub plan: Arc<Plan>,
    pub clock: Clock,
    /// 0:00 of the profile.
    pub zero: Offset,
    pub links: Arc<Links>,
    /// The process with which the target's components end; that of the lab which the run started.
    pub lab: Option<Identity>,
    pub journal: Arc<Journal>,
    /// What faults that wait for something listen to.
    pub bulletin: Bulletin,
    pub state: StateDirectory,
    /// This program's own file, for processes that must outlive or be ended apart from the run.
    pub program: PathBuf,
    /// How long undoing one fault is tried before it counts as failed; [`BUDGET`](super::undo::BUDGET) unless there is a reason.
    pub undo_budget: Duration,
    /// Called from the faults' thread.
    pub sink: Sink,
}

/// Why faults can't be started, or not be ended.
#[derive(Debug, thiserror::Error)]
pub enum FaultsError {
    #[error("the faults can't be started: {0}")]
    Start(io::Error),
    #[error("whether every fault is undone is not known: {0}; look at it with rushhour heal --all")]
    Unknown(String),
}

/// The faults and operations of a run, under way.
pub struct Faults {
    stop: watch::Sender<bool>,
    /// What remains at the end.
    outcome: Option<oneshot::Receiver<Result<Vec<Remaining>, JournalError>>>,
    thread: Option<JoinHandle<()>>,
}

impl Faults {
    /// Starts them, each at its time. A watchdog of the run must be watching.
    ///
    /// # Errors
    /// If the faults' thread can't be started: then no fault is injected.
    pub fn start(setup: Setup) -> Result<Faults, FaultsError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(FaultsError::Start)?;
        let (stop, stopped) = watch::channel(false);
        let (tell, outcome) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("faults".to_owned())
            .spawn(move || {
                let remaining = live(&runtime, Arc::new(setup), stopped);
                // Dropped without `undo_all`: what remains is printed and stays in the journal.
                if let Err(Ok(remaining)) = tell.send(remaining) {
                    for Remaining { fault, why } in remaining {
                        eprintln!("fault {fault} is NOT HEALED: {why}; rushhour heal --all");
                    }
                }
            });
        let thread = Some(thread.map_err(FaultsError::Start)?);
        Ok(Faults {
            stop,
            outcome: Some(outcome),
            thread,
        })
    }

    /// Ends every fault now and undoes it; faults that have not begun never will. Gives what remains; then the run's exit code is 5.
    /// Once it has answered, it has nothing more to undo.
    ///
    /// # Errors
    /// If the journal can't be read.
    pub async fn undo_all(&mut self) -> Result<Vec<Remaining>, FaultsError> {
        self.stop.send_replace(true);
        let Some(outcome) = &mut self.outcome else {
            return Ok(Vec::new());
        };
        let remaining = outcome.await;
        self.outcome = None;
        match remaining {
            Ok(Ok(remaining)) => Ok(remaining),
            Ok(Err(error)) => Err(FaultsError::Unknown(error.to_string())),
            Err(_) => Err(FaultsError::Unknown(
                "the thread of the faults panicked".to_owned(),
            )),
        }
    }
}

impl Drop for Faults {
    /// Only a panic leads here with faults standing.
    fn drop(&mut self) {
        self.outcome = None;
        self.stop.send_replace(true);
        // After a panic in there, printed by then, the watchdog heals what is left.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Runs every life to its end, and undoes what a life that panicked left in the journal.
fn live(
    runtime: &Runtime,
    setup: Arc<Setup>,
    mut stopped: watch::Receiver<bool>,
) -> Result<Vec<Remaining>, JournalError> {
    runtime.block_on(async {
        let mut lives = JoinSet::new();
        for row in 0..setup.plan.faults.len() {
            lives.spawn(fault_life(Arc::clone(&setup), row, stopped.clone()));
        }
        for row in 0..setup.plan.triggers.len() {
            if matches!(setup.plan.triggers[row].kind, TriggerKind::Operate { .. }) {
                lives.spawn(trigger_life(Arc::clone(&setup), row, stopped.clone()));
            }
        }
        while lives.join_next().await.is_some() {}
        // Fails only if `Faults` is gone, which is an end as well.
        let _ = stopped.wait_for(|stopped| *stopped).await;
        let left = setup.journal.left()?;
        Ok(undo_left(
            &setup.journal,
            &left,
            &setup.state,
            setup.undo_budget,
            &|_, _| {},
        )
        .await)
    })
}

//! How each kind of fault is undone, as data, and the doing of it: look first, then undo, then look again.
//!
//! The same code serves the run that broke something and the process that heals after it: both know nothing but the data here.

use super::cluster::RestoreCluster;
use super::container::RestoreContainer;
use super::cut::AfterCut;
use super::hold::EndHolder;
use super::kill::StartComponent;
use super::link_fault::RemoveFault;
use super::operate::UndoOperation;
use super::packets::DeleteTable;
use super::pause::Resume;
use super::programs::RunProgram;
use super::unit::RestoreUnit;
use crate::net::state::StateDirectory;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// How long undoing one fault is tried before it counts as failed.
pub const BUDGET: Duration = Duration::from_secs(30);
const REST: Duration = Duration::from_millis(200);
/// How long an undo that was performed may take to show.
const SHOWS_WITHIN: Duration = Duration::from_secs(10);

/// What undoes a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undo {
    RemoveFault(RemoveFault),
    AfterCut(AfterCut),
    StartComponent(StartComponent),
    Operate(Box<UndoOperation>),
    Resume(Resume),
    RunProgram(Box<RunProgram>),
    RestoreUnit(Box<RestoreUnit>),
    RestoreContainer(Box<RestoreContainer>),
    RestoreCluster(Box<RestoreCluster>),
    DeleteTable(Box<DeleteTable>),
    EndHolder(EndHolder),
}

/// Whether anything of a fault is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is; the text says what was seen.
    Healed(String),
    /// Something is, as far as can be seen.
    Stands(String),
}

/// A step of undoing, for the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Undone(String),
    Verified(String),
}

impl fmt::Display for Undo {
    /// What will be done.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undo::RemoveFault(undo) => undo.fmt(formatter),
            Undo::AfterCut(undo) => undo.fmt(formatter),
            Undo::StartComponent(undo) => undo.fmt(formatter),
            Undo::Operate(undo) => undo.fmt(formatter),
            Undo::Resume(undo) => undo.fmt(formatter),
            Undo::RunProgram(undo) => undo.fmt(formatter),
            Undo::RestoreUnit(undo) => undo.fmt(formatter),
            Undo::RestoreContainer(undo) => undo.fmt(formatter),
            Undo::RestoreCluster(undo) => undo.fmt(formatter),
            Undo::DeleteTable(undo) => undo.fmt(formatter),
            Undo::EndHolder(undo) => undo.fmt(formatter),
        }
    }
}

impl Undo {
    /// Undoes, as often as it takes within `budget`, and says how it was seen to have worked. Does nothing if nothing of the fault is
    /// left. `record` hears of each step.
    ///
    /// # Errors
    /// What still stands in the way when the budget is used up.
    pub async fn carry_out(
        &self,
        state: &StateDirectory,
        budget: Duration,
        record: &mut (dyn FnMut(Step) + Send),
    ) -> Result<String, String> {
        // Pods need their time to get ready.
        let patience = if matches!(self, Undo::RestoreCluster(_)) {
            4
        } else {
            1
        };
        let end = Instant::now() + budget * patience;
        let mut performed = false;
        loop {
            let attempt = self.attempt(state, &mut performed, end, record);
            let why = match tokio::time::timeout_at(end + REST, attempt).await {
                Ok(Ok(how)) => {
                    record(Step::Verified(how.clone()));
                    return Ok(how);
                }
                Ok(Err(why)) => why,
                Err(_) => {
                    return Err(format!(
                        "no answer within {} s to: {self}",
                        budget.as_secs()
                    ));
                }
            };
            if Instant::now() + REST >= end {
                return Err(why);
            }
            tokio::time::sleep(REST).await;
        }
    }

    async fn attempt(
        &self,
        state: &StateDirectory,
        performed: &mut bool,
        end: Instant,
        record: &mut (dyn FnMut(Step) + Send),
    ) -> Result<String, String> {
        if let Standing::Healed(how) = self.standing(state, *performed).await? {
            return Ok(how);
        }
        let how = match self {
            Undo::RemoveFault(undo) => undo.perform(state).await?,
            Undo::AfterCut(undo) => undo.to_string(),
            Undo::StartComponent(undo) => undo.perform().await?,
            Undo::Operate(undo) => undo.perform().await?,
            Undo::Resume(undo) => undo.perform()?,
            Undo::RunProgram(undo) => undo.perform().await?,
            Undo::RestoreUnit(undo) => undo.perform().await?,
            Undo::RestoreContainer(undo) => undo.perform().await?,
            Undo::RestoreCluster(undo) => undo.perform().await?,
            Undo::DeleteTable(undo) => undo.perform().await?,
            Undo::EndHolder(undo) => undo.perform().await?,
        };
        *performed = true;
        record(Step::Undone(how));
        let shown_by = end.min(Instant::now() + SHOWS_WITHIN);
        loop {
            match self.standing(state, true).await? {
                Standing::Healed(how) => return Ok(how),
                Standing::Stands(what) if Instant::now() >= shown_by => return Err(what),
                Standing::Stands(_) => tokio::time::sleep(REST).await,
            }
        }
    }

    async fn standing(&self, state: &StateDirectory, performed: bool) -> Result<Standing, String> {
        match self {
            Undo::RemoveFault(undo) => undo.standing(state).await,
            Undo::AfterCut(undo) => Ok(undo.standing()),
            Undo::StartComponent(undo) => undo.standing(performed).await,
            Undo::Operate(undo) => undo.standing(performed).await,
            Undo::Resume(undo) => Ok(undo.standing()),
            Undo::RunProgram(undo) => undo.standing(performed).await,
            Undo::RestoreUnit(undo) => undo.standing().await,
            Undo::RestoreContainer(undo) => undo.standing().await,
            Undo::RestoreCluster(undo) => undo.standing().await,
            Undo::DeleteTable(undo) => undo.standing().await,
            Undo::EndHolder(undo) => Ok(undo.standing()),
        }
    }
}

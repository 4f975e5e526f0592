//! The fault `run`: a program of the target file does something, and another one undoes it.

use super::command::StoredCommand;
use super::undo::Standing;
use crate::plan::component::{Component, Programs};
use crate::plan::target::Target;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// How long an effect may take to show, after the program has ended.
const SHOWS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The undo: the program that undoes it has run, and the one that looks says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunProgram {
    pub component: String,
    /// `None`: the target file says that it can't be undone.
    pub undo: Option<StoredCommand>,
    /// Exits with 0 once nothing is left.
    pub undone: Option<StoredCommand>,
}

/// Programs that are ready to be run.
pub(super) struct RunPrograms {
    run: StoredCommand,
    observe: Option<StoredCommand>,
    undo: RunProgram,
}

impl RunPrograms {
    pub(super) fn arm(
        component: &Component,
        programs: &Programs,
        target: &Target,
    ) -> Result<RunPrograms, String> {
        let stored = |program| StoredCommand::of(program, target).map_err(|e| e.to_string());
        let undo = RunProgram {
            component: component.name.clone(),
            undo: programs.undo.as_ref().map(stored).transpose()?,
            undone: programs.undone.as_ref().map(stored).transpose()?,
        };
        Ok(RunPrograms {
            run: stored(&programs.run)?,
            observe: programs.observe.as_ref().map(stored).transpose()?,
            undo,
        })
    }

    pub(super) fn touches(&self) -> String {
        format!("run {}", self.run)
    }

    pub(super) fn undo(&self) -> RunProgram {
        self.undo.clone()
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        let ran = self.run.succeed().await;
        ran.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Without a program that looks, all that is known is that the one that acts has ended well; and that `undone` does not hold.
    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + SHOWS_WITHIN;
        loop {
            let (looks, wanted) = match (&self.observe, &self.undo.undone) {
                (Some(observe), _) => (observe, true),
                (None, Some(undone)) => (undone, false),
                (None, None) => return Ok(format!("{} exited with 0", self.run)),
            };
            let ran = looks.run().await.map_err(|error| error.to_string())?;
            if (ran.code == Some(0)) == wanted {
                return Ok(match wanted {
                    true => format!("{looks} exited with 0"),
                    false => format!("{looks}: not undone"),
                });
            }
            if Instant::now() >= end {
                return Err(match wanted {
                    true => looks.failed(&ran).to_string(),
                    false => format!("{looks} exited with 0: there is nothing to undo"),
                });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl RunProgram {
    pub(super) async fn standing(&self, performed: bool) -> Result<Standing, String> {
        let Some(undo) = &self.undo else {
            return Ok(Standing::Healed(format!(
                "nothing undoes what was done to {}: the target file says irreversible",
                self.component
            )));
        };
        let Some(undone) = &self.undone else {
            return Ok(match performed {
                true => Standing::Healed(format!("{undo} exited with 0")),
                false => Standing::Stands(format!("{} was not undone", self.component)),
            });
        };
        let ran = undone.run().await.map_err(|error| error.to_string())?;
        Ok(match ran.code {
            Some(0) => Standing::Healed(format!("{undone} exited with 0")),
            _ => Standing::Stands(undone.failed(&ran).to_string()),
        })
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let Some(undo) = &self.undo else {
            return Ok("nothing".to_owned());
        };
        let ran = undo.succeed().await;
        ran.map(|_| format!("{undo} exited with 0"))
            .map_err(|error| error.to_string())
    }
}

impl fmt::Display for RunProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.undo {
            Some(undo) => write!(formatter, "undo {} by {undo}", self.component),
            None => write!(formatter, "nothing undoes {}", self.component),
        }
    }
}

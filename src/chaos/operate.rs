//! Operations of the target: as a trigger, and as a fault with its undo.

use super::process::Identity;
use super::request::StoredRequest;
use super::undo::Standing;
use crate::plan::Target;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// An operation may take as long as the target needs to do it.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The undo: the operation's own undo was answered as it should be. Asking for it twice must do no harm; that is the target's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UndoOperation {
    pub operation: String,
    pub request: StoredRequest,
    /// What the operation did ends with this process: the lab that the run started.
    pub lab: Option<Identity>,
}

/// An operation that is ready to be asked for.
pub(super) struct Operate {
    name: String,
    request: StoredRequest,
}

impl Operate {
    /// The operation in row `operation`.
    pub(super) fn arm(operation: usize, target: &Target) -> Result<Operate, String> {
        let operation = &target.operations[operation];
        let request =
            StoredRequest::of(&operation.request, target).map_err(|error| error.to_string())?;
        Ok(Operate {
            name: operation.name.clone(),
            request,
        })
    }

    /// Its undo as the target file has it.
    pub(super) fn undo(
        operation: usize,
        target: &Target,
        lab: Option<Identity>,
    ) -> Result<UndoOperation, String> {
        let operation = &target.operations[operation];
        let undo = operation.undo.as_ref();
        let undo = undo.ok_or_else(|| {
            format!(
                "operation `{}` has no undo in the target file",
                operation.name
            )
        })?;
        let request = StoredRequest::of(undo, target).map_err(|error| error.to_string())?;
        Ok(UndoOperation {
            operation: operation.name.clone(),
            request,
            lab,
        })
    }

    /// Asks for it; the answer is what can be observed of it.
    pub(super) async fn inject(&self) -> Result<String, String> {
        let status = self
            .request
            .send(TIMEOUT)
            .await
            .map_err(|error| error.to_string())?;
        Ok(format!(
            "{} answered {status} to {}",
            self.name, self.request
        ))
    }
}

impl UndoOperation {
    pub(super) fn standing(&self, performed: bool) -> Standing {
        if let Some(lab) = self.lab.as_ref().filter(|lab| !lab.runs()) {
            Standing::Healed(format!("the lab, {lab}, has ended"))
        } else if performed {
            Standing::Healed(format!("the target agreed to undo {}", self.operation))
        } else {
            Standing::Stands(format!("{} was not undone", self.operation))
        }
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let status = self
            .request
            .send(TIMEOUT)
            .await
            .map_err(|error| error.to_string())?;
        Ok(format!("{}: {status}", self.request))
    }
}

impl fmt::Display for UndoOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "undo {} by {}", self.operation, self.request)
    }
}

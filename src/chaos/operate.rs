//! Operations of the target: as a trigger, and as a fault with its undo.

use super::process::Identity;
use super::request::{StoredQuestion, StoredRequest};
use super::undo::Standing;
use crate::plan::Target;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// An operation may take as long as the target needs to do it.
const TIMEOUT: Duration = Duration::from_secs(15);
/// A question is about what is so already.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the effect of an operation that was answered may take to show.
const SHOWS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The undo: the operation's own undo was answered as it should be, and `undone` holds. Asking for it twice must do no harm; that is
/// the target's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UndoOperation {
    pub operation: String,
    pub request: StoredRequest,
    /// Holds once nothing is left. It is asked first: what is undone already is not undone again.
    #[serde(default)]
    pub undone: Option<StoredQuestion>,
    /// What the operation did ends with this process: the lab that the run started.
    pub lab: Option<Identity>,
}

/// An operation that is ready to be asked for.
pub(super) struct Operate {
    name: String,
    request: StoredRequest,
    observe: Option<StoredQuestion>,
    undone: Option<StoredQuestion>,
}

impl Operate {
    /// The operation in row `operation`.
    pub(super) fn arm(operation: usize, target: &Target) -> Result<Operate, String> {
        let operation = &target.operations[operation];
        let question =
            |question| StoredQuestion::of(question, target).map_err(|error| error.to_string());
        let request =
            StoredRequest::of(&operation.request, target).map_err(|error| error.to_string())?;
        Ok(Operate {
            name: operation.name.clone(),
            request,
            observe: operation.observe.as_ref().map(question).transpose()?,
            undone: operation.undone.as_ref().map(question).transpose()?,
        })
    }

    /// Its undo as the target file has it.
    pub(super) fn undo(
        operation: usize,
        target: &Target,
        lab: Option<Identity>,
    ) -> Result<UndoOperation, String> {
        let armed = Operate::arm(operation, target)?;
        let undo = target.operations[operation].undo.as_ref();
        let undo = undo
            .ok_or_else(|| format!("operation `{}` has no undo in the target file", armed.name))?;
        let request = StoredRequest::of(undo, target).map_err(|error| error.to_string())?;
        Ok(UndoOperation {
            operation: armed.name,
            request,
            undone: armed.undone,
            lab,
        })
    }

    /// Asks for it; gives the answer.
    pub(super) async fn ask(&self) -> Result<String, String> {
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

    /// Asks for it; the answer is what is observed if the target file has no question that says more.
    pub(super) async fn inject(&self) -> Result<Option<String>, String> {
        let answer = self.ask().await?;
        let says_more = self.observe.is_some() || self.undone.is_some();
        Ok((!says_more).then_some(answer))
    }

    /// Asks until `observe` holds, or without it until `undone` does not.
    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + SHOWS_WITHIN;
        loop {
            let (question, wanted) = match (&self.observe, &self.undone) {
                (Some(observe), _) => (observe, true),
                (None, Some(undone)) => (undone, false),
                (None, None) => return Err("its answer is all that can be observed".to_owned()),
            };
            let why = match question.holds(QUESTION_TIMEOUT).await {
                Ok((holds, answer)) if holds == wanted => return Ok(answer),
                Ok((_, answer)) => format!("its effect does not show: {answer}"),
                Err(error) => error.to_string(),
            };
            if Instant::now() >= end {
                return Err(why);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl UndoOperation {
    pub(super) async fn standing(&self, performed: bool) -> Result<Standing, String> {
        if let Some(lab) = self.lab.as_ref().filter(|lab| !lab.runs()) {
            return Ok(Standing::Healed(format!("the lab, {lab}, has ended")));
        }
        let Some(undone) = &self.undone else {
            return Ok(if performed {
                Standing::Healed(format!("the target agreed to undo {}", self.operation))
            } else {
                Standing::Stands(format!("{} was not undone", self.operation))
            });
        };
        let asked = undone.holds(QUESTION_TIMEOUT).await;
        let (holds, answer) = asked.map_err(|error| error.to_string())?;
        Ok(if holds {
            Standing::Healed(answer)
        } else {
            Standing::Stands(format!("{} is not undone: {answer}", self.operation))
        })
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

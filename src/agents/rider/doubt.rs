//! Whether the target may have done the same thing twice.
//!
//! A client can know it for certain only where two answers to one intent name different things. Where an attempt ended without an
//! answer and nothing in the next one tells the target that it is the same, it may have happened.

use super::super::{Reply, ReplyResult};
use crate::event::Outcome;
use crate::plan::target::Answer;

/// What earlier attempts of the same intent have left behind.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// One of them may have been accepted.
    open: bool,
    /// The id in an answer to one of them.
    seen: Option<String>,
}

/// How sure it is that the target acted twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twice {
    No,
    Perhaps,
    Certainly,
}

impl Doubt {
    /// An attempt that is about to be repeated ended like this.
    pub fn failed(&mut self, answer: &Answer, reply: &Reply<'_>, outcome: Outcome) {
        self.open |= match outcome {
            Outcome::TimedOut | Outcome::Reset => true,
            // A server or a gateway that gave up on a part of it; 501, 503 and 429 say that nothing was done.
            Outcome::Refused(code) => matches!(code, 500 | 502 | 504),
            _ => false,
        };
        if let ReplyResult::Status(_) = reply.result
            && self.seen.is_none()
        {
            self.seen = id(answer, reply.body);
        }
    }

    /// What the last attempt of the intent makes of it.
    pub fn settle(
        &mut self,
        answer: &Answer,
        reply: &Reply<'_>,
        outcome: Outcome,
        is_repeatable: bool,
    ) -> Twice {
        let before = std::mem::take(self);
        let differs = || {
            let now = id(answer, reply.body)?;
            Some(before.seen.as_ref()? != &now)
        };
        match outcome {
            Outcome::Ok if differs() == Some(true) => Twice::Certainly,
            Outcome::Ok | Outcome::Declined if before.open && !is_repeatable => Twice::Perhaps,
            _ => Twice::No,
        }
    }
}

/// What the answer calls the thing that was made: the first value that the step keeps.
fn id(answer: &Answer, body: &[u8]) -> Option<String> {
    let (_, path) = answer.keep.first()?;
    path.text(&serde_json::from_slice(body).ok()?)
}

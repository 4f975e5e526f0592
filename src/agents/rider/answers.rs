//! What an answer means to the step that is taken.

use super::super::{Reply, ReplyResult};
use super::{Rider, Stage, current};
use crate::event::Outcome;
use crate::plan::target::Poll;
use std::sync::Arc;

/// What an answer means to the current step.
pub(super) enum Read {
    Over(Outcome),
    /// All is well, and it is not yet what is waited for.
    NotYet,
}

impl Rider {
    /// What the reply means; keeps what is to be kept of a success.
    pub(super) fn read(&mut self, reply: &Reply<'_>) -> Read {
        let config = Arc::clone(&self.config);
        let Some(request) = current(&config, self.stage) else {
            return Read::Over(Outcome::Protocol);
        };
        let answer = &request.answer;
        match reply.result {
            ReplyResult::Failed(outcome) => return Read::Over(outcome),
            ReplyResult::Status(status) if !answer.is_ok(status) => {
                return Read::Over(if answer.declined.contains_key(&status) {
                    Outcome::Declined
                } else {
                    Outcome::Refused(status)
                });
            }
            ReplyResult::Accepted | ReplyResult::Status(_) => {}
        }
        let poll = self.poll();
        let step = match self.stage {
            Stage::Step(row) if poll.is_some() || !answer.keep.is_empty() => row,
            _ => return Read::Over(Outcome::Ok),
        };
        let Ok(document) = serde_json::from_slice::<serde_json::Value>(reply.body) else {
            return Read::Over(Outcome::Protocol);
        };
        let holds = |poll: &Poll| {
            poll.until.iter().all(|(path, texts)| {
                let text = path.text(&document);
                text.is_some_and(|text| texts.contains(&text))
            })
        };
        if poll.is_some_and(|poll| !holds(poll)) {
            return Read::NotYet;
        }
        Read::Over(self.kept.keep(step, answer, &document))
    }
}

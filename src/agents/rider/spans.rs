//! The spans of a journey that have begun and not yet ended.

use super::super::Action;
use super::RiderConfig;
use crate::event::{Event, Offset, Outcome};

/// Spans under way.
#[derive(Debug, Default)]
pub(super) struct Spans {
    open: Vec<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// In `Journey::spans`.
    row: usize,
    began: Began,
}

/// How a span begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Began {
    pub due: Offset,
    pub at: Offset,
    /// Requests before it.
    pub requests: u32,
}

impl Spans {
    /// The step in row `step` begins.
    pub fn begin(
        &mut self,
        config: &RiderConfig,
        step: usize,
        began: Began,
        out: &mut Vec<Action>,
    ) {
        let spans = config.journey.spans.iter().enumerate();
        for (row, _) in spans.filter(|(_, span)| span.from == step) {
            self.open.push(Open { row, began });
            out.push(Action::Tell(Event::Started {
                operation: config.spans[row],
                due: began.due,
                at: began.at,
            }));
        }
    }

    /// The step in row `step` went well.
    pub fn end_at(
        &mut self,
        config: &RiderConfig,
        step: usize,
        now: Offset,
        requests: u32,
        out: &mut Vec<Action>,
    ) {
        self.open.retain(|open| {
            let is_over = config.journey.spans[open.row].to == step;
            if is_over {
                out.push(open.finished(config, now, Outcome::Ok, requests));
            }
            !is_over
        });
    }

    /// The journey ends before them.
    pub fn end_all(
        &mut self,
        config: &RiderConfig,
        now: Offset,
        outcome: Outcome,
        requests: u32,
        out: &mut Vec<Action>,
    ) {
        let open = self.open.drain(..);
        out.extend(open.map(|open| open.finished(config, now, outcome, requests)));
    }

    /// The run ends before them.
    pub fn leave_off(&mut self, config: &RiderConfig, now: Offset, out: &mut Vec<Action>) {
        let unfinished = |open: Open| {
            Action::Tell(Event::Unfinished {
                operation: config.spans[open.row],
                due: open.began.due,
                at: now,
            })
        };
        out.extend(self.open.drain(..).map(unfinished));
    }
}

impl Open {
    fn finished(self, config: &RiderConfig, at: Offset, outcome: Outcome, requests: u32) -> Action {
        Action::Tell(Event::Finished {
            operation: config.spans[self.row],
            due: self.began.due,
            started: self.began.at,
            at,
            outcome,
            attempts: requests.saturating_sub(self.began.requests),
        })
    }
}

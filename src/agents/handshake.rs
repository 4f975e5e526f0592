//! The TLS handshake of one attempt to connect, as an action of its own: from TCP to TLS.

use super::Action;
use crate::event::{Event, Offset, OperationId, Outcome};

/// At most one is under way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Handshake {
    began: Option<Offset>,
}

impl Handshake {
    /// TCP stands; without an operation there is no handshake.
    pub fn begin(&mut self, operation: Option<OperationId>, now: Offset, out: &mut Vec<Action>) {
        let Some(operation) = operation else {
            return;
        };
        self.began = Some(now);
        out.push(Action::Tell(Event::Started {
            operation,
            due: now,
            at: now,
        }));
        out.push(Action::Tell(Event::Attempted { operation, at: now }));
    }

    /// It ended; nothing is told if none was under way.
    pub fn finish(
        &mut self,
        operation: Option<OperationId>,
        outcome: Outcome,
        now: Offset,
        out: &mut Vec<Action>,
    ) {
        let Some((operation, began)) = operation.zip(self.began.take()) else {
            return;
        };
        out.push(Action::Tell(Event::Answered {
            operation,
            sent: began,
            at: now,
            outcome,
        }));
        out.push(Action::Tell(Event::Finished {
            operation,
            due: began,
            started: began,
            at: now,
            outcome,
            attempts: 1,
        }));
    }

    /// The run ended before it did.
    pub fn unfinished(
        &mut self,
        operation: Option<OperationId>,
        now: Offset,
        out: &mut Vec<Action>,
    ) {
        if let Some((operation, began)) = operation.zip(self.began.take()) {
            out.push(Action::Tell(Event::Unfinished {
                operation,
                due: began,
                at: now,
            }));
        }
    }
}

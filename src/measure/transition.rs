//! What is worth a line of its own in `events.jsonl`: marks, and commands and returns that did not end as they should. Never one line an attempt.

use super::ledger::State;
use super::returns::BadReturn;
use crate::event::{CommandId, Mark, Offset};

/// Transitions of commands and returns that are kept for the file in one run; what is beyond it is counted.
pub const MOST_TRANSITIONS: u64 = 100_000;

/// One line to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    Zero {
        at: Offset,
    },
    LoadEnd {
        at: Offset,
    },
    Mark(Mark),
    /// A command's state was decided, and it is not "in time".
    Settled {
        id: CommandId,
        state: State,
        due: Option<Offset>,
        at: Offset,
    },
    /// A command was delivered once more.
    Duplicated {
        id: CommandId,
        at: Offset,
    },
    /// A command was delivered that was never due.
    Unexpected {
        id: CommandId,
        at: Offset,
    },
    /// A command was delivered after it had counted as lost, in doubt or refused.
    AfterClosing {
        id: CommandId,
        at: Offset,
    },
    /// A return did not end as it should.
    Return(BadReturn),
    /// So many transitions of commands and returns have no line.
    LeftOut {
        count: u64,
        at: Offset,
    },
}

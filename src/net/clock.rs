//! The clock of a run: offsets since it began, the same for every driver, fault and probe.

use crate::event::Offset;
use tokio::time::Instant;

/// A monotonic clock that began at some moment. Copies agree.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Clock {
        Clock {
            began: Instant::now(),
        }
    }

    /// The time since it began.
    #[must_use]
    pub fn now(&self) -> Offset {
        Offset::ZERO.after(self.began.elapsed())
    }

    /// The instant of an offset, for sleeping until it.
    #[must_use]
    pub fn instant(&self, at: Offset) -> Instant {
        self.began + at.since(Offset::ZERO)
    }
}

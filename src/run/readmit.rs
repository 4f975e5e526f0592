//! Hubs that were disconnected together are let back in stages, as long as nothing that must not happen happens.
//!
//! Decides when the next stage may come. How large it is stands in the plan; whether a line of `pause_while` holds is judged by whoever
//! watches the run and told here.

use crate::event::{Event, Mark, MarkId, MarkPhase, Offset, Sink};
use crate::live::hubs::Door;
use crate::net::clock::Clock;
use crate::plan::readmission::Readmission;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often a pause looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why readmissions pause now, by row of the plan's triggers; shared by who judges and who lets back.
#[derive(Debug, Clone, Default)]
pub(super) struct Pauses(Arc<Mutex<Vec<Option<String>>>>);

impl Pauses {
    /// What holds now, parallel to the plan's triggers.
    pub fn set(&self, reasons: Vec<Option<String>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reasons;
    }

    fn reason(&self, trigger: usize) -> Option<String> {
        let reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.get(trigger).cloned().flatten()
    }
}

/// One readmission, ready to begin.
pub(super) struct Readmitting {
    pub mark: MarkId,
    pub readmission: Readmission,
    pub door: Door,
    /// When the last hub is dropped.
    pub from: Offset,
    pub pauses: Pauses,
    pub clock: Clock,
    pub sink: Sink,
}

impl Readmitting {
    /// Lets everybody back and then ends the trigger.
    pub async fn run(mut self) {
        let first = self.from.after(self.readmission.after);
        tokio::time::sleep_until(self.clock.instant(first)).await;
        let mut over = Duration::ZERO;
        for step in self.readmission.steps(self.door.waiting()) {
            self.until_calm().await;
            let at = self.clock.now();
            self.door.admit(step.hubs, step.over, at);
            self.tell(MarkPhase::Admitted(step.hubs));
            over = step.over;
            if self.door.waiting() > 0 {
                tokio::time::sleep_until(self.clock.instant(at.after(step.every))).await;
            }
        }
        let last = self.clock.now().after(over);
        tokio::time::sleep_until(self.clock.instant(last)).await;
        self.tell(MarkPhase::End);
    }

    /// Waits until nothing asks for a pause.
    async fn until_calm(&self) {
        let row = usize::from(self.mark.0);
        let Some(reason) = self.pauses.reason(row) else {
            return;
        };
        self.tell(MarkPhase::Paused(reason));
        while self.pauses.reason(row).is_some() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.tell(MarkPhase::Resumed);
    }

    fn tell(&self, phase: MarkPhase) {
        (self.sink)(Event::Mark(Mark {
            id: self.mark,
            phase,
            at: self.clock.now(),
        }));
    }
}

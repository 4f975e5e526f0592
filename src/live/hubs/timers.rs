//! When each timer of one hub runs out.

use crate::agents::Timer;
use crate::event::Offset;

/// Later than anything that happens.
pub(super) const NEVER: Offset = Offset(u64::MAX);

const ALL: [Timer; 6] = [
    Timer::Connect,
    Timer::Deadline,
    Timer::KeepAlive,
    Timer::Telemetry,
    Timer::Actuated,
    Timer::Wait,
];

/// By the timer's discriminant; [`NEVER`] for one that does not run.
#[derive(Debug)]
pub(super) struct Timers([Offset; ALL.len()]);

impl Timers {
    pub(super) fn none() -> Timers {
        Timers([NEVER; ALL.len()])
    }

    /// Starts or moves a timer.
    pub(super) fn wake_at(&mut self, timer: Timer, at: Offset) {
        self.0[timer as usize] = at;
    }

    pub(super) fn cancel(&mut self, timer: Timer) {
        self.0[timer as usize] = NEVER;
    }

    /// When the next one runs out.
    pub(super) fn next(&self) -> Offset {
        self.0.iter().min().copied().unwrap_or(NEVER)
    }

    /// Takes the oldest timer that has run out by `now`.
    pub(super) fn take(&mut self, now: Offset) -> Option<Timer> {
        let timer = ALL
            .into_iter()
            .min_by_key(|timer| self.0[*timer as usize])?;
        let ran_out = self.0[timer as usize] <= now;
        ran_out.then(|| {
            self.cancel(timer);
            timer
        })
    }
}

//! When each timer of one hub runs out.

use crate::agents::Timer;
use crate::event::Offset;

/// Later than anything that happens.
pub(in crate::live) const NEVER: Offset = Offset(u64::MAX);

const ALL: [Timer; 7] = [
    Timer::Connect,
    Timer::Deadline,
    Timer::KeepAlive,
    Timer::Telemetry,
    Timer::Actuated,
    Timer::Wait,
    Timer::Status,
];

/// By the timer's discriminant; [`NEVER`] for one that does not run.
#[derive(Debug)]
pub(in crate::live) struct Timers([Offset; ALL.len()]);

impl Timers {
    pub(in crate::live) fn none() -> Timers {
        Timers([NEVER; ALL.len()])
    }

    /// Starts or moves a timer.
    pub(in crate::live) fn wake_at(&mut self, timer: Timer, at: Offset) {
        self.0[timer as usize] = at;
    }

    pub(in crate::live) fn cancel(&mut self, timer: Timer) {
        self.0[timer as usize] = NEVER;
    }

    /// When the next one runs out.
    pub(in crate::live) fn next(&self) -> Offset {
        self.0.iter().min().copied().unwrap_or(NEVER)
    }

    /// Takes the oldest timer that has run out by `now`.
    pub(in crate::live) fn take(&mut self, now: Offset) -> Option<Timer> {
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

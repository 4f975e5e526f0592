//! A hub that is sent away, for a time or until further notice.

use super::{Hub, State};
use crate::agents::{Action, Context, Timer};
use crate::event::{HubChange, Offset, Outcome};
use crate::plan::fault::How;
use std::time::Duration;

/// Later than anything that happens: who waits until then waits to be let back.
const NEVER: Offset = Offset(u64::MAX);

impl Hub {
    /// It is sent away, whatever it does just now.
    pub(super) fn dropped(
        &mut self,
        now: Offset,
        how: How,
        away: Duration,
        context: &mut Context<'_>,
        out: &mut Vec<Action>,
    ) {
        match self.state {
            State::Finding | State::Opening | State::Subscribing => {
                out.push(Action::Close(how));
                self.attempt_failed(now, Outcome::Reset, away, context, out);
            }
            State::Connected => {
                out.push(Action::Close(how));
                let change = (HubChange::Left, Outcome::Reset);
                self.session_ended(now, change, away, context, out);
            }
            // Already away: only longer.
            State::Waiting if self.connect_at < now.after(away) => {
                self.wait(now.after(away), context, out)
            }
            State::New | State::Waiting | State::Done => {}
        }
    }

    /// It may come back. One that waits for a time of its own goes on waiting.
    pub(super) fn admitted(&mut self, now: Offset, out: &mut Vec<Action>) {
        if self.connect_at == NEVER {
            self.connect_at = now;
            out.push(Action::WakeAt(Timer::Connect, now));
        }
    }
}

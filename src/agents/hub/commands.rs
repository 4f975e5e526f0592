//! What a hub does with a command: takes it if it is its own, acts on it, answers.

use super::Hub;
use crate::agents::{Action, Timer};
use crate::event::{CommandId, CommandName, CommandStep, Event, Offset};
use crate::plan::routing::hub_of;

impl Hub {
    /// Answers every command that has been acted on, and waits for the next.
    pub(super) fn actuated(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.errands.answer(&self.config, now, out);
        self.arm_for_errands(out);
        if let Some(at) = self.errands.next_actuation() {
            out.push(Action::WakeAt(Timer::Actuated, at));
        }
    }

    pub(super) fn command(
        &mut self,
        now: Offset,
        id: Option<CommandName>,
        retained: bool,
        out: &mut Vec<Action>,
    ) {
        if retained {
            out.push(Action::Tell(Event::Retained {
                group: self.config.group,
                at: now,
            }));
            return;
        }
        let Some(id) = id.filter(|id| self.is_for_us(id.command)) else {
            out.push(Action::Tell(Event::Foreign {
                group: self.config.group,
                at: now,
            }));
            return;
        };
        out.push(Action::Tell(Event::Command {
            id: id.command,
            step: CommandStep::Delivered,
            at: now,
        }));
        if self.config.answer.is_some() {
            let first = self.errands.next_actuation().is_none();
            let until = now.after(self.config.actuation);
            if self.errands.act(id, until) && first {
                out.push(Action::WakeAt(Timer::Actuated, until));
            }
        }
    }

    /// Whose a given id is, is asked when it is known.
    fn is_for_us(&self, id: CommandId) -> bool {
        if id.is_given() {
            return true;
        }
        let config = &*self.config;
        config.issuers.get(usize::from(id.issuer)) == Some(&true)
            && hub_of(config.seed, id, config.count) == u64::from(self.index)
    }
}

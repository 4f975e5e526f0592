//! What a hub has under way besides its session: commands that it acts on, and publishes that are not acknowledged yet.
//!
//! A command survives the session in which it came: the device goes on acting, and answers when it is connected again. A publish does
//! not: the session is clean, so what had no PUBACK is reset.

use super::hub::HubConfig;
use super::{Action, Message};
use crate::event::{CommandId, CommandStep, Event, Offset, OperationId, Outcome};

/// A device acts on no more commands than this at the same time; those beyond it are received and not answered.
const MOST_ACTIONS: usize = 64;

/// The errands of one hub; no heap memory while there are none.
#[derive(Debug, Default)]
pub(super) struct Errands {
    list: Vec<Errand>,
    tokens: u32,
}

#[derive(Debug)]
enum Errand {
    Acting {
        id: CommandId,
        until: Offset,
    },
    Publishing {
        token: u32,
        message: Message,
        due: Offset,
        sent: Offset,
    },
}

impl Errands {
    /// The hub acts on a command until `until`; false if it has too many to act on.
    pub fn act(&mut self, id: CommandId, until: Offset) -> bool {
        let acting = self
            .list
            .iter()
            .filter(|errand| matches!(errand, Errand::Acting { .. }))
            .count();
        if acting < MOST_ACTIONS {
            self.list.push(Errand::Acting { id, until });
        }
        acting < MOST_ACTIONS
    }

    /// When the next command will have been acted on.
    pub fn next_actuation(&self) -> Option<Offset> {
        self.list
            .iter()
            .filter_map(|errand| match errand {
                Errand::Acting { until, .. } => Some(*until),
                Errand::Publishing { .. } => None,
            })
            .min()
    }

    /// When the oldest publish without an answer was sent.
    pub fn oldest_publish(&self) -> Option<Offset> {
        self.list
            .iter()
            .filter_map(|errand| match errand {
                Errand::Publishing { sent, .. } => Some(*sent),
                Errand::Acting { .. } => None,
            })
            .min()
    }

    /// Publishes the answer of every command that has been acted on; true if there was one.
    pub fn answer(&mut self, config: &HubConfig, now: Offset, out: &mut Vec<Action>) -> bool {
        let mut ready = Vec::new();
        self.list.retain(|errand| match errand {
            Errand::Acting { id, until } if *until <= now => {
                ready.push((*id, *until));
                false
            }
            Errand::Acting { .. } | Errand::Publishing { .. } => true,
        });
        for (id, until) in &ready {
            self.publish(config, Message::Answer(*id), *until, now, out);
        }
        !ready.is_empty()
    }

    /// Publishes one message; an operation of its own.
    pub fn publish(
        &mut self,
        config: &HubConfig,
        message: Message,
        due: Offset,
        now: Offset,
        out: &mut Vec<Action>,
    ) {
        let Some(operation) = operation_of(config, message) else {
            return;
        };
        self.tokens = self.tokens.wrapping_add(1);
        let token = self.tokens;
        self.list.push(Errand::Publishing {
            token,
            message,
            due,
            sent: now,
        });
        out.push(Action::Tell(Event::Started {
            operation,
            due,
            at: now,
        }));
        out.push(Action::Tell(Event::Attempted { operation, at: now }));
        out.push(Action::Publish {
            token: u64::from(token),
            message,
        });
    }

    /// The publish of this token is out or acknowledged.
    pub fn published(
        &mut self,
        config: &HubConfig,
        token: u64,
        now: Offset,
        out: &mut Vec<Action>,
    ) {
        self.end_publishes(config, now, Outcome::Ok, out, |candidate, _| {
            u64::from(candidate) == token
        });
    }

    /// Ends the publishes that have waited for the group's timeout. The session stays: a broker that is slow to acknowledge still answers
    /// pings.
    pub fn expire(&mut self, config: &HubConfig, now: Offset, out: &mut Vec<Action>) {
        self.end_publishes(config, now, Outcome::TimedOut, out, |_, sent| {
            sent.after(config.timeout) <= now
        });
    }

    /// The session ended: nothing will be acknowledged any more.
    pub fn session_ended(&mut self, config: &HubConfig, now: Offset, out: &mut Vec<Action>) {
        self.end_publishes(config, now, Outcome::Reset, out, |_, _| true);
    }

    /// The run ended: tells the publishes that are still under way.
    pub fn unfinished(&mut self, config: &HubConfig, now: Offset, out: &mut Vec<Action>) {
        for errand in self.list.drain(..) {
            if let Errand::Publishing { message, due, .. } = errand
                && let Some(operation) = operation_of(config, message)
            {
                out.push(Action::Tell(Event::Unfinished {
                    operation,
                    due,
                    at: now,
                }));
            }
        }
    }

    fn end_publishes(
        &mut self,
        config: &HubConfig,
        now: Offset,
        outcome: Outcome,
        out: &mut Vec<Action>,
        ends: impl Fn(u32, Offset) -> bool,
    ) {
        self.list.retain(|errand| match errand {
            Errand::Publishing {
                token,
                message,
                due,
                sent,
            } if ends(*token, *sent) => {
                tell_end(config, *message, (*due, *sent, now), outcome, out);
                false
            }
            Errand::Publishing { .. } | Errand::Acting { .. } => true,
        });
        if self.list.is_empty() {
            self.list = Vec::new();
        }
    }
}

fn operation_of(config: &HubConfig, message: Message) -> Option<OperationId> {
    match message {
        Message::Telemetry => config.telemetry,
        Message::Answer(_) => config.answer,
    }
}

fn tell_end(
    config: &HubConfig,
    message: Message,
    (due, sent, now): (Offset, Offset, Offset),
    outcome: Outcome,
    out: &mut Vec<Action>,
) {
    let Some(operation) = operation_of(config, message) else {
        return;
    };
    out.push(Action::Tell(Event::Answered {
        operation,
        sent,
        at: now,
        outcome,
    }));
    out.push(Action::Tell(Event::Finished {
        operation,
        due,
        started: sent,
        at: now,
        outcome,
        attempts: 1,
    }));
    if let (Message::Answer(id), Outcome::Ok) = (message, outcome) {
        out.push(Action::Tell(Event::Command {
            id,
            step: CommandStep::Acknowledged,
            at: now,
        }));
    }
}

//! What a hub has under way besides its session: commands that it acts on, and publishes that are not acknowledged yet.
//!
//! A command survives the connection in which it came: the device goes on acting, and answers when it is connected again. A publish
//! with QoS 1 survives only with its session: where the broker has kept that, it goes out again with DUP, in the old order; where it
//! has not, the publish is told as reset. What the broker has not acknowledged in time is told as timed out, and yet stays: its
//! packet id and its place under the broker's receive maximum are taken until the PUBACK comes or the session ends.

use super::hub::HubConfig;
use super::{Accepted, Action, Message};
use crate::event::{CommandName, CommandStep, Event, Offset, OperationId, Outcome};

/// A device acts on no more commands than this at the same time; those beyond it are received and not answered.
const MOST_ACTIONS: usize = 64;
/// Publishes with QoS 1 that a device has without PUBACK at the same time, if the broker allows more.
const MOST_IN_FLIGHT: u16 = 512;
/// Publishes that wait for one of those places; those beyond it are told as not sent.
const MOST_WAITING: usize = 128;

/// The errands of one hub; no heap memory while there are none.
#[derive(Debug)]
pub(super) struct Errands {
    list: Vec<Errand>,
    tokens: u32,
    /// Places for publishes without PUBACK in this connection.
    places: u16,
}

impl Default for Errands {
    fn default() -> Self {
        Errands {
            list: Vec::new(),
            tokens: 0,
            places: MOST_IN_FLIGHT,
        }
    }
}

#[derive(Debug)]
enum Errand {
    Acting { id: CommandName, until: Offset },
    Publishing(Publish),
}

#[derive(Debug)]
struct Publish {
    message: Message,
    due: Offset,
    started: Offset,
    /// Of the last attempt.
    sent: Offset,
    token: u32,
    attempts: u16,
    stage: Stage,
    /// Its end was told; it only keeps its place.
    is_told: bool,
    is_acknowledged: bool,
    operation: OperationId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// For a place; it has never left.
    Waiting,
    /// In this connection.
    Sent,
    /// In an earlier connection, of a session that may be resumed.
    Interrupted,
}

impl Errands {
    /// The hub acts on a command until `until`; false if it has too many to act on.
    pub fn act(&mut self, id: CommandName, until: Offset) -> bool {
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
                Errand::Publishing(_) => None,
            })
            .min()
    }

    /// When the oldest publish that may still be acknowledged in time was sent.
    pub fn oldest_publish(&self) -> Option<Offset> {
        self.publishes()
            .filter(|publish| publish.stage == Stage::Sent && !publish.is_told)
            .map(|publish| publish.sent)
            .min()
    }

    /// Publishes the answer of every command that has been acted on.
    pub fn answer(&mut self, config: &HubConfig, now: Offset, out: &mut Vec<Action>) {
        let mut ready = Vec::new();
        self.list.retain(|errand| match errand {
            Errand::Acting { id, until } if *until <= now => {
                ready.push((*id, *until));
                false
            }
            Errand::Acting { .. } | Errand::Publishing(_) => true,
        });
        for (id, until) in ready {
            self.publish(config, Message::Answer(id), until, now, out);
        }
    }

    /// Publishes one message, an operation of its own, or lets it wait for a place.
    pub fn publish(
        &mut self,
        config: &HubConfig,
        message: Message,
        due: Offset,
        now: Offset,
        out: &mut Vec<Action>,
    ) {
        let kind = match message {
            Message::Telemetry => config.telemetry,
            Message::Answer(_) => config.answer,
        };
        let Some(kind) = kind else { return };
        self.tokens = self.tokens.wrapping_add(1);
        let mut publish = Publish {
            message,
            due,
            started: now,
            sent: now,
            token: self.tokens,
            attempts: 0,
            stage: Stage::Waiting,
            is_told: false,
            is_acknowledged: kind.is_acknowledged,
            operation: kind.operation,
        };
        out.push(Action::Tell(Event::Started {
            operation: kind.operation,
            due,
            at: now,
        }));
        let waiting = self.in_stage(Stage::Waiting);
        if !kind.is_acknowledged || (waiting == 0 && self.has_place()) {
            publish.leave(now, out);
        } else if waiting >= MOST_WAITING {
            publish.finish(now, Outcome::NotSent, out);
            return;
        }
        self.list.push(Errand::Publishing(publish));
    }

    /// The broker has accepted a session. Without the old one everything that was sent in it is reset; with it, what had no PUBACK
    /// goes out again.
    pub fn accepted(&mut self, accepted: Accepted, now: Offset, out: &mut Vec<Action>) {
        self.places = accepted
            .receive_maximum
            .map_or(MOST_IN_FLIGHT, |most| most.clamp(1, MOST_IN_FLIGHT));
        if !accepted.session_present {
            self.end_publishes(now, out, |publish| publish.stage == Stage::Interrupted);
        }
        self.fill_places(now, out);
    }

    /// What came of the publish of this token; true if the broker acknowledged it.
    pub fn published(
        &mut self,
        token: u64,
        outcome: Outcome,
        now: Offset,
        out: &mut Vec<Action>,
    ) -> bool {
        let place = self.list.iter().position(|errand| {
            matches!(errand, Errand::Publishing(publish) if u64::from(publish.token) == token && publish.stage == Stage::Sent)
        });
        let Some(Errand::Publishing(publish)) = place.map(|place| self.list.remove(place)) else {
            return false;
        };
        publish.end(now, outcome, out);
        self.fill_places(now, out);
        self.shrink();
        publish.is_acknowledged && outcome != Outcome::NotSent
    }

    /// Tells the end of the publishes that have waited for the group's timeout. The session stays: a broker that is slow to acknowledge
    /// still answers pings. Gives when the youngest of them was sent.
    pub fn expire(
        &mut self,
        config: &HubConfig,
        now: Offset,
        out: &mut Vec<Action>,
    ) -> Option<Offset> {
        let mut youngest = None;
        for errand in &mut self.list {
            let Errand::Publishing(publish) = errand else {
                continue;
            };
            let expires = publish.stage == Stage::Sent && !publish.is_told;
            if expires && publish.sent.after(config.timeout) <= now {
                publish.end(now, Outcome::TimedOut, out);
                publish.is_told = true;
                youngest = youngest.max(Some(publish.sent));
            }
        }
        self.end_publishes(now, out, |publish| {
            publish.is_told && !publish.is_acknowledged
        });
        youngest
    }

    /// The connection ended. `keeps_session`: the broker may have kept the session when the hub comes back.
    pub fn session_ended(&mut self, keeps_session: bool, now: Offset, out: &mut Vec<Action>) {
        for errand in &mut self.list {
            let Errand::Publishing(publish) = errand else {
                continue;
            };
            if publish.stage == Stage::Sent {
                publish.stage = Stage::Interrupted;
                if !publish.is_told {
                    publish.answered(now, Outcome::Reset, out);
                }
            }
        }
        if keeps_session {
            // Nobody resends what nobody acknowledges.
            self.end_publishes(now, out, |publish| !publish.is_acknowledged);
        } else {
            self.give_up(now, out);
        }
    }

    /// Nothing of it will leave any more.
    pub fn give_up(&mut self, now: Offset, out: &mut Vec<Action>) {
        self.end_publishes(now, out, |_| true);
    }

    /// The run ended: tells the publishes that are still under way.
    pub fn unfinished(&mut self, now: Offset, out: &mut Vec<Action>) {
        for errand in self.list.drain(..) {
            if let Errand::Publishing(publish) = errand
                && !publish.is_told
            {
                out.push(Action::Tell(Event::Unfinished {
                    operation: publish.operation,
                    due: publish.due,
                    at: now,
                }));
            }
        }
    }

    /// Sends what waits, the oldest first, as far as there are places.
    fn fill_places(&mut self, now: Offset, out: &mut Vec<Action>) {
        while self.has_place() {
            let next = self.list.iter_mut().find_map(|errand| match errand {
                Errand::Publishing(publish) if publish.stage != Stage::Sent => Some(publish),
                _ => None,
            });
            let Some(publish) = next else { return };
            publish.leave(now, out);
        }
    }

    fn has_place(&self) -> bool {
        let taken = self
            .publishes()
            .filter(|publish| publish.is_acknowledged && publish.stage == Stage::Sent);
        taken.count() < usize::from(self.places)
    }

    fn in_stage(&self, stage: Stage) -> usize {
        self.publishes()
            .filter(|publish| publish.stage == stage)
            .count()
    }

    fn publishes(&self) -> impl Iterator<Item = &Publish> {
        self.list.iter().filter_map(|errand| match errand {
            Errand::Publishing(publish) => Some(publish),
            Errand::Acting { .. } => None,
        })
    }

    /// Ends the publishes that `ends` chooses; none of them is on its way.
    fn end_publishes(
        &mut self,
        now: Offset,
        out: &mut Vec<Action>,
        ends: impl Fn(&Publish) -> bool,
    ) {
        self.list.retain(|errand| match errand {
            Errand::Publishing(publish) if ends(publish) => {
                let outcome = match publish.stage {
                    Stage::Waiting => Outcome::NotSent,
                    Stage::Sent | Stage::Interrupted => Outcome::Reset,
                };
                if !publish.is_told {
                    publish.finish(now, outcome, out);
                }
                false
            }
            Errand::Publishing(_) | Errand::Acting { .. } => true,
        });
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.list.is_empty() {
            self.list = Vec::new();
        }
    }
}

impl Publish {
    /// One attempt leaves. What was told as timed out goes again for the protocol's sake only.
    fn leave(&mut self, now: Offset, out: &mut Vec<Action>) {
        let again = self.stage == Stage::Interrupted;
        self.stage = Stage::Sent;
        self.sent = now;
        if !self.is_told {
            self.attempts = self.attempts.saturating_add(1);
            out.push(Action::Tell(Event::Attempted {
                operation: self.operation,
                at: now,
            }));
        }
        out.push(Action::Publish {
            token: u64::from(self.token),
            message: self.message,
            again,
        });
    }

    fn answered(&self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Answered {
            operation: self.operation,
            sent: self.sent,
            at: now,
            outcome,
        }));
    }

    fn finish(&self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        out.push(Action::Tell(Event::Finished {
            operation: self.operation,
            due: self.due,
            started: self.started,
            at: now,
            outcome,
            attempts: u32::from(self.attempts),
        }));
    }

    /// The attempt that is on its way ended, and the publish with it. What was told as timed out is told no second time; that the
    /// answer of a command has arrived after all is.
    fn end(&self, now: Offset, outcome: Outcome, out: &mut Vec<Action>) {
        if !self.is_told {
            self.answered(now, outcome, out);
            self.finish(now, outcome, out);
        }
        if let (Message::Answer(id), Outcome::Ok) = (self.message, outcome) {
            out.push(Action::Tell(Event::Command {
                id: id.command,
                step: CommandStep::Acknowledged,
                at: now,
            }));
        }
    }
}

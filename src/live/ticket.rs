//! An agent on its way through the load: what it wants, the place it holds, and the wait for its timer.
//!
//! Decides when a place among those in flight is taken and given back. Knows neither schedules nor the wire.

use super::docks::Inboxes;
use super::explain::tell;
use crate::agents::{Action, Agent, Context, Input, Order, Reply, ReplyResult, Timer};
use crate::dice::Dice;
use crate::event::{Offset, Outcome, Sink};
use crate::net::clock::Clock;
use crate::net::http::Answer;
use crate::retry::Budget;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Why an agent gets to work.
#[derive(Debug, Clone, Copy)]
enum Wake {
    Due(Offset),
    Timer(Timer),
    /// Its time is over; see [`Order::Leave`].
    Leave,
    /// There is a place now for the request that it has decided on; its timeout.
    Place(Duration),
}

/// What an agent wants after it has decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Send the request of its current step; its timeout.
    Request(Duration),
    /// Nothing until this timer.
    Rest(Timer, Offset),
    End,
}

/// What came of a request.
pub(super) struct Answered {
    pub result: ReplyResult,
    pub body: Vec<u8>,
    pub retry_after: Option<Duration>,
    /// What exactly was wrong, where the class does not say it all.
    pub why: Option<Box<str>>,
}

impl Answered {
    /// It ended so, without a body.
    pub fn plain(result: ReplyResult) -> Answered {
        Answered {
            result,
            body: Vec::new(),
            retry_after: None,
            why: None,
        }
    }

    /// It did not leave.
    pub fn not_sent() -> Answered {
        Answered::plain(ReplyResult::Failed(Outcome::NotSent))
    }
}

impl From<Answer> for Answered {
    fn from(answer: Answer) -> Answered {
        Answered {
            result: match answer.result {
                Ok(status) => ReplyResult::Status(status),
                Err(outcome) => ReplyResult::Failed(outcome),
            },
            body: answer.body,
            retry_after: answer.retry_after,
            why: answer.why,
        }
    }
}

/// The time and the ears of whoever performs requests.
#[derive(Clone)]
pub(super) struct Worker {
    pub clock: Clock,
    pub sink: Sink,
    /// Where riders hand over.
    pub docks: Inboxes,
}

/// One agent on its way, with a place among those in flight.
pub(super) struct Ticket<A> {
    agent: A,
    dice: Dice,
    wake: Wake,
    places: Arc<Places<A>>,
    /// Whether it holds a place.
    placed: bool,
    /// Whether the agent was told to leave, or will be as soon as it gets to work.
    leaving: bool,
}

/// The places of a lane, and the way back to it.
pub(super) struct Places<A> {
    taken: AtomicU32,
    /// Tickets come back through here when they have to wait.
    resting: flume::Sender<Resting<A>>,
    /// Told when a place has become free.
    freed: Notify,
    /// Of the retries of everybody here.
    budget: Budget,
}

impl<A: Agent> Ticket<A> {
    /// The ticket of an agent that is due now.
    pub fn new(agent: A, dice: Dice, due: Offset, places: &Arc<Places<A>>) -> Ticket<A> {
        Ticket {
            agent,
            dice,
            wake: Wake::Due(due),
            places: Arc::clone(places),
            placed: false,
            leaving: false,
        }
    }

    /// Takes a place. Only the lane does, so that there are never more than it allows.
    pub fn take_place(&mut self) {
        self.places.taken.fetch_add(1, Ordering::AcqRel);
        self.placed = true;
    }

    /// Lets the agent decide on what it was woken for.
    pub fn begin(&mut self, worker: &Worker, actions: &mut Vec<Action>) -> Then {
        let input = match self.wake {
            Wake::Due(due) => Input::Due { due },
            Wake::Timer(timer) => Input::Timer(timer),
            Wake::Leave => Input::Told(Order::Leave),
            Wake::Place(timeout) => return Then::Request(timeout),
        };
        self.decide(worker, input, actions)
    }

    fn decide(&mut self, worker: &Worker, input: Input<'_>, actions: &mut Vec<Action>) -> Then {
        self.decide_knowing(worker, input, None, actions)
    }

    /// Lets the agent decide, tells what it tells and `why` an attempt ended, and gives back what it wants. `actions` is room to work
    /// in, left empty.
    fn decide_knowing(
        &mut self,
        worker: &Worker,
        input: Input<'_>,
        why: Option<&str>,
        actions: &mut Vec<Action>,
    ) -> Then {
        let mut context = Context {
            dice: &mut self.dice,
            budget: &self.places.budget,
        };
        let now = worker.clock.now();
        self.agent.on(now, input, &mut context, actions);
        let mut then = Then::End;
        for action in actions.drain(..) {
            match action {
                Action::Tell(event) => tell(&worker.sink, event, why),
                Action::Request { timeout } => then = Then::Request(timeout),
                Action::WakeAt(timer, at) => then = Then::Rest(timer, at),
                Action::HandOver {
                    docks,
                    dock,
                    handed,
                } => worker.docks.hand(docks, dock, handed),
                // The rest is what hubs and docks do.
                _ => {}
            }
        }
        then
    }

    /// What came of the agent's request; what it wants now.
    pub fn answered(
        &mut self,
        worker: &Worker,
        answered: &Answered,
        actions: &mut Vec<Action>,
    ) -> Then {
        let reply = Reply {
            result: answered.result,
            body: &answered.body,
            retry_after: answered.retry_after,
        };
        let why = answered.why.as_deref();
        self.decide_knowing(worker, Input::Reply(reply), why, actions)
    }

    /// The request that the agent has decided on is sent when there is a place for it.
    pub fn ask_later(&mut self, timeout: Duration) {
        self.wake = Wake::Place(timeout);
    }

    /// The agent's time is over: it is told to leave as soon as it gets to work.
    pub fn call(&mut self) {
        self.wake = Wake::Leave;
        self.leaving = true;
    }

    /// Tells the agent to leave; what it wants now.
    pub fn leave(&mut self, worker: &Worker, actions: &mut Vec<Action>) -> Then {
        self.leaving = true;
        self.decide(worker, Input::Told(Order::Leave), actions)
    }

    /// Whether the agent's time is over.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// The run is over for this agent.
    pub fn stop(mut self, worker: &Worker, actions: &mut Vec<Action>) {
        self.decide(worker, Input::Told(Order::Stop), actions);
    }

    /// Who decides.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// Gives the place back; a ticket that has to wait goes back to its lane.
    pub fn settle(mut self, then: Then) {
        let Then::Rest(timer, at) = then else { return };
        self.wake = Wake::Timer(timer);
        let places = Arc::clone(&self.places);
        let was_placed = std::mem::take(&mut self.placed);
        // A lane that has ended takes nobody back; it has told what was unfinished.
        let _ = places.resting.send(Resting { at, ticket: self });
        // Only now, so that the lane never sees a free place and nobody resting.
        if was_placed {
            places.leave();
        }
    }
}

impl<A> Drop for Ticket<A> {
    fn drop(&mut self) {
        if self.placed {
            self.places.leave();
        }
    }
}

impl<A> Places<A> {
    /// Nobody in flight; who has to wait comes back through `resting`, and `budget` pays for retries.
    pub fn new(resting: flume::Sender<Resting<A>>, budget: Budget) -> Places<A> {
        Places {
            taken: AtomicU32::new(0),
            resting,
            freed: Notify::new(),
            budget,
        }
    }

    /// How many are taken.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Acquire)
    }

    /// Waits for a moment at which a place became free.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
        self.freed.notify_one();
    }
}

/// A ticket that waits, ordered by its time.
pub(super) struct Resting<A> {
    pub at: Offset,
    pub ticket: Ticket<A>,
}

impl<A> PartialEq for Resting<A> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<A> Eq for Resting<A> {}

impl<A> PartialOrd for Resting<A> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<A> Ord for Resting<A> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

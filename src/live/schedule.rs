//! Brings agents to work when they are due: arrivals by their schedule, and agents whose wait is over.
//!
//! Decides when an agent is handed to a worker and whether there is room for it. Late agents catch up; the schedule is never
//! shifted. Who waits for a timer holds no worker. Knows neither HTTP nor what an agent is about.

use crate::agents::{Action, Agent, Context, Input, Order, Reply, ReplyResult, Timer};
use crate::arrivals::Schedule;
use crate::dice::Dice;
use crate::event::{Offset, Outcome, Sink};
use crate::net::clock::Clock;
use crate::net::http::Answer;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long workers may take to let go of what they have in flight.
const LONGEST_CUT: Duration = Duration::from_secs(1);

/// What lanes are told from outside.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Orders {
    /// Where `0:00` is; nothing arrives before it is known.
    pub zero: Option<Offset>,
    /// Arrivals go on past the load's end at their last rate.
    pub go_on: bool,
    pub stop: Option<Stop>,
}

/// The end of arrivals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    /// Nobody arrives who is due after this; who was due before still does.
    pub at: Offset,
    /// Until when who is on the way may go on.
    pub by: Offset,
}

/// The arrivals of one group, one after the other.
#[derive(Debug)]
pub(super) struct Arrivals {
    schedule: Schedule,
    load: Duration,
    /// Number of the next arrival, from 1.
    next: u64,
}

impl Arrivals {
    /// The arrivals of `schedule` for as long as the load lasts.
    pub fn new(schedule: Schedule, load: Duration) -> Arrivals {
        Arrivals {
            schedule,
            load,
            next: 1,
        }
    }

    /// The number and due time of the next arrival; `None` if there is none under these orders.
    pub fn peek(&self, orders: &Orders) -> Option<(u64, Offset)> {
        let zero = orders.zero?;
        // A group that had ended before the load did has no rate to go on at.
        let due = if orders.go_on && self.schedule.lasts() >= self.load {
            self.schedule.due_extended(self.next)?
        } else {
            self.schedule.due(self.next)?
        };
        let at = zero.after(due);
        let over = orders.stop.is_some_and(|stop| at > stop.at);
        (!over && (orders.go_on || due <= self.load)).then_some((self.next, at))
    }

    /// Goes on to the arrival behind the one that [`Arrivals::peek`] told.
    pub fn advance(&mut self) {
        self.next += 1;
    }
}

/// The lanes of all groups of one kind, and what they are told.
pub(super) struct Lanes {
    clock: Clock,
    orders: watch::Sender<Orders>,
    cut: CancellationToken,
    lanes: Vec<Lane>,
}

impl Lanes {
    /// No lanes yet; they take their orders from [`Lanes::orders`] and share the cut.
    pub fn new(clock: Clock, cut: CancellationToken) -> Lanes {
        Lanes {
            clock,
            orders: watch::Sender::default(),
            cut,
            lanes: Vec::new(),
        }
    }

    pub fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    pub fn add<A: Agent + Send + 'static>(&mut self, setup: LaneSetup<A>) {
        self.lanes.push(Lane::start(setup));
    }

    /// Lets arrivals begin: `0:00` is at `zero`.
    pub fn begin(&self, zero: Offset) {
        self.orders.send_modify(|orders| orders.zero = Some(zero));
    }

    /// Lets arrivals go on past the load's end at their last rate, until the stop.
    pub fn go_on(&self) {
        self.orders.send_modify(|orders| orders.go_on = true);
    }

    /// Agents that wait for an answer now.
    pub fn in_flight(&self) -> u32 {
        self.lanes.iter().map(Lane::in_flight).sum()
    }

    /// Ends arrivals, lets who is on the way go on until `deadline`, then cuts everybody off. All is told when it returns.
    pub async fn stop(&mut self, deadline: Offset) {
        let at = self.clock.now();
        self.orders
            .send_modify(|orders| orders.stop = Some(Stop { at, by: deadline }));
        let by = self.clock.instant(deadline);
        if tokio::time::timeout_at(by, self.ended()).await.is_err() {
            self.cut.cancel();
            self.ended().await;
        }
        self.cut.cancel();
    }

    async fn ended(&mut self) {
        while let Some(lane) = self.lanes.last_mut() {
            // A lane that panicked has ended, too; the panic is on stderr.
            let _ = (&mut lane.task).await;
            self.lanes.pop();
        }
    }
}

/// Why an agent gets to work.
#[derive(Debug, Clone, Copy)]
enum Wake {
    Due(Offset),
    Timer(Timer),
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
}

impl Answered {
    /// It did not leave.
    pub fn not_sent() -> Answered {
        Answered {
            result: ReplyResult::Failed(Outcome::NotSent),
            body: Vec::new(),
        }
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
        }
    }
}

/// The time and the ears of whoever performs requests.
#[derive(Clone)]
pub(super) struct Worker {
    pub clock: Clock,
    pub sink: Sink,
}

/// One agent on its way, with a place among those in flight.
pub(super) struct Ticket<A> {
    agent: A,
    dice: Dice,
    wake: Wake,
    lane: Arc<Shared<A>>,
    /// Whether it holds a place.
    placed: bool,
}

/// What the lane and its tickets share.
struct Shared<A> {
    in_flight: AtomicU32,
    /// Tickets come back through here when they have to wait.
    resting: flume::Sender<Resting<A>>,
    /// Told whenever a place becomes free while the lane waits for that.
    freed: Notify,
}

impl<A: Agent> Ticket<A> {
    /// Lets the agent decide on what it was woken for.
    pub fn begin(&mut self, worker: &Worker, actions: &mut Vec<Action>) -> Then {
        let input = match self.wake {
            Wake::Due(due) => Input::Due { due },
            Wake::Timer(timer) => Input::Timer(timer),
        };
        self.decide(worker, input, actions)
    }

    /// Lets the agent decide, tells what it tells, and gives back what it wants. `actions` is room to work in, left empty.
    fn decide(&mut self, worker: &Worker, input: Input<'_>, actions: &mut Vec<Action>) -> Then {
        let mut context = Context {
            dice: &mut self.dice,
        };
        let now = worker.clock.now();
        self.agent.on(now, input, &mut context, actions);
        let mut then = Then::End;
        for action in actions.drain(..) {
            match action {
                Action::Tell(event) => (worker.sink)(event),
                Action::Request { timeout } => then = Then::Request(timeout),
                Action::WakeAt(timer, at) => then = Then::Rest(timer, at),
                // The rest is what hubs do.
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
        };
        self.decide(worker, Input::Reply(reply), actions)
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
        let lane = Arc::clone(&self.lane);
        let was_placed = std::mem::take(&mut self.placed);
        // A lane that has ended takes nobody back; it has told what was unfinished.
        let _ = lane.resting.send(Resting { at, ticket: self });
        // Only now, so that the lane never sees a free place and nobody resting.
        if was_placed {
            lane.leave();
        }
    }
}

impl<A> Drop for Ticket<A> {
    fn drop(&mut self) {
        if self.placed {
            self.lane.leave();
        }
    }
}

impl<A> Shared<A> {
    fn leave(&self) {
        if self.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.freed.notify_one();
        }
    }
}

/// A ticket that waits, ordered by its time.
struct Resting<A> {
    at: Offset,
    ticket: Ticket<A>,
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

/// What a lane is made of.
pub(super) struct LaneSetup<A> {
    pub arrivals: Arrivals,
    pub max_in_flight: u32,
    /// The agent of the n-th arrival and its dice.
    pub agent: Box<dyn Fn(u64) -> (A, Dice) + Send>,
    /// Hands a ticket to a worker. Must not wait.
    pub dispatch: Box<dyn Fn(Ticket<A>) + Send>,
    pub worker: Worker,
    pub orders: watch::Receiver<Orders>,
    /// Cancelled when nobody may go on any more.
    pub cut: CancellationToken,
}

/// A lane at work.
struct Lane {
    task: JoinHandle<()>,
    in_flight: Box<dyn Fn() -> u32 + Send + Sync>,
}

impl Lane {
    /// Starts the lane of one group. It ends by itself once it was told to stop and everybody has come to an end, or soon after
    /// the cut.
    fn start<A: Agent + Send + 'static>(setup: LaneSetup<A>) -> Lane {
        let (sender, returned) = flume::unbounded();
        let shared = Arc::new(Shared {
            in_flight: AtomicU32::new(0),
            resting: sender,
            freed: Notify::new(),
        });
        let counted = Arc::clone(&shared);
        let mut work = Work {
            setup,
            shared,
            returned,
            resting: BinaryHeap::new(),
            actions: Vec::new(),
        };
        Lane {
            task: tokio::spawn(async move { work.run().await }),
            in_flight: Box::new(move || counted.in_flight.load(Ordering::Relaxed)),
        }
    }

    /// Agents that wait for an answer now.
    fn in_flight(&self) -> u32 {
        (self.in_flight)()
    }
}

/// The lane's own state.
struct Work<A> {
    setup: LaneSetup<A>,
    shared: Arc<Shared<A>>,
    returned: flume::Receiver<Resting<A>>,
    resting: BinaryHeap<Reverse<Resting<A>>>,
    actions: Vec<Action>,
}

impl<A: Agent + Send + 'static> Work<A> {
    async fn run(&mut self) {
        let cut = self.setup.cut.clone();
        let mut orders_end = false;
        loop {
            let orders = *self.setup.orders.borrow_and_update();
            let wake = self.release(&orders);
            if wake.is_none() && orders.stop.is_some() && self.is_empty() {
                return;
            }
            let wake_at = self.setup.worker.clock.instant(wake.unwrap_or_default());
            tokio::select! {
                biased;
                () = cut.cancelled() => break,
                changed = self.setup.orders.changed(), if !orders_end => orders_end = changed.is_err(),
                returned = self.returned.recv_async() => self.resting.extend(returned.ok().map(Reverse)),
                () = self.shared.freed.notified(), if orders.stop.is_some() => {}
                () = tokio::time::sleep_until(wake_at), if wake.is_some() => {}
            }
        }
        let all_stopped = async {
            while self.shared.in_flight.load(Ordering::Acquire) > 0 {
                self.shared.freed.notified().await;
            }
        };
        // Workers see the cut at once; one that died must not hold up the end of the run.
        let _ = tokio::time::timeout(LONGEST_CUT, all_stopped).await;
        self.take_returned();
        while let Some(Reverse(resting)) = self.resting.pop() {
            self.stop(resting.ticket);
        }
    }

    fn is_empty(&self) -> bool {
        // In this order: a ticket comes back before it leaves its place.
        self.shared.in_flight.load(Ordering::Acquire) == 0
            && self.returned.is_empty()
            && self.resting.is_empty()
    }

    fn take_returned(&mut self) {
        self.resting.extend(self.returned.try_iter().map(Reverse));
    }

    fn stop(&mut self, ticket: Ticket<A>) {
        ticket.stop(&self.setup.worker, &mut self.actions);
    }

    /// Sends everybody who is due on the way and answers when the next one will be.
    fn release(&mut self, orders: &Orders) -> Option<Offset> {
        self.take_returned();
        loop {
            let now = self.setup.worker.clock.now();
            let arrival = self.setup.arrivals.peek(orders);
            let rested = self.resting.peek().map(|Reverse(resting)| resting.at);
            let due = match (arrival, rested) {
                (Some((_, due)), Some(at)) => due.min(at),
                (Some((_, due)), None) => due,
                (None, at) => at?,
            };
            if orders.stop.is_some_and(|stop| due > stop.by) {
                // Nobody can be back before the end any more; later ones come after this one.
                while let Some(Reverse(resting)) = self.resting.pop() {
                    self.stop(resting.ticket);
                }
                return None;
            }
            if due > now {
                return Some(due);
            }
            match arrival {
                Some((number, at)) if at == due => {
                    self.setup.arrivals.advance();
                    let (agent, dice) = (self.setup.agent)(number);
                    self.admit(Ticket {
                        agent,
                        dice,
                        wake: Wake::Due(due),
                        lane: Arc::clone(&self.shared),
                        placed: false,
                    });
                }
                _ => {
                    if let Some(Reverse(resting)) = self.resting.pop() {
                        self.admit(resting.ticket);
                    }
                }
            }
        }
    }

    /// Hands the ticket to a worker if there is a place for it; otherwise its request is not sent.
    fn admit(&mut self, mut ticket: Ticket<A>) {
        // Only the lane takes places, so nobody can take this one in between.
        if self.shared.in_flight.load(Ordering::Acquire) < self.setup.max_in_flight {
            self.shared.in_flight.fetch_add(1, Ordering::AcqRel);
            ticket.placed = true;
            (self.setup.dispatch)(ticket);
            return;
        }
        let (worker, actions) = (&self.setup.worker, &mut self.actions);
        let mut then = ticket.begin(worker, actions);
        // No agent tries again at once what had no room to leave.
        while let Then::Request(_) = then {
            then = ticket.answered(worker, &Answered::not_sent(), actions);
        }
        ticket.settle(then);
    }
}

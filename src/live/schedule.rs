//! Brings agents to work when they are due: arrivals by their schedule, and agents whose wait is over.
//!
//! Decides when an agent is handed to a worker and whether there is room for it. Late agents catch up; the schedule is never
//! shifted. Who waits for a timer holds no worker. Knows neither HTTP nor what an agent is about.

use super::ticket::{Answered, Places, Resting, Then, Ticket, Worker};
use crate::agents::{Action, Agent};
use crate::arrivals::Schedule;
use crate::dice::Dice;
use crate::event::Offset;
use crate::net::clock::Clock;
use crate::retry::Budget;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long workers may take to let go of what they have in flight.
const LONGEST_CUT: Duration = Duration::from_secs(1);

/// After so many a lane looks at its orders again, however late it is.
const MOST_AT_ONCE: u32 = 1_024;

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
    /// Until when who has been told to leave may go on.
    pub last: Offset,
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
    /// Cancelled when everybody is to leave.
    leave: CancellationToken,
    cut: CancellationToken,
    /// How long leaving may take.
    grace: Duration,
    lanes: Vec<Lane>,
}

impl Lanes {
    /// No lanes yet; they take their orders from [`Lanes::orders`] and share the cut. Nobody takes time to leave.
    pub fn new(clock: Clock, cut: CancellationToken) -> Lanes {
        Lanes::with_grace(clock, CancellationToken::new(), cut, Duration::ZERO)
    }

    /// The same where leaving may take so long; workers watch `leave`.
    pub fn with_grace(
        clock: Clock,
        leave: CancellationToken,
        cut: CancellationToken,
        grace: Duration,
    ) -> Lanes {
        Lanes {
            clock,
            orders: watch::Sender::default(),
            leave,
            cut,
            grace,
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

    /// Ends arrivals, lets who is on the way go on until `deadline`, tells everybody to leave, and cuts off who has not left when the
    /// time for it is over. All is told when it returns.
    pub async fn stop(&mut self, deadline: Offset) {
        let (at, last) = (self.clock.now(), deadline.after(self.grace));
        let stop = Stop {
            at,
            by: deadline,
            last,
        };
        self.orders.send_modify(|orders| orders.stop = Some(stop));
        for (until, token) in [(deadline, self.leave.clone()), (last, self.cut.clone())] {
            let until = self.clock.instant(until);
            if tokio::time::timeout_at(until, self.ended()).await.is_ok() {
                return;
            }
            token.cancel();
        }
        self.ended().await;
    }

    async fn ended(&mut self) {
        while let Some(lane) = self.lanes.last_mut() {
            // A lane that panicked has ended, too; the panic is on stderr.
            let _ = (&mut lane.task).await;
            self.lanes.pop();
        }
    }
}

impl Drop for Lanes {
    /// Nobody is left on the way when the run fails elsewhere.
    fn drop(&mut self) {
        self.cut.cancel();
    }
}

/// What a lane is made of.
pub(super) struct LaneSetup<A> {
    pub arrivals: Arrivals,
    pub max_in_flight: u32,
    /// Of the group's retries.
    pub budget: Budget,
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
    fn start<A: Agent + Send + 'static>(mut setup: LaneSetup<A>) -> Lane {
        let (sender, returned) = flume::unbounded();
        let budget = std::mem::replace(&mut setup.budget, Budget::unlimited());
        let places = Arc::new(Places::new(sender, budget));
        let counted = Arc::clone(&places);
        let mut work = Work {
            setup,
            places,
            returned,
            resting: BinaryHeap::new(),
            waiting: VecDeque::new(),
            called: false,
            actions: Vec::new(),
        };
        Lane {
            task: tokio::spawn(async move { work.run().await }),
            in_flight: Box::new(move || counted.taken()),
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
    places: Arc<Places<A>>,
    returned: flume::Receiver<Resting<A>>,
    resting: BinaryHeap<Reverse<Resting<A>>>,
    /// Who has something left that must be asked, and no place to ask it in; the first come first.
    waiting: VecDeque<Ticket<A>>,
    /// Whether those who rest have been called since the stop.
    called: bool,
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
                returned = self.returned.recv_async() => self.rest(returned.ok(), &orders),
                () = self.places.freed(), if orders.stop.is_some() || !self.waiting.is_empty() => {}
                () = tokio::time::sleep_until(wake_at), if wake.is_some() => {}
            }
        }
        let all_stopped = async {
            while self.places.taken() > 0 {
                self.places.freed().await;
            }
        };
        // Workers see the cut at once; one that died must not hold up the end of the run.
        let _ = tokio::time::timeout(LONGEST_CUT, all_stopped).await;
        self.resting.extend(self.returned.try_iter().map(Reverse));
        while let Some(Reverse(resting)) = self.resting.pop() {
            self.stop(resting.ticket);
        }
        while let Some(mut ticket) = self.waiting.pop_front() {
            // It never left, and that is told.
            let worker = &self.setup.worker;
            ticket.answered(worker, &Answered::not_sent(), &mut self.actions);
            self.stop(ticket);
        }
    }

    fn is_empty(&self) -> bool {
        // In this order: a ticket comes back before it leaves its place.
        let nobody_rests = self.returned.is_empty() && self.resting.is_empty();
        self.places.taken() == 0 && nobody_rests && self.waiting.is_empty()
    }

    /// Lets those rest who came back to wait. Once the load is over, who would wait for too long is called at once.
    fn rest(&mut self, returned: impl IntoIterator<Item = Resting<A>>, orders: &Orders) {
        let stop = orders.stop;
        self.resting.extend(returned.into_iter().map(|mut resting| {
            if let Some(stop) = stop {
                call(&mut resting, stop);
            }
            Reverse(resting)
        }));
    }

    fn take_returned(&mut self, orders: &Orders) {
        if !self.called && orders.stop.is_some() {
            self.called = true;
            let resting = std::mem::take(&mut self.resting);
            self.rest(resting.into_iter().map(|Reverse(resting)| resting), orders);
        }
        let returned: Vec<Resting<A>> = self.returned.try_iter().collect();
        self.rest(returned, orders);
    }

    fn stop(&mut self, ticket: Ticket<A>) {
        ticket.stop(&self.setup.worker, &mut self.actions);
    }

    /// Sends everybody who is due on the way and answers when the next one will be.
    fn release(&mut self, orders: &Orders) -> Option<Offset> {
        self.take_returned(orders);
        while self.has_room()
            && let Some(mut ticket) = self.waiting.pop_front()
        {
            ticket.take_place();
            (self.setup.dispatch)(ticket);
        }
        let mut released = 0;
        loop {
            let now = self.setup.worker.clock.now();
            let arrival = self.setup.arrivals.peek(orders);
            let rested = self.resting.peek().map(|Reverse(resting)| resting.at);
            let due = match (arrival, rested) {
                (Some((_, due)), Some(at)) => due.min(at),
                (Some((_, due)), None) => due,
                (None, at) => at?,
            };
            if orders.stop.is_some_and(|stop| due > stop.last) {
                // Nobody can be back before the end any more; later ones come after this one.
                while let Some(Reverse(resting)) = self.resting.pop() {
                    self.stop(resting.ticket);
                }
                return None;
            }
            if due > now || released == MOST_AT_ONCE {
                return Some(due);
            }
            released += 1;
            match arrival {
                Some((number, at)) if at == due => {
                    self.setup.arrivals.advance();
                    let (agent, dice) = (self.setup.agent)(number);
                    self.admit(Ticket::new(agent, dice, due, &self.places));
                }
                _ => {
                    let Some(Reverse(resting)) = self.resting.pop() else {
                        continue;
                    };
                    // What must be done at the end is not left out for want of room; the lane looks again when a place is free.
                    if resting.ticket.is_leaving() && !self.has_room() {
                        self.resting.push(Reverse(resting));
                        return None;
                    }
                    self.admit(resting.ticket);
                }
            }
        }
    }

    fn has_room(&self) -> bool {
        self.places.taken() < self.setup.max_in_flight
    }

    /// Hands the ticket to a worker if there is a place for it; otherwise its request is not sent.
    fn admit(&mut self, mut ticket: Ticket<A>) {
        // Only the lane takes places, so nobody can take this one in between.
        if self.has_room() {
            ticket.take_place();
            (self.setup.dispatch)(ticket);
            return;
        }
        let (worker, actions) = (&self.setup.worker, &mut self.actions);
        let mut then = ticket.begin(worker, actions);
        // No agent tries again at once what had no room to leave.
        while let Then::Request(timeout) = then {
            if ticket.agent().is_closing() {
                // What must be asked however it ends waits for a place.
                ticket.ask_later(timeout);
                self.waiting.push_back(ticket);
                return;
            }
            then = ticket.answered(worker, &Answered::not_sent(), actions);
        }
        ticket.settle(then);
    }
}

/// Whoever would rest beyond the end of the agents' time is called now, if there is time for leaving at all.
fn call<A: Agent>(resting: &mut Resting<A>, stop: Stop) {
    if resting.at > stop.by && stop.last > stop.by && !resting.ticket.is_leaving() {
        resting.ticket.call();
        resting.at = stop.at;
    }
}

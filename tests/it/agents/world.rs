//! A driver in virtual time: the agents of a plan against a scripted target, one event after the other.
//!
//! It owes agents what `rushhour::agents` says that a driver owes them, and checks what they owe in return.

use super::account::Account;
use super::given::{Given, Occurrence};
use super::plans::{TAG, seconds};
use super::target::{Answer, Connect, Target, render};
use rushhour::agents::{
    Accepted, Action, Agent, Context, Hub, HubConfig, Input, Issuer, IssuerConfig, Order,
    ReplyResult, Rider, RiderConfig, Timer,
};
use rushhour::dice::Dice;
use rushhour::event::{AgentId, AgentKind, Cause, CommandId, Event, Offset, Outcome};
use rushhour::plan::fault::{How, TriggerKind};
use rushhour::plan::target::CommandSend;
use rushhour::plan::{self, Plan};
use rushhour::retry::Budget;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

/// When 0:00 is: hubs connect before.
pub const ZERO: Offset = Offset(60_000_000);

pub struct World {
    plan: Plan,
    target: Target,
    actors: Vec<Actor>,
    /// By group of hubs: the row of its first actor.
    hubs: Vec<usize>,
    queue: BinaryHeap<Reverse<(Offset, u64)>>,
    pending: BTreeMap<u64, (usize, Occurrence)>,
    budgets: BTreeMap<(AgentKind, usize), Arc<Budget>>,
    sequence: u64,
    now: Offset,
    /// Everything told, in order.
    pub told: Vec<(AgentId, Event)>,
    /// Every request, with its time and its `<intent>` or `<command>`.
    pub requests: Vec<(Offset, AgentId, String)>,
    /// Every ping and every end of a connection by a hub.
    pub pings: Vec<(Offset, AgentId)>,
    pub closes: Vec<(Offset, AgentId, How)>,
    /// When each hub was told to take its next certificate into use.
    pub renewals: Vec<(Offset, AgentId)>,
    /// Every attempt to connect, with its shard.
    pub connects: Vec<(Offset, AgentId, u16)>,
}

struct Actor {
    id: AgentId,
    agent: Player,
    dice: Dice,
    budget: Arc<Budget>,
    account: Account,
    /// The occurrence that each running timer waits for.
    timers: BTreeMap<u8, u64>,
    /// Counts connections and requests, so that nothing of an old one is told.
    session: u64,
    accepted: bool,
    done: bool,
}

enum Player {
    Hub(Hub),
    Rider(Rider),
    Issuer(Issuer),
}

impl World {
    /// All agents of the plan, with everything that the plan has in store for them.
    pub fn new(plan: Plan, target: Target) -> World {
        let mut world = World {
            plan,
            target,
            actors: Vec::new(),
            hubs: Vec::new(),
            queue: BinaryHeap::new(),
            pending: BTreeMap::new(),
            budgets: BTreeMap::new(),
            sequence: 0,
            now: Offset::ZERO,
            told: Vec::new(),
            requests: Vec::new(),
            pings: Vec::new(),
            closes: Vec::new(),
            renewals: Vec::new(),
            connects: Vec::new(),
        };
        world.add_hubs();
        world.add_visitors();
        world.add_triggers();
        world
    }

    /// The plan to its end, then `drain`, then the order to stop.
    pub fn run(plan: Plan, target: Target) -> World {
        let end = ZERO.after(plan.duration);
        let drain = plan.drain;
        let mut world = World::new(plan, target);
        world.run_until(end.after(drain));
        world.stop();
        world
    }

    /// Everything that happens up to `end`.
    pub fn run_until(&mut self, end: Offset) {
        while let Some(Reverse((at, sequence))) = self.queue.peek().copied() {
            if at > end {
                break;
            }
            self.queue.pop();
            let Some((row, occurrence)) = self.pending.remove(&sequence) else {
                continue;
            };
            self.now = at;
            match occurrence {
                Occurrence::Given(given) => self.give(row, &given),
                Occurrence::OfSession(session, given) if self.actors[row].session == session => {
                    self.give(row, &given);
                }
                Occurrence::OfSession(..) => {}
                Occurrence::Timer(timer) => {
                    self.actors[row].timers.remove(&(timer as u8));
                    self.turn(row, Input::Timer(timer));
                }
            }
        }
        self.now = end;
    }

    /// Tells everyone to stop, and checks that nothing is under way afterwards.
    pub fn stop(&mut self) {
        for row in 0..self.actors.len() {
            if !self.actors[row].done {
                self.give(row, &Given::Told(Order::Stop));
            }
            assert!(
                self.actors[row].done,
                "{:?} was told to stop and did not",
                self.actors[row].id
            );
        }
    }

    /// Started, finished and unfinished actions of all agents.
    pub fn sums(&self) -> (usize, usize, usize) {
        self.actors
            .iter()
            .map(|actor| &actor.account)
            .fold((0, 0, 0), |sums, account| {
                (
                    sums.0 + account.started,
                    sums.1 + account.finished,
                    sums.2 + account.unfinished,
                )
            })
    }

    /// A message on the command topic of a hub of the first group.
    pub fn deliver(&mut self, hub: usize, id: Option<CommandId>) {
        self.give(hub, &Given::Command(id, false));
    }

    /// Drops a hub of the first group, now.
    pub fn order(&mut self, hub: usize, how: How, away: Duration) {
        self.give(hub, &Given::Told(Order::Drop { how, away }));
    }

    /// From now on nothing that hubs publish is acknowledged.
    pub fn no_more_acknowledgements(&mut self) {
        self.target.acknowledge = Box::new(|_, _| false);
    }

    fn add_hubs(&mut self) {
        for group in 0..self.plan.hubs.len() {
            self.hubs.push(self.actors.len());
            let config = Arc::new(HubConfig::of(&self.plan, group));
            for index in 0..u64::from(self.plan.hubs[group].count) {
                let due = Offset::ZERO.after(config.first_connect(index));
                let row = self.add(
                    AgentKind::Hub,
                    group,
                    index,
                    Player::Hub(Hub::new(&config, index)),
                );
                self.plan_for(due, row, Occurrence::Given(Given::Due(due)));
            }
        }
    }

    fn add_visitors(&mut self) {
        for group in 0..self.plan.riders.len() {
            let config = Arc::new(RiderConfig::of(&self.plan, group, TAG));
            let schedule = self.plan.riders[group].arrivals.clone();
            for (n, due) in (1..).map_while(|n| Some((n, ZERO.after(schedule.due(n)?)))) {
                let row = self.add(
                    AgentKind::Rider,
                    group,
                    n,
                    Player::Rider(Rider::new(&config, n)),
                );
                self.plan_for(due, row, Occurrence::Given(Given::Due(due)));
            }
        }
        for group in 0..self.plan.issuers.len() {
            let config = Arc::new(IssuerConfig::of(&self.plan, group, TAG));
            let schedule = self.plan.issuers[group].arrivals.clone();
            for (n, due) in (1..).map_while(|n| Some((n, ZERO.after(schedule.due(n)?)))) {
                let row = self.add(
                    AgentKind::Issuer,
                    group,
                    n,
                    Player::Issuer(Issuer::new(&config, n)),
                );
                self.plan_for(due, row, Occurrence::Given(Given::Due(due)));
            }
        }
    }

    fn add_triggers(&mut self) {
        for trigger in self.plan.triggers.clone() {
            let TriggerKind::Disconnect(disconnect) = trigger.kind else {
                continue;
            };
            let count = self.plan.hubs[disconnect.group].count;
            let order = Order::Drop {
                how: disconnect.by,
                away: disconnect.away,
            };
            for (index, after) in disconnect.drops(self.plan.seed, count) {
                let row = self.hubs[disconnect.group] + index as usize;
                let at = ZERO.after(trigger.at + after);
                self.plan_for(at, row, Occurrence::Given(Given::Told(order)));
            }
        }
    }

    fn add(&mut self, kind: AgentKind, group: usize, index: u64, agent: Player) -> usize {
        let id = AgentId {
            kind,
            group: u16::try_from(group).expect("few groups"),
            index,
        };
        let bucket = || Arc::new(self.plan.budget(kind, group));
        let budget = self.budgets.entry((kind, group)).or_insert_with(bucket);
        let budget = Arc::clone(budget);
        self.actors.push(Actor {
            id,
            agent,
            dice: Dice::of(self.plan.seed, id),
            budget,
            account: Account::default(),
            timers: BTreeMap::new(),
            session: 0,
            accepted: false,
            done: false,
        });
        self.actors.len() - 1
    }

    fn plan_for(&mut self, at: Offset, row: usize, occurrence: Occurrence) -> u64 {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.pending.insert(self.sequence, (row, occurrence));
        self.sequence
    }

    /// Something that comes back from the target in the current session.
    fn bring(&mut self, row: usize, after: Duration, given: Given) {
        let session = self.actors[row].session;
        self.plan_for(
            self.now.after(after),
            row,
            Occurrence::OfSession(session, given),
        );
    }

    pub fn give(&mut self, row: usize, given: &Given) {
        let body = self.target.body.as_bytes();
        let input = given.input(body);
        match given {
            Given::Accepted(_) => self.actors[row].accepted = true,
            Given::Lost(..) => self.forget(row),
            _ => {}
        }
        self.turn(row, input);
    }

    fn turn(&mut self, row: usize, input: Input<'_>) {
        let actor = &mut self.actors[row];
        let mut out = Vec::new();
        let mut context = Context {
            dice: &mut actor.dice,
            budget: &actor.budget,
        };
        match &mut actor.agent {
            Player::Hub(hub) => hub.on(self.now, input, &mut context, &mut out),
            Player::Rider(rider) => rider.on(self.now, input, &mut context, &mut out),
            Player::Issuer(issuer) => issuer.on(self.now, input, &mut context, &mut out),
        }
        assert!(
            !actor.done || out.is_empty(),
            "{:?} is done and wants {out:?}",
            actor.id
        );
        for action in out {
            self.perform(row, action);
        }
    }

    fn perform(&mut self, row: usize, action: Action) {
        let delay = self.target.delay();
        let id = self.actors[row].id;
        assert!(
            !self.actors[row].done,
            "{id:?} is done and wants {action:?}"
        );
        match action {
            Action::Connect { shard } => {
                self.connects.push((self.now, id, shard));
                self.connect(row);
            }
            Action::Find => {
                let found = (self.target.find)(self.now, &mut self.target.dice);
                self.bring(row, delay, Given::Found(found));
            }
            Action::Renew => self.renewals.push((self.now, id)),
            Action::Subscribe => self.bring(row, delay, Given::Subscribed),
            Action::Close(how) => {
                self.forget(row);
                self.closes.push((self.now, id, how));
            }
            Action::Leave => {
                self.forget(row);
                self.closes.push((self.now, id, How::Disconnect));
            }
            Action::Reauthenticate => self.bring(row, delay, Given::Reauthenticated),
            Action::Ping => {
                self.pings.push((self.now, id));
                if (self.target.pong)(self.now, &mut self.target.dice) {
                    self.bring(row, delay, Given::Pong);
                }
            }
            Action::Publish { token, .. } => {
                if (self.target.acknowledge)(self.now, &mut self.target.dice) {
                    self.bring(row, delay, Given::Published(token));
                }
            }
            Action::Request { timeout } => self.request(row, timeout),
            Action::WakeAt(timer, at) => {
                assert!(at >= self.now, "{id:?} wants {timer:?} in the past");
                self.cancel(row, timer);
                let sequence = self.plan_for(at, row, Occurrence::Timer(timer));
                self.actors[row].timers.insert(timer as u8, sequence);
            }
            Action::Cancel(timer) => self.cancel(row, timer),
            Action::Tell(event) => {
                self.actors[row].account.take(&event);
                self.told.push((id, event));
            }
            Action::Done => {
                let actor = &mut self.actors[row];
                actor.done = true;
                assert_eq!(
                    actor.account.under_way(),
                    0,
                    "{id:?} is done with actions under way"
                );
                for (_, sequence) in std::mem::take(&mut actor.timers) {
                    self.pending.remove(&sequence);
                }
            }
            // A dock acknowledges at once; docks have a stage of their own.
            Action::HandOver { .. } => {}
            Action::Post { .. } | Action::Abandon { .. } | Action::Left(_) => {
                panic!("{id:?} wants {action:?}")
            }
        }
    }

    /// Nothing of the connection is told any more.
    fn forget(&mut self, row: usize) {
        self.actors[row].session += 1;
        self.actors[row].accepted = false;
    }

    fn cancel(&mut self, row: usize, timer: Timer) {
        if let Some(sequence) = self.actors[row].timers.remove(&(timer as u8)) {
            self.pending.remove(&sequence);
        }
    }

    fn connect(&mut self, row: usize) {
        self.forget(row);
        let (open, accept) = (self.target.delay(), self.target.delay());
        match (self.target.connect)(self.now, &mut self.target.dice) {
            Connect::Fails(outcome) => self.bring(row, open, Given::Lost(outcome, Cause::Closed)),
            Connect::Silence => self.bring(row, open, Given::Opened),
            Connect::RefusesLogin(code) => {
                self.bring(row, open, Given::Opened);
                self.bring(
                    row,
                    open + accept,
                    Given::Lost(Outcome::Refused(code), Cause::Closed),
                );
            }
            Connect::Works => {
                self.bring(row, open, Given::Opened);
                self.bring(row, open + accept, Given::Accepted(Accepted::default()));
                if let Some(lives) = (self.target.session)(self.now, &mut self.target.dice) {
                    self.bring(
                        row,
                        open + accept + lives,
                        Given::Lost(Outcome::Reset, Cause::Reset),
                    );
                }
            }
        }
    }

    fn request(&mut self, row: usize, timeout: Duration) {
        let (key, right, command) = self.describe(row);
        self.requests.push((self.now, self.actors[row].id, key));
        let delay = self.target.delay().min(timeout);
        let answer = (self.target.request)(self.now, &mut self.target.dice);
        let (after, result) = match answer {
            Answer::Silence => (timeout, ReplyResult::Failed(Outcome::TimedOut)),
            Answer::Reply(result) => (delay, result),
            Answer::Right => (delay, right),
        };
        self.bring(row, after, Given::Reply(result));
        if let (Answer::Right, Some((id, hub))) = (answer, command) {
            self.deliver_later(row, id, hub);
        }
    }

    /// The `<intent>` or `<command>` of the actor's request, the right answer to it, and the command in it.
    fn describe(&self, row: usize) -> (String, ReplyResult, Option<(CommandId, u64)>) {
        let right = |answer: &plan::target::Answer| {
            ReplyResult::Status(answer.ok.first().copied().unwrap_or(200))
        };
        let mut key = String::new();
        match &self.actors[row].agent {
            Player::Hub(_) => panic!("a hub sends no requests"),
            Player::Rider(rider) => {
                let request = rider.request().expect("the current step is a request");
                render(request, &|name, out| rider.value(name, out));
                assert!(rider.value("intent", &mut key));
                (key, right(&request.answer), None)
            }
            Player::Issuer(issuer) => {
                assert!(issuer.value("command", &mut key));
                let result = match issuer.send() {
                    CommandSend::Publish(_) => ReplyResult::Accepted,
                    CommandSend::Http(request) => {
                        render(request, &|name, out| issuer.value(name, out));
                        right(&request.answer)
                    }
                };
                (key, result, Some((issuer.command(), issuer.hub())))
            }
        }
    }

    /// Brings an accepted command to its hub, if that is connected when it comes.
    fn deliver_later(&mut self, issuer: usize, id: CommandId, hub: u64) {
        let group = self.plan.issuers[usize::from(self.actors[issuer].id.group)].to;
        let row = self.hubs[group] + usize::try_from(hub).expect("few hubs");
        if self.actors[row].accepted {
            let delay = self.target.delay();
            self.bring(row, delay, Given::Command(Some(id), false));
        }
    }
}

/// Offset of a time after 0:00.
pub fn at(after_zero: u64) -> Offset {
    ZERO.after(seconds(after_zero))
}

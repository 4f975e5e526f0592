//! One hub over a real socket: a small task that performs what the agent decides.
//!
//! Everything that many hubs share is in [`Group`]. A hub owns its socket, its timers and its dice; buffers, topics and
//! payloads exist only while they are used.

mod opening;
mod session;

use super::Group;
use super::link::{Brought, Link, Phase};
use super::orders::Board;
use super::timers::{NEVER, Timers};
use crate::agents::{Action, Agent, Context as Deciding, Hub, Input, Message, Order, ShardRow};
use crate::dice::Dice;
use crate::event::{AgentId, AgentKind, Cause, Event, Offset, Outcome, PacketKind};
use crate::live::greeting::AGAIN;
use crate::live::mqtt::{Connection, Disconnect, Packet, Property, Publish, Subscribe, kind};
use crate::live::shards::{Speaker, render};
use crate::net::connect::Source;
use crate::net::tls::Credentials;
use crate::plan::fault::How;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

/// A day: an idle timer looks that far.
const FAR: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct HubTask {
    group: Arc<Group>,
    agent: Hub,
    dice: Dice,
    link: Link,
    timers: Timers,
    /// What it brings to TLS; made for its first handshake.
    credentials: Option<Box<Credentials>>,
    /// Packet id and token of QoS 1 publishes without PUBACK.
    unanswered: Vec<(u16, u64)>,
    index: u32,
    /// Where it connects or is connected.
    shard: ShardRow,
    /// How often it has renewed its certificate.
    generation: u32,
    /// Waves read on the board.
    read: u32,
    next_packet: u16,
    done: bool,
}

impl HubTask {
    pub(super) fn new(group: Arc<Group>, index: u32) -> HubTask {
        let id = AgentId {
            kind: AgentKind::Hub,
            group: group.row,
            index: u64::from(index),
        };
        HubTask {
            agent: Hub::new(&group.config, u64::from(index)),
            dice: Dice::of(group.plan.seed, id),
            group,
            link: Link::Idle,
            timers: Timers::none(),
            credentials: None,
            unanswered: Vec::new(),
            index,
            shard: ShardRow::default(),
            generation: 0,
            read: 0,
            next_packet: 0,
            done: false,
        }
    }

    /// Runs until the agent is done or the fleet is gone.
    pub(super) async fn run(mut self, mut board: watch::Receiver<Board>, began: Offset) {
        let group = Arc::clone(&self.group);
        let due = began.after(group.config.first_connect(u64::from(self.index)));
        // Taken before the agent begins, so that waiting for it is lag and never part of an attempt.
        let mut permit = tokio::select! {
            permit = first_turn(&group, self.home(), due) => permit,
            _ = board.wait_for(Board::stops) => {
                self.turn(Input::Told(Order::Stop));
                return;
            }
        };
        self.turn(Input::Due { due });
        let mut order = board.borrow_and_update().next(self.index, &mut self.read);
        let mut sleep = pin!(sleep_until(Instant::now() + FAR));
        while !self.done {
            if !matches!(self.link, Link::Finding(_) | Link::Connecting(_)) {
                permit = None;
            }
            let wake = self.next_wake(order);
            let instant = if wake == NEVER {
                Instant::now() + FAR
            } else {
                group.clock.instant(wake)
            };
            // An armed timer that comes too early costs less than moving it with every packet.
            if instant < sleep.deadline() || sleep.is_elapsed() {
                sleep.as_mut().reset(instant);
            }
            tokio::select! {
                biased;
                changed = board.changed() => match changed {
                    Ok(()) => order = board.borrow_and_update().next(self.index, &mut self.read),
                    Err(_) => return,
                },
                () = sleep.as_mut() => {
                    self.fire();
                    if let Some((_, due)) = order.filter(|(at, _)| *at <= group.clock.now()) {
                        self.read += u32::from(due != Order::Stop);
                        self.turn(Input::Told(due));
                        order = board.borrow().next(self.index, &mut self.read);
                    }
                }
                brought = poll_fn(|context| self.link.poll(context)) => self.take(brought),
            }
        }
        drop(permit);
    }

    fn next_wake(&self, order: Option<(Offset, Order)>) -> Offset {
        let timer = self.timers.next();
        order.map_or(timer, |(at, _)| timer.min(at))
    }

    /// Tells the agent every timer that has run out, the oldest first.
    fn fire(&mut self) {
        let now = self.group.clock.now();
        while let Some(timer) = self.timers.take(now) {
            self.turn(Input::Timer(timer));
        }
    }

    /// Tells the agent what happened and performs what it decides, and what follows from that.
    fn turn(&mut self, input: Input<'static>) {
        let mut inputs = VecDeque::from([input]);
        let mut actions = Vec::new();
        while let Some(input) = inputs.pop_front() {
            let now = self.group.clock.now();
            self.agent.on(
                now,
                input,
                &mut Deciding {
                    dice: &mut self.dice,
                    budget: &self.group.budget,
                },
                &mut actions,
            );
            for action in actions.drain(..) {
                self.perform(action, &mut inputs);
            }
        }
    }

    fn perform(&mut self, action: Action, inputs: &mut VecDeque<Input<'static>>) {
        match action {
            Action::Find => self.find(),
            Action::Connect { shard } => self.connect(shard, inputs),
            Action::Subscribe => self.subscribe(inputs),
            Action::Close(how) => self.close(how),
            Action::Ping => drop(self.send(&Packet::PingReq, inputs)),
            Action::Leave => self.leave(),
            Action::Reauthenticate => self.authenticate(AGAIN, inputs),
            Action::Publish {
                token,
                message,
                again,
            } => self.publish((token, again), message, inputs),
            Action::WakeAt(timer, at) => self.timers.wake_at(timer, at),
            Action::Cancel(timer) => self.timers.cancel(timer),
            Action::Tell(event) => {
                if let Event::Hub { change, .. } = event {
                    self.group.changed(change);
                }
                self.group.seats.take(&event);
                self.group.tell(self.index, event);
            }
            Action::Done => self.done = true,
            Action::Renew => self.renew(),
            // A hub asks for no request and sends nothing for riders.
            Action::Request { .. }
            | Action::HandOver { .. }
            | Action::Post { .. }
            | Action::Abandon { .. }
            | Action::Left(_) => {}
        }
    }

    /// Where it connects first, as far as is known.
    fn home(&self) -> usize {
        usize::from(self.group.config.home(self.index))
    }

    fn serial(&self) -> String {
        self.group.hubs().serial(u64::from(self.index))
    }

    fn find(&mut self) {
        if let Some(asker) = &self.group.asker {
            let serial = self.serial();
            let asked = asker.ask(&self.group.shards, self.speaker(&serial));
            self.link = Link::Finding(Box::pin(asked));
        }
    }

    fn speaker<'a>(&'a self, serial: &'a str) -> Speaker<'a> {
        let rows = self.group.hubs().identity.as_ref();
        Speaker {
            serial,
            columns: rows.map(|rows| (rows, u64::from(self.index))),
        }
    }

    fn connect(&mut self, shard: ShardRow, inputs: &mut VecDeque<Input<'static>>) {
        let nth = u64::from(self.index);
        self.shard = shard;
        let way = self.group.shards.way(usize::from(shard));
        match way.and_then(|way| way.open(nth, Source::Spread(nth))) {
            Some(opening) => self.link = Link::Connecting(opening),
            None => inputs.push_back(lost(Outcome::Unreachable, Cause::Network)),
        }
    }

    fn subscribe(&mut self, inputs: &mut VecDeque<Input<'static>>) {
        let group = Arc::clone(&self.group);
        let Some(command) = &group.device().command else {
            inputs.push_back(Input::Subscribed);
            return;
        };
        let packet = self.free_packet();
        if let Link::Open(_, phase) = &mut self.link {
            *phase = Phase::Subscribing(packet);
        }
        let subscribe = Packet::Subscribe(Subscribe {
            packet_id: packet,
            topic: render(&command.topic, self.speaker(&self.serial())),
            options: command.qos,
            properties: Vec::new(),
        });
        self.send(&subscribe, inputs);
    }

    fn publish(
        &mut self,
        (token, again): (u64, bool),
        message: Message,
        inputs: &mut VecDeque<Input<'static>>,
    ) {
        let group = Arc::clone(&self.group);
        let Some(mut message) = group.message(message, self.speaker(&self.serial())) else {
            return;
        };
        if let Link::Open(connection, _) = &self.link {
            message.qos = connection.qos(message.qos);
        }
        let qos = message.qos;
        if qos == 0 {
            self.unanswered.retain(|(_, known)| *known != token);
        }
        let publish = Packet::Publish(Publish {
            duplicate: again && qos > 0,
            ..message.packet(|| self.packet_of(token))
        });
        let outcome = match self.send(&publish, inputs) {
            Some(true) if qos == 0 => Outcome::Ok,
            // The broker does not take a packet of this size.
            Some(false) => {
                self.unanswered.retain(|(_, known)| *known != token);
                Outcome::NotSent
            }
            _ => return,
        };
        inputs.push_back(Input::Published { token, outcome });
    }

    /// The packet id of a publish: the one that it had in this session, or a free one.
    fn packet_of(&mut self, token: u64) -> u16 {
        let known = self.unanswered.iter().find(|(_, known)| *known == token);
        if let Some((packet, _)) = known {
            return *packet;
        }
        let packet = self.free_packet();
        self.unanswered.push((packet, token));
        packet
    }

    /// The next packet id that no publish of this session uses.
    fn free_packet(&mut self) -> u16 {
        loop {
            self.next_packet = self.next_packet.checked_add(1).unwrap_or(1);
            let packet = self.next_packet;
            if !self.unanswered.iter().any(|(used, _)| *used == packet) {
                return packet;
            }
        }
    }

    fn close(&mut self, how: How) {
        let Link::Open(mut connection, phase) = self.forget() else {
            return;
        };
        match how {
            How::Reset => connection.reset(),
            How::Close => connection.close(),
            How::Disconnect => {
                self.say_goodbye(&mut connection, phase, Vec::new());
                connection.close();
            }
        }
    }

    /// Ends the session for good: a broker that would keep it is told to forget it, where the protocol can say so.
    fn leave(&mut self) {
        let Link::Open(mut connection, phase) = self.forget() else {
            return;
        };
        let kept = !self.group.device().session.expiry.is_zero();
        let forget = kept.then_some(Property::SessionExpiry(0));
        self.say_goodbye(&mut connection, phase, forget.into_iter().collect());
        connection.close();
    }

    /// DISCONNECT, in a session that was accepted.
    fn say_goodbye(&self, connection: &mut Connection, phase: Phase, properties: Vec<Property>) {
        let goodbye = Packet::Disconnect(Disconnect {
            reason: 0,
            properties,
        });
        if phase != Phase::Introduced && connection.send(&goodbye).is_ok_and(|sent| sent) {
            self.count(PacketKind::Disconnect, true);
        }
    }

    /// Takes the link out; nothing of it is told any more. Packet ids outlive it where the session may be resumed.
    fn forget(&mut self) -> Link {
        if self.group.device().session.clean_start {
            self.unanswered = Vec::new();
        }
        std::mem::replace(&mut self.link, Link::Idle)
    }

    /// Whether the packet is on its way; `Some(false)`: it is larger than the broker takes; `None`: there is no connection any more.
    fn send(&mut self, packet: &Packet, inputs: &mut VecDeque<Input<'static>>) -> Option<bool> {
        let Link::Open(connection, _) = &mut self.link else {
            return None;
        };
        match connection.send(packet) {
            Ok(sent) => {
                if sent {
                    self.count(kind(packet), true);
                }
                Some(sent)
            }
            Err(end) => {
                let outcome = self.explain_end(&end);
                drop(self.forget());
                inputs.push_back(lost(outcome, end.cause()));
                None
            }
        }
    }

    fn count(&self, kind: PacketKind, sent: bool) {
        let at = self.group.clock.now();
        self.group.tell(
            self.index,
            Event::Packet {
                group: self.group.row,
                kind,
                sent,
                at,
            },
        );
    }

    fn take(&mut self, brought: Brought) {
        match brought {
            Brought::Found(found) => {
                drop(self.forget());
                if let Some(event) = found.event(self.group.row, self.group.clock.now()) {
                    self.group.tell(self.index, event);
                }
                if let Some(why) = &found.why {
                    self.group.explain_find(self.index, why);
                }
                self.turn(Input::Found(found.shard));
            }
            Brought::Step(Ok(step)) => self.go_on(step),
            Brought::Step(Err(failure)) => {
                let failure = failure.with(self.group.shards.terms());
                self.group.explain(self.index, &failure);
                // Before a session there is nothing to lose, so the cause counts nowhere.
                self.lose(failure.outcome, Cause::Network);
            }
            Brought::Packets(packets, ended) => {
                for packet in packets {
                    self.count(kind(&packet), false);
                    // The agent may have ended the connection over the packet before.
                    if matches!(self.link, Link::Open(..))
                        && let Err(verdict) = self.packet(packet)
                    {
                        self.end_session(verdict);
                    }
                }
                if let (Link::Open(..), Err(end)) = (&self.link, ended) {
                    self.say_why(end.reason());
                    let outcome = self.explain_end(&end);
                    self.lose(outcome, end.cause());
                }
            }
        }
    }

    fn lose(&mut self, outcome: Outcome, cause: Cause) {
        drop(self.forget());
        self.turn(lost(outcome, cause));
    }
}

fn lost(outcome: Outcome, cause: Cause) -> Input<'static> {
    Input::Lost { outcome, cause }
}

/// Waits for the hub's due time and then for a place among the connects that are under way to its shard.
async fn first_turn(group: &Group, shard: usize, due: Offset) -> Option<SemaphorePermit<'_>> {
    sleep_until(group.clock.instant(due)).await;
    group.ramp.get(shard)?.acquire().await.ok()
}

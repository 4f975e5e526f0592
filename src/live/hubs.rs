//! The fleet of hubs over real sockets.
//!
//! One small task per hub; orders reach all hubs of a group over one board. Decides nothing but how the first connects are
//! kept from overrunning a listener and how the end is paced.

mod door;
mod find;
mod hub;
mod link;
mod orders;
pub(super) mod timers;

use crate::agents::{HubConfig, Message, Order};
use crate::event::{AgentKind, CommandName, Event, HubChange, Offset, OperationId, Sink, id_text};
use crate::live::carrier::{Failure, NotReady, Who};
use crate::live::given::Answering;
use crate::live::mqtt::Publish;
use crate::live::outgoing::{self, Outgoing};
use crate::live::seats::Seats;
use crate::live::shards::{Shards, Speaker, render, value};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::http::NoClient;
use crate::net::tls::{Credentials, Holders, Wallet};
use crate::plan::command::IdOwner;
use crate::plan::fault::{Disconnect, TriggerKind};
use crate::plan::target::Device;
use crate::plan::wave::OldSessions;
use crate::plan::{HubGroup, OperationKind, Plan};
use crate::retry::Budget;
pub use door::Door;
use find::Asker;
use hub::HubTask;
use orders::Board;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep};

/// First connects under way at once to one shard: mosquitto's queue of unanswered connects holds 100, and a dropped SYN
/// costs a second. Reconnects are not held back: how simultaneous they are is what is tested.
const FIRST_CONNECTS: usize = 90;
/// Hubs closed per second at the end: a broker keeps up with it, and no states linger in the kernel.
const CLOSES_PER_SECOND: u32 = 10_000;
/// Telemetry payloads are this repeated.
const FILLER: u8 = b'.';
/// How often a wait looks again.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How many hubs of a group are connected, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub connected: u32,
    pub total: u32,
}

/// Hubs that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error(transparent)]
    Broker(#[from] NotReady),
    #[error(transparent)]
    Http(#[from] NoClient),
}

/// All hubs of a run. Dropping it ends them at once and silently.
pub struct HubFleet {
    groups: Vec<Running>,
    seats: Arc<Seats>,
}

struct Running {
    group: Arc<Group>,
    board: watch::Sender<Board>,
}

/// What all hubs of a group share.
struct Group {
    plan: Arc<Plan>,
    row: u16,
    config: Arc<HubConfig>,
    clock: Clock,
    run_tag: String,
    sinks: Vec<Sink>,
    shards: Arc<Shards>,
    asker: Option<Asker>,
    seats: Arc<Seats>,
    /// The hubs' certificates, if they have any.
    wallet: Option<Wallet>,
    /// By shard.
    ramp: Vec<Semaphore>,
    connected: AtomicU32,
    /// Of the retries of all its hubs.
    budget: Budget,
    /// Some of its commands have ids that the target gives.
    takes_given: bool,
}

/// Starts every hub of the plan; the first connects are spread from now on. Hub i tells `sinks[i % n]`.
///
/// # Errors
/// If a shard must not be contacted, a certificate can't be had, or there is no HTTP client for hubs that ask for their shard.
pub async fn start(
    plan: &Arc<Plan>,
    hosts: &Arc<Hosts>,
    clock: Clock,
    run_tag: &str,
    sinks: &[Sink],
) -> Result<HubFleet, HubError> {
    let mut groups = Vec::new();
    let seats = Arc::new(Seats::of(plan));
    for (row, hubs) in plan.hubs.iter().enumerate() {
        let device = &plan.target.devices[hubs.device];
        let shards = Arc::new(Shards::of(device, hosts, Who::Hubs).await?);
        let wallet = match shards.terms() {
            Some(_) => open_wallet(plan, row).await?,
            None => None,
        };
        groups.push(Arc::new(Group {
            plan: Arc::clone(plan),
            row: u16::try_from(row).unwrap_or(u16::MAX),
            config: Arc::new(HubConfig::of(plan, row)),
            clock,
            run_tag: run_tag.to_owned(),
            sinks: sinks.to_vec(),
            ramp: (0..shards.count())
                .map(|_| Semaphore::new(FIRST_CONNECTS))
                .collect(),
            shards,
            asker: Asker::of(device, hubs, hosts)?,
            seats: Arc::clone(&seats),
            wallet,
            connected: AtomicU32::new(0),
            budget: plan.budget(AgentKind::Hub, row),
            takes_given: takes_given(plan, row),
        }));
    }
    let began = clock.now();
    Ok(HubFleet {
        groups: groups
            .into_iter()
            .map(|group| Running::start(group, began))
            .collect(),
        seats,
    })
}

impl HubFleet {
    /// By group, in the order of the plan.
    #[must_use]
    pub fn standing(&self) -> Vec<Standing> {
        self.groups
            .iter()
            .map(|running| running.group.standing())
            .collect()
    }

    /// Where the hubs are, as long as they tell.
    #[must_use]
    pub fn seats(&self) -> &Arc<Seats> {
        &self.seats
    }

    /// Waits until every hub is connected; false if that did not happen within `limit`.
    pub async fn all_stand(&self, limit: Duration) -> bool {
        let all = || {
            self.standing()
                .iter()
                .all(|standing| standing.connected == standing.total)
        };
        wait_for(all, limit).await
    }

    /// Does what a trigger says from now on, to the hubs that it chooses under `seed`; an operation of the target is no order to hubs.
    pub fn order(&self, trigger: &TriggerKind, seed: u64) {
        let (row, order) = match trigger {
            TriggerKind::Disconnect(disconnect) => (
                disconnect.group,
                Order::Drop {
                    how: disconnect.by,
                    away: disconnect.stays_away(),
                },
            ),
            TriggerKind::Renew(renew) => (
                renew.wave.group,
                Order::Renew {
                    end: match renew.sessions {
                        OldSessions::End(how) => Some(how),
                        OldSessions::Keep => None,
                    },
                },
            ),
            TriggerKind::Reauthenticate(wave) => (wave.group, Order::Reauthenticate),
            TriggerKind::Operate { .. } | TriggerKind::Offline(_) | TriggerKind::Shed(_) => return,
        };
        let Some(running) = self.groups.get(row) else {
            return;
        };
        let (count, now) = (running.group.hubs().count, running.group.clock.now());
        let turns = trigger.turns(seed, count);
        running
            .board
            .send_modify(|board| board.order(order, turns, count, now));
    }

    /// Through which the hubs come back that `disconnect` drops under `seed`; `None` for a group that the plan has not.
    #[must_use]
    pub fn door(&self, disconnect: &Disconnect, seed: u64) -> Option<Door> {
        let running = self.groups.get(disconnect.group)?;
        let count = running.group.hubs().count;
        let dropped = disconnect.drops(seed, count);
        Some(Door::new(running.board.clone(), &dropped, count))
    }

    /// Ends every session with DISCONNECT, paced, and tells what is unfinished. Gives the number of hubs that had not ended
    /// within `limit`; they are then ended silently.
    pub async fn stop(self, limit: Duration) -> usize {
        for running in &self.groups {
            let (count, now) = (running.group.hubs().count, running.group.clock.now());
            let within = (Duration::from_secs(1) * count / CLOSES_PER_SECOND).min(limit / 2);
            running
                .board
                .send_modify(|board| board.stop(within, count, now));
        }
        let left = || {
            self.groups
                .iter()
                .map(|running| running.board.receiver_count())
                .sum::<usize>()
        };
        wait_for(|| left() == 0, limit).await;
        self.seats.given().close();
        left()
    }
}

impl Running {
    fn start(group: Arc<Group>, began: Offset) -> Running {
        let board = watch::Sender::new(Board::default());
        for index in 0..group.hubs().count {
            tokio::spawn(HubTask::new(Arc::clone(&group), index).run(board.subscribe(), began));
        }
        Running { group, board }
    }
}

impl Group {
    fn hubs(&self) -> &HubGroup {
        &self.plan.hubs[usize::from(self.row)]
    }

    fn device(&self) -> &Device {
        &self.plan.target.devices[self.hubs().device]
    }

    fn standing(&self) -> Standing {
        Standing {
            connected: self.connected.load(Ordering::Relaxed),
            total: self.hubs().count,
        }
    }

    fn changed(&self, change: HubChange) {
        match change {
            HubChange::Connected | HubChange::Freed => {
                self.connected.fetch_add(1, Ordering::Relaxed);
            }
            HubChange::Lost(_) | HubChange::Left | HubChange::Stuck => {
                self.connected.fetch_sub(1, Ordering::Relaxed);
            }
            HubChange::Opened | HubChange::Accepted => {}
        }
    }

    fn tell(&self, index: u32, event: Event) {
        let Some(sink) = self.sinks.get(index as usize % self.sinks.len().max(1)) else {
            return;
        };
        match event {
            Event::Command { id, .. } if id.is_given() => {
                let given = self.seats.given();
                given.tell((self.row, index), sink, id.number, event);
            }
            event => sink(event),
        }
    }

    /// What hub `index` brings to its handshakes at first; `None` if its device speaks no TLS.
    fn credentials(&self, index: u32) -> Option<Credentials> {
        let wallet = self.wallet.as_ref();
        let identity = wallet.and_then(|wallet| wallet.identity(u64::from(index)));
        Some(self.shards.terms()?.credentials(identity))
    }

    /// Tells what exactly was wrong.
    fn explain(&self, index: u32, failure: &Failure) {
        self.explain_for(self.config.connect(), index, failure);
    }

    /// The same of a question for its shard.
    fn explain_find(&self, index: u32, failure: &Failure) {
        let hubs = usize::from(self.row);
        if let Some(operation) = self.plan.operation(OperationKind::Find { hubs }) {
            self.explain_for(operation, index, failure);
        }
    }

    fn explain_for(&self, operation: OperationId, index: u32, failure: &Failure) {
        let Some(text) = &failure.text else { return };
        let serial = self.hubs().serial(u64::from(index));
        self.tell(
            index,
            Event::Explained {
                operation,
                outcome: failure.outcome,
                text: format!("{serial}: {text}"),
                at: self.clock.now(),
            },
        );
    }

    /// What a hub publishes; `None` if the device has no such topic.
    fn message(&self, message: Message, speaker: Speaker<'_>) -> Option<Outgoing> {
        match message {
            Message::Telemetry => {
                let topic = self.device().telemetry.as_ref()?;
                let bytes = self.hubs().telemetry?.bytes;
                Some(Outgoing {
                    topic: render(&topic.topic, speaker),
                    qos: topic.qos,
                    payload: vec![FILLER; bytes],
                    ..Outgoing::default()
                })
            }
            Message::Answer(name) => {
                let answer = self.device().answer.as_ref()?;
                let command = if name.command.is_given() {
                    Answering::Theirs(self.seats.given().text(name)?)
                } else {
                    Answering::Ours(name, &self.run_tag)
                };
                let outgoing = Outgoing::of(answer, &mut |name, out| {
                    command.value(name, out) || value(name, speaker, out)
                });
                Some(
                    outgoing
                        .expect("names that nobody knows are refused when the target file is read"),
                )
            }
        }
    }

    /// The command of this run that a message speaks of.
    fn command(&self, publish: &Publish) -> Option<CommandName> {
        let id = self
            .device()
            .command
            .as_ref()?
            .id
            .find(&publish.payload, |wanted| {
                outgoing::find(&publish.properties, wanted)
            })?;
        let ours = CommandName::read(&id, &self.run_tag);
        if ours.is_some() || !self.takes_given {
            return ours;
        }
        let text = id_text(&id)?;
        Some(self.seats.given().name(&text, self.clock.now()))
    }
}

/// Whether some commands to a group of hubs have ids that the target gives.
fn takes_given(plan: &Plan, row: usize) -> bool {
    let mut issuers = plan.issuers.iter().filter(|group| group.to == row);
    issuers.any(|group| {
        let command = plan.target.commands.get(group.command);
        command.is_some_and(|command| command.id != IdOwner::Ours)
    })
}

/// The certificates of the hubs of a group: read or issued on threads that may wait.
async fn open_wallet(plan: &Arc<Plan>, row: usize) -> Result<Option<Wallet>, NotReady> {
    let plan = Arc::clone(plan);
    let opened = tokio::task::spawn_blocking(move || {
        let hubs = &plan.hubs[row];
        let holders = Holders {
            target: &plan.target,
            device: &plan.target.devices[hubs.device],
            rows: hubs.identity.as_ref(),
            count: u64::from(hubs.count),
            seed: plan.seed,
        };
        Wallet::open(&holders, &|index, name, out| {
            hubs.placeholder(index, name, out)
        })
    });
    Ok(opened.await??)
}

/// Waits for a condition that atomics tell; false if it did not come about within `limit`.
async fn wait_for(condition: impl Fn() -> bool, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    while !condition() {
        if Instant::now() >= end {
            return false;
        }
        sleep(LOOK_EVERY).await;
    }
    true
}

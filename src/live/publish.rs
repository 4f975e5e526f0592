//! Commands that issuers publish to the broker of a device.
//!
//! One connection of our own per shard. Not rumqttc's event loop: that one repeats unacknowledged publishes after a reconnect
//! without saying so, while here every attempt is the issuer's own and a lost connection ends it.

mod opening;
mod refusing;
mod serving;

use super::carrier::{NotReady, Who};
use super::ghosts::Ghost;
use super::mqtt::{Connection, Disconnect, End, Packet, Publish, kind};
use super::outgoing::Outgoing;
use super::seats::Seats;
use super::shards::Shards;
use crate::dice::Dice;
use crate::event::{Event, HubChange, Outcome, Sink};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::net::tls::{Credentials, Holders, Wallet};
use crate::plan::Plan;
use crate::plan::identity::Rows;
use refusing::refuse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// Of connecting, of CONNACK, of PINGRESP, at most.
const TIMEOUT: Duration = Duration::from_secs(10);
/// PINGREQ follows after this long without one.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The longest wait before the next connect; drawn anew each time (full jitter).
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Without a keep-alive nothing is sent for so long.
const FAR: Duration = Duration::from_secs(24 * 60 * 60);
/// The first of these waits is drawn below this.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The waits begin anew only after a session has lived so long: a broker that accepts and closes at once gets ever rarer attempts.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// Publishes that wait for the connection's task; more make their issuers wait.
const WAITING: usize = 4_096;

/// Publishes for issuers; clones share the connections. They end when the last clone is dropped.
#[derive(Clone)]
pub struct Publisher {
    lines: Vec<Line>,
}

/// The way to the task of one shard's connection.
#[derive(Clone)]
struct Line {
    requests: mpsc::Sender<Request>,
    stands: watch::Receiver<Stand>,
}

/// Whether a shard has accepted the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stand {
    Stands,
    /// Not now; what the last attempt came to.
    Fell(String),
}

struct Request {
    publish: Publish,
    answer: oneshot::Sender<Outcome>,
}

impl Publisher {
    /// Starts connecting to every shard of `device`, a row of the target's devices. Every packet is told to `sink`.
    ///
    /// # Errors
    /// If a shard must not be contacted, or the certificate for it can't be had.
    pub async fn start(
        plan: &Arc<Plan>,
        device: usize,
        hosts: &Hosts,
        clock: Clock,
        run_tag: &str,
        sink: &Sink,
    ) -> Result<Publisher, NotReady> {
        Publisher::open(plan, device, hosts, (clock, run_tag), sink, None).await
    }

    /// The same for clients that see everything that arrives, if there are `seats` to compare it with.
    pub(super) async fn open(
        plan: &Arc<Plan>,
        device: usize,
        hosts: &Hosts,
        (clock, run_tag): (Clock, &str),
        sink: &Sink,
        seats: Option<&Arc<Seats>>,
    ) -> Result<Publisher, NotReady> {
        let shards = Arc::new(Shards::of(&plan.target.devices[device], hosts, Who::Others).await?);
        let rows = plan.publisher_rows(device);
        let wallet = match shards.terms() {
            Some(_) => open_wallet(plan, device, rows.clone(), run_tag).await?,
            None => None,
        };
        let identity = wallet.as_ref().and_then(|wallet| wallet.identity(0));
        let lines = (0..shards.count()).map(|shard| {
            let (requests, receiver) = mpsc::channel(WAITING);
            let (stand, stands) = watch::channel(Stand::Fell("no answer yet".to_owned()));
            let ghost =
                seats.map(|seats| Ghost::new(plan, device, shard, run_tag, Arc::clone(seats)));
            let kind = if ghost.is_some() { "ghost" } else { "issuers" };
            let task = Task {
                credentials: shards.terms().map(|terms| terms.credentials(identity)),
                shards: Arc::clone(&shards),
                shard,
                rows: rows.clone(),
                plan: Arc::clone(plan),
                device,
                name: format!("{run_tag}-{kind}-{device}-{shard}"),
                clock,
                sink: Arc::clone(sink),
                stand,
                dice: Dice::named(plan.seed, WAITS, shard as u64),
                next_packet: 0,
                timeout: patience(plan, device),
                pong_until: None,
                keep_alive: KEEP_ALIVE,
                places: usize::from(u16::MAX),
                unanswered: HashMap::new(),
                early: Vec::new(),
                ghost,
                why: None,
            };
            tokio::spawn(task.run(receiver));
            Line { requests, stands }
        });
        Ok(Publisher {
            lines: lines.collect(),
        })
    }

    /// How many shards it is connected to.
    pub(super) fn shards(&self) -> usize {
        self.lines.len()
    }

    /// Waits until every shard has accepted the connection.
    ///
    /// # Errors
    /// What kept the first one from it that has not within `limit`.
    pub async fn stands(&self, limit: Duration) -> Result<(), String> {
        let all = async {
            for line in &self.lines {
                // A task that is gone stands no more; what it came to is read below.
                let _ = line
                    .stands
                    .clone()
                    .wait_for(|stand| *stand == Stand::Stands)
                    .await;
            }
        };
        // What does not stand by then is read below.
        let _ = timeout(limit, all).await;
        for line in &self.lines {
            if let Stand::Fell(why) = &*line.stands.borrow() {
                return Err(why.clone());
            }
        }
        Ok(())
    }

    /// Publishes on a shard, once. QoS 0 is `Ok` when it is handed to the socket, QoS 1 at its PUBACK;
    /// `Unreachable` while there is no connection, `Reset` if it ends before the PUBACK. The caller limits the time: dropping
    /// the future gives the attempt up.
    pub async fn publish(&self, shard: usize, message: Outgoing) -> Outcome {
        let Some(line) = self.lines.get(shard) else {
            return Outcome::NotSent;
        };
        let (answer, outcome) = oneshot::channel();
        // The connection's task gives it its own packet id.
        let publish = message.packet(|| 1);
        if line
            .requests
            .send(Request { publish, answer })
            .await
            .is_err()
        {
            return Outcome::NotSent;
        }
        outcome.await.unwrap_or(Outcome::Reset)
    }
}

/// Keeps these draws apart from others under the same seed: "publ" in ASCII.
const WAITS: u64 = 0x7075_626c;

/// The connection of one shard.
struct Task {
    plan: Arc<Plan>,
    /// Row in the target's devices.
    device: usize,
    /// Client id, and what `<serial>` stands for in user name and password.
    name: String,
    clock: Clock,
    sink: Sink,
    stand: watch::Sender<Stand>,
    dice: Dice,
    shards: Arc<Shards>,
    shard: usize,
    /// The row of the device's identities that it uses.
    rows: Option<Rows>,
    /// What it brings to TLS.
    credentials: Option<Credentials>,
    next_packet: u16,
    /// Of connecting, of CONNACK, of PINGRESP.
    timeout: Duration,
    /// Until then PINGRESP must be there, while one is waited for.
    pong_until: Option<Instant>,
    /// Between two PINGREQ.
    keep_alive: Duration,
    /// Publishes with QoS 1 that may be without PUBACK at the same time; more wait.
    places: usize,
    /// QoS 1 publishes without PUBACK, by packet id.
    unanswered: HashMap<u16, oneshot::Sender<Outcome>>,
    /// What came together with CONNACK.
    early: Vec<Packet>,
    /// It publishes nothing, and watches what arrives.
    ghost: Option<Ghost>,
    /// What exactly was wrong with the attempt under way.
    why: Option<String>,
}

impl Task {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut failures = 0_u32;
        loop {
            match self.open(&mut requests).await {
                Ok(Some(connection)) => {
                    let began = Instant::now();
                    if !self.session(connection, &mut requests).await {
                        return;
                    }
                    failures = if began.elapsed() < HEALTHY_AFTER {
                        failures.saturating_add(1)
                    } else {
                        0
                    };
                }
                Ok(None) => return,
                Err(outcome) => {
                    self.failed(outcome);
                    failures = failures.saturating_add(1);
                }
            }
            let limit = FIRST_WAIT
                .saturating_mul(1 << failures.min(16))
                .min(LONGEST_WAIT);
            let until = Instant::now() + self.dice.between(Duration::ZERO, limit);
            if refuse(&mut requests, async { sleep_until(until).await })
                .await
                .is_none()
            {
                return;
            }
        }
    }

    /// One session from its beginning to its end; false if nobody publishes any more.
    async fn session(
        &mut self,
        mut connection: Connection,
        requests: &mut mpsc::Receiver<Request>,
    ) -> bool {
        if self.ghost.is_none() {
            self.stands(Stand::Stands);
        }
        self.change(HubChange::Connected);
        let ended = self.serve(&mut connection, requests).await;
        let cause = ended.map_or_else(String::new, |cause| cause.to_string());
        let why = self.why.take().unwrap_or(cause);
        self.stands(Stand::Fell(why));
        for (_, answer) in self.unanswered.drain() {
            // Whoever gave up no longer listens.
            let _ = answer.send(Outcome::Reset);
        }
        match ended {
            Some(cause) => self.change(HubChange::Lost(cause)),
            None => {
                let goodbye = Packet::Disconnect(Disconnect::default());
                // A connection that is gone already needs no goodbye.
                let _ = self.send(&mut connection, &goodbye);
                connection.close();
                self.change(HubChange::Left);
            }
        }
        ended.is_some()
    }

    /// Connects and is accepted; `None` if nobody publishes any more.
    async fn open(
        &mut self,
        requests: &mut mpsc::Receiver<Request>,
    ) -> Result<Option<Connection>, Outcome> {
        let attempt = timeout(self.timeout, self.introduce());
        match refuse(requests, attempt).await {
            None => Ok(None),
            Some(result) => result.map_err(|_| Outcome::TimedOut)?.map(Some),
        }
    }

    /// False: the packet is larger than the broker takes.
    fn send(&self, connection: &mut Connection, packet: &Packet) -> Result<bool, End> {
        let sent = connection.send(packet)?;
        if sent {
            self.count(packet, true);
        }
        Ok(sent)
    }

    fn count(&self, packet: &Packet, sent: bool) {
        if self.ghost.is_some() {
            return;
        }
        (self.sink)(Event::PublisherPacket {
            device: self.row(),
            kind: kind(packet),
            sent,
            at: self.clock.now(),
        });
    }

    /// The connection stands from now on, or does so no more. That of a ghost stands when it watches.
    fn stands(&self, stand: Stand) {
        let watches = stand == Stand::Stands;
        let watched = self.stand.send_replace(stand) == Stand::Stands;
        if self.ghost.is_some() && watched != watches {
            (self.sink)(Event::Ghost {
                device: self.row(),
                shard: u16::try_from(self.shard).unwrap_or(u16::MAX),
                watches,
                at: self.clock.now(),
            });
        }
    }

    /// An attempt to make the connection came to nothing.
    fn failed(&mut self, outcome: Outcome) {
        let version = self.plan.target.devices[self.device].version;
        let why = self.why.take();
        self.stands(Stand::Fell(
            why.unwrap_or_else(|| version.outcome_text(outcome)),
        ));
        if self.ghost.is_none() {
            (self.sink)(Event::PublisherFailed {
                device: self.row(),
                outcome,
                at: self.clock.now(),
            });
        }
    }

    fn change(&self, change: HubChange) {
        if self.ghost.is_some() {
            return;
        }
        (self.sink)(Event::Publisher {
            device: self.row(),
            change,
            at: self.clock.now(),
        });
    }

    fn row(&self) -> u16 {
        u16::try_from(self.device).unwrap_or(u16::MAX)
    }
}

/// How long connections to the brokers of this device wait: as long as the most patient issuers that publish over them.
fn patience(plan: &Plan, device: usize) -> Duration {
    let issuers = plan.issuers.iter().filter(|group| {
        let command = plan.target.commands.get(group.command);
        command.is_some_and(|command| command.to == device)
    });
    let longest = issuers.map(|group| group.timeout).max();
    longest.unwrap_or(TIMEOUT).min(TIMEOUT)
}

/// The certificate of a device's publishers, read or issued on a thread that may wait.
async fn open_wallet(
    plan: &Arc<Plan>,
    device: usize,
    rows: Option<Rows>,
    run_tag: &str,
) -> Result<Option<Wallet>, NotReady> {
    let (plan, name) = (Arc::clone(plan), format!("{run_tag}-issuers-{device}"));
    let opened = tokio::task::spawn_blocking(move || {
        let holders = Holders {
            target: &plan.target,
            device: &plan.target.devices[device],
            rows: rows.as_ref(),
            count: 1,
            seed: plan.seed,
        };
        Wallet::open(&holders, &|_, column, out| {
            let value = rows.as_ref().and_then(|rows| rows.value(0, column));
            match value {
                Some(value) => out.push_str(value),
                None if column == "serial" => out.push_str(&name),
                None => return false,
            }
            true
        })
    });
    Ok(opened.await??)
}

/// What PUBACK with this reason code means.
pub(super) fn acknowledged(reason: u8) -> Outcome {
    match reason {
        0..0x80 => Outcome::Ok,
        code => Outcome::Refused(u16::from(code)),
    }
}

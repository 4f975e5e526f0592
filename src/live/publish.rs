//! Commands that issuers publish to the broker of a device.
//!
//! One connection of our own per shard. Not rumqttc's event loop: that one repeats unacknowledged publishes after a reconnect
//! without saying so, while here every attempt is the issuer's own and a lost connection ends it.

mod refusing;

use super::carrier::{Failure, Next, NotReady, Way};
use super::ghosts::Ghost;
use super::mqtt::{Connection, End, Packet, kind, level};
use super::seats::Seats;
use super::shards::{Shards, Speaker, greeting};
use crate::dice::Dice;
use crate::event::{Cause, Event, HubChange, Outcome, Sink};
use crate::net::clock::Clock;
use crate::net::connect::Source;
use crate::net::hosts::Hosts;
use crate::net::stream::Stream;
use crate::net::tls::{Credentials, Holders, Wallet};
use crate::plan::identity::Rows;
use crate::plan::{OperationKind, Plan};
use refusing::refuse;
use rumqttc::mqttbytes::v4::{ConnectReturnCode, Publish};
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// Of connecting, of CONNACK, of PINGRESP.
const TIMEOUT: Duration = Duration::from_secs(10);
/// PINGREQ follows after this long without one.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The longest wait before the next connect; drawn anew each time (full jitter).
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The first of these waits is drawn below this.
const FIRST_WAIT: Duration = Duration::from_millis(200);
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
    stands: watch::Receiver<bool>,
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
        let shards = Arc::new(Shards::of(&plan.target.devices[device], hosts).await?);
        let rows = plan.publisher_rows(device);
        let wallet = match shards.terms() {
            Some(_) => open_wallet(plan, device, rows.clone(), run_tag).await?,
            None => None,
        };
        let identity = wallet.as_ref().and_then(|wallet| wallet.identity(0));
        let lines = (0..shards.count()).map(|shard| {
            let (requests, receiver) = mpsc::channel(WAITING);
            let (stand, stands) = watch::channel(false);
            let ghost =
                seats.map(|seats| Ghost::new(plan, device, shard, run_tag, Arc::clone(seats)));
            let kind = if ghost.is_some() { "ghost" } else { "issuers" };
            let task = Task {
                credentials: shards.terms().map(|terms| terms.credentials(identity)),
                shards: Arc::clone(&shards),
                shard,
                rows: rows.clone(),
                explained: Vec::new(),
                plan: Arc::clone(plan),
                device,
                name: format!("{run_tag}-{kind}-{device}-{shard}"),
                clock,
                sink: Arc::clone(sink),
                stand,
                dice: Dice::named(plan.seed, WAITS, shard as u64),
                next_packet: 0,
                unanswered: HashMap::new(),
                ghost,
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

    /// Waits until every shard has accepted the connection; false if one has not within `limit`.
    pub async fn stands(&self, limit: Duration) -> bool {
        let all = async {
            for line in &self.lines {
                if line
                    .stands
                    .clone()
                    .wait_for(|stands| *stands)
                    .await
                    .is_err()
                {
                    return false;
                }
            }
            true
        };
        timeout(limit, all).await.unwrap_or(false)
    }

    /// Publishes on a shard, once. QoS 0 is `Ok` when it is handed to the socket, QoS 1 at its PUBACK;
    /// `Unreachable` while there is no connection, `Reset` if it ends before the PUBACK. The caller limits the time: dropping
    /// the future gives the attempt up.
    pub async fn publish(&self, shard: usize, topic: String, qos: u8, payload: Vec<u8>) -> Outcome {
        let Some(line) = self.lines.get(shard) else {
            return Outcome::NotSent;
        };
        let (answer, outcome) = oneshot::channel();
        let publish = Publish::new(topic, level(qos), payload);
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
    stand: watch::Sender<bool>,
    dice: Dice,
    shards: Arc<Shards>,
    shard: usize,
    /// The row of the device's identities that it uses.
    rows: Option<Rows>,
    /// What it brings to TLS.
    credentials: Option<Credentials>,
    /// What has been explained already.
    explained: Vec<Outcome>,
    next_packet: u16,
    /// QoS 1 publishes without PUBACK, by packet id.
    unanswered: HashMap<u16, oneshot::Sender<Outcome>>,
    /// It publishes nothing, and watches what arrives.
    ghost: Option<Ghost>,
}

impl Task {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut failures = 0_u32;
        loop {
            match self.open(&mut requests).await {
                Ok(Some(mut connection)) => {
                    failures = 0;
                    self.stand.send_replace(self.ghost.is_none());
                    self.change(HubChange::Connected);
                    let ended = self.serve(&mut connection, &mut requests).await;
                    self.stand.send_replace(false);
                    for (_, answer) in self.unanswered.drain() {
                        // Whoever gave up no longer listens.
                        let _ = answer.send(Outcome::Reset);
                    }
                    let Some(cause) = ended else {
                        let _ = self.send(&mut connection, &Packet::Disconnect);
                        connection.close();
                        self.change(HubChange::Left);
                        return;
                    };
                    self.change(HubChange::Lost(cause));
                }
                Ok(None) => return,
                Err(_) => failures = failures.saturating_add(1),
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

    /// Connects and is accepted; `None` if nobody publishes any more.
    async fn open(
        &mut self,
        requests: &mut mpsc::Receiver<Request>,
    ) -> Result<Option<Connection>, Outcome> {
        let attempt = timeout(TIMEOUT, self.introduce());
        match refuse(requests, attempt).await {
            None => Ok(None),
            Some(result) => result.map_err(|_| Outcome::TimedOut)?.map(Some),
        }
    }

    async fn introduce(&mut self) -> Result<Connection, Outcome> {
        let stream = self.connect().await.map_err(|failure| {
            let failure = failure.with(self.shards.terms());
            self.explain(&failure);
            failure.outcome
        })?;
        let mut connection = Connection::new(stream);
        let device = &self.plan.target.devices[self.device];
        let speaker = Speaker {
            serial: &self.name,
            columns: self.rows.as_ref().map(|rows| (rows, 0)),
        };
        let mut greeting = greeting(device, self.name.clone(), speaker, KEEP_ALIVE * 2);
        if let Packet::Connect(connect) = &mut greeting {
            // It subscribes to nothing, so a session has nothing to keep.
            connect.clean_session = true;
        }
        self.send(&mut connection, &greeting)
            .map_err(|end| end.outcome())?;
        let mut packets = Vec::new();
        let ended = poll_fn(|context| connection.poll_receive(context, &mut packets)).await;
        match packets.first() {
            Some(packet @ Packet::ConnAck(answer)) => {
                self.count(packet, false);
                if answer.code != ConnectReturnCode::Success {
                    return Err(Outcome::Refused(answer.code as u16));
                }
            }
            Some(_) => return Err(Outcome::Protocol),
            None => {}
        }
        ended.map_err(|end| {
            if let (End::Failed(error), Some(way)) = (&end, self.shards.way(self.shard)) {
                self.explain(&Failure::of(error, &way.endpoint().to_string()));
            }
            end.outcome()
        })?;
        self.change(HubChange::Accepted);
        Ok(connection)
    }

    /// Everything below MQTT, step by step.
    async fn connect(&self) -> Result<Stream, Failure> {
        let nowhere = || Failure {
            outcome: Outcome::Unreachable,
            text: None,
        };
        let way: &Way = self.shards.way(self.shard).ok_or_else(nowhere)?;
        let mut step = way.open(0, Source::System).ok_or_else(nowhere)?.await?;
        self.change(HubChange::Opened);
        loop {
            match way.follow(step, self.credentials.as_ref()) {
                Next::Wait(opening) => step = opening.await?,
                Next::Stands(stream) => return Ok(stream),
            }
        }
    }

    /// Tells what exactly was wrong, the first time that something ends like this.
    fn explain(&mut self, failure: &Failure) {
        let issuers = self.plan.issuers.iter().position(|issuers| {
            let command = self.plan.target.commands.get(issuers.command);
            command.is_some_and(|command| command.to == self.device)
        });
        let operation =
            issuers.and_then(|issuers| self.plan.operation(OperationKind::Issue { issuers }));
        if let (Some(operation), Some(text)) = (operation, &failure.text)
            && !self.explained.contains(&failure.outcome)
        {
            self.explained.push(failure.outcome);
            (self.sink)(Event::Explained {
                operation,
                outcome: failure.outcome,
                text: format!("{}: {text}", self.name),
                at: self.clock.now(),
            });
        }
    }

    /// Publishes until the connection ends, and by what, or nobody publishes any more (`None`).
    async fn serve(
        &mut self,
        connection: &mut Connection,
        requests: &mut mpsc::Receiver<Request>,
    ) -> Option<Cause> {
        let mut next_ping = Instant::now() + KEEP_ALIVE;
        let mut pong_until: Option<Instant> = None;
        if let Some(ghost) = &self.ghost
            && let Err(end) = self.send(connection, &ghost.subscribe())
        {
            return Some(end.cause());
        }
        loop {
            let mut packets = Vec::new();
            let wake = pong_until.unwrap_or(next_ping);
            tokio::select! {
                biased;
                ended = poll_fn(|context| connection.poll_receive(context, &mut packets)) => {
                    for packet in &packets {
                        self.count(packet, false);
                        match packet {
                            Packet::PubAck(answer) => {
                                self.unanswered.remove(&answer.pkid).map(|waits| waits.send(Outcome::Ok));
                            }
                            Packet::PingResp => pong_until = None,
                            Packet::SubAck(answer) if Ghost::is_granted(answer) => {
                                self.stand.send_replace(true);
                            }
                            Packet::Publish(publish) => {
                                let now = self.clock.now();
                                let ghost = self.ghost.as_ref();
                                if let Some(event) = ghost.and_then(|ghost| ghost.saw(publish, now)) {
                                    (self.sink)(event);
                                }
                            }
                            _ => return Some(Cause::Protocol),
                        }
                    }
                    if let Err(end) = ended {
                        return Some(end.cause());
                    }
                }
                () = sleep_until(wake) => {
                    if pong_until.is_some() {
                        return Some(Cause::KeepAlive);
                    }
                    if let Err(end) = self.send(connection, &Packet::PingReq) {
                        return Some(end.cause());
                    }
                    next_ping = Instant::now() + KEEP_ALIVE;
                    pong_until = Some(Instant::now() + TIMEOUT);
                }
                request = requests.recv() => match request {
                    None => return None,
                    Some(request) => if let Err(end) = self.publish(connection, request) {
                        return Some(end.cause());
                    },
                },
            }
        }
    }

    fn publish(&mut self, connection: &mut Connection, request: Request) -> Result<(), End> {
        let Request {
            mut publish,
            answer,
        } = request;
        if answer.is_closed() {
            // Given up while it waited.
            return Ok(());
        }
        let acknowledged = publish.qos != level(0);
        if acknowledged {
            let Some(packet) = self.free_packet() else {
                let _ = answer.send(Outcome::NotSent);
                return Ok(());
            };
            publish.pkid = packet;
        }
        let packet = publish.pkid;
        let sent = self.send(connection, &Packet::Publish(publish));
        let outcome = match &sent {
            Ok(()) if acknowledged => {
                self.unanswered.insert(packet, answer);
                return Ok(());
            }
            Ok(()) => Outcome::Ok,
            Err(end) => end.outcome(),
        };
        let _ = answer.send(outcome);
        sent
    }

    /// The next packet id without a publish under way; `None` if all 65,535 have one.
    fn free_packet(&mut self) -> Option<u16> {
        for _ in 0..u16::MAX {
            self.next_packet = self.next_packet.checked_add(1).unwrap_or(1);
            if !self.unanswered.contains_key(&self.next_packet) {
                return Some(self.next_packet);
            }
        }
        None
    }

    fn send(&self, connection: &mut Connection, packet: &Packet) -> Result<(), End> {
        connection.send(packet)?;
        self.count(packet, true);
        Ok(())
    }

    fn count(&self, packet: &Packet, sent: bool) {
        if let Some(kind) = kind(packet) {
            (self.sink)(Event::PublisherPacket {
                device: self.row(),
                kind,
                sent,
                at: self.clock.now(),
            });
        }
    }

    fn change(&self, change: HubChange) {
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

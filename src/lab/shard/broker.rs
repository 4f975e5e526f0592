//! Who is connected to this shard, who gets what, and what the gateway says and is told.

use crate::lab::messages::{Cause, Check, Client, ToGateway, ToShard};
use bytes::Bytes;
use rumqttc::mqttbytes::{QoS, matches};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Messages that may wait for one session; one more is not delivered.
const SESSION_QUEUE: usize = 16;

/// A message on its way to a session.
pub struct Outgoing {
    pub topic: String,
    pub payload: Bytes,
    pub qos: QoS,
    /// The command that it is, if the gateway wants to know of its arrival.
    pub command: Option<String>,
}

/// What a session gets when it is admitted.
pub struct Seat {
    pub generation: u64,
    pub outgoing: mpsc::Receiver<Box<Outgoing>>,
    pub close: oneshot::Receiver<Cause>,
}

/// The shard's common knowledge.
pub struct Broker {
    inside: Mutex<Inside>,
    to_gateway: mpsc::Sender<ToGateway>,
    requests: AtomicU64,
}

#[derive(Default)]
struct Inside {
    linked: bool,
    sessions: HashMap<String, Session>,
    /// Subscriptions beside a hub's own commands: filter, subscriber, QoS.
    filters: Vec<(String, String, QoS)>,
    checks: HashMap<u64, oneshot::Sender<(Check, u64)>>,
    expire_after: Option<Duration>,
}

struct Session {
    generation: u64,
    client: Client,
    outgoing: mpsc::Sender<Box<Outgoing>>,
    close: Option<oneshot::Sender<Cause>>,
    /// The QoS at which it takes its own commands.
    commands: Option<QoS>,
}

/// `d/{serial}/cmd`.
pub fn command_topic(serial: &str) -> String {
    format!("d/{serial}/cmd")
}

impl Broker {
    /// Nobody is connected; what the gateway is to know goes into the channel.
    pub fn new(to_gateway: mpsc::Sender<ToGateway>) -> Broker {
        Broker {
            inside: Mutex::default(),
            to_gateway,
            requests: AtomicU64::new(1),
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics while holding it")
    }

    /// Tells the gateway something; waits while the link is busy.
    pub async fn tell(&self, message: ToGateway) {
        // The receiver lives as long as the process.
        let _ = self.to_gateway.send(message).await;
    }

    /// Asks the gateway whether the hub may be connected.
    ///
    /// # Errors
    /// The reason why the connection has to be closed.
    pub async fn check(&self, serial: &str) -> Result<u64, Cause> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        let expire_after = {
            let mut inside = self.inside();
            if !inside.linked {
                return Err(Cause::Unavailable);
            }
            inside.checks.insert(request, tell);
            inside.expire_after
        };
        self.tell(ToGateway::Check {
            request,
            serial: serial.to_owned(),
        })
        .await;
        let answer = match expire_after {
            // The defect of 2026-07-24: slow is taken for expired. The check itself goes on behind it.
            Some(limit) => tokio::time::timeout(limit, told)
                .await
                .map_err(|_| Cause::Expired)?,
            None => told.await,
        };
        match answer {
            Ok((Check::Allowed, generation)) => Ok(generation),
            Ok((Check::Revoked, _)) => Err(Cause::Revoked),
            Ok((Check::Unknown, _)) | Err(_) => Err(Cause::Unavailable),
        }
    }

    /// Gives the session of a hub its place; an older session of the same hub is closed.
    pub fn seat(&self, serial: &str, generation: u64, client: Client) -> Seat {
        let (outgoing, receive) = mpsc::channel(SESSION_QUEUE);
        let (close, closed) = oneshot::channel();
        let mut inside = self.inside();
        inside
            .filters
            .retain(|(_, subscriber, _)| subscriber != serial);
        let session = Session {
            generation,
            client,
            outgoing,
            close: Some(close),
            commands: None,
        };
        if let Some(mut old) = inside.sessions.insert(serial.to_owned(), session) {
            old.close(Cause::Takeover);
        }
        Seat {
            generation,
            outgoing: receive,
            close: closed,
        }
    }

    /// Takes the place away, unless a newer session has it.
    pub fn leave(&self, serial: &str, generation: u64) {
        let mut inside = self.inside();
        if inside
            .sessions
            .get(serial)
            .is_some_and(|session| session.generation == generation)
        {
            inside.sessions.remove(serial);
            inside
                .filters
                .retain(|(_, subscriber, _)| subscriber != serial);
        }
    }

    /// Subscribes a session; true if it takes its own commands from now on.
    pub fn subscribe(&self, serial: &str, filter: String, qos: QoS) -> bool {
        let mut inside = self.inside();
        if filter == command_topic(serial)
            && let Some(session) = inside.sessions.get_mut(serial)
        {
            return session.commands.replace(qos).is_none();
        }
        inside
            .filters
            .retain(|(old, subscriber, _)| !(*old == filter && subscriber == serial));
        inside.filters.push((filter, serial.to_owned(), qos));
        false
    }

    /// Takes a subscription back.
    pub fn unsubscribe(&self, serial: &str, filter: &str) {
        let mut inside = self.inside();
        if filter == command_topic(serial)
            && let Some(session) = inside.sessions.get_mut(serial)
        {
            session.commands = None;
        }
        inside
            .filters
            .retain(|(old, subscriber, _)| !(old == filter && subscriber == serial));
    }

    /// Hands a message that a client published to those on this shard who subscribed to its topic.
    pub fn publish(&self, topic: &str, payload: &Bytes, qos: QoS) {
        let inside = self.inside();
        let send = |session: &Session, granted: QoS| {
            let qos = if granted < qos { granted } else { qos };
            // Who doesn't keep up misses it, as with any broker's bounded queue.
            let message = Outgoing {
                topic: topic.to_owned(),
                payload: payload.clone(),
                qos,
                command: None,
            };
            let _ = session.outgoing.try_send(Box::new(message));
        };
        if let Some(serial) = topic
            .strip_prefix("d/")
            .and_then(|rest| rest.strip_suffix("/cmd"))
            && let Some(session) = inside.sessions.get(serial)
            && let Some(granted) = session.commands
        {
            send(session, granted);
        }
        // The codec's matching expects a topic that begins with an ASCII letter.
        if !topic.is_char_boundary(1) {
            return;
        }
        for (filter, subscriber, granted) in &inside.filters {
            if matches(topic, filter)
                && let Some(session) = inside.sessions.get(subscriber)
            {
                send(session, *granted);
            }
        }
    }

    /// What a gateway has to know that knows nothing yet. The link counts as standing from here on.
    pub fn everyone(&self) -> Vec<ToGateway> {
        let mut inside = self.inside();
        inside.linked = true;
        let mut all = Vec::new();
        for (serial, session) in &inside.sessions {
            all.push(ToGateway::Opened {
                serial: serial.clone(),
                generation: session.generation,
                client: session.client.clone(),
            });
            if session.commands.is_some() {
                all.push(ToGateway::Listening {
                    serial: serial.clone(),
                    generation: session.generation,
                });
            }
        }
        all
    }

    /// The link is gone: nobody will answer the open checks.
    pub fn gateway_lost(&self) {
        let mut inside = self.inside();
        inside.linked = false;
        inside.checks.clear();
    }

    /// Follows the gateway. Never waits, so that the link always drains.
    pub fn hear(self: &Arc<Self>, message: ToShard) {
        match message {
            ToShard::Checked {
                request,
                answer,
                generation,
            } => {
                if let Some(waiting) = self.inside().checks.remove(&request) {
                    let _ = waiting.send((answer, generation));
                }
            }
            ToShard::ExpireAfter { milliseconds } => {
                self.inside().expire_after = milliseconds.map(Duration::from_millis);
            }
            ToShard::Recheck => self.recheck(),
            ToShard::Deliver {
                serial,
                generation,
                command,
                action,
            } => {
                self.deliver(&serial, generation, command, &action);
            }
            ToShard::Close {
                serial,
                generation,
                cause,
            } => self.close(&serial, generation, cause),
            ToShard::Shed { sessions } => {
                let mut inside = self.inside();
                let most = usize::try_from(sessions).unwrap_or(usize::MAX);
                inside
                    .sessions
                    .values_mut()
                    .take(most)
                    .for_each(|session| session.close(Cause::Rebalance));
            }
        }
    }

    /// Checks every live session again; one that may no longer be here, or seems so, is closed.
    fn recheck(self: &Arc<Self>) {
        let live: Vec<(String, u64)> = {
            let inside = self.inside();
            inside
                .sessions
                .iter()
                .map(|(serial, session)| (serial.clone(), session.generation))
                .collect()
        };
        for (serial, generation) in live {
            let broker = Arc::clone(self);
            tokio::spawn(async move {
                match broker.check(&serial).await {
                    // No answer is no reason to end a session that was good until now.
                    Ok(_) | Err(Cause::Unavailable) => {}
                    Err(cause) => broker.close(&serial, generation, cause),
                }
            });
        }
    }

    fn close(&self, serial: &str, generation: u64, cause: Cause) {
        if let Some(session) = self.inside().sessions.get_mut(serial)
            && session.generation == generation
        {
            session.close(cause);
        }
    }

    fn deliver(self: &Arc<Self>, serial: &str, generation: u64, command: String, action: &str) {
        let payload = serde_json::json!({ "id": command, "action": action }).to_string();
        let sent = {
            let inside = self.inside();
            let session = inside
                .sessions
                .get(serial)
                .filter(|session| session.generation == generation);
            session
                .and_then(|session| session.commands.map(|qos| (session, qos)))
                .is_some_and(|(session, qos)| {
                    let topic = command_topic(serial);
                    let message = Outgoing {
                        topic,
                        payload: payload.into(),
                        qos,
                        command: Some(command.clone()),
                    };
                    session.outgoing.try_send(Box::new(message)).is_ok()
                })
        };
        if !sent {
            let broker = Arc::clone(self);
            tokio::spawn(async move { broker.tell(ToGateway::Undelivered { command }).await });
        }
    }
}

impl Session {
    fn close(&mut self, cause: Cause) {
        if let Some(close) = self.close.take() {
            let _ = close.send(cause);
        }
    }
}

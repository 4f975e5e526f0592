//! Who is connected to this shard, whose session lives on without a connection, and who gets what.

mod orders;

use super::ending::End;
use super::mailbox::{Mailbox, Message};
use super::packet::{Publish, Will, Wish};
use super::topics::{Retained, Subscription, matches};
use crate::lab::messages::{Cause, Check, Client, Elsewhere, ToGateway};
use crate::lab::settings::Settings;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep};

/// Between two looks for sessions whose time without a connection is over.
const SWEEP: Duration = Duration::from_millis(250);

/// What a connection gets when it is admitted.
pub struct Seat {
    pub mailbox: Arc<Mailbox>,
    /// Tells that there are messages in the mailbox.
    pub wake: Arc<Notify>,
    pub close: oneshot::Receiver<End>,
    /// What an earlier connection of the session did not see acknowledged.
    pub again: Vec<Publish>,
    /// The generation of the connection whose session goes on.
    pub resumes: Option<u64>,
    /// Whether the session takes its hub's commands already.
    pub listens: bool,
}

/// Leave to come in.
pub struct Admission {
    pub generation: u64,
    /// The hub belongs on another shard: it is told so, and does not come in.
    pub elsewhere: Option<Elsewhere>,
}

/// What the gateway answered.
struct Checked {
    answer: Check,
    generation: u64,
    elsewhere: Option<Elsewhere>,
}

/// The shard's common knowledge.
pub struct Broker {
    pub settings: Settings,
    inside: Mutex<Inside>,
    to_gateway: mpsc::Sender<ToGateway>,
    requests: AtomicU64,
}

struct Inside {
    linked: bool,
    sessions: HashMap<String, Session>,
    /// Subscriptions beside those of hubs to their own commands.
    subscriptions: Vec<Subscription>,
    retained: Retained,
    checks: HashMap<u64, oneshot::Sender<Checked>>,
    expire_after: Option<Duration>,
    /// Connects that are allowed now, and when that was worked out.
    allowance: (f64, Instant),
}

struct Session {
    generation: u64,
    client: Client,
    mailbox: Arc<Mailbox>,
    /// How to end its connection; none without one.
    close: Option<oneshot::Sender<End>>,
    /// When it ends; none while it has a connection.
    expires: Option<Instant>,
    /// The QoS at which it takes its own commands.
    commands: Option<u8>,
}

/// `d/{serial}/cmd`.
pub fn command_topic(serial: &str) -> String {
    format!("d/{serial}/cmd")
}

impl Broker {
    /// Nobody is connected; what the gateway is to know goes into the channel.
    pub fn new(settings: Settings, to_gateway: mpsc::Sender<ToGateway>) -> Broker {
        Broker {
            settings,
            inside: Mutex::new(Inside {
                linked: false,
                sessions: HashMap::new(),
                subscriptions: Vec::new(),
                retained: Retained::default(),
                checks: HashMap::new(),
                expire_after: None,
                allowance: (f64::INFINITY, Instant::now()),
            }),
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

    /// Whether one more connect is within the rate that the shard takes.
    pub fn may_connect_now(&self) -> bool {
        let rate = self.settings.max_connects_per_second as f64;
        if rate == 0.0 {
            return true;
        }
        let mut inside = self.inside();
        let (left, since) = inside.allowance;
        let now = Instant::now();
        // A tenth of a second's worth may come at once.
        let most = (rate / 10.0).max(1.0);
        let left = (left + rate * now.duration_since(since).as_secs_f64()).min(most);
        let allowed = left >= 1.0;
        inside.allowance = (if allowed { left - 1.0 } else { left }, now);
        allowed
    }

    /// Asks the gateway whether a hub that comes, and could be sent elsewhere by `redirect`, may be connected.
    ///
    /// # Errors
    /// The reason why the connection has to be closed.
    pub async fn admit(&self, serial: &str, redirect: bool) -> Result<Admission, Cause> {
        let checked = self.ask(serial, redirect).await?;
        match checked.answer {
            Check::Allowed => Ok(Admission {
                generation: checked.generation,
                elsewhere: checked.elsewhere,
            }),
            Check::Revoked => Err(Cause::Revoked),
            Check::Unknown => Err(Cause::Unavailable),
        }
    }

    /// Asks the gateway whether a hub that is connected may stay.
    ///
    /// # Errors
    /// The reason why not.
    pub async fn check(&self, serial: &str) -> Result<(), Cause> {
        self.admit(serial, false).await.map(|_| ())
    }

    async fn ask(&self, serial: &str, comes: bool) -> Result<Checked, Cause> {
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
            comes,
        })
        .await;
        let answer = match expire_after {
            // The defect of 2026-07-24: slow is taken for expired. The check itself goes on behind it.
            Some(limit) => tokio::time::timeout(limit, told)
                .await
                .map_err(|_| Cause::Expired)?,
            None => told.await,
        };
        answer.map_err(|_| Cause::Unavailable)
    }

    /// Gives the connection of a hub its place; an older connection of the same hub is closed. Its session goes on, unless
    /// the hub wants a clean start.
    pub fn seat(&self, serial: &str, generation: u64, client: Client, clean_start: bool) -> Seat {
        let (close, closed) = oneshot::channel();
        let mut inside = self.inside();
        let old = inside.sessions.remove(serial);
        let mut session = Session {
            generation,
            client,
            mailbox: Arc::default(),
            close: Some(close),
            expires: None,
            commands: None,
        };
        let mut resumes = None;
        if let Some(mut old) = old {
            old.close(Cause::Takeover.into());
            if clean_start {
                inside.forget_subscriptions(serial);
            } else {
                resumes = Some(old.generation);
                session.mailbox = old.mailbox;
                session.commands = old.commands;
            }
        }
        let (again, wake) = session.mailbox.begin(generation);
        let seat = Seat {
            mailbox: Arc::clone(&session.mailbox),
            wake,
            close: closed,
            again,
            resumes,
            listens: session.commands.is_some(),
        };
        inside.sessions.insert(serial.to_owned(), session);
        seat
    }

    /// The connection is gone. Its session lives on for so many seconds, unless a newer connection has it. Gives whether
    /// the hub's commands are kept for it meanwhile.
    pub fn leave(&self, serial: &str, generation: u64, keep_s: u32) -> bool {
        let mut inside = self.inside();
        let Some(session) = inside.sessions.get_mut(serial) else {
            return false;
        };
        if session.generation != generation {
            return false;
        }
        if keep_s == 0 {
            inside.sessions.remove(serial);
            inside.forget_subscriptions(serial);
            return false;
        }
        session.close = None;
        session.expires = Instant::now().checked_add(Duration::from_secs(keep_s.into()));
        session.mailbox.pause(generation);
        session.commands > Some(0)
    }

    /// Ends sessions whose time without a connection is over, for ever.
    pub async fn sweep(self: Arc<Self>) {
        loop {
            sleep(SWEEP).await;
            let over: Vec<(String, u64)> = {
                let mut inside = self.inside();
                let now = Instant::now();
                let over: Vec<(String, u64)> = inside
                    .sessions
                    .iter()
                    .filter(|(_, session)| session.expires.is_some_and(|expires| expires <= now))
                    .map(|(serial, session)| (serial.clone(), session.generation))
                    .collect();
                for (serial, _) in &over {
                    inside.sessions.remove(serial);
                    inside.forget_subscriptions(serial);
                }
                over
            };
            for (serial, generation) in over {
                self.tell(ToGateway::Closed {
                    serial,
                    generation,
                    cause: Cause::SessionExpired,
                    keeps: false,
                })
                .await;
            }
        }
    }

    /// Subscribes a session; true if it takes its own commands from now on. Retained messages go into its mailbox.
    pub fn subscribe(&self, serial: &str, wish: &Wish) -> bool {
        let mut inside = self.inside();
        let most = self.most_waiting();
        let Some(session) = inside.sessions.get_mut(serial) else {
            return false;
        };
        let mailbox = Arc::clone(&session.mailbox);
        let is_own = wish.filter == command_topic(serial);
        let (is_new, listens) = if is_own {
            let is_new = session.commands.replace(wish.qos).is_none();
            (is_new, is_new)
        } else {
            let before = inside.subscriptions.len();
            inside.forget_subscription(serial, &wish.filter);
            let is_new = inside.subscriptions.len() == before;
            inside.subscriptions.push(Subscription {
                subscriber: serial.to_owned(),
                wish: wish.clone(),
            });
            (is_new, false)
        };
        if wish.retain_handling == 0 || (wish.retain_handling == 1 && is_new) {
            for mut message in inside.retained.matching(&wish.filter) {
                message.qos = message.qos.min(wish.qos);
                mailbox.put(message, most);
            }
        }
        listens
    }

    /// Takes a subscription back; false if there was none.
    pub fn unsubscribe(&self, serial: &str, filter: &str) -> bool {
        let mut inside = self.inside();
        if filter == command_topic(serial)
            && let Some(session) = inside.sessions.get_mut(serial)
        {
            return session.commands.take().is_some();
        }
        let before = inside.subscriptions.len();
        inside.forget_subscription(serial, filter);
        inside.subscriptions.len() < before
    }

    /// Hands a message that a client published to those on this shard who subscribed to its topic. Gives their number.
    pub fn publish(&self, from: &str, message: Message) -> usize {
        let mut inside = self.inside();
        let topic = &message.topic;
        let mut reached = 0;
        if let Some(serial) = topic
            .strip_prefix("d/")
            .and_then(|rest| rest.strip_suffix("/cmd"))
            && let Some(session) = inside.sessions.get(serial)
            && let Some(granted) = session.commands
        {
            reached += 1;
            let mut copy = message.clone();
            copy.qos = copy.qos.min(granted);
            copy.retain = false;
            // Who doesn't keep up misses it, as with any broker's bounded queue.
            session.mailbox.put(copy, self.most_waiting());
        }
        reached += inside.spread(from, &message, self.most_waiting());
        if message.retain {
            inside.retained.keep(message);
        }
        reached
    }

    /// Publishes a will: at once, or after its delay unless the session goes on with a new connection before.
    pub fn bequeath(
        self: &Arc<Self>,
        serial: &str,
        mailbox: Arc<Mailbox>,
        will: Will,
        keep_s: u32,
    ) {
        let message = Message::of(
            &Publish {
                duplicate: false,
                qos: will.qos,
                retain: will.retain,
                topic: will.topic,
                packet: 0,
                properties: will.properties,
                payload: will.payload,
            },
            Instant::now(),
        );
        // The end of the session is the latest moment.
        let delay = will.delay.min(keep_s);
        if delay == 0 {
            self.publish(serial, message);
            return;
        }
        let (broker, serial) = (Arc::clone(self), serial.to_owned());
        tokio::spawn(async move {
            sleep(Duration::from_secs(delay.into())).await;
            let goes_on = broker
                .inside()
                .sessions
                .get(&serial)
                .is_some_and(|session| {
                    session.close.is_some() && Arc::ptr_eq(&session.mailbox, &mailbox)
                });
            if !goes_on {
                broker.publish(&serial, message);
            }
        });
    }

    fn most_waiting(&self) -> usize {
        usize::try_from(self.settings.session_queue).unwrap_or(usize::MAX)
    }
}

impl Inside {
    fn forget_subscriptions(&mut self, serial: &str) {
        self.subscriptions.retain(|held| held.subscriber != serial);
    }

    fn forget_subscription(&mut self, serial: &str, filter: &str) {
        self.subscriptions
            .retain(|held| !(held.subscriber == serial && held.wish.filter == filter));
    }

    /// Hands a message to those who subscribed to its topic by a filter. Gives their number.
    fn spread(&self, from: &str, message: &Message, most: usize) -> usize {
        let mut reached = 0;
        for held in &self.subscriptions {
            let is_own = held.wish.no_local && held.subscriber == from;
            if is_own || !matches(&message.topic, &held.wish.filter) {
                continue;
            }
            if let Some(session) = self.sessions.get(&held.subscriber) {
                reached += 1;
                let mut copy = message.clone();
                copy.qos = copy.qos.min(held.wish.qos);
                copy.retain &= held.wish.retain_as_published;
                // Only the hub itself answers for its command.
                copy.command = None;
                session.mailbox.put(copy, most);
            }
        }
        reached
    }
}

impl Session {
    fn close(&mut self, end: End) {
        if let Some(close) = self.close.take() {
            let _ = close.send(end);
        }
    }
}

//! What is on its way to one hub: messages that wait, and those that it has not acknowledged. Outlives a connection where
//! the hub's session does.

use super::packet::{Properties, Publish, Value, id};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A message for subscribers.
#[derive(Debug, Clone)]
pub struct Message {
    pub topic: String,
    pub payload: Bytes,
    pub qos: u8,
    pub retain: bool,
    /// Without the message expiry, which `expires` is.
    pub properties: Properties,
    /// Not sent for the first time after this.
    pub expires: Option<Instant>,
    /// The command that it is, if the gateway wants to know of its arrival.
    pub command: Option<String>,
}

impl Message {
    /// As it was published.
    pub fn of(publish: &Publish, now: Instant) -> Message {
        let expires = publish
            .properties
            .number(id::MESSAGE_EXPIRY)
            .and_then(|seconds| now.checked_add(std::time::Duration::from_secs(seconds.into())));
        Message {
            topic: publish.topic.clone(),
            payload: publish.payload.clone(),
            qos: publish.qos,
            retain: publish.retain,
            properties: publish
                .properties
                .clone()
                .without(id::MESSAGE_EXPIRY)
                .without(id::TOPIC_ALIAS),
            expires,
            command: None,
        }
    }

    /// As it goes out under a packet number.
    fn publish(&self, packet: u16, duplicate: bool) -> Publish {
        let properties = match self.expires {
            None => self.properties.clone(),
            Some(expires) => {
                let left = expires.saturating_duration_since(Instant::now());
                let seconds = u32::try_from(left.as_secs().max(1)).unwrap_or(u32::MAX);
                self.properties
                    .clone()
                    .with(id::MESSAGE_EXPIRY, Value::Four(seconds))
            }
        };
        Publish {
            duplicate,
            qos: self.qos,
            retain: self.retain,
            topic: self.topic.clone(),
            packet,
            properties,
            payload: self.payload.clone(),
        }
    }
}

/// A message to be sent now.
pub struct Delivery {
    pub publish: Publish,
    /// The command that it is, if sending it is all that will be heard of it.
    pub command: Option<String>,
}

/// The mailbox of a session.
#[derive(Default)]
pub struct Mailbox {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// The connection that may take messages out, by its generation; none while the hub is away.
    owner: Option<u64>,
    wake: Arc<Notify>,
    waiting: VecDeque<Box<Message>>,
    in_flight: VecDeque<(u16, Box<Message>)>,
    /// The packet number given last.
    last: u16,
}

impl Mailbox {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nobody panics while holding it")
    }

    /// A connection begins: what was sent and not acknowledged is to be sent again, in order and under the same packet
    /// numbers. Also what tells that messages have arrived.
    pub fn begin(&self, owner: u64) -> (Vec<Publish>, Arc<Notify>) {
        let mut held = self.held();
        held.owner = Some(owner);
        // A notice of its own: the one before may still be waited on by the connection that is replaced.
        held.wake = Arc::default();
        let again = held
            .in_flight
            .iter()
            .map(|(packet, message)| message.publish(*packet, true))
            .collect();
        (again, Arc::clone(&held.wake))
    }

    /// The connection is gone; what has no QoS is not kept.
    pub fn pause(&self, owner: u64) {
        let mut held = self.held();
        if held.owner == Some(owner) {
            held.owner = None;
            held.waiting.retain(|message| message.qos > 0);
        }
    }

    /// Adds a message; false if there is no room, or nobody to take what isn't kept.
    pub fn put(&self, message: Message, most: usize) -> bool {
        let mut held = self.held();
        if held.waiting.len() >= most || (held.owner.is_none() && message.qos == 0) {
            return false;
        }
        held.waiting.push_back(Box::new(message));
        held.wake.notify_one();
        true
    }

    /// The next message for the connection, unless so many are unacknowledged already.
    pub fn next(&self, owner: u64, most_in_flight: usize) -> Option<Delivery> {
        let mut held = self.held();
        if held.owner != Some(owner) {
            return None;
        }
        let now = Instant::now();
        while let Some(first) = held.waiting.front() {
            if first.expires.is_some_and(|expires| expires <= now) {
                held.waiting.pop_front();
                continue;
            }
            if first.qos > 0 && held.in_flight.len() >= most_in_flight {
                return None;
            }
            let message = held.waiting.pop_front()?;
            if message.qos == 0 {
                return Some(Delivery {
                    publish: message.publish(0, false),
                    command: message.command,
                });
            }
            let packet = held.number();
            let publish = message.publish(packet, false);
            held.in_flight.push_back((packet, message));
            return Some(Delivery {
                publish,
                command: None,
            });
        }
        None
    }

    /// The hub acknowledged a packet; gives the command that it was. A number that isn't in flight means nothing.
    pub fn acknowledged(&self, owner: u64, packet: u16) -> Option<String> {
        let mut held = self.held();
        if held.owner != Some(owner) {
            return None;
        }
        let at = held
            .in_flight
            .iter()
            .position(|(number, _)| *number == packet)?;
        held.in_flight.remove(at)?.1.command
    }
}

impl Held {
    /// A packet number that is not in flight; zero is none.
    fn number(&mut self) -> u16 {
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            if self
                .in_flight
                .iter()
                .all(|(number, _)| *number != self.last)
            {
                return self.last;
            }
        }
    }
}

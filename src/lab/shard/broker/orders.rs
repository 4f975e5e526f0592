//! What the shard does at the gateway's word, and what it tells a gateway that knows nothing yet.

use super::{Broker, Checked, command_topic};
use crate::lab::messages::{Cause, ToGateway, ToShard};
use crate::lab::shard::ending::End;
use crate::lab::shard::mailbox::Message;
use crate::lab::shard::packet::{Properties, Value, id};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl Broker {
    /// What a gateway has to know that knows nothing yet. The link counts as standing from here on.
    pub fn everyone(&self) -> Vec<ToGateway> {
        let mut inside = self.inside();
        inside.linked = true;
        let mut all = Vec::new();
        for (serial, session) in &inside.sessions {
            let (serial, generation) = (serial.clone(), session.generation);
            let is_away = session.close.is_none();
            if is_away && session.commands.is_none_or(|qos| qos == 0) {
                continue;
            }
            all.push(ToGateway::Opened {
                serial: serial.clone(),
                generation,
                client: session.client.clone(),
                resumes: None,
            });
            if session.commands.is_some() {
                all.push(ToGateway::Listening {
                    serial: serial.clone(),
                    generation,
                });
            }
            if is_away {
                all.push(ToGateway::Closed {
                    serial,
                    generation,
                    cause: Cause::Gone,
                    keeps: true,
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
                elsewhere,
            } => {
                if let Some(waiting) = self.inside().checks.remove(&request) {
                    // Who asked may have gone away meanwhile.
                    let _ = waiting.send(Checked {
                        answer,
                        generation,
                        elsewhere,
                    });
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
                ttl_ms,
            } => {
                let expires = Instant::now().checked_add(Duration::from_millis(ttl_ms));
                self.deliver(&serial, generation, command, &action, expires);
            }
            ToShard::Close {
                serial,
                generation,
                cause,
            } => self.close(&serial, generation, cause.into()),
            ToShard::Move {
                serial,
                generation,
                moves,
                reference,
            } => self.close(&serial, generation, End::moved(moves, reference)),
        }
    }

    /// Checks every live session again; one that may no longer be here, or seems so, is closed.
    fn recheck(self: &Arc<Self>) {
        let live: Vec<(String, u64)> = {
            let inside = self.inside();
            inside
                .sessions
                .iter()
                .filter(|(_, session)| session.close.is_some())
                .map(|(serial, session)| (serial.clone(), session.generation))
                .collect()
        };
        for (serial, generation) in live {
            let broker = Arc::clone(self);
            tokio::spawn(async move {
                match broker.check(&serial).await {
                    // No answer is no reason to end a session that was good until now.
                    Ok(()) | Err(Cause::Unavailable) => {}
                    Err(cause) => broker.close(&serial, generation, cause.into()),
                }
            });
        }
    }

    /// Ends the connection of a session, or the session if it has none.
    fn close(&self, serial: &str, generation: u64, end: End) {
        let mut inside = self.inside();
        let Some(session) = inside
            .sessions
            .get_mut(serial)
            .filter(|session| session.generation == generation)
        else {
            return;
        };
        if session.close.is_some() {
            session.close(end);
        } else {
            inside.sessions.remove(serial);
            inside.forget_subscriptions(serial);
        }
    }

    fn deliver(
        self: &Arc<Self>,
        serial: &str,
        generation: u64,
        command: String,
        action: &str,
        expires: Option<Instant>,
    ) {
        let payload = serde_json::json!({ "id": command, "action": action }).to_string();
        let correlation = Value::Binary(command.clone().into());
        let mut message = Message {
            topic: command_topic(serial),
            payload: payload.into(),
            qos: 1,
            retain: false,
            properties: Properties::default().with(id::CORRELATION_DATA, correlation),
            expires,
            command: None,
        };
        let sent = {
            let inside = self.inside();
            inside.spread("", &message, self.most_waiting());
            message.command = Some(command.clone());
            inside
                .sessions
                .get(serial)
                .filter(|session| session.generation == generation)
                .and_then(|session| session.commands.map(|qos| (session, qos)))
                .is_some_and(|(session, qos)| {
                    message.qos = qos;
                    session.mailbox.put(message, self.most_waiting())
                })
        };
        if !sent {
            let broker = Arc::clone(self);
            tokio::spawn(async move { broker.tell(ToGateway::Undelivered { command }).await });
        }
    }
}

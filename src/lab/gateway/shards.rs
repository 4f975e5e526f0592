//! The gateway's end of the links to the shards, and what follows from what shards tell.

use super::Gateway;
use super::counts::Count;
use crate::lab::messages::{self, Cause, Client, ToGateway, ToShard};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Room for what a shard is told; a shard always reads, so it fills only for moments.
const LINK_QUEUE: usize = 10_000;

/// The links that stand.
#[derive(Debug, Default)]
pub struct Links {
    standing: Mutex<BTreeMap<u16, Link>>,
    numbers: AtomicU64,
}

#[derive(Debug, Clone)]
struct Link {
    number: u64,
    messages: mpsc::Sender<ToShard>,
}

impl Links {
    fn standing(&self) -> MutexGuard<'_, BTreeMap<u16, Link>> {
        self.standing
            .lock()
            .expect("nobody panics while holding it")
    }

    /// Number of shards that are linked.
    pub fn count(&self) -> usize {
        self.standing().len()
    }

    /// Whether the shard is linked.
    pub fn has(&self, shard: u16) -> bool {
        self.standing().contains_key(&shard)
    }

    /// Tells a shard something at once; false if it is not linked or its queue is full.
    pub fn try_tell(&self, shard: u16, message: ToShard) -> bool {
        self.standing()
            .get(&shard)
            .is_some_and(|link| link.messages.try_send(message).is_ok())
    }

    /// The number of the shard's link; every link has its own.
    pub fn number(&self, shard: u16) -> Option<u64> {
        self.standing().get(&shard).map(|link| link.number)
    }

    /// Tells a shard something, and waits for room in its queue; lost if it is not linked.
    pub async fn tell(&self, shard: u16, message: ToShard) {
        let link = self.standing().get(&shard).cloned();
        if let Some(link) = link {
            let _ = link.messages.send(message).await;
        }
    }

    /// Tells every linked shard.
    pub async fn tell_all(&self, message: &ToShard) {
        let links: Vec<Link> = self.standing().values().cloned().collect();
        for link in links {
            let _ = link.messages.send(message.clone()).await;
        }
    }

    fn put(&self, shard: u16, messages: mpsc::Sender<ToShard>) -> u64 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.standing().insert(shard, Link { number, messages });
        number
    }

    /// Takes the link away; false if a newer one stands.
    fn remove(&self, shard: u16, number: u64) -> bool {
        let mut standing = self.standing();
        let is_it = standing
            .get(&shard)
            .is_some_and(|link| link.number == number);
        if is_it {
            standing.remove(&shard);
        }
        is_it
    }
}

/// Takes links for ever.
pub async fn accept(gateway: Arc<Gateway>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(Arc::clone(&gateway), stream));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(gateway: Arc<Gateway>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (incoming, outgoing) = stream.into_split();
    let (mut lines, mut line) = (BufReader::new(incoming), Vec::new());
    let Some(ToGateway::Hello { shard }) = messages::next(&mut lines, &mut line).await else {
        return;
    };
    let (answers, queue) = mpsc::channel(LINK_QUEUE);
    tokio::spawn(messages::write_all(queue, outgoing));
    let _ = answers.send(gateway.expiry()).await;
    // What an earlier link of this shard said is not true any more.
    gateway.shard_lost(shard);
    let number = gateway.links.put(shard, answers.clone());
    gateway.map.linked(shard);
    while let Some(message) = messages::next(&mut lines, &mut line).await {
        gateway.hear(shard, message, &answers).await;
    }
    if gateway.links.remove(shard, number) {
        gateway.shard_lost(shard);
    }
}

impl Gateway {
    async fn hear(
        self: &Arc<Self>,
        shard: u16,
        message: ToGateway,
        answers: &mpsc::Sender<ToShard>,
    ) {
        match message {
            ToGateway::Hello { .. } => {}
            ToGateway::Check {
                request,
                serial,
                comes,
            } => {
                let comes_to = comes.then_some(shard);
                self.check(request, serial, comes_to, answers).await;
            }
            ToGateway::Handshake { resumed } => self.counts.of_shard(shard, |counts| {
                if resumed {
                    counts.resumed_handshakes += 1;
                } else {
                    counts.full_handshakes += 1;
                }
            }),
            ToGateway::HandshakeFailed { trouble } => self.counts.of_shard(shard, |counts| {
                *counts.failed_handshakes.entry(trouble).or_default() += 1;
            }),
            ToGateway::Opened {
                serial,
                generation,
                client,
                resumes,
            } => self.opened(shard, &serial, generation, client, resumes),
            ToGateway::Reauthenticated => self.counts.add(Count::Reauthenticated),
            ToGateway::Listening { serial, generation } => {
                if self.presence.listening(&serial, generation) {
                    self.book.hub_back(&serial);
                }
            }
            ToGateway::Closed {
                serial,
                generation,
                cause,
                keeps,
            } => {
                let was_it = self.presence.closed(&serial, generation, keeps);
                // The connection of a session that expires has ended, and was counted, long before.
                if was_it && cause != Cause::SessionExpired {
                    self.count_end(shard, cause);
                }
                if !keeps {
                    self.session_lost(&serial, generation);
                }
            }
            ToGateway::Refused { cause } => {
                self.counts.of_shard(shard, |counts| {
                    *counts.refused.entry(cause).or_default() += 1
                });
            }
            ToGateway::Delivered { command } => {
                if self.book.delivered(&command) {
                    self.counts.add(Count::CommandsDelivered);
                }
            }
            ToGateway::Undelivered { command } => self.rejected(&command),
            ToGateway::Answer { serial, payload } => self.answered(&serial, &payload),
            ToGateway::State { .. } => self.counts.add(Count::StatesReported),
        }
    }

    fn opened(
        &self,
        shard: u16,
        serial: &str,
        generation: u64,
        client: Client,
        resumes: Option<u64>,
    ) {
        let Some(replaced) = self.presence.opened(serial, shard, generation, client) else {
            // A later session of the hub stands on another shard: this one is the old one.
            self.links.try_tell(shard, close(serial, generation));
            return;
        };
        self.counts.of_shard(shard, |counts| counts.connects += 1);
        if let Some(old) = replaced {
            if old.connected {
                self.count_end(old.shard, Cause::Takeover);
            }
            if old.shard != shard {
                self.links
                    .try_tell(old.shard, close(serial, old.generation));
            }
            if resumes == Some(old.generation) {
                self.book.resumed(serial, old.generation, generation);
            } else {
                self.session_lost(serial, old.generation);
            }
        }
    }

    fn count_end(&self, shard: u16, cause: Cause) {
        self.counts.of_shard(shard, |counts| {
            *counts.disconnects.entry(cause).or_default() += 1
        });
    }

    /// The shard is gone, and every session on it.
    fn shard_lost(&self, shard: u16) {
        for (serial, generation) in self.presence.shard_lost(shard) {
            self.count_end(shard, Cause::ShardLost);
            self.session_lost(&serial, generation);
        }
    }
}

fn close(serial: &str, generation: u64) -> ToShard {
    ToShard::Close {
        serial: serial.to_owned(),
        generation,
        cause: Cause::Takeover,
    }
}

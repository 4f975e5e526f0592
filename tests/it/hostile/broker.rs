//! A scripted MQTT broker: it does everything right, but for the replies that a test puts in.

use super::peer::{Move, Peer, Said, Seen, drip, mqtt, serve};
use std::sync::Arc;
use std::time::Duration;

pub const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
pub const PINGRESP: [u8; 2] = [0xd0, 0];

pub const CONNECT: u8 = 1;
pub const PUBLISH: u8 = 3;
pub const SUBSCRIBE: u8 = 8;
pub const PINGREQ: u8 = 12;

type Reply = Arc<dyn Fn(&Said) -> Vec<Move> + Send + Sync>;

/// What it does about each kind of packet.
#[derive(Clone)]
pub struct Broker {
    connect: Reply,
    subscribe: Reply,
    publish: Reply,
    ping: Reply,
}

impl Broker {
    /// One that does everything right.
    pub fn right() -> Broker {
        Broker {
            connect: Arc::new(|_| says(&CONNACK)),
            subscribe: Arc::new(|said| says(&suback(said))),
            publish: Arc::new(|said| {
                packet_id(&said.bytes).map_or_else(Vec::new, |id| says(&puback(id)))
            }),
            ping: Arc::new(|_| says(&PINGRESP)),
        }
    }

    /// One of MQTT 5 that does everything right.
    pub fn right5() -> Broker {
        Broker::right()
            .about_connect(says(&[0x20, 3, 0, 0, 0]))
            .about_subscribe(|said| says(&[0x90, 4, said.bytes[2], said.bytes[3], 0, 1]))
    }

    /// One of MQTT 5 that grants the subscription and goes on with this.
    pub fn session5(moves: Vec<Move>) -> Broker {
        Broker::right5().about_subscribe(move |said| {
            let granted = [0x90, 4, said.bytes[2], said.bytes[3], 0, 1];
            [says(&granted), moves.clone()].concat()
        })
    }

    /// The same, but for what it does about CONNECT.
    pub fn about_connect(self, moves: Vec<Move>) -> Broker {
        Broker {
            connect: Arc::new(move |_| moves.clone()),
            ..self
        }
    }

    /// The same, but for what it does about SUBSCRIBE.
    pub fn about_subscribe(
        self,
        reply: impl Fn(&Said) -> Vec<Move> + Send + Sync + 'static,
    ) -> Broker {
        Broker {
            subscribe: Arc::new(reply),
            ..self
        }
    }

    /// The same, but for what it does about PUBLISH.
    pub fn about_publish(
        self,
        reply: impl Fn(&Said) -> Vec<Move> + Send + Sync + 'static,
    ) -> Broker {
        Broker {
            publish: Arc::new(reply),
            ..self
        }
    }

    /// It does this about CONNECT.
    pub fn connect(moves: Vec<Move>) -> Broker {
        Broker::right().about_connect(moves)
    }

    /// It does this about SUBSCRIBE.
    pub fn subscribe(reply: impl Fn(&Said) -> Vec<Move> + Send + Sync + 'static) -> Broker {
        Broker::right().about_subscribe(reply)
    }

    /// It grants the subscription and goes on with this.
    pub fn session(moves: Vec<Move>) -> Broker {
        Broker::subscribe(move |said| [says(&suback(said)), moves.clone()].concat())
    }

    /// It does this about PUBLISH.
    pub fn publish(reply: impl Fn(&Said) -> Vec<Move> + Send + Sync + 'static) -> Broker {
        Broker::right().about_publish(reply)
    }

    /// It does this about PINGREQ.
    pub fn ping(moves: Vec<Move>) -> Broker {
        Broker {
            ping: Arc::new(move |_| moves.clone()),
            ..Broker::right()
        }
    }

    /// Right in everything, a byte at a time.
    pub fn dripping(gap: Duration) -> Broker {
        let Broker {
            connect,
            subscribe,
            publish,
            ping,
        } = Broker::right();
        let slow = |reply: Reply| -> Reply {
            Arc::new(move |said| {
                let moves = reply(said).into_iter();
                moves
                    .flat_map(|made| match made {
                        Move::Write(bytes) => drip(&bytes, gap),
                        other => vec![other],
                    })
                    .collect()
            })
        };
        Broker {
            connect: slow(connect),
            subscribe: slow(subscribe),
            publish: slow(publish),
            ping: slow(ping),
        }
    }

    pub async fn serve(self) -> Peer {
        serve(mqtt, move |said| {
            match said.bytes.first().map(|byte| byte >> 4) {
                Some(CONNECT) => (self.connect)(said),
                Some(SUBSCRIBE) => (self.subscribe)(said),
                Some(PUBLISH) => (self.publish)(said),
                Some(PINGREQ) => (self.ping)(said),
                _ => Vec::new(),
            }
        })
        .await
    }
}

pub fn says(bytes: &[u8]) -> Vec<Move> {
    vec![Move::Write(bytes.to_vec())]
}

pub fn then(bytes: &[u8], end: Move) -> Vec<Move> {
    vec![Move::Write(bytes.to_vec()), end]
}

/// The SUBACK that grants what this SUBSCRIBE asks for.
pub fn suback(subscribe: &Said) -> [u8; 5] {
    let [high, low] = [subscribe.bytes[2], subscribe.bytes[3]];
    [0x90, 3, high, low, 1]
}

pub fn puback(id: u16) -> [u8; 4] {
    let [high, low] = id.to_be_bytes();
    [0x40, 2, high, low]
}

/// The packet id of a PUBLISH with QoS 1 of less than 128 bytes.
pub fn packet_id(publish: &[u8]) -> Option<u16> {
    let topic = usize::from(u16::from_be_bytes([publish[2], publish[3]]));
    (publish[0] & 0x06 != 0).then(|| u16::from_be_bytes([publish[4 + topic], publish[5 + topic]]))
}

/// Packets of this type that arrived.
pub fn arrived(peer: &Peer, kind: u8) -> usize {
    peer.count(|seen| matches!(seen, Seen::Bytes(bytes) if bytes[0] >> 4 == kind))
}

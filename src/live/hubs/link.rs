//! The way from one hub to its broker, and what it brings.

use super::find::Found;
use crate::live::carrier::{Failure, Opening, Step};
use crate::live::mqtt::{Connection, End, Packet};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The way to the broker.
pub(super) enum Link {
    Idle,
    /// The question for the shard is under way.
    Finding(Pin<Box<dyn Future<Output = Found> + Send>>),
    Connecting(Opening),
    Open(Connection, Phase),
}

/// How far the session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// CONNECT is sent.
    Introduced,
    /// CONNACK accepted.
    Accepted,
    /// SUBSCRIBE with this packet id is sent.
    Subscribing(u16),
    /// SUBACK granted.
    Subscribed,
}

/// What the link brought.
pub(super) enum Brought {
    Found(Found),
    Step(Result<Step, Failure>),
    Packets(Vec<Packet>, Result<(), End>),
}

impl Link {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Brought> {
        match self {
            Link::Idle => Poll::Pending,
            Link::Finding(asked) => {
                Poll::Ready(Brought::Found(ready!(asked.as_mut().poll(context))))
            }
            Link::Connecting(attempt) => {
                Poll::Ready(Brought::Step(ready!(attempt.as_mut().poll(context))))
            }
            Link::Open(connection, _) => {
                let mut packets = Vec::new();
                let ended = ready!(connection.poll_receive(context, &mut packets));
                Poll::Ready(Brought::Packets(packets, ended))
            }
        }
    }
}

//! What is in store for an agent, to be told when its time comes.

use rushhour::agents::{Input, Order, Reference, Reply, ReplyResult, Timer};
use rushhour::event::{CommandId, Offset, Outcome};

pub enum Occurrence {
    Given(Given),
    Timer(Timer),
    /// Only while this session stands.
    OfSession(u64, Given),
}

#[derive(Clone)]
pub enum Given {
    Due(Offset),
    Found(Result<u16, Outcome>),
    Pointed(Reference),
    Opened,
    Accepted,
    Subscribed,
    Lost(Outcome),
    Pong,
    Published(u64),
    Command(Option<CommandId>),
    Reply(ReplyResult),
    Told(Order),
}

impl Given {
    /// As an agent takes it; every answer has this body.
    pub fn input<'a>(&self, body: &'a [u8]) -> Input<'a> {
        match self {
            Given::Due(due) => Input::Due { due: *due },
            Given::Found(found) => Input::Found(*found),
            Given::Pointed(reference) => Input::Pointed {
                text: "elsewhere".to_owned(),
                reference: *reference,
            },
            Given::Opened => Input::Opened,
            Given::Accepted => Input::Accepted {
                session_present: false,
            },
            Given::Subscribed => Input::Subscribed,
            Given::Lost(outcome) => Input::Lost { outcome: *outcome },
            Given::Pong => Input::Pong,
            Given::Published(token) => Input::Published { token: *token },
            Given::Command(id) => Input::Command { id: *id },
            Given::Reply(result) => Input::Reply(Reply {
                result: *result,
                body,
                retry_after: None,
            }),
            Given::Told(order) => Input::Told(*order),
        }
    }
}

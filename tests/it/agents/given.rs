//! What is in store for an agent, to be told when its time comes.

use rushhour::agents::{Accepted, Input, Order, Reference, Reply, ReplyResult, Timer};
use rushhour::event::{Cause, CommandId, CommandName, Offset, Outcome};

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
    Accepted(Accepted),
    Subscribed,
    Lost(Outcome, Cause),
    Pong,
    Published(u64),
    /// And whether it was retained.
    Command(Option<CommandId>, bool),
    Reauthenticated,
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
            Given::Accepted(accepted) => Input::Accepted(*accepted),
            Given::Subscribed => Input::Subscribed,
            Given::Lost(outcome, cause) => Input::Lost {
                outcome: *outcome,
                cause: *cause,
            },
            Given::Pong => Input::Pong,
            Given::Published(token) => Input::Published {
                token: *token,
                outcome: Outcome::Ok,
            },
            Given::Command(id, retained) => Input::Command {
                id: id.map(CommandName::from),
                retained: *retained,
            },
            Given::Reauthenticated => Input::Reauthenticated,
            Given::Reply(result) => Input::Reply(Reply {
                result: *result,
                body,
                retry_after: None,
            }),
            Given::Told(order) => Input::Told(*order),
        }
    }
}

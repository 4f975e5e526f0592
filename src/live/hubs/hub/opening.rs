//! From a TCP connection to a hub's CONNECT: what follows what, and the certificate that it shows.

use super::HubTask;
use crate::agents::Input;
use crate::event::{Event, Outcome};
use crate::live::carrier::{Failure, Next, Step};
use crate::live::greeting::greeting;
use crate::live::hubs::link::{Link, Phase};
use crate::live::mqtt::{Connection, End, Packet};
use crate::live::shards::render;
use crate::net::stream::Stream;
use std::collections::VecDeque;
use std::sync::Arc;

impl HubTask {
    /// Takes its next certificate; connections that stand keep the old one. Without TLS, or without a certificate, there is
    /// nothing to take.
    pub(super) fn renew(&mut self) {
        let group = Arc::clone(&self.group);
        let (Some(terms), Some(wallet)) = (group.shards.terms(), &group.wallet) else {
            return;
        };
        self.generation += 1;
        match wallet.next(u64::from(self.index), self.generation) {
            Ok(identity) => {
                self.credentials = Some(Box::new(terms.credentials(Some(&identity))));
            }
            Err(error) => group.explain(
                self.index,
                &Failure {
                    outcome: Outcome::NotSent,
                    text: Some(error.to_string()),
                },
            ),
        }
    }

    /// A step towards the connection is done; the next one, or MQTT, follows.
    pub(super) fn go_on(&mut self, step: Step) {
        let group = Arc::clone(&self.group);
        let Some(way) = group.shards.way(usize::from(self.shard)) else {
            return;
        };
        self.link = Link::Idle;
        match &step {
            Step::Tcp(_) => {
                self.turn(Input::Opened);
                if way.is_secured() {
                    self.turn(Input::Securing);
                }
            }
            Step::Secured(stream) => self.secured(stream),
            Step::Ready(_) => {}
        }
        let next = {
            let credentials = match &mut self.credentials {
                Some(credentials) => Some(&**credentials),
                none if way.is_secured() => {
                    *none = group.credentials(self.index).map(Box::new);
                    none.as_deref()
                }
                _ => None,
            };
            way.follow(step, credentials)
        };
        match next {
            Next::Wait(opening) => self.link = Link::Connecting(opening),
            Next::Stands(stream) => self.introduce(stream),
        }
    }

    fn secured(&mut self, stream: &Stream) {
        if let (Some(credentials), Some(connection)) = (&self.credentials, stream.session()) {
            let session = credentials.session(connection);
            self.group.tell(
                self.index,
                Event::Secured {
                    group: self.group.row,
                    hub: self.index,
                    resumed: session.resumed,
                    own: session.own,
                    peer: session.peer,
                    at: self.group.clock.now(),
                },
            );
        }
        self.turn(Input::Secured);
    }

    fn introduce(&mut self, stream: Stream) {
        self.link = Link::Open(
            Connection::new(stream, self.group.device()),
            Phase::Introduced,
        );
        self.next_packet = 0;
        let group = Arc::clone(&self.group);
        let serial = self.serial();
        let speaker = self.speaker(&serial);
        let client_id = render(&group.device().client_id, speaker);
        let greeting = greeting(group.device(), client_id, speaker, group.hubs().keep_alive);
        let greeting = Packet::Connect(Box::new(greeting));
        let mut inputs = VecDeque::new();
        self.send(&greeting, &mut inputs);
        inputs.into_iter().for_each(|input| self.turn(input));
    }

    /// What the end of a connection means; a peer that takes no certificate of TLS 1.3 says so only when the handshake is over.
    pub(super) fn explain_end(&self, end: &End) -> Outcome {
        let (End::Failed(error), Some(way)) = (end, self.group.shards.way(usize::from(self.shard)))
        else {
            return end.outcome();
        };
        let failure = Failure::of(error, &way.endpoint().to_string());
        self.group.explain(self.index, &failure);
        end.outcome()
    }
}

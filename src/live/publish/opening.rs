//! From nothing to an accepted session of a publisher.

use super::{FAR, KEEP_ALIVE, Task};
use crate::event::{Event, HubChange, Outcome};
use crate::live::carrier::{Failure, Next, Way};
use crate::live::greeting::{CONTINUE, authentication, greeting};
use crate::live::mqtt::{Connection, End, Packet, Property};
use crate::live::shards::Speaker;
use crate::net::connect::Source;
use crate::net::stream::Stream;
use crate::plan::OperationKind;
use std::future::poll_fn;
use std::time::Duration;

impl Task {
    pub(super) async fn introduce(&mut self) -> Result<Connection, Outcome> {
        let stream = self.connect().await.map_err(|failure| {
            let failure = failure.with(self.shards.terms());
            self.explain(&failure);
            failure.outcome
        })?;
        let device = &self.plan.target.devices[self.device];
        let mut connection = Connection::new(stream, device);
        let mut greeting = greeting(device, self.name.clone(), self.speaker(), KEEP_ALIVE * 2);
        // It subscribes to nothing that must be kept, and nobody misses it.
        greeting.clean_start = true;
        greeting.will = None;
        let greeting = Packet::Connect(Box::new(greeting));
        self.send(&mut connection, &greeting)
            .map_err(|end| end.outcome())?;
        let ended = self.let_in(&mut connection).await?;
        ended.map_err(|end| {
            if let (End::Failed(error), Some(way)) = (&end, self.shards.way(self.shard)) {
                self.explain(&Failure::of(error, &way.endpoint().to_string()));
            }
            end.outcome()
        })?;
        self.change(HubChange::Accepted);
        Ok(connection)
    }

    /// Waits for CONNACK and answers what the broker asks before it; gives what ended the connection meanwhile.
    async fn let_in(&mut self, connection: &mut Connection) -> Result<Result<(), End>, Outcome> {
        loop {
            let mut packets = Vec::new();
            let ended = poll_fn(|context| connection.poll_receive(context, &mut packets)).await;
            if packets.is_empty() {
                return Ok(ended);
            }
            let packet = packets.remove(0);
            self.count(&packet, false);
            match packet {
                Packet::ConnAck(answer) if answer.reason != 0 => {
                    return Err(Outcome::Refused(u16::from(answer.reason)));
                }
                Packet::ConnAck(answer) => {
                    connection.obey(&answer.properties);
                    self.terms(&answer.properties);
                    if connection.qos(1) == 0 {
                        self.explain(&Failure::of_qos());
                        self.why = None;
                    }
                    self.early = packets;
                    return Ok(ended);
                }
                Packet::Disconnect(said) if said.reason >= 0x80 => {
                    return Err(Outcome::Refused(u16::from(said.reason)));
                }
                Packet::Auth(said) if said.reason == CONTINUE => {
                    let device = &self.plan.target.devices[self.device];
                    let answer = authentication(device, self.speaker(), CONTINUE);
                    let answer = answer.ok_or(Outcome::Protocol)?;
                    self.send(connection, &answer)
                        .map_err(|end| end.outcome())?;
                }
                _ => return Err(Outcome::Protocol),
            }
        }
    }

    /// What the broker said about this session.
    fn terms(&mut self, properties: &[Property]) {
        self.keep_alive = KEEP_ALIVE;
        self.places = usize::from(u16::MAX);
        for property in properties {
            match property {
                // Half of it: PINGREQ must be there in time.
                Property::ServerKeepAlive(0) => self.keep_alive = FAR,
                Property::ServerKeepAlive(seconds) => {
                    self.keep_alive = Duration::from_secs(u64::from(*seconds)) / 2;
                }
                Property::ReceiveMaximum(most) => self.places = usize::from(*most),
                _ => {}
            }
        }
    }

    fn speaker(&self) -> Speaker<'_> {
        Speaker {
            serial: &self.name,
            columns: self.rows.as_ref().map(|rows| (rows, 0)),
        }
    }

    /// Everything below MQTT, step by step.
    async fn connect(&self) -> Result<Stream, Failure> {
        let nowhere = || Failure {
            outcome: Outcome::Unreachable,
            text: None,
        };
        let way: &Way = self.shards.way(self.shard).ok_or_else(nowhere)?;
        let mut step = way.open(0, Source::System).ok_or_else(nowhere)?.await?;
        self.change(HubChange::Opened);
        loop {
            match way.follow(step, self.credentials.as_ref()) {
                Next::Wait(opening) => step = opening.await?,
                Next::Stands(stream) => return Ok(stream),
            }
        }
    }

    /// Tells what exactly was wrong.
    fn explain(&mut self, failure: &Failure) {
        self.why.clone_from(&failure.text);
        let issuers = self.plan.issuers.iter().position(|issuers| {
            let command = self.plan.target.commands.get(issuers.command);
            command.is_some_and(|command| command.to == self.device)
        });
        let operation =
            issuers.and_then(|issuers| self.plan.operation(OperationKind::Issue { issuers }));
        if let (Some(operation), Some(text)) = (operation, &failure.text) {
            (self.sink)(Event::Explained {
                operation,
                outcome: failure.outcome,
                text: format!("{}: {text}", self.name),
                at: self.clock.now(),
            });
        }
    }
}

//! One client of the shard, from CONNECT to its end.

use super::admit::{METHOD, Terms, admit};
use super::broker::{Broker, Seat};
use super::ending::End;
use super::mailbox::{Delivery, Mailbox, Message};
use super::packet::{
    Connect, Flaw, Incoming, Outgoing, PROTOCOL_ERROR, Properties, Publish, Value, Version, Will,
    Wish, id, reason,
};
use super::stream::Stream;
use super::topics::{valid_filter, valid_topic};
use super::wire::Wire;
use crate::lab::messages::{Cause, Client, TlsTrouble, ToGateway};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// From the accept to the CONNECT, the TLS handshake included.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Serves a client until its session ends.
pub async fn serve(tcp: TcpStream, acceptor: Option<TlsAcceptor>, broker: Arc<Broker>) {
    let accepted = timeout(CONNECT_LIMIT, Stream::accept(tcp, acceptor.as_ref())).await;
    let (stream, client) = match accepted.unwrap_or(Err(TlsTrouble::Slow)) {
        Ok(accepted) => accepted,
        Err(trouble) => return broker.tell(ToGateway::HandshakeFailed { trouble }).await,
    };
    if acceptor.is_some() {
        let resumed = client.resumed;
        broker.tell(ToGateway::Handshake { resumed }).await;
    }
    let longest = usize::try_from(broker.settings.maximum_packet_size).unwrap_or(usize::MAX);
    let mut wire = Wire::new(stream, longest);
    let connected = timeout(CONNECT_LIMIT, wire.connect()).await;
    let connect = match connected.unwrap_or(Err(Cause::KeepAlive)) {
        Ok(connect) => connect,
        Err(cause) => return broker.tell(ToGateway::Refused { cause }).await,
    };
    match admit(&mut wire, &connect, &broker).await {
        Ok(generation) => live(wire, connect, client, generation, broker).await,
        Err(cause) => broker.tell(ToGateway::Refused { cause }).await,
    }
}

/// A client that was let in, to the end of its connection.
async fn live(wire: Wire, connect: Connect, client: Client, generation: u64, broker: Arc<Broker>) {
    let client = Client {
        protocol: match connect.version {
            Version::V4 => "3.1.1",
            Version::V5 => "5",
        }
        .to_owned(),
        ..client
    };
    let serial = connect.id.clone();
    let mut seat = broker.seat(&serial, generation, client.clone(), connect.clean_start);
    broker
        .tell(ToGateway::Opened {
            serial: serial.clone(),
            generation,
            client,
            resumes: seat.resumes,
        })
        .await;
    if seat.listens {
        let serial = serial.clone();
        broker
            .tell(ToGateway::Listening { serial, generation })
            .await;
    }
    let terms = Terms::of(&connect, &broker);
    let mut session = Session {
        wire,
        serial,
        generation,
        mailbox: Arc::clone(&seat.mailbox),
        aliases_in: match connect.version {
            Version::V4 => Vec::new(),
            Version::V5 => {
                vec![None; usize::try_from(broker.settings.topic_alias_maximum).unwrap_or(0)]
            }
        },
        aliases_out: Vec::new(),
        will: connect.will.clone(),
        broker,
        terms,
        challenges: 0,
        unanswered: 0,
    };
    let end = match session.begin(&connect, &mut seat).await {
        Ok(()) => session.run(&mut seat).await,
        Err(end) => end,
    };
    session.end(end).await;
}

/// The connection of a client that was let in.
struct Session {
    wire: Wire,
    serial: String,
    generation: u64,
    broker: Arc<Broker>,
    mailbox: Arc<Mailbox>,
    terms: Terms,
    will: Option<Will>,
    /// Topics that the client has given a number, from 1.
    aliases_in: Vec<Option<String>>,
    /// Topics that the shard has given a number, from 1.
    aliases_out: Vec<String>,
    /// Challenges of a re-authentication that the client has to answer still.
    challenges: u64,
    /// Packets of the client with QoS 1 for which no acknowledgement has gone out.
    unanswered: u64,
}

impl Session {
    /// Welcomes the client and sends again what it did not acknowledge before.
    async fn begin(&mut self, connect: &Connect, seat: &mut Seat) -> Result<(), End> {
        let present = seat.resumes.is_some();
        let welcome = self.terms.welcome(connect, &self.broker, present);
        self.wire.say(&welcome).await?;
        for publish in std::mem::take(&mut seat.again) {
            self.send(publish).await?;
        }
        // What came together with the CONNECT is there already.
        self.take_packets().await
    }

    /// Serves the client; gives how its connection ended.
    async fn run(&mut self, seat: &mut Seat) -> End {
        // One and a half times what was promised; zero means that nothing was.
        let patience = (self.terms.keep_alive > 0)
            .then(|| Duration::from_millis(1500 * u64::from(self.terms.keep_alive)));
        let mut silent_since = Instant::now();
        loop {
            if let Err(end) = self.flush().await {
                return end;
            }
            let deadline = patience.map(|patience| silent_since + patience);
            let step = tokio::select! {
                filled = self.wire.fill() => match filled {
                    Ok(()) => {
                        silent_since = Instant::now();
                        self.take_packets().await
                    }
                    Err(cause) => Err(cause.into()),
                },
                () = seat.wake.notified() => Ok(()),
                end = &mut seat.close => Err(end.unwrap_or(Cause::Takeover.into())),
                () = wait_until(deadline), if deadline.is_some() => Err(Cause::KeepAlive.into()),
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Ends the connection, and the session if it was for this connection only.
    async fn end(mut self, end: End) {
        let keep_s = match end.cause {
            Cause::Revoked | Cause::Rebalance => 0,
            _ => self.terms.expiry,
        };
        let keeps = self.broker.leave(&self.serial, self.generation, keep_s);
        if let Some(will) = self.will.take() {
            let mailbox = Arc::clone(&self.mailbox);
            self.broker.bequeath(&self.serial, mailbox, will, keep_s);
        }
        self.broker
            .tell(ToGateway::Closed {
                serial: self.serial,
                generation: self.generation,
                cause: end.cause,
                keeps,
            })
            .await;
        self.wire.close(end).await;
    }

    /// Sends what waits, as far as the client takes it.
    async fn flush(&mut self) -> Result<(), End> {
        while let Some(delivery) = self.mailbox.next(self.generation, self.terms.in_flight) {
            let Delivery { publish, command } = delivery;
            self.send(publish).await?;
            if let Some(command) = command {
                self.broker.tell(ToGateway::Delivered { command }).await;
            }
        }
        Ok(())
    }

    async fn send(&mut self, mut publish: Publish) -> Result<(), End> {
        if let Some(at) = self.aliases_out.iter().position(|at| *at == publish.topic) {
            publish.topic.clear();
            publish = aliased(publish, at);
        } else if self.aliases_out.len() < usize::from(self.terms.aliases).min(MOST_ALIASES) {
            self.aliases_out.push(publish.topic.clone());
            publish = aliased(publish, self.aliases_out.len() - 1);
        }
        let mut bytes = BytesMut::new();
        Outgoing::Publish(&publish).write(self.wire.version, &mut bytes);
        if bytes.len() > self.terms.longest {
            // As the standard has it: not sent, and as if it had arrived.
            self.mailbox.acknowledged(self.generation, publish.packet);
            return Ok(());
        }
        Ok(self.wire.send(&bytes).await?)
    }

    async fn take_packets(&mut self) -> Result<(), End> {
        let version = self.wire.version;
        let mut answers = BytesMut::new();
        while let Some(packet) = self.wire.packet()? {
            match packet {
                Incoming::Publish(publish) => self.published(publish, &mut answers).await?,
                Incoming::PubAck { packet } => {
                    if let Some(command) = self.mailbox.acknowledged(self.generation, packet) {
                        self.broker.tell(ToGateway::Delivered { command }).await;
                    }
                }
                Incoming::Subscribe {
                    packet,
                    properties,
                    wishes,
                } => {
                    if properties.number(id::SUBSCRIPTION_ID).is_some() {
                        return Err(Flaw(reason::NO_SUBSCRIPTION_IDS).into());
                    }
                    self.subscribe(packet, &wishes, &mut answers).await;
                }
                Incoming::Unsubscribe { packet, filters } => {
                    let codes: Vec<u8> = filters
                        .iter()
                        .map(
                            |filter| match self.broker.unsubscribe(&self.serial, filter) {
                                true => reason::SUCCESS,
                                false => reason::NO_SUBSCRIPTION,
                            },
                        )
                        .collect();
                    let codes = &codes;
                    Outgoing::UnsubAck { packet, codes }.write(version, &mut answers);
                }
                Incoming::PingReq => Outgoing::PingResp.write(version, &mut answers),
                Incoming::Disconnect { reason, properties } => {
                    return Err(self.disconnected(reason, &properties));
                }
                Incoming::Auth { reason, properties } => {
                    self.authenticate(reason, &properties, &mut answers).await?;
                }
                Incoming::Connect(_) | Incoming::OtherLevel => return Err(PROTOCOL_ERROR.into()),
            }
        }
        if !answers.is_empty() {
            self.wire.send(&answers).await?;
            self.unanswered = 0;
        }
        Ok(())
    }

    /// The client said farewell.
    fn disconnected(&mut self, reason: u8, properties: &Properties) -> End {
        if let Some(expiry) = properties.number(id::SESSION_EXPIRY) {
            if self.terms.expiry == 0 && expiry > 0 {
                return PROTOCOL_ERROR.into();
            }
            let longest = u32::try_from(self.broker.settings.session_expiry_max_s);
            self.terms.expiry = expiry.min(longest.unwrap_or(u32::MAX));
        }
        if reason != reason::DISCONNECT_WITH_WILL {
            self.will = None;
        }
        Cause::Disconnect.into()
    }

    async fn published(&mut self, publish: Publish, answers: &mut BytesMut) -> Result<(), End> {
        if publish.qos > 1 {
            return Err(Flaw(reason::NO_QOS).into());
        }
        let publish = self.named(publish)?;
        if !valid_topic(&publish.topic) {
            return Err(Flaw(reason::BAD_TOPIC).into());
        }
        if publish.qos == 1 {
            self.unanswered += 1;
            if self.wire.version == Version::V5
                && self.unanswered > self.broker.settings.receive_maximum
            {
                return Err(Flaw(reason::RECEIVE_MAXIMUM).into());
            }
        }
        let own = publish
            .topic
            .strip_prefix("d/")
            .and_then(|rest| rest.strip_prefix(self.serial.as_str()));
        let is_for_gateway = match own {
            Some("/evt") => {
                let payload = String::from_utf8_lossy(&publish.payload).into_owned();
                let serial = self.serial.clone();
                self.broker
                    .tell(ToGateway::Answer { serial, payload })
                    .await;
                true
            }
            Some("/state") => {
                self.broker.tell(ToGateway::State { count: 1 }).await;
                true
            }
            _ => false,
        };
        let message = Message::of(&publish, Instant::now());
        let reached = self.broker.publish(&self.serial, message);
        if publish.qos == 1 {
            let reason = match reached {
                0 if !is_for_gateway => reason::NO_MATCHING_SUBSCRIBERS,
                _ => reason::SUCCESS,
            };
            let packet = publish.packet;
            Outgoing::PubAck { packet, reason }.write(self.wire.version, answers);
        }
        Ok(())
    }

    /// The message with its topic in place of an alias.
    fn named(&mut self, mut publish: Publish) -> Result<Publish, Flaw> {
        let Some(alias) = publish.properties.number(id::TOPIC_ALIAS) else {
            return Ok(publish);
        };
        let place = (alias as usize)
            .checked_sub(1)
            .and_then(|at| self.aliases_in.get_mut(at))
            .ok_or(Flaw(reason::BAD_ALIAS))?;
        if publish.topic.is_empty() {
            publish.topic = place.clone().ok_or(PROTOCOL_ERROR)?;
        } else {
            *place = Some(publish.topic.clone());
        }
        Ok(publish)
    }

    async fn subscribe(&mut self, packet: u16, wishes: &[Wish], answers: &mut BytesMut) {
        let mut codes = Vec::new();
        let mut listening = false;
        for wish in wishes {
            let refusal = if !valid_filter(&wish.filter) {
                Some(reason::BAD_FILTER)
            } else if wish.filter.starts_with("$share/") {
                Some(reason::NO_SHARED)
            } else {
                None
            };
            codes.push(match (refusal, self.wire.version) {
                (Some(_), Version::V4) => 0x80,
                (Some(reason), Version::V5) => reason,
                (None, _) => {
                    let granted = Wish {
                        qos: wish.qos.min(1),
                        ..wish.clone()
                    };
                    listening |= self.broker.subscribe(&self.serial, &granted);
                    granted.qos
                }
            });
        }
        let codes = &codes;
        Outgoing::SubAck { packet, codes }.write(self.wire.version, answers);
        if listening {
            let (serial, generation) = (self.serial.clone(), self.generation);
            let message = ToGateway::Listening { serial, generation };
            self.broker.tell(message).await;
        }
    }

    /// A step of a re-authentication: begun by the client, challenged as often as the settings say, then decided by the
    /// same check as a new connection.
    async fn authenticate(
        &mut self,
        step: u8,
        properties: &Properties,
        answers: &mut BytesMut,
    ) -> Result<(), End> {
        let is_ours = properties.text(id::AUTH_METHOD) == Some(METHOD);
        if !self.terms.authenticates || !is_ours {
            return Err(PROTOCOL_ERROR.into());
        }
        match (step, self.challenges) {
            // One more than there are: zero says that none is going on.
            (reason::RE_AUTHENTICATE, 0) => {
                self.challenges = self.broker.settings.reauth_challenges + 1;
            }
            (reason::CONTINUE_AUTHENTICATION, 1..) => {}
            _ => return Err(PROTOCOL_ERROR.into()),
        }
        self.challenges -= 1;
        let method = Value::Text(METHOD.to_owned());
        let properties = Properties::default().with(id::AUTH_METHOD, method);
        if self.challenges > 0 {
            let challenge = Value::Binary(Bytes::from(self.challenges.to_string()));
            Outgoing::Auth {
                reason: reason::CONTINUE_AUTHENTICATION,
                properties: properties.with(id::AUTH_DATA, challenge),
            }
            .write(self.wire.version, answers);
            return Ok(());
        }
        self.broker.check(&self.serial).await?;
        self.broker.tell(ToGateway::Reauthenticated).await;
        let reason = reason::SUCCESS;
        Outgoing::Auth { reason, properties }.write(self.wire.version, answers);
        Ok(())
    }
}

/// Topic aliases that the shard gives at most: a hub has few topics.
const MOST_ALIASES: usize = 8;

/// The message with the number of its topic.
fn aliased(mut publish: Publish, at: usize) -> Publish {
    let alias = Value::Two(u16::try_from(at + 1).unwrap_or(u16::MAX));
    publish.properties = publish.properties.with(id::TOPIC_ALIAS, alias);
    publish
}

async fn wait_until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        sleep_until(deadline).await;
    }
}

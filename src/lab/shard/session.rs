//! One client of the shard, from CONNECT to its end.

use super::broker::{Broker, Outgoing, Seat};
use super::stream::Stream;
use crate::lab::messages::{Cause, TlsTrouble, ToGateway};
use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{
    ConnAck, Connect, ConnectReturnCode, Packet, PubAck, Publish, SubAck, Subscribe,
    SubscribeReasonCode, UnsubAck,
};
use rumqttc::mqttbytes::{Error, Protocol, QoS, valid_filter, valid_topic};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

/// Longest packet that is read.
const LONGEST_PACKET: usize = 64 * 1024;
/// From the accept to the CONNECT.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The kind of packet that a connection begins with, as its first byte has it.
const CONNECT_KIND: u8 = 1;
/// For the client to take what is sent to it.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Commands that the client has not acknowledged; one more waits.
const MOST_IN_FLIGHT: usize = 64;

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
    let mut wire = Wire {
        stream,
        unread: BytesMut::new(),
    };
    let connect = match timeout(CONNECT_LIMIT, wire.connect()).await {
        Ok(Ok(connect)) => connect,
        Ok(Err(cause)) => return broker.tell(ToGateway::Refused { cause }).await,
        Err(_) => {
            return broker
                .tell(ToGateway::Refused {
                    cause: Cause::KeepAlive,
                })
                .await;
        }
    };
    let generation = match admit(&mut wire, &connect, &broker).await {
        Ok(generation) => generation,
        Err(cause) => return broker.tell(ToGateway::Refused { cause }).await,
    };
    let serial = connect.client_id;
    let seat = broker.seat(&serial, generation, client.clone());
    broker
        .tell(ToGateway::Opened {
            serial: serial.clone(),
            generation,
            client,
        })
        .await;
    let mut session = Session {
        wire,
        serial,
        broker,
        packets: 0,
        in_flight: Vec::new(),
        // One and a half times what the client promised; zero means that it promised nothing.
        patience: (connect.keep_alive > 0)
            .then(|| Duration::from_millis(1500 * u64::from(connect.keep_alive))),
    };
    let cause = session.run(seat).await;
    session.broker.leave(&session.serial, generation);
    session
        .broker
        .tell(ToGateway::Closed {
            serial: session.serial,
            generation,
            cause,
        })
        .await;
    session.wire.stream.close().await;
}

/// Decides about a CONNECT and, if it isn't let in, says so.
async fn admit(wire: &mut Wire, connect: &Connect, broker: &Broker) -> Result<u64, Cause> {
    if connect.protocol != Protocol::V4 {
        return wire
            .refuse(ConnectReturnCode::RefusedProtocolVersion, Cause::Protocol)
            .await;
    }
    let id = &connect.client_id;
    if id.is_empty() || id.len() > 128 || id.contains(['/', '+', '#']) {
        return wire
            .refuse(ConnectReturnCode::BadClientId, Cause::Protocol)
            .await;
    }
    let checked = tokio::select! {
        checked = broker.check(id) => checked,
        // Who went away while waiting gets no session; the check itself is not called back.
        () = wire.stream.client_gone() => Err(Cause::Gone),
    };
    match checked {
        Ok(generation) => Ok(generation),
        Err(Cause::Revoked) => {
            wire.refuse(ConnectReturnCode::NotAuthorized, Cause::Revoked)
                .await
        }
        Err(Cause::Unavailable) => {
            wire.refuse(ConnectReturnCode::ServiceUnavailable, Cause::Unavailable)
                .await
        }
        Err(cause) => Err(cause),
    }
}

/// The connection, packet by packet.
struct Wire {
    stream: Stream,
    /// Holds memory only while part of a packet is there.
    unread: BytesMut,
}

impl Wire {
    async fn fill(&mut self) -> io::Result<()> {
        self.stream.fill(&mut self.unread).await
    }

    /// The next whole packet that is there already.
    fn packet(&mut self) -> Result<Option<Packet>, Cause> {
        if self.unread.is_empty() {
            self.unread = BytesMut::new();
            return Ok(None);
        }
        match Packet::read(&mut self.unread, LONGEST_PACKET) {
            Ok(packet) => Ok(Some(packet)),
            Err(Error::InsufficientBytes(_)) => Ok(None),
            Err(_) => Err(Cause::Protocol),
        }
    }

    async fn connect(&mut self) -> Result<Connect, Cause> {
        loop {
            self.fill().await.map_err(|_| Cause::Gone)?;
            // Whatever speaks another protocol is not waited for until its "packet" is whole.
            if self
                .unread
                .first()
                .is_some_and(|first| first >> 4 != CONNECT_KIND)
            {
                return Err(Cause::Protocol);
            }
            match self.packet()? {
                Some(Packet::Connect(connect)) => return Ok(connect),
                Some(_) => return Err(Cause::Protocol),
                None => {}
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Cause> {
        match timeout(WRITE_LIMIT, self.stream.send(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Cause::Gone),
            Err(_) => Err(Cause::Stuck),
        }
    }

    async fn refuse<T>(&mut self, code: ConnectReturnCode, cause: Cause) -> Result<T, Cause> {
        self.send(&written(&Packet::ConnAck(ConnAck::new(code, false))))
            .await?;
        Err(cause)
    }
}

fn written(packet: &Packet) -> BytesMut {
    let mut bytes = BytesMut::new();
    write(packet, &mut bytes);
    bytes
}

fn write(packet: &Packet, bytes: &mut BytesMut) {
    packet
        .write(bytes, usize::MAX)
        .expect("only its size can keep a packet from being written");
}

/// A client that was let in.
struct Session {
    wire: Wire,
    serial: String,
    broker: Arc<Broker>,
    /// Number of the last packet sent with QoS 1.
    packets: u16,
    /// Packet number and command of what the client has not acknowledged yet.
    in_flight: Vec<(u16, Option<String>)>,
    patience: Option<Duration>,
}

impl Session {
    /// Serves the client; gives why the session ended.
    async fn run(&mut self, mut seat: Seat) -> Cause {
        let welcome = written(&Packet::ConnAck(ConnAck::new(
            ConnectReturnCode::Success,
            false,
        )));
        if let Err(cause) = self.wire.send(&welcome).await {
            return cause;
        }
        // What came together with the CONNECT is there already.
        if let Err(cause) = self.take_packets(seat.generation).await {
            return cause;
        }
        let mut silent_since = Instant::now();
        loop {
            let deadline = self.patience.map(|patience| silent_since + patience);
            let room = self.in_flight.len() < MOST_IN_FLIGHT;
            let step = tokio::select! {
                filled = self.wire.fill() => match filled {
                    Ok(()) => {
                        silent_since = Instant::now();
                        self.take_packets(seat.generation).await
                    }
                    Err(_) => Err(Cause::Gone),
                },
                Some(message) = seat.outgoing.recv(), if room => self.send(*message).await,
                cause = &mut seat.close => Err(cause.unwrap_or(Cause::Takeover)),
                () = wait_until(deadline), if deadline.is_some() => Err(Cause::KeepAlive),
            };
            if let Err(cause) = step {
                return cause;
            }
        }
    }

    async fn send(&mut self, message: Outgoing) -> Result<(), Cause> {
        let mut publish = Publish::new(message.topic, message.qos, message.payload);
        if message.qos == QoS::AtMostOnce {
            self.wire.send(&written(&Packet::Publish(publish))).await?;
            if let Some(command) = message.command {
                self.broker.tell(ToGateway::Delivered { command }).await;
            }
            return Ok(());
        }
        // Zero is no packet number; one in flight can't be met again: there are far fewer than numbers.
        self.packets = self.packets.checked_add(1).unwrap_or(1);
        publish.pkid = self.packets;
        self.in_flight.push((self.packets, message.command));
        self.wire.send(&written(&Packet::Publish(publish))).await
    }

    async fn take_packets(&mut self, generation: u64) -> Result<(), Cause> {
        let mut answers = BytesMut::new();
        while let Some(packet) = self.wire.packet()? {
            match packet {
                Packet::Publish(publish) => self.published(publish, &mut answers).await?,
                Packet::PubAck(ack) => self.acknowledged(ack.pkid).await,
                Packet::Subscribe(subscribe) => {
                    self.subscribe(subscribe, generation, &mut answers).await
                }
                Packet::Unsubscribe(unsubscribe) => {
                    unsubscribe
                        .topics
                        .iter()
                        .for_each(|filter| self.broker.unsubscribe(&self.serial, filter));
                    write(
                        &Packet::UnsubAck(UnsubAck::new(unsubscribe.pkid)),
                        &mut answers,
                    );
                }
                Packet::PingReq => write(&Packet::PingResp, &mut answers),
                Packet::Disconnect => return Err(Cause::Disconnect),
                _ => return Err(Cause::Protocol),
            }
        }
        if answers.is_empty() {
            Ok(())
        } else {
            self.wire.send(&answers).await
        }
    }

    async fn published(&mut self, publish: Publish, answers: &mut BytesMut) -> Result<(), Cause> {
        if publish.qos == QoS::ExactlyOnce
            || publish.topic.is_empty()
            || !valid_topic(&publish.topic)
        {
            return Err(Cause::Protocol);
        }
        let own = publish
            .topic
            .strip_prefix("d/")
            .and_then(|rest| rest.strip_prefix(self.serial.as_str()));
        match own {
            Some("/evt") => {
                let payload = String::from_utf8_lossy(&publish.payload).into_owned();
                self.broker
                    .tell(ToGateway::Answer {
                        serial: self.serial.clone(),
                        payload,
                    })
                    .await;
            }
            Some("/state") => self.broker.tell(ToGateway::State { count: 1 }).await,
            _ => {}
        }
        self.broker
            .publish(&publish.topic, &publish.payload, publish.qos);
        if publish.qos == QoS::AtLeastOnce {
            write(&Packet::PubAck(PubAck::new(publish.pkid)), answers);
        }
        Ok(())
    }

    async fn acknowledged(&mut self, packet: u16) {
        if let Some(at) = self
            .in_flight
            .iter()
            .position(|(number, _)| *number == packet)
            && let (_, Some(command)) = self.in_flight.swap_remove(at)
        {
            self.broker.tell(ToGateway::Delivered { command }).await;
        }
    }

    async fn subscribe(&mut self, subscribe: Subscribe, generation: u64, answers: &mut BytesMut) {
        let mut codes = Vec::new();
        let mut listening = false;
        for filter in subscribe.filters {
            if !valid_filter(&filter.path) {
                codes.push(SubscribeReasonCode::Failure);
                continue;
            }
            let granted = if filter.qos == QoS::AtMostOnce {
                QoS::AtMostOnce
            } else {
                QoS::AtLeastOnce
            };
            listening |= self.broker.subscribe(&self.serial, filter.path, granted);
            codes.push(SubscribeReasonCode::Success(granted));
        }
        write(&Packet::SubAck(SubAck::new(subscribe.pkid, codes)), answers);
        if listening {
            self.broker
                .tell(ToGateway::Listening {
                    serial: self.serial.clone(),
                    generation,
                })
                .await;
        }
    }
}

async fn wait_until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        sleep_until(deadline).await;
    }
}

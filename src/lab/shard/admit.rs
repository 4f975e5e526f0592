//! May who sent this CONNECT come in, and what it is told.

use super::broker::Broker;
use super::packet::{Connect, Outgoing, Properties, Value, Version, id, reason};
use super::topics::valid_topic;
use super::wire::Wire;
use crate::lab::messages::{Cause, Elsewhere};

/// The method of authentication that AUTH packets may name.
pub const METHOD: &str = "lab-token";

/// Decides about a CONNECT; whoever isn't let in is told so. Gives the generation of the session that may begin.
///
/// # Errors
/// Why not.
pub async fn admit(wire: &mut Wire, connect: &Connect, broker: &Broker) -> Result<u64, Cause> {
    if !broker.may_connect_now() {
        return refuse(wire, Cause::Throttled, 3, reason::TOO_MANY_CONNECTS).await;
    }
    let name = &connect.id;
    if name.is_empty() || name.len() > 128 || name.contains(['/', '+', '#']) {
        return refuse(wire, Cause::Protocol, 2, reason::BAD_CLIENT_ID).await;
    }
    match connect.properties.text(id::AUTH_METHOD) {
        None | Some(METHOD) => {}
        Some(_) => return refuse(wire, Cause::Protocol, 5, reason::BAD_METHOD).await,
    }
    if let Some(will) = &connect.will {
        if will.qos > 1 {
            return refuse(wire, Cause::Protocol, 3, reason::NO_QOS).await;
        }
        if !valid_topic(&will.topic) {
            return refuse(wire, Cause::Protocol, 3, reason::BAD_TOPIC).await;
        }
    }
    // Only MQTT 5 has a word for where else to go.
    let redirect = wire.version == Version::V5;
    let checked = tokio::select! {
        checked = broker.admit(name, redirect) => checked,
        // Who went away while waiting gets no session; the check itself is not called back.
        () = wire.client_gone() => Err(Cause::Gone),
    };
    match checked {
        Ok(admission) => match admission.elsewhere {
            None => Ok(admission.generation),
            Some(elsewhere) => send_elsewhere(wire, elsewhere).await,
        },
        Err(Cause::Revoked) => refuse(wire, Cause::Revoked, 5, reason::NOT_AUTHORIZED).await,
        Err(Cause::Unavailable) => refuse(wire, Cause::Unavailable, 3, reason::UNAVAILABLE).await,
        Err(cause) => Err(cause),
    }
}

/// Tells a client of MQTT 5 where it belongs.
async fn send_elsewhere<T>(wire: &mut Wire, elsewhere: Elsewhere) -> Result<T, Cause> {
    let reference = Value::Text(elsewhere.reference);
    wire.say(&Outgoing::ConnAck {
        present: false,
        code: elsewhere.code,
        properties: Properties::default().with(id::SERVER_REFERENCE, reference),
    })
    .await?;
    Err(Cause::Elsewhere)
}

/// Turns a client away with the code of its protocol.
async fn refuse<T>(wire: &mut Wire, cause: Cause, v4: u8, v5: u8) -> Result<T, Cause> {
    let code = match wire.version {
        Version::V4 => v4,
        Version::V5 => v5,
    };
    wire.say(&Outgoing::ConnAck {
        present: false,
        code,
        properties: Properties::default(),
    })
    .await?;
    Err(cause)
}

/// What a client agrees on with the shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Seconds of silence that both sides have promised to end; zero is none.
    pub keep_alive: u16,
    /// Seconds for which the session lives on without a connection.
    pub expiry: u32,
    /// Packets that the client takes without acknowledging them.
    pub in_flight: usize,
    /// The longest packet that the client takes, in bytes.
    pub longest: usize,
    /// Topic aliases that the client takes.
    pub aliases: u16,
    /// Whether it re-authenticates.
    pub authenticates: bool,
}

/// Packets that are sent without an acknowledgement at most, whatever the client takes.
const MOST_IN_FLIGHT: u32 = 64;

impl Terms {
    /// By what the client asks for and the shard allows.
    pub fn of(connect: &Connect, broker: &Broker) -> Terms {
        let settings = &broker.settings;
        let longest_expiry = u32::try_from(settings.session_expiry_max_s).unwrap_or(u32::MAX);
        let asked = &connect.properties;
        match connect.version {
            Version::V4 => Terms {
                keep_alive: connect.keep_alive,
                // MQTT 3.1.1 has no word for how long; a broker ends it some day.
                expiry: if connect.clean_start {
                    0
                } else {
                    longest_expiry
                },
                in_flight: MOST_IN_FLIGHT as usize,
                longest: usize::MAX,
                aliases: 0,
                authenticates: false,
            },
            Version::V5 => Terms {
                keep_alive: match u16::try_from(settings.server_keep_alive_s) {
                    Ok(seconds) if seconds > 0 => seconds,
                    _ => connect.keep_alive,
                },
                expiry: asked
                    .number(id::SESSION_EXPIRY)
                    .unwrap_or(0)
                    .min(longest_expiry),
                in_flight: asked
                    .number(id::RECEIVE_MAXIMUM)
                    .unwrap_or(MOST_IN_FLIGHT)
                    .min(MOST_IN_FLIGHT) as usize,
                longest: asked
                    .number(id::MAXIMUM_PACKET_SIZE)
                    .map_or(usize::MAX, |bytes| bytes as usize),
                aliases: u16::try_from(asked.number(id::TOPIC_ALIAS_MAXIMUM).unwrap_or(0))
                    .unwrap_or(u16::MAX),
                authenticates: asked.text(id::AUTH_METHOD).is_some(),
            },
        }
    }

    /// The CONNACK that lets the client in.
    pub fn welcome(&self, connect: &Connect, broker: &Broker, present: bool) -> Outgoing<'static> {
        let settings = &broker.settings;
        let two = |value: u64| Value::Two(u16::try_from(value).unwrap_or(u16::MAX));
        let mut properties = Properties::default();
        if connect.version == Version::V5 {
            properties = properties
                .with(id::RECEIVE_MAXIMUM, two(settings.receive_maximum))
                .with(id::MAXIMUM_QOS, Value::Byte(1))
                .with(
                    id::MAXIMUM_PACKET_SIZE,
                    Value::Four(u32::try_from(settings.maximum_packet_size).unwrap_or(u32::MAX)),
                )
                .with(id::TOPIC_ALIAS_MAXIMUM, two(settings.topic_alias_maximum))
                .with(id::SUBSCRIPTION_IDS_AVAILABLE, Value::Byte(0))
                .with(id::SHARED_AVAILABLE, Value::Byte(0));
            if connect.properties.number(id::SESSION_EXPIRY).unwrap_or(0) != self.expiry {
                properties = properties.with(id::SESSION_EXPIRY, Value::Four(self.expiry));
            }
            if self.keep_alive != connect.keep_alive {
                properties = properties.with(id::SERVER_KEEP_ALIVE, Value::Two(self.keep_alive));
            }
            if self.authenticates {
                properties = properties.with(id::AUTH_METHOD, Value::Text(METHOD.to_owned()));
            }
        }
        Outgoing::ConnAck {
            present,
            code: reason::SUCCESS,
            properties,
        }
    }
}

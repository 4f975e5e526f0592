//! What both sides of an MQTT 5 connection agreed on: the packets that the broker takes, and the topic aliases that it may use.

use super::End;
use super::v5::{self, Packet, Property, Publish, Unreadable};
use bytes::BytesMut;

#[derive(Debug)]
pub(super) struct Terms {
    /// Bytes of the largest packet that the broker takes.
    largest: u32,
    /// The highest QoS with which it takes publishes.
    highest_qos: u8,
    /// Aliases that the broker may use.
    most_aliases: u16,
    /// The topics of those that it has used.
    aliases: Vec<(u16, String)>,
}

impl Terms {
    pub fn new(most_aliases: u16) -> Terms {
        Terms {
            largest: u32::MAX,
            highest_qos: 1,
            most_aliases,
            aliases: Vec::new(),
        }
    }

    /// What CONNACK said.
    pub fn obey(&mut self, properties: &[Property]) {
        for property in properties {
            match property {
                Property::MaximumPacketSize(bytes) => self.largest = *bytes,
                Property::MaximumQos(qos) => self.highest_qos = *qos,
                _ => {}
            }
        }
    }

    /// The QoS with which a publish may leave that is meant for this one.
    pub fn qos(&self, meant: u8) -> u8 {
        meant.min(self.highest_qos)
    }

    /// Whether the broker takes a packet of so many bytes.
    pub fn allow(&self, bytes: usize) -> bool {
        u32::try_from(bytes).is_ok_and(|bytes| bytes <= self.largest)
    }

    /// Takes every whole packet off the front of `bytes` and appends it to `out`; what remains is the beginning of the next.
    pub fn split(
        &mut self,
        bytes: &mut BytesMut,
        limit: usize,
        out: &mut Vec<Packet>,
    ) -> Result<(), End> {
        loop {
            let packet = v5::take(bytes, limit).map_err(|why| match why {
                Unreadable::Malformed => End::Malformed,
                Unreadable::TooLarge => End::TooLarge,
            })?;
            match packet {
                None => return Ok(()),
                Some(Packet::Connect(_) | Packet::Subscribe(_) | Packet::PingReq) => {
                    return Err(End::Malformed);
                }
                Some(Packet::Publish(mut publish)) => {
                    self.resolve(&mut publish)?;
                    out.push(Packet::Publish(publish));
                }
                Some(packet) => out.push(packet),
            }
        }
    }

    /// Learns an alias, or puts in the topic that it stands for.
    fn resolve(&mut self, publish: &mut Publish) -> Result<(), End> {
        let alias = publish
            .properties
            .iter()
            .find_map(|property| match property {
                Property::TopicAlias(alias) => Some(*alias),
                _ => None,
            });
        let Some(alias) = alias else { return Ok(()) };
        if alias > self.most_aliases {
            return Err(End::AliasInvalid);
        }
        let known = self.aliases.iter_mut().find(|(known, _)| *known == alias);
        match (known, publish.topic.is_empty()) {
            (Some((_, topic)), true) => publish.topic.clone_from(topic),
            (None, true) => return Err(End::Malformed),
            (Some((_, topic)), false) => topic.clone_from(&publish.topic),
            (None, false) => self.aliases.push((alias, publish.topic.clone())),
        }
        Ok(())
    }
}

//! What the packets of a broker mean for a hub.

use super::{HubTask, lost};
use crate::agents::{Accepted, Input, Reference};
use crate::event::{Cause, Event, Outcome, PacketKind, ReferenceVerdict};
use crate::live::carrier::Failure;
use crate::live::greeting::{CONTINUE, authentication};
use crate::live::hubs::find::cut;
use crate::live::hubs::link::{Link, Phase};
use crate::live::mqtt::{Acknowledgement, Packet, Property, Publish};
use crate::live::publish::acknowledged;
use crate::plan::fault::How;
use std::collections::VecDeque;
use std::sync::Arc;

/// Server moved, for good. Every other reason with a reference is for the time being.
const SERVER_MOVED: u8 = 0x9d;
/// The first reason code that is an error.
const FIRST_ERROR: u8 = 0x80;

/// How a packet ends a session.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    /// CONNACK or SUBACK with this code.
    Refused(u8),
    /// The broker said DISCONNECT with this reason.
    Disconnected(u8),
    /// A packet out of place.
    Protocol,
}

impl HubTask {
    /// What a packet means; a verdict ends the session.
    pub(super) fn packet(&mut self, packet: Packet) -> Result<(), Verdict> {
        let Link::Open(connection, phase) = &mut self.link else {
            return Ok(());
        };
        match (packet, *phase) {
            (Packet::ConnAck(answer), Phase::Introduced) => {
                if answer.reason != 0 {
                    self.pointed(answer.reason, &answer.properties);
                    return Err(Verdict::Refused(answer.reason));
                }
                *phase = Phase::Accepted;
                connection.obey(&answer.properties);
                let is_lowered = connection.qos(1) == 0;
                if !answer.session_present {
                    self.unanswered = Vec::new();
                }
                let accepted = accepted(answer.session_present, &answer.properties);
                self.turn(Input::Accepted(accepted));
                if is_lowered {
                    self.lowered();
                }
            }
            (Packet::Auth(said), phase) => self.challenged(said.reason, phase)?,
            (Packet::Disconnect(said), _) => {
                self.pointed(said.reason, &said.properties);
                return Err(Verdict::Disconnected(said.reason));
            }
            (Packet::SubAck(answer), Phase::Subscribing(packet)) => {
                let [reason] = answer.reasons[..] else {
                    return Err(Verdict::Protocol);
                };
                if answer.packet_id != packet {
                    return Err(Verdict::Protocol);
                }
                if reason >= FIRST_ERROR {
                    return Err(Verdict::Refused(reason));
                }
                *phase = Phase::Subscribed;
                self.turn(Input::Subscribed);
            }
            (_, Phase::Introduced) | (Packet::ConnAck(_) | Packet::SubAck(_), _) => {
                return Err(Verdict::Protocol);
            }
            (Packet::Publish(publish), _) => self.arrived(&publish),
            (Packet::PubAck(answer), _) => self.acknowledged(&answer),
            (Packet::PingResp, _) => self.turn(Input::Pong),
            _ => return Err(Verdict::Protocol),
        }
        Ok(())
    }

    /// Tells that the broker takes no QoS 1, where the device would publish with it.
    fn lowered(&self) {
        let device = self.group.device();
        let telemetry = device.telemetry.as_ref().map(|topic| topic.qos);
        let answer = device.answer.as_ref().map(|topic| topic.qos);
        if telemetry.max(answer) > Some(0) {
            self.group.explain(self.index, &Failure::of_qos());
        }
    }

    /// One that nobody waits for, or a second one, changes nothing.
    fn acknowledged(&mut self, answer: &Acknowledgement) {
        let place = self
            .unanswered
            .iter()
            .position(|(packet, _)| *packet == answer.packet_id);
        if let Some(place) = place {
            let (_, token) = self.unanswered.swap_remove(place);
            self.turn(Input::Published {
                token,
                outcome: acknowledged(answer.reason),
            });
        }
    }

    /// AUTH: the broker asks on, or a re-authentication has succeeded.
    fn challenged(&mut self, reason: u8, phase: Phase) -> Result<(), Verdict> {
        match (reason, phase) {
            (CONTINUE, _) if self.group.device().authentication.is_some() => {
                let mut inputs = VecDeque::new();
                self.authenticate(CONTINUE, &mut inputs);
                inputs.into_iter().for_each(|input| self.turn(input));
            }
            (0, Phase::Accepted | Phase::Subscribing(_) | Phase::Subscribed) => {
                self.turn(Input::Reauthenticated);
            }
            _ => return Err(Verdict::Protocol),
        }
        Ok(())
    }

    /// Sends AUTH with this reason.
    pub(super) fn authenticate(&mut self, reason: u8, inputs: &mut VecDeque<Input<'static>>) {
        let group = Arc::clone(&self.group);
        let serial = self.serial();
        if let Some(packet) = authentication(group.device(), self.speaker(&serial), reason) {
            self.send(&packet, inputs);
        }
    }

    fn arrived(&mut self, publish: &Publish) {
        let mut inputs = VecDeque::new();
        if let Some(packet_id) = publish.packet_id {
            let acknowledgement = Packet::PubAck(Acknowledgement {
                packet_id,
                ..Acknowledgement::default()
            });
            self.send(&acknowledgement, &mut inputs);
        }
        // The message is there even if its acknowledgement can't be sent any more.
        self.turn(Input::Command {
            id: self.group.command(publish),
            retained: publish.retain,
        });
        inputs.into_iter().for_each(|input| self.turn(input));
    }

    /// Tells a Server Reference: to the agent if it names a shard of the device; otherwise nobody goes there.
    fn pointed(&mut self, reason: u8, properties: &[Property]) {
        let reference = properties.iter().find_map(|property| match property {
            Property::ServerReference(text) => Some(text),
            _ => None,
        });
        let Some(reference) = reference else { return };
        let text = cut(reference);
        match self.group.shards.named(reference) {
            Some(shard) => self.turn(Input::Pointed {
                text,
                reference: Reference {
                    shard,
                    for_good: reason == SERVER_MOVED,
                },
            }),
            None => self.group.tell(
                self.index,
                Event::Reference {
                    group: self.group.row,
                    text,
                    verdict: ReferenceVerdict::Refused,
                    at: self.group.clock.now(),
                },
            ),
        }
    }

    /// Ends a session because of what the peer sent.
    pub(super) fn end_session(&mut self, verdict: Verdict) {
        let accepted = matches!(self.link, Link::Open(_, phase) if phase != Phase::Introduced);
        let (outcome, cause) = match verdict {
            Verdict::Refused(code) => (Outcome::Refused(u16::from(code)), Cause::Protocol),
            Verdict::Disconnected(code) if code < FIRST_ERROR => {
                (Outcome::Reset, Cause::Disconnected(code))
            }
            Verdict::Disconnected(code) => {
                (Outcome::Refused(u16::from(code)), Cause::Disconnected(code))
            }
            Verdict::Protocol => (Outcome::Protocol, Cause::Protocol),
        };
        match verdict {
            Verdict::Refused(_) if accepted => self.close(How::Disconnect),
            Verdict::Protocol => {
                self.say_why(Some(PROTOCOL_ERROR));
                self.close(How::Close);
            }
            Verdict::Refused(_) | Verdict::Disconnected(_) => self.close(How::Close),
        }
        self.turn(lost(outcome, cause));
    }

    /// MQTT 5: says why the hub ends the connection.
    pub(super) fn say_why(&mut self, reason: Option<u8>) {
        if let Link::Open(connection, _) = &mut self.link
            && connection.say_why(reason)
        {
            self.count(PacketKind::Disconnect, true);
        }
    }
}

/// The reason that a client gives for a packet out of place.
const PROTOCOL_ERROR: u8 = 0x82;

/// What CONNACK says of the session.
fn accepted(session_present: bool, properties: &[Property]) -> Accepted {
    let mut accepted = Accepted {
        session_present,
        ..Accepted::default()
    };
    for property in properties {
        match property {
            Property::ServerKeepAlive(seconds) => accepted.keep_alive_s = Some(*seconds),
            Property::ReceiveMaximum(most) => accepted.receive_maximum = Some(*most),
            _ => {}
        }
    }
    accepted
}

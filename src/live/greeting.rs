//! How a client introduces itself to a broker: CONNECT, and what answers a challenge.

use super::mqtt::{Authentication, Connect, Packet, Property, Will};
use super::shards::{Speaker, render, value};
use crate::plan::session;
use crate::plan::target::Device;
use bytes::Bytes;
use std::time::Duration;

/// AUTH: the exchange goes on.
pub(super) const CONTINUE: u8 = 0x18;
/// AUTH: the client authenticates again.
pub(super) const AGAIN: u8 = 0x19;
/// A session that never expires by itself.
const FOR_EVER: u32 = u32::MAX;

/// The CONNECT of a client. `speaker` is whom the placeholders speak of.
pub(super) fn greeting(
    device: &Device,
    client_id: String,
    speaker: Speaker<'_>,
    keep_alive: Duration,
) -> Connect {
    // Whole seconds on the wire; rounded up, since 0 would mean none.
    let seconds = keep_alive.as_secs() + u64::from(keep_alive.subsec_nanos() > 0);
    let text = |template| render(template, speaker);
    Connect {
        clean_start: device.session.clean_start,
        keep_alive_s: u16::try_from(seconds).unwrap_or(u16::MAX),
        client_id,
        username: device.username.as_ref().map(text),
        password: device.password.as_ref().map(text).map(Bytes::from),
        will: device.will.as_ref().map(|planned| will(planned, speaker)),
        properties: properties(device, speaker),
    }
}

/// What is said of the session; the older version leaves it out.
fn properties(device: &Device, speaker: Speaker<'_>) -> Vec<Property> {
    let session = &device.session;
    let mut list = Vec::new();
    if !session.expiry.is_zero() {
        list.push(Property::SessionExpiry(seconds(session.expiry)));
    }
    list.extend(session.receive_maximum.map(Property::ReceiveMaximum));
    if session.topic_alias_maximum > 0 {
        list.push(Property::TopicAliasMaximum(session.topic_alias_maximum));
    }
    list.push(Property::MaximumPacketSize(session.maximum_packet_size));
    if let Some(authentication) = &device.authentication {
        let data = render(&authentication.data, speaker);
        list.push(Property::AuthenticationMethod(
            authentication.method.clone(),
        ));
        list.push(Property::AuthenticationData(Bytes::from(data)));
    }
    list
}

fn will(planned: &session::Will, speaker: Speaker<'_>) -> Will {
    let payload = planned
        .body
        .render(&mut |name, out| value(name, speaker, out))
        .expect("names that nobody knows are refused when the target file is read");
    let delay = (!planned.delay.is_zero()).then(|| Property::WillDelay(seconds(planned.delay)));
    Will {
        topic: render(&planned.topic, speaker),
        payload: Bytes::from(payload),
        qos: planned.qos,
        retain: planned.retain,
        properties: delay.into_iter().collect(),
    }
}

/// AUTH with this reason; `None` for a device without enhanced authentication.
pub(super) fn authentication(device: &Device, speaker: Speaker<'_>, reason: u8) -> Option<Packet> {
    let planned = device.authentication.as_ref()?;
    let data = if reason == CONTINUE {
        &planned.answer
    } else {
        &planned.data
    };
    Some(Packet::Auth(Authentication {
        reason,
        properties: vec![
            Property::AuthenticationMethod(planned.method.clone()),
            Property::AuthenticationData(Bytes::from(render(data, speaker))),
        ],
    }))
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(FOR_EVER)
}

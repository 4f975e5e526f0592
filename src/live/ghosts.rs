//! Ghosts: subscribers of our own on every shard, which see the commands that arrive there for hubs that are elsewhere.
//!
//! Only where the target file allows it, and only where shards are brokers of their own: in a cluster every node delivers
//! everything. A ghost changes nothing: it takes no command from its hub, and acknowledges none.

use super::carrier::NotReady;
use super::mqtt::{Packet, Publish, SubAck, Subscribe};
use super::outgoing;
use super::publish::Publisher;
use super::seats::Seats;
use crate::event::{CommandName, Event, Offset, Outcome, Sink, id_text};
use crate::net::clock::Clock;
use crate::net::hosts::Hosts;
use crate::plan::Plan;
use crate::plan::routing::hub_of;
use std::sync::Arc;
use std::time::Duration;

/// For a ghost to be let in and to be granted its subscription.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of its only SUBSCRIBE.
const PACKET: u16 = 1;

/// Why there are no ghosts.
#[derive(Debug, thiserror::Error)]
pub enum GhostError {
    #[error(transparent)]
    Broker(#[from] NotReady),
    #[error(
        "device `{device}`: a ghost was not let in and granted `{filter}` on every shard within {} s ({why}); leave `ghost` out, or allow it there",
        PATIENCE.as_secs()
    )]
    NotGranted {
        device: String,
        filter: String,
        why: String,
    },
}

/// The ghosts of a run. Dropping it ends them.
pub struct Ghosts {
    clients: Vec<Publisher>,
}

impl Ghosts {
    /// Starts one on each shard of each device that has them, and waits until all of them watch.
    ///
    /// # Errors
    /// If one is not let in, or not granted its subscription.
    pub async fn start(
        plan: &Arc<Plan>,
        hosts: &Hosts,
        clock: Clock,
        run_tag: &str,
        seats: &Arc<Seats>,
        sink: &Sink,
    ) -> Result<Ghosts, GhostError> {
        let mut clients = Vec::new();
        for (row, device) in plan.target.devices.iter().enumerate() {
            if !device.ghost || !plan.hubs.iter().any(|group| group.device == row) {
                continue;
            }
            let client =
                Publisher::open(plan, row, hosts, (clock, run_tag), sink, Some(seats)).await?;
            if let Err(why) = client.stands(PATIENCE).await {
                return Err(GhostError::NotGranted {
                    device: device.name.clone(),
                    filter: filter(plan, row),
                    why,
                });
            }
            clients.push(client);
        }
        Ok(Ghosts { clients })
    }

    /// Connections that watch.
    #[must_use]
    pub fn count(&self) -> usize {
        self.clients.iter().map(Publisher::shards).sum()
    }
}

/// What one ghost knows.
pub(super) struct Ghost {
    plan: Arc<Plan>,
    device: usize,
    shard: usize,
    run_tag: String,
    seats: Arc<Seats>,
}

impl Ghost {
    pub(super) fn new(
        plan: &Arc<Plan>,
        device: usize,
        shard: usize,
        run_tag: &str,
        seats: Arc<Seats>,
    ) -> Ghost {
        Ghost {
            plan: Arc::clone(plan),
            device,
            shard,
            run_tag: run_tag.to_owned(),
            seats,
        }
    }

    /// Its SUBSCRIBE, for the command topics of all hubs; with QoS 0, so that it owes the broker nothing.
    pub(super) fn subscribe(&self) -> Packet {
        Packet::Subscribe(Subscribe {
            packet_id: PACKET,
            topic: filter(&self.plan, self.device),
            ..Subscribe::default()
        })
    }

    /// Why the subscription is not granted, if it is not.
    pub(super) fn refused(answer: &SubAck) -> Option<Outcome> {
        if answer.packet_id != PACKET {
            return Some(Outcome::Protocol);
        }
        let refusal = answer.reasons.iter().find(|reason| **reason >= 0x80)?;
        Some(Outcome::Refused(u16::from(*refusal)))
    }

    /// A message arrived on this shard: what is to be told of it, if its hub stands elsewhere.
    pub(super) fn saw(&self, publish: &Publish, now: Offset) -> Option<Event> {
        let device = &self.plan.target.devices[self.device];
        let place = &device.command.as_ref()?.id;
        let id = place.find(&publish.payload, |wanted| {
            outgoing::find(&publish.properties, wanted)
        })?;
        let command = match CommandName::read(&id, &self.run_tag) {
            Some(name) => name.command,
            None => self.seats.given().command(&id_text(&id)?)?,
        };
        let group = self.plan.issuers.get(usize::from(command.issuer))?.to;
        let hubs = self.plan.hubs.get(group)?;
        // Hubs of another device on the same broker have ghosts of their own.
        let count = (hubs.device == self.device).then_some(hubs.count)?;
        let seat = self
            .seats
            .of_hub(group, hub_of(self.plan.seed, command, count))?;
        (seat.stands && seat.shard != self.shard).then(|| Event::Stale {
            group: u16::try_from(group).unwrap_or(u16::MAX),
            command,
            shard: u16::try_from(self.shard).unwrap_or(u16::MAX),
            after_us: now.0.saturating_sub(seat.since.0),
            at: now,
        })
    }
}

/// The command topic with `+` in place of what differs from hub to hub.
fn filter(plan: &Plan, device: usize) -> String {
    let command = plan.target.devices[device].command.as_ref();
    let mut text = String::new();
    if let Some(command) = command {
        let rendered = command.topic.render_into(&mut text, |_, out| {
            out.push('+');
            true
        });
        debug_assert!(rendered.is_ok(), "every name is known");
    }
    text
}

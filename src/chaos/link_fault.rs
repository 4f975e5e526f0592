//! Faults on a link, set in the fault proxy, which ends them by itself should nobody come back.

use super::proxy::carrier::Carrier;
use super::proxy::client::ProxyClient;
use super::proxy::mqtt;
use super::proxy::toxics::{self, Kind};
use super::proxy::wire::{CanaryEnd, CanaryOrder, CanaryReading, SetFault, Speaks};
use super::request::accepts;
use super::undo::Standing;
use crate::net::state::StateDirectory;
use crate::plan::fault::{LinkEffect, LinkFault, Packets, Way};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// The share of a delay that must be seen: jitter takes away from single readings.
const SEEN_SHARE: f64 = 0.8;
/// What a busy machine may add to a reading without a fault.
const NOISE: Duration = Duration::from_millis(50);
/// Above the delay that was asked for, a canary may take this long before it counts as unanswered.
const CANARY_LIMIT: Duration = Duration::from_secs(5);
/// A canary that is not back by then is lost.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// A narrow path is seen by sending this much of a second's worth, at most `LARGEST_CANARY`.
const BANDWIDTH_SHARE: f64 = 0.4;
const LARGEST_CANARY: u64 = 4_000_001;
/// Packets of an MQTT canary that are answered.
const ANSWERED_PACKETS: u64 = 4;
/// Pieces of a sliced canary.
const SLICES: u64 = 5;
/// Without the fault, everything comes back within this.
const QUICK: Duration = Duration::from_millis(500);
const OBSERVE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The run removes a fault in time; the proxy's own deadline is for a run that can't.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);

/// The undo: the fault is gone from its link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveFault {
    pub link: String,
    /// As the proxy knows the fault.
    pub id: String,
    /// The proxy that does it.
    pub proxy: Carrier,
    /// A canary at least this slow is still hit by it.
    pub slow_us: u64,
}

/// A fault that is ready to be set.
pub(super) struct OnLink {
    proxy: ProxyClient,
    fault: LinkFault,
    order: SetFault,
    /// How long a byte took before.
    before: Duration,
    undo: RemoveFault,
}

/// What the plan asks for.
pub(super) struct Wanted<'a> {
    pub(super) link: &'a str,
    pub(super) id: String,
    pub(super) fault: LinkFault,
    pub(super) lasts: Duration,
    pub(super) seed: u64,
}

impl OnLink {
    /// Measures how fast the link is without the fault.
    pub(super) async fn arm(wanted: Wanted<'_>, proxy: &ProxyClient) -> Result<OnLink, String> {
        let before = fastest(proxy, wanted.link).await?;
        let order = SetFault {
            id: wanted.id.clone(),
            kind: kind_of(&wanted.fault.effect),
            way: wanted.fault.way,
            toxicity: wanted.fault.share,
            connections: wanted.fault.connections,
            for_ms: Some(micros(wanted.lasts + DEADLINE_GRACE) / 1000),
            seed: wanted.seed,
        };
        let slow = match wanted.fault.effect {
            LinkEffect::Latency { add, .. } => NOISE.max(both_ways(&wanted.fault, add) / 2),
            _ => QUICK,
        };
        let undo = RemoveFault {
            link: wanted.link.to_owned(),
            id: wanted.id,
            proxy: proxy.carrier().clone(),
            slow_us: micros(before + slow),
        };
        Ok(OnLink {
            proxy: proxy.clone(),
            fault: wanted.fault,
            order,
            before,
            undo,
        })
    }

    pub(super) fn undo(&self) -> RemoveFault {
        self.undo.clone()
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        self.proxy
            .set_fault(&self.undo.link, &self.order)
            .await
            .map_err(|error| error.to_string())
    }

    /// A canary through the link meets what the fault says. Looks until it does, for a while.
    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + OBSERVE_WITHIN;
        loop {
            let (bites, seen) = match self.fault.effect {
                LinkEffect::Refuse => self.refuses().await?,
                _ => self.canary().await?,
            };
            if bites {
                return self.understood(seen).await;
            }
            if Instant::now() >= end {
                return Err(seen);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A canary speaks what the fault understands; the connections of the link must do so, too.
    async fn understood(&self, seen: String) -> Result<String, String> {
        let protocol = match self.order.kind.protocol() {
            None => return Ok(seen),
            Some(toxics::Protocol::Mqtt) => "MQTT",
            Some(toxics::Protocol::Http) => "HTTP/1",
        };
        let links = self
            .proxy
            .links()
            .await
            .map_err(|error| error.to_string())?;
        let mut faults = links.iter().flat_map(|link| &link.faults);
        match faults.find(|fault| fault.id == self.undo.id) {
            Some(fault) if fault.foreign > 0 && fault.hits == 0 && fault.acts_on == 0 => {
                Err(format!(
                    "a canary met it, but none of the {} connections on {} speaks {protocol} that the proxy can read (within TLS it can't): they pass",
                    fault.foreign, self.undo.link
                ))
            }
            Some(fault) => Ok(format!(
                "{seen}; acts on {} connections, {} so far",
                fault.acts_on, fault.hits
            )),
            None => Ok(seen),
        }
    }

    async fn canary(&self) -> Result<(bool, String), String> {
        let order = self.canary_order();
        let reading = self.proxy.fly(&self.undo.link, &order).await;
        let reading = reading.map_err(|error| error.to_string())?;
        let took = Duration::from_micros(reading.round_trip_us);
        let seen = format!(
            "{} of {} bytes through {} and back in {:.1} ms, {}; a byte took {:.1} ms before",
            reading.back_bytes,
            order.bytes,
            self.undo.link,
            took.as_secs_f64() * 1e3,
            end_text(reading.end),
            self.before.as_secs_f64() * 1e3,
        );
        Ok((self.bites(&order, &reading), seen))
    }

    fn canary_order(&self) -> CanaryOrder {
        let (bytes, limit) = match self.fault.effect {
            LinkEffect::Latency { add, jitter } => (1, CANARY_LIMIT + 2 * (add + jitter)),
            LinkEffect::Bandwidth { bytes_per_second } => {
                let bytes = (bytes_per_second as f64 * BANDWIDTH_SHARE) as u64;
                (bytes.clamp(1, LARGEST_CANARY), CANARY_LIMIT)
            }
            LinkEffect::SlowClose { by } => (1, CANARY_LIMIT + 2 * by),
            LinkEffect::BlackHole | LinkEffect::Refuse => (1, LOST_AFTER),
            LinkEffect::Timeout { after } => (1, LOST_AFTER.min(after)),
            LinkEffect::Reset { after } => (1, CANARY_LIMIT + after),
            LinkEffect::Slice { bytes, pause, .. } => (
                (bytes * SLICES).min(LARGEST_CANARY),
                CANARY_LIMIT + pause * 20,
            ),
            LinkEffect::Limit { bytes } => (bytes + 1, CANARY_LIMIT),
            LinkEffect::Withhold(_) => (ANSWERED_PACKETS, LOST_AFTER),
            LinkEffect::Disconnect { after, .. } => (ANSWERED_PACKETS + 1, CANARY_LIMIT + after),
            LinkEffect::Abort { .. } => (1, CANARY_LIMIT),
            LinkEffect::Delay { add, .. } => (1, CANARY_LIMIT + add),
        };
        CanaryOrder {
            bytes,
            close: matches!(self.fault.effect, LinkEffect::SlowClose { .. }),
            limit_ms: micros(limit) / 1000,
            speaks: match self.fault.effect {
                LinkEffect::Withhold(_) | LinkEffect::Disconnect { .. } => Speaks::Mqtt,
                LinkEffect::Abort { .. } | LinkEffect::Delay { .. } => Speaks::Http,
                _ => Speaks::Bytes,
            },
        }
    }

    fn bites(&self, order: &CanaryOrder, reading: &CanaryReading) -> bool {
        let took = Duration::from_micros(reading.round_trip_us);
        let takes = |expected: Duration| took >= self.before + expected.mul_f64(SEEN_SHARE);
        let later = |by: Duration| takes(both_ways(&self.fault, by));
        match self.fault.effect {
            LinkEffect::Latency { add, .. } => later(add),
            LinkEffect::SlowClose { by } => later(by),
            LinkEffect::Bandwidth { bytes_per_second } => {
                bytes_per_second == 0
                    || takes(Duration::from_secs_f64(
                        order.bytes as f64 / bytes_per_second as f64,
                    ))
            }
            // The last piece of five comes after four pauses; on both ways they run at the same time.
            LinkEffect::Slice { pause, .. } => takes(pause * 3),
            LinkEffect::BlackHole | LinkEffect::Timeout { .. } => reading.back_bytes == 0,
            LinkEffect::Reset { .. } => reading.end == CanaryEnd::Reset,
            LinkEffect::Limit { .. } => {
                reading.back_bytes < order.bytes && reading.end != CanaryEnd::Open
            }
            LinkEffect::Refuse => false,
            LinkEffect::Withhold(packets) => self.withholds(packets, &reading.heard),
            LinkEffect::Disconnect { .. } => {
                reading.heard.contains(&u16::from(mqtt::DISCONNECT))
                    && reading.end != CanaryEnd::Reset
            }
            LinkEffect::Abort { status, .. } => reading.heard == [status],
            LinkEffect::Delay { add, .. } => reading.heard == [200] && takes(add),
        }
    }

    /// A PUBACK of the client is told by the UNSUBACK that the canary's server says in return.
    fn withholds(&self, packets: Packets, heard: &[u16]) -> bool {
        let lacks = |kind: u8| !heard.contains(&u16::from(kind));
        let connected = !lacks(mqtt::CONNACK);
        match packets {
            Packets::Connack => heard.is_empty(),
            Packets::Pingresp => connected && lacks(mqtt::PINGRESP),
            Packets::Puback => {
                let answers = self.fault.way == Way::Requests || lacks(mqtt::PUBACK);
                let requests = self.fault.way == Way::Answers || lacks(mqtt::UNSUBACK);
                connected && answers && requests
            }
        }
    }

    /// The system refuses at the link's address; where only a share is refused, the proxy says that it does.
    async fn refuses(&self) -> Result<(bool, String), String> {
        let link = &self.undo.link;
        let links = self
            .proxy
            .links()
            .await
            .map_err(|error| error.to_string())?;
        let Some(state) = links.iter().find(|state| state.name == *link) else {
            return Err(format!("the proxy carries no link `{link}`"));
        };
        if self.fault.share < 1.0 {
            let stands = state.faults.iter().any(|fault| fault.id == self.undo.id);
            return Ok((stands, format!("the proxy refuses a share of {link}")));
        }
        for address in &state.addresses {
            let open = accepts(&address.listen, &[]).await;
            if open.map_err(|error| error.to_string())? {
                return Ok((false, format!("{} takes connections", address.listen)));
            }
        }
        let listens = state
            .addresses
            .iter()
            .map(|address| address.listen.as_str());
        Ok((
            true,
            format!("{} refuses", listens.collect::<Vec<_>>().join(", ")),
        ))
    }
}

/// A delay on both ways is met twice by what goes and comes back.
fn both_ways(fault: &LinkFault, one: Duration) -> Duration {
    if fault.way == Way::Both { 2 * one } else { one }
}

fn kind_of(effect: &LinkEffect) -> Kind {
    match *effect {
        LinkEffect::Latency { add, jitter } => Kind::Latency(toxics::Latency {
            latency_us: micros(add),
            jitter_us: micros(jitter),
        }),
        LinkEffect::Bandwidth { bytes_per_second } => {
            Kind::Bandwidth(toxics::Bandwidth { bytes_per_second })
        }
        LinkEffect::SlowClose { by } => Kind::SlowClose(toxics::SlowClose {
            delay_us: micros(by),
        }),
        LinkEffect::BlackHole => Kind::BlackHole(toxics::BlackHole {}),
        LinkEffect::Timeout { after } => Kind::Timeout(toxics::Timeout {
            timeout_us: micros(after),
        }),
        LinkEffect::Reset { after } => Kind::ResetPeer(toxics::ResetPeer {
            after_us: micros(after),
        }),
        LinkEffect::Slice { bytes, vary, pause } => Kind::Slicer(toxics::Slicer {
            average_bytes: bytes,
            variation_bytes: vary,
            delay_us: micros(pause),
        }),
        LinkEffect::Limit { bytes } => Kind::LimitData(toxics::LimitData { bytes }),
        LinkEffect::Refuse => Kind::Refuse,
        LinkEffect::Withhold(Packets::Connack) => Kind::WithholdConnack(toxics::WithholdConnack {}),
        LinkEffect::Withhold(Packets::Pingresp) => {
            Kind::WithholdPingresp(toxics::WithholdPingresp {})
        }
        LinkEffect::Withhold(Packets::Puback) => Kind::DropPuback(toxics::DropPuback {}),
        LinkEffect::Disconnect { reason, after } => Kind::Disconnect(toxics::Disconnect {
            reason,
            after_us: micros(after),
        }),
        LinkEffect::Abort { status, share } => Kind::Abort(toxics::Abort { status, share }),
        LinkEffect::Delay { add, share } => Kind::Delay(toxics::Delay {
            delay_us: micros(add),
            share,
        }),
    }
}

fn end_text(end: CanaryEnd) -> &'static str {
    match end {
        CanaryEnd::Open => "and the connection goes on",
        CanaryEnd::Finished => "then FIN",
        CanaryEnd::Reset => "then RST",
        CanaryEnd::Silent => "then silence",
    }
}

impl RemoveFault {
    /// The proxy knows no fault of this id. That it is fast again would prove less: another fault may stand on the same link.
    pub(super) async fn standing(&self, state: &StateDirectory) -> Result<Standing, String> {
        let Some(proxy) = self.client(state)? else {
            return Ok(Standing::Healed(format!(
                "{} has ended, and its faults with it",
                self.proxy
            )));
        };
        let links = proxy.links().await.map_err(|error| error.to_string())?;
        let mut faults = links.iter().flat_map(|link| &link.faults);
        if faults.any(|fault| fault.id == self.id) {
            return Ok(Standing::Stands(format!(
                "{} still acts on {}",
                self.id, self.link
            )));
        }
        let others = links
            .iter()
            .filter(|link| link.name == self.link)
            .any(|link| !link.faults.is_empty());
        if others {
            return Ok(Standing::Healed(format!(
                "{} is free of it; other faults still act on it",
                self.link
            )));
        }
        let reading = fastest(&proxy, &self.link).await?;
        let seen = format!(
            "a byte through {} and back takes {:.1} ms",
            self.link,
            reading.as_secs_f64() * 1e3
        );
        Ok(if micros(reading) < self.slow_us {
            Standing::Healed(seen)
        } else {
            Standing::Stands(seen)
        })
    }

    pub(super) async fn perform(&self, state: &StateDirectory) -> Result<String, String> {
        let Some(proxy) = self.client(state)? else {
            return Ok(format!("{} had ended by itself", self.id));
        };
        let removed = proxy.remove(&self.id).await;
        Ok(if removed.map_err(|error| error.to_string())? {
            format!("removed {} from {}", self.id, self.link)
        } else {
            format!("{} had ended by itself", self.id)
        })
    }

    fn client(&self, state: &StateDirectory) -> Result<Option<ProxyClient>, String> {
        ProxyClient::of(state, &self.proxy).map_err(|error| error.to_string())
    }
}

impl fmt::Display for RemoveFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "remove the fault {} from link {}",
            self.id, self.link
        )
    }
}

/// The fastest of three round trips taken at the same time: what the machine adds by chance is never negative.
async fn fastest(proxy: &ProxyClient, link: &str) -> Result<Duration, String> {
    let reading = || proxy.canary(link, CANARY_LIMIT);
    let taken = tokio::try_join!(reading(), reading(), reading());
    let (first, second, third) = taken.map_err(|error| error.to_string())?;
    Ok(first.min(second).min(third))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

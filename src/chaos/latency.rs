//! The fault `latency`: a delay on a link, set in the fault proxy, which ends it by itself should nobody come back.

use super::process::Identity;
use super::proxy::client::ProxyClient;
use super::proxy::toxics::{self, Kind};
use super::proxy::wire::SetFault;
use super::undo::Standing;
use crate::net::state::StateDirectory;
use crate::plan::fault::Way;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// Of this many readings of a canary the middle one proves a delay, and the fastest proves that there is none: what the machine
/// adds by chance is never negative.
const READINGS: usize = 3;
/// The share of the delay that must be seen: jitter takes away from single readings.
const SEEN_SHARE: f64 = 0.8;
/// What a busy machine may add to the fastest reading without a fault.
const NOISE: Duration = Duration::from_millis(50);
/// Above the delay that was asked for, a canary may take this long before it counts as unanswered.
const CANARY_LIMIT: Duration = Duration::from_secs(5);
const OBSERVE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The run removes a latency in time; the proxy's own deadline is for a run that can't.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);

/// The undo: the latency is gone from its link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveLatency {
    pub link: String,
    /// As the proxy knows the fault.
    pub id: String,
    /// The proxy that delays. If it has ended, so has the fault.
    pub proxy: Identity,
    /// A canary at least this slow is still delayed by it.
    pub slow_us: u64,
}

/// A latency that is ready to be set.
pub(super) struct Latency {
    proxy: ProxyClient,
    order: SetFault,
    before: Duration,
    /// The delay with all of its jitter, one way.
    longest: Duration,
    /// A canary that takes this long proves the delay.
    delayed: Duration,
    undo: RemoveLatency,
}

/// What the plan asks for.
pub(super) struct Wanted<'a> {
    pub(super) link: &'a str,
    pub(super) id: String,
    pub(super) add: Duration,
    pub(super) jitter: Duration,
    pub(super) way: Way,
    pub(super) lasts: Duration,
    pub(super) seed: u64,
}

impl Latency {
    /// Measures how fast the link is without the fault.
    pub(super) async fn arm(wanted: Wanted<'_>, proxy: &ProxyClient) -> Result<Latency, String> {
        let before = readings(proxy, wanted.link, CANARY_LIMIT).await?[0];
        let both_ways = if wanted.way == Way::Both {
            2 * wanted.add
        } else {
            wanted.add
        };
        let order = SetFault {
            id: wanted.id.clone(),
            kind: Kind::Latency(toxics::Latency {
                latency_us: micros(wanted.add),
                jitter_us: micros(wanted.jitter),
            }),
            way: wanted.way,
            toxicity: 1.0,
            for_ms: Some(micros(wanted.lasts + DEADLINE_GRACE) / 1000),
            seed: wanted.seed,
        };
        let undo = RemoveLatency {
            link: wanted.link.to_owned(),
            id: wanted.id,
            proxy: proxy.registration().process.clone(),
            slow_us: micros(before + NOISE.max(both_ways / 2)),
        };
        let delayed = before + both_ways.mul_f64(SEEN_SHARE);
        Ok(Latency {
            proxy: proxy.clone(),
            order,
            before,
            longest: wanted.add + wanted.jitter,
            delayed,
            undo,
        })
    }

    pub(super) fn undo(&self) -> RemoveLatency {
        self.undo.clone()
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        self.proxy
            .set_fault(&self.undo.link, &self.order)
            .await
            .map_err(|error| error.to_string())
    }

    /// A canary through the link takes as much longer as the fault says, at least.
    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + OBSERVE_WITHIN;
        let limit = CANARY_LIMIT + 2 * self.longest;
        loop {
            let during = readings(&self.proxy, &self.undo.link, limit).await?[READINGS / 2];
            let seen = format!(
                "a byte through {} and back takes {:.1} ms, {:.1} ms before",
                self.undo.link,
                during.as_secs_f64() * 1e3,
                self.before.as_secs_f64() * 1e3
            );
            if during >= self.delayed {
                return Ok(seen);
            }
            if Instant::now() >= end {
                return Err(seen);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl RemoveLatency {
    /// The proxy knows no fault of this id. That it is fast again would prove less: another latency may stand on the same link.
    pub(super) async fn standing(&self, state: &StateDirectory) -> Result<Standing, String> {
        let Some(proxy) = self.client(state)? else {
            return Ok(Standing::Healed(format!(
                "fault proxy {} has ended, and its faults with it",
                self.proxy.pid
            )));
        };
        let links = proxy.links().await.map_err(|error| error.to_string())?;
        let faults: Vec<_> = links.iter().flat_map(|link| &link.faults).collect();
        if faults.iter().any(|fault| fault.id == self.id) {
            return Ok(Standing::Stands(format!(
                "{} still delays {}",
                self.id, self.link
            )));
        }
        let others = links
            .iter()
            .filter(|link| link.address.name == self.link)
            .any(|link| !link.faults.is_empty());
        if others {
            return Ok(Standing::Healed(format!(
                "{} is free of it; other faults still delay it",
                self.link
            )));
        }
        let reading = readings(&proxy, &self.link, CANARY_LIMIT).await?[0];
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
        match self.client(state)? {
            Some(proxy)
                if proxy
                    .remove(&self.id)
                    .await
                    .map_err(|error| error.to_string())? =>
            {
                Ok(format!("removed {} from {}", self.id, self.link))
            }
            _ => Ok(format!("{} had ended by itself", self.id)),
        }
    }

    fn client(&self, state: &StateDirectory) -> Result<Option<ProxyClient>, String> {
        ProxyClient::of(state, &self.proxy).map_err(|error| error.to_string())
    }
}

impl fmt::Display for RemoveLatency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "remove the latency {} from link {}",
            self.id, self.link
        )
    }
}

/// Round trips through the link, taken at the same time, fastest first.
async fn readings(
    proxy: &ProxyClient,
    link: &str,
    limit: Duration,
) -> Result<[Duration; READINGS], String> {
    let reading = || proxy.canary(link, limit);
    let taken = tokio::try_join!(reading(), reading(), reading());
    let (first, second, third) = taken.map_err(|error| error.to_string())?;
    let mut readings = [first, second, third];
    readings.sort();
    Ok(readings)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

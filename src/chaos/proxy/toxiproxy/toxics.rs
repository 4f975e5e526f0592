//! Toxics as the API knows them, and what they are on a link.

use super::answer::Failure;
use super::decode::Object;
use super::shown::{ShownAttributes, ShownToxic};
use crate::chaos::proxy::chain::{Direction, Toxic, Ways};
use crate::chaos::proxy::toxics::{
    Bandwidth, Kind, Latency, LimitData, ResetPeer, Slicer, SlowClose, Timeout,
};
use crate::plan::fault::Connections;
use std::sync::Arc;

/// A type of toxic: its attributes in order, and the fault that they make.
struct Type {
    name: &'static str,
    /// The name of Go's type, which is part of error texts.
    of: &'static str,
    attributes: &'static [&'static str],
    /// Given the attributes in that order, none of them negative.
    kind: fn(&[u64]) -> Kind,
}

const TYPES: &[Type] = &[
    Type {
        name: "latency",
        of: "LatencyToxic",
        attributes: &["latency", "jitter"],
        kind: |given| {
            Kind::Latency(Latency {
                latency_us: micros(given[0]),
                jitter_us: micros(given[1]),
            })
        },
    },
    Type {
        name: "bandwidth",
        of: "BandwidthToxic",
        attributes: &["rate"],
        kind: |given| {
            Kind::Bandwidth(Bandwidth {
                bytes_per_second: given[0].saturating_mul(1_000),
            })
        },
    },
    Type {
        name: "slow_close",
        of: "SlowCloseToxic",
        attributes: &["delay"],
        kind: |given| {
            Kind::SlowClose(SlowClose {
                delay_us: micros(given[0]),
            })
        },
    },
    Type {
        name: "timeout",
        of: "TimeoutToxic",
        attributes: &["timeout"],
        kind: |given| {
            Kind::Timeout(Timeout {
                timeout_us: micros(given[0]),
            })
        },
    },
    Type {
        name: "reset_peer",
        of: "ResetToxic",
        attributes: &["timeout"],
        kind: |given| {
            Kind::ResetPeer(ResetPeer {
                after_us: micros(given[0]),
            })
        },
    },
    Type {
        name: "slicer",
        of: "SlicerToxic",
        attributes: &["average_size", "size_variation", "delay"],
        kind: |given| {
            Kind::Slicer(Slicer {
                average_bytes: given[0],
                variation_bytes: given[1],
                delay_us: given[2].min(LONGEST_US),
            })
        },
    },
    Type {
        name: "limit_data",
        of: "LimitDataToxic",
        attributes: &["bytes"],
        kind: |given| Kind::LimitData(LimitData { bytes: given[0] }),
    },
    Type {
        name: "noop",
        of: "NoopToxic",
        attributes: &[],
        kind: |_| Kind::Noop,
    },
];

/// A year: longer waits are cut, so that times can be added up.
const LONGEST_US: u64 = 365 * 24 * 3_600 * 1_000_000;

fn micros(millis: u64) -> u64 {
    millis.saturating_mul(1_000).min(LONGEST_US)
}

/// A toxic that was asked for.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) name: String,
    of: &'static str,
    kind: &'static str,
    /// As it was written; `Upstream` is shown as it came.
    stream: String,
    pub(super) direction: Direction,
    toxicity: f32,
    attributes: Vec<(&'static str, i64)>,
}

impl Asked {
    /// A new toxic from the body of a request; `taken` tells which names there are.
    pub(super) fn new(
        body: serde_json::Value,
        taken: impl Fn(&str) -> bool,
    ) -> Result<Asked, Failure> {
        let body = Object::of("ToxicWrapper", body)?;
        let name = body.text("name")?.unwrap_or_default();
        let kind = body.text("type")?.unwrap_or_default();
        let stream = body
            .text("stream")?
            .unwrap_or_else(|| "downstream".to_owned());
        let toxicity = body.share("toxicity")?.unwrap_or(1.0);
        let direction = match stream.to_ascii_lowercase().as_str() {
            "upstream" => Direction::ToTarget,
            "downstream" => Direction::ToClient,
            _ => return Err(Failure::Stream),
        };
        let name = if name.is_empty() {
            format!("{kind}_{stream}")
        } else {
            name
        };
        let Some(of) = TYPES.iter().find(|of| of.name == kind) else {
            return Err(Failure::ToxicType);
        };
        if taken(&name) {
            return Err(Failure::ToxicExists);
        }
        let attributes = of.attributes.iter().map(|name| (*name, 0)).collect();
        let mut asked = Asked {
            name,
            of: of.of,
            kind: of.name,
            stream,
            direction,
            toxicity,
            attributes,
        };
        asked.take_attributes(&body)?;
        Ok(asked)
    }

    /// The toxic with what the body of a request changes.
    pub(super) fn changed(&self, body: serde_json::Value) -> Result<Asked, Failure> {
        let body = Object::of("ToxicWrapper", body)?;
        let mut changed = self.clone();
        changed.take_attributes(&body)?;
        if let Some(toxicity) = body.share("toxicity")? {
            changed.toxicity = toxicity;
        }
        Ok(changed)
    }

    fn take_attributes(&mut self, body: &Object) -> Result<(), Failure> {
        let given = body.object("attributes", self.of)?;
        for (name, value) in &mut self.attributes {
            if let Some(whole) = given.whole(name)? {
                *value = whole;
            }
        }
        Ok(())
    }

    /// The fault on the link. What is negative does nothing.
    pub(super) fn toxic(&self, seed: u64) -> Toxic {
        let given: Vec<u64> = self
            .attributes
            .iter()
            .map(|(_, value)| u64::try_from(*value).unwrap_or(0))
            .collect();
        let found = TYPES.iter().find(|of| of.name == self.kind);
        Toxic {
            id: id(&self.name),
            ways: Ways::only(self.direction),
            toxicity: f64::from(self.toxicity),
            kind: found.map_or(Kind::Noop, |of| (of.kind)(&given)),
            until: None,
            seed,
            connections: Connections::All,
            born: 0,
            tally: Arc::default(),
        }
    }

    pub(super) fn shown(&self) -> ShownToxic {
        ShownToxic {
            attributes: ShownAttributes(self.attributes.clone()),
            name: self.name.clone(),
            kind: self.kind,
            stream: self.stream.clone(),
            toxicity: self.toxicity,
        }
    }
}

/// The name on the link: a fault of a run on the same link must not be taken for one of ours.
pub(super) fn id(name: &str) -> String {
    format!("toxiproxy/{name}")
}

//! What can be broken on a link.

use super::quantity::{bytes, duration, percent};
use super::target::Target;
use super::template::Template;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A named connection path through the fault proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub name: String,
    pub path: LinkPath,
}

/// Whose connections a link carries.
#[derive(Debug, Clone, PartialEq)]
pub enum LinkPath {
    /// Whoever connects to an address.
    Address(LinkAddresses),
    /// Those of our own hubs of a device; row in `Target::devices`. Each of its shards gets an address of its own.
    Device(usize),
}

/// Where a link listens and where it leads.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkAddresses {
    /// `host:port`
    pub listen: Template,
    /// `host:port`
    pub to: Template,
    /// The proxy that carries it, which runs in the target's network; otherwise the run starts one here.
    pub proxy: Option<RemoteProxy>,
}

/// A `rushhour proxy` that somebody started elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteProxy {
    /// `http://host:port` of its API.
    pub url: Template,
    /// What it asks for; one that only its own machine reaches asks for none.
    pub token: Option<Template>,
}

/// A fault that stands on a link for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkFault {
    /// Row in `Target::links`.
    pub link: usize,
    /// The share of the connections that it acts on, above 0 to 1; which ones is drawn from the seed.
    pub share: f64,
    pub way: Way,
    pub connections: Connections,
    pub effect: LinkEffect,
}

/// The connections that a fault acts on, by when they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    #[default]
    All,
    /// Those that stand when it begins.
    Existing,
    /// Those that come while it lasts.
    New,
}

/// What it does to them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkEffect {
    /// Everything that is sent arrives later, by `add` ± up to `jitter`.
    Latency { add: Duration, jitter: Duration },
    /// So many bytes a second for each connection; zero holds everything until the fault ends.
    Bandwidth { bytes_per_second: u64 },
    /// The end of a connection arrives later.
    SlowClose { by: Duration },
    /// Bytes and ends are lost: each side is left half-open. At its end the connections are reset.
    BlackHole,
    /// Bytes are lost, and so long after the last ones the connection is closed.
    Timeout { after: Duration },
    /// Connections are reset so long after the fault reached them.
    Reset { after: Duration },
    /// Bytes arrive in pieces of `bytes` ± up to `vary`, with a pause between two.
    Slice {
        bytes: u64,
        vary: u64,
        pause: Duration,
    },
    /// A connection is closed after so many bytes.
    Limit { bytes: u64 },
    /// New connections are refused; those that stand go on.
    Refuse,
    /// Packets of MQTT don't arrive. A CONNACK comes late, when the fault ends; others are lost.
    Withhold(Packets),
    /// MQTT: the client is told to go, so long after the fault reached its connection; 3.1.1 has no word for it, there it is closed.
    Disconnect { reason: u8, after: Duration },
    /// A share of the HTTP requests is answered with this status and does not reach the target.
    Abort { status: u16, share: f64 },
    /// A share of the HTTP requests reaches the target later.
    Delay { add: Duration, share: f64 },
}

/// Packets of MQTT that can be withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    Connack,
    Pingresp,
    Puback,
}

/// The end of a share of the connections that a link carries at that moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Row in `Target::links`.
    pub link: usize,
    /// Above 0 to 1: exactly this share, rounded to whole connections; which ones is drawn from the seed.
    pub share: f64,
    /// Spread evenly over this time; zero means at once.
    pub within: Duration,
    pub by: CutBy,
}

/// How a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutBy {
    /// RST to both sides.
    Reset,
    /// FIN to both sides.
    Close,
    /// MQTT 5: DISCONNECT with this reason code to the client, then FIN; other connections get FIN alone.
    Disconnect(u8),
}

/// Which way of a link is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the client to the target's side.
    Requests,
    /// From the target's side back to the client.
    Answers,
    /// Each way by the whole amount.
    Both,
}

impl Link {
    /// A link from an address to an address, through a proxy that the run starts.
    #[must_use]
    pub fn between(name: &str, listen: Template, to: Template) -> Link {
        Link {
            name: name.to_owned(),
            path: LinkPath::Address(LinkAddresses {
                listen,
                to,
                proxy: None,
            }),
        }
    }

    /// Its addresses, unless it is one of our own agents.
    #[must_use]
    pub fn addresses(&self) -> Option<&LinkAddresses> {
        match &self.path {
            LinkPath::Address(addresses) => Some(addresses),
            LinkPath::Device(_) => None,
        }
    }

    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        if let LinkPath::Address(addresses) = &mut self.path {
            each(&mut addresses.listen);
            each(&mut addresses.to);
            if let Some(proxy) = &mut addresses.proxy {
                each(&mut proxy.url);
                proxy.token.iter_mut().for_each(&mut *each);
            }
        }
    }
}

impl Target {
    /// Whose connections a link carries and where it leads, for people.
    #[must_use]
    pub fn link_ends(&self, link: &Link) -> String {
        match &link.path {
            LinkPath::Device(device) => {
                let device = &self.devices[*device].name;
                format!("hubs ({device}) to each of their shards")
            }
            LinkPath::Address(LinkAddresses { listen, to, .. }) => format!("{listen} to {to}"),
        }
    }
}

impl LinkFault {
    /// What it does, for people; `link` is the link's name.
    #[must_use]
    pub fn text(&self, link: &str) -> String {
        let what = match self.effect {
            LinkEffect::Latency { add, jitter } if jitter.is_zero() => {
                format!("{} on {link} take {} longer", self.way, duration(add))
            }
            LinkEffect::Latency { add, jitter } => format!(
                "{} on {link} take {} ± {} longer",
                self.way,
                duration(add),
                duration(jitter)
            ),
            LinkEffect::Bandwidth { bytes_per_second } => format!(
                "{} on {link} pass at {}/s a connection",
                self.way,
                bytes(bytes_per_second)
            ),
            LinkEffect::SlowClose { by } => {
                format!(
                    "ends of connections on {link} arrive {} later",
                    duration(by)
                )
            }
            LinkEffect::BlackHole => format!("{} on {link} are lost", self.way),
            LinkEffect::Timeout { after } => format!(
                "{} on {link} are lost, and connections closed {} after the last",
                self.way,
                duration(after)
            ),
            LinkEffect::Reset { after } => {
                format!("connections on {link} are reset after {}", duration(after))
            }
            LinkEffect::Slice {
                bytes: size,
                vary,
                pause,
            } => format!(
                "{} on {link} arrive in pieces of {} ± {}, {} apart",
                self.way,
                bytes(size),
                bytes(vary),
                duration(pause)
            ),
            LinkEffect::Limit { bytes: limit } => format!(
                "connections on {link} are closed after {} of {}",
                bytes(limit),
                self.way
            ),
            LinkEffect::Refuse => format!("new connections on {link} are refused"),
            LinkEffect::Withhold(packets) => format!("{packets} on {link} does not arrive"),
            LinkEffect::Disconnect { reason, after } => format!(
                "clients on {link} get DISCONNECT 0x{reason:02X} after {}",
                duration(after)
            ),
            LinkEffect::Abort { status, share } => format!(
                "{} of the HTTP requests on {link} are answered {status} by the proxy",
                percent(share)
            ),
            LinkEffect::Delay { add, share } => format!(
                "{} of the HTTP requests on {link} take {} longer",
                percent(share),
                duration(add)
            ),
        };
        match self.of_text() {
            Some(of) => format!("{what}, for {of}"),
            None => what,
        }
    }

    /// Whose connections are meant, if not all.
    fn of_text(&self) -> Option<String> {
        let share = (self.share < 1.0).then(|| format!("{} of ", percent(self.share)));
        let of = match self.connections {
            Connections::All => return share.map(|share| format!("{share}the connections")),
            Connections::Existing => "the connections that stand then",
            Connections::New if share.is_none() => "new connections",
            Connections::New => "the new connections",
        };
        Some(format!("{}{of}", share.unwrap_or_default()))
    }

    /// What its end means.
    #[must_use]
    pub fn end_text(&self, link: &str) -> String {
        match self.effect {
            LinkEffect::Latency { .. }
            | LinkEffect::Slice { .. }
            | LinkEffect::Bandwidth { .. } => {
                format!("taken off {link}; what is on the way still arrives")
            }
            LinkEffect::BlackHole => {
                format!("taken off {link}; connections that lost bytes are reset")
            }
            LinkEffect::Timeout { .. } => {
                format!("taken off {link}; connections that lost bytes are closed")
            }
            LinkEffect::Refuse => format!("{link} takes connections again"),
            LinkEffect::Withhold(Packets::Connack) => {
                format!("taken off {link}; what was withheld arrives late")
            }
            LinkEffect::Withhold(_) | LinkEffect::Abort { .. } | LinkEffect::Delay { .. } => {
                format!("taken off {link}; connections go on, what was lost stays lost")
            }
            LinkEffect::SlowClose { .. }
            | LinkEffect::Reset { .. }
            | LinkEffect::Limit { .. }
            | LinkEffect::Disconnect { .. } => {
                format!("taken off {link}; those who lost their connection come back by themselves")
            }
        }
    }
}

impl Cut {
    /// What it does, for people; `link` is the link's name.
    #[must_use]
    pub fn text(&self, link: &str) -> String {
        let by = match self.by {
            CutBy::Reset => "reset".to_owned(),
            CutBy::Close => "closed".to_owned(),
            CutBy::Disconnect(reason) => format!("ended by DISCONNECT 0x{reason:02X}"),
        };
        let within = if self.within.is_zero() {
            "at once".to_owned()
        } else {
            format!("within {}", duration(self.within))
        };
        format!(
            "{} of the connections on {link} are {by} {within}",
            percent(self.share)
        )
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Packets::Connack => "CONNACK",
            Packets::Pingresp => "PINGRESP",
            Packets::Puback => "PUBACK",
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Way::Requests => "requests",
            Way::Answers => "answers",
            Way::Both => "requests and answers",
        })
    }
}

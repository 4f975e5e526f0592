//! The hosts that the target file names, and no others.
//!
//! Decides whether a host may be contacted: it must be named by the target file with its port, and neither its name nor any
//! address behind it may fall under `never`. A [`Peer`] is the proof: [`connect`](super::connect) takes nothing else. Knows
//! nothing of what is said over the connection.

use super::resolve::Resolver;
use super::tls::{HttpTerms, Identity, Trust, TrustError, TrustStore};
use crate::plan::Target;
use crate::plan::tls::HttpTls;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use url::Url;

/// Why a host is not contacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error(
        "{endpoint} is not contacted: the target file {file} does not name it; it names {named}"
    )]
    NotNamed {
        endpoint: Endpoint,
        file: String,
        named: String,
    },
    #[error("{host} is not contacted: `never: {rule}` of the target file forbids it")]
    Never { host: String, rule: String },
    #[error(
        "{host} is not contacted: it resolves to {address}, which `never: {rule}` of the target file forbids"
    )]
    NeverAddress {
        host: String,
        address: IpAddr,
        rule: String,
    },
    #[error(
        "`never: {rule}` is neither a name, a pattern like *.example.com nor a network like 10.20.0.0/16"
    )]
    BadRule { rule: String },
    #[error("{place}: `{text}` has no host and port that could be contacted: {why}")]
    BadAddress {
        place: String,
        text: String,
        why: String,
    },
    #[error("{host} has no address: {why}")]
    NoAddress { host: String, why: String },
}

/// A host by name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// The endpoint of these; names are compared without regard to case or a dot at their end.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Endpoint {
        let bare = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(host);
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        Endpoint {
            host: bare.to_ascii_lowercase(),
            port,
        }
    }

    /// Reads `host:port` or an address like `mqtt://host:port`, `https://host/path`.
    ///
    /// # Errors
    /// If there is no host, or no port and none that the scheme implies; the text says why.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("tcp://{text}")
        };
        let url = Url::parse(&whole).map_err(|error| error.to_string())?;
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or("the host is missing")?;
        let implied = match url.scheme() {
            "mqtt" => Some(1883),
            "mqtts" => Some(8883),
            "postgres" | "postgresql" => Some(5432),
            _ => url.port_or_known_default(),
        };
        let port = url
            .port()
            .or(implied)
            .ok_or("the port is missing; write host:port")?;
        Ok(Endpoint::new(host, port))
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

/// An address that may be contacted: the target file names its host, and `never` does not forbid it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer(SocketAddr);

impl Peer {
    #[must_use]
    pub fn address(self) -> SocketAddr {
        self.0
    }
}

/// A line of `never`.
#[derive(Debug)]
struct Never {
    written: String,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// A name in which `*` stands for any text.
    Name(String),
    Network(IpNet),
}

/// Everything that a run may contact.
#[derive(Debug)]
pub struct Hosts {
    file: String,
    /// With the place in the target file that names it.
    named: BTreeMap<Endpoint, String>,
    never: Vec<Never>,
    resolver: Resolver,
    trust: TrustStore,
    /// Whether an address is `https`.
    speak_https: bool,
    detours: OnceLock<Detours>,
}

/// Where hubs of a device connect to in place of an endpoint.
pub type Detours = BTreeMap<(String, Endpoint), SocketAddr>;

impl Hosts {
    /// The list of a target whose `<lab.…>` and `<secret.…>` are text by now.
    ///
    /// # Errors
    /// If an address has no host and port, a line of `never` can't be read, or `never` forbids a host that the file names.
    pub fn of(target: &Target) -> Result<Hosts, HostError> {
        let never = target
            .never
            .iter()
            .map(|written| Never::parse(written))
            .collect::<Result<_, _>>()?;
        let mut named = BTreeMap::new();
        let mut speak_https = false;
        for (place, text) in target.addresses() {
            speak_https |= text.starts_with("https://");
            let endpoint = Endpoint::parse(&text).map_err(|why| HostError::BadAddress {
                place: place.clone(),
                text,
                why,
            })?;
            named.entry(endpoint).or_insert(place);
        }
        let hosts = Hosts {
            file: target.file.display().to_string(),
            named,
            never,
            resolver: Resolver::default(),
            trust: TrustStore::of(target),
            speak_https,
            detours: OnceLock::new(),
        };
        for endpoint in hosts.named.keys() {
            hosts.permit(endpoint)?;
        }
        Ok(hosts)
    }

    /// The authorities that vouch for these hosts.
    ///
    /// # Errors
    /// If they can't be had.
    pub fn trust(&self) -> Result<Trust, TrustError> {
        self.trust.trust()
    }

    /// How HTTP is spoken over TLS to these hosts: as the target says, or like `own`.
    ///
    /// # Errors
    /// If some address is `https` and the authorities or the certificate can't be had.
    pub(super) fn tls_for_http(
        &self,
        own: Option<(&HttpTls, Option<&Identity>)>,
    ) -> Result<HttpTerms, TrustError> {
        match self.speak_https {
            true => self.trust.for_http(own),
            false => HttpTerms::of_nobody(),
        }
    }

    /// Every endpoint with the place that names it, in order.
    pub fn named(&self) -> impl Iterator<Item = (&Endpoint, &str)> {
        self.named
            .iter()
            .map(|(endpoint, place)| (endpoint, place.as_str()))
    }

    /// Whether the file names this endpoint and `never` does not forbid its name. Says nothing about the addresses behind it.
    ///
    /// # Errors
    /// If it must not be contacted.
    pub fn permit(&self, endpoint: &Endpoint) -> Result<(), HostError> {
        if !self.named.contains_key(endpoint) {
            let named = self
                .named
                .keys()
                .map(Endpoint::to_string)
                .collect::<Vec<_>>()
                .join(", ");
            let named = if named.is_empty() {
                "no host at all".to_owned()
            } else {
                named
            };
            return Err(HostError::NotNamed {
                endpoint: endpoint.clone(),
                file: self.file.clone(),
                named,
            });
        }
        match self
            .never
            .iter()
            .find(|never| never.forbids_name(&endpoint.host))
        {
            Some(never) => Err(HostError::Never {
                host: endpoint.host.clone(),
                rule: never.written.clone(),
            }),
            None => Ok(()),
        }
    }

    /// The addresses of a host, looked up once per run, none of them forbidden by `never`. At least one.
    ///
    /// # Errors
    /// If it has no address or a forbidden one.
    pub async fn addresses(&self, host: &str) -> Result<Arc<[IpAddr]>, HostError> {
        let addresses = self.resolver.addresses(host).await?;
        for address in addresses.iter() {
            if let Some(never) = self
                .never
                .iter()
                .find(|never| never.forbids_address(*address))
            {
                let rule = never.written.clone();
                return Err(HostError::NeverAddress {
                    host: host.to_owned(),
                    address: *address,
                    rule,
                });
            }
        }
        Ok(addresses)
    }

    /// The peers behind an endpoint, in the resolver's order. At least one.
    ///
    /// # Errors
    /// If it must not be contacted or has no address.
    pub async fn peers(&self, endpoint: &Endpoint) -> Result<Vec<Peer>, HostError> {
        self.permit(endpoint)?;
        let addresses = self.addresses(&endpoint.host).await?;
        Ok(addresses
            .iter()
            .map(|address| Peer(SocketAddr::new(*address, endpoint.port)))
            .collect())
    }

    /// From now on hubs of these devices reach these endpoints through these addresses: links of ours. Said once in a run.
    pub fn lead(&self, detours: Detours) {
        // A second word would come after the connections that the first one led.
        let _ = self.detours.set(detours);
    }

    /// The peers that hubs of a device connect to: those behind the endpoint, or the link that carries them there.
    ///
    /// # Errors
    /// If it must not be contacted or has no address.
    pub async fn peers_of_hubs(
        &self,
        device: &str,
        endpoint: &Endpoint,
    ) -> Result<Vec<Peer>, HostError> {
        let peers = self.peers(endpoint).await?;
        let detours = self.detours.get();
        let key = (device.to_owned(), endpoint.clone());
        let link = detours.and_then(|detours| detours.get(&key));
        Ok(link.map_or(peers, |link| vec![Peer(*link)]))
    }

    /// Looks every named host up, so that a name without address is found before the load and none is looked up during it.
    ///
    /// # Errors
    /// The first host that has no address or a forbidden one.
    pub async fn resolve_all(&self) -> Result<(), HostError> {
        for endpoint in self.named.keys() {
            self.addresses(&endpoint.host).await?;
        }
        Ok(())
    }
}

impl Never {
    fn parse(written: &str) -> Result<Never, HostError> {
        let bad = || HostError::BadRule {
            rule: written.to_owned(),
        };
        let text = written.trim();
        let rule = if let Ok(network) = text.parse::<IpNet>() {
            Rule::Network(network)
        } else if let Ok(address) = text.parse::<IpAddr>() {
            Rule::Network(IpNet::from(address))
        } else if !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || "*.-_".contains(c))
        {
            Rule::Name(text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase())
        } else {
            return Err(bad());
        };
        Ok(Never {
            written: written.to_owned(),
            rule,
        })
    }

    fn forbids_name(&self, host: &str) -> bool {
        match (&self.rule, host.parse::<IpAddr>()) {
            (Rule::Network(_), Ok(address)) => self.forbids_address(address),
            (Rule::Network(_), Err(_)) => false,
            (Rule::Name(pattern), _) => matches_pattern(pattern, host),
        }
    }

    fn forbids_address(&self, address: IpAddr) -> bool {
        match &self.rule {
            // An IPv4 address written as IPv6 is still that address.
            Rule::Network(network) => {
                network.contains(&address.to_canonical()) || network.contains(&address)
            }
            Rule::Name(_) => false,
        }
    }
}

/// Whether `text` is `pattern` with every `*` replaced by some text, the empty one included.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

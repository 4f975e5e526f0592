//! How a connection to a shard comes to stand: TCP, then TLS, then WebSocket, as far as its address asks for them.
//!
//! Each step is a future of its own, so that whoever waits can tell them apart. Decides neither when to connect nor what is said
//! afterwards.

use crate::event::Outcome;
use crate::net::connect::{Source, connect, outcome};
use crate::net::hosts::{Endpoint, HostError, Hosts, Peer};
use crate::net::stream::Stream;
use crate::net::tls::{
    Credentials, Terms, TrustError, WalletError, explain, without_a_certificate,
};
use crate::net::websocket::{Declined, WebSocket};
use crate::plan::target::Device;
use crate::plan::tls::is_secured;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use tokio::net::TcpStream;

/// Why nobody can connect to a device's shards.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Wallet(#[from] WalletError),
    #[error("device `{device}`: `{name}` is no name that a certificate could be for")]
    ServerName { device: String, name: String },
    #[error("the certificates were not read to their end: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// The way to one shard.
#[derive(Debug)]
pub(super) struct Way {
    peers: Vec<Peer>,
    /// The name that the server's certificate must be for.
    tls: Option<ServerName<'static>>,
    /// The address of the upgrade.
    websocket: Option<String>,
    endpoint: Endpoint,
}

/// Who connects to a device's shards: only hubs go through its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Hubs,
    /// Issuers and watchers of ours.
    Others,
}

/// What stands so far.
pub(super) enum Step {
    Tcp(TcpStream),
    Secured(Stream),
    /// MQTT may be spoken.
    Ready(Stream),
}

/// Why it does not come to stand.
#[derive(Debug)]
pub(super) struct Failure {
    pub outcome: Outcome,
    /// What exactly was wrong, where the class does not say it all.
    pub text: Option<String>,
}

/// A step under way.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<Step, Failure>> + Send>>;

/// What follows a step.
pub(super) enum Next {
    Wait(Opening),
    Stands(Stream),
}

impl Way {
    pub(super) async fn to(
        address: &str,
        place: String,
        device: &Device,
        hosts: &Hosts,
        who: Who,
    ) -> Result<Way, NotReady> {
        let endpoint = Endpoint::parse(address).map_err(|why| HostError::BadAddress {
            place,
            text: address.to_owned(),
            why,
        })?;
        let tls = is_secured(address)
            .then(|| server_name(device, &endpoint))
            .transpose()?;
        let is_websocket = address.starts_with("ws://") || address.starts_with("wss://");
        Ok(Way {
            peers: match who {
                Who::Hubs => hosts.peers_of_hubs(&device.name, &endpoint).await?,
                Who::Others => hosts.peers(&endpoint).await?,
            },
            tls,
            websocket: is_websocket.then(|| address.to_owned()),
            endpoint,
        })
    }

    /// The first step for the n-th client: clients spread over all addresses of a name.
    pub(super) fn open(&self, nth: u64, source: Source) -> Option<Opening> {
        let place = usize::try_from(nth % self.peers.len().max(1) as u64).unwrap_or_default();
        let peer = *self.peers.get(place)?;
        Some(Box::pin(async move {
            match connect(peer, source).await {
                Ok(tcp) => Ok(Step::Tcp(tcp)),
                Err(error) => Err(Failure::of(&error, "")),
            }
        }))
    }

    /// What follows a step. `credentials` are there wherever TLS is spoken.
    pub(super) fn follow(&self, step: Step, credentials: Option<&Credentials>) -> Next {
        let stream = match step {
            Step::Ready(stream) => return Next::Stands(stream),
            Step::Tcp(tcp) => match (&self.tls, credentials) {
                (Some(name), Some(credentials)) => {
                    return Next::Wait(self.secure(tcp, name.clone(), credentials));
                }
                _ => Stream::Plain(tcp),
            },
            Step::Secured(stream) => stream,
        };
        match &self.websocket {
            Some(address) => Next::Wait(upgrade(stream, address.clone())),
            None => Next::Stands(stream),
        }
    }

    fn secure(
        &self,
        tcp: TcpStream,
        name: ServerName<'static>,
        credentials: &Credentials,
    ) -> Opening {
        let (config, peer) = (credentials.config(), self.endpoint.clone());
        Box::pin(async move {
            match Stream::secure(tcp, name, config).await {
                Ok(stream) => Ok(Step::Secured(stream)),
                Err(error) => Err(Failure::of(&error, &peer.to_string())),
            }
        })
    }

    /// Host and port, for texts.
    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn is_secured(&self) -> bool {
        self.tls.is_some()
    }
}

impl Failure {
    /// What an error of a connection that did not come to stand means. `peer` is host and port.
    pub(super) fn of(error: &io::Error, peer: &str) -> Failure {
        Failure {
            outcome: outcome(error),
            text: explain(error, peer),
        }
    }

    /// No failure, but what nobody may overlook: a broker that takes no publish with QoS 1.
    pub(super) fn of_qos() -> Failure {
        Failure {
            outcome: Outcome::Ok,
            text: Some(
                "the broker takes QoS 0 at most, so what is meant for QoS 1 is published with QoS 0"
                    .to_owned(),
            ),
        }
    }

    /// The same with what only the terms know: a peer of TLS 1.2 does not say that it wants a certificate, it just fails.
    pub(super) fn with(self, terms: Option<&Terms>) -> Failure {
        if !terms.is_some_and(Terms::lacked_a_certificate) {
            return self;
        }
        let (outcome, text) = without_a_certificate(self.outcome, self.text);
        Failure { outcome, text }
    }
}

fn server_name(device: &Device, endpoint: &Endpoint) -> Result<ServerName<'static>, NotReady> {
    let name = match &device.tls.server_name {
        Some(name) => name.to_string(),
        None => endpoint.host().to_owned(),
    };
    ServerName::try_from(name.clone()).map_err(|_| NotReady::ServerName {
        device: device.name.clone(),
        name,
    })
}

fn upgrade(stream: Stream, address: String) -> Opening {
    Box::pin(async move {
        match WebSocket::upgrade(stream, &address).await {
            Ok(stream) => Ok(Step::Ready(stream)),
            Err(Declined::Io(error)) => Err(Failure::of(&error, &address)),
            Err(Declined::Status(status)) => Err(Failure {
                outcome: Outcome::Refused(status),
                text: None,
            }),
            Err(declined @ Declined::Protocol(_)) => Err(Failure {
                outcome: Outcome::Protocol,
                text: Some(format!("{address}: {declined}")),
            }),
        }
    })
}

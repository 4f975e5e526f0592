//! The links of a target: carried by a proxy process that this run starts, or by one that an earlier run left standing because the
//! target's connections depend on it.

use super::proxy::carrier::Remote;
use super::proxy::client::{ClientError, ProxyClient, running};
use super::proxy::wire::{LinkAddress, LinkState, Registration};
use crate::net::hosts::{Detours, Endpoint};
use crate::net::state::{self, StateDirectory, StateError};
use crate::plan::Target;
use crate::plan::fault::{Link, LinkAddresses, LinkPath};
use crate::plan::quantity::bytes;
use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use tokio::time::Instant;

const STARTS_WITHIN: Duration = Duration::from_secs(10);
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The links of one target, in the order of its file.
pub struct Links {
    /// One a link.
    clients: Vec<ProxyClient>,
    started: Option<ProxyClient>,
    adopted: Vec<String>,
}

/// Why the links do not stand.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("link `{link}`: {why}")]
    Address { link: String, why: String },
    #[error("the fault proxy can't be started: {0}")]
    Spawn(io::Error),
    #[error("the fault proxy did not start: {why} (log: {})", log.display())]
    NotStarted { why: String, log: PathBuf },
}

impl Links {
    /// Brings up every link of a target whose `<lab.…>` are text by now. `program` is this program's own file. A link that a running
    /// proxy of an earlier run carries already, from the same address to the same address, is adopted.
    ///
    /// # Errors
    /// If the state directory can't be used or the proxy does not come up, for example because an address is taken.
    pub async fn start(
        target: &Target,
        program: &Path,
        state: &StateDirectory,
        run_id: &str,
    ) -> Result<Links, LinksError> {
        let running = running(state)?;
        let carrier = |addresses: &[LinkAddress]| {
            let carries = |proxy: &&Registration| {
                let mut addresses = addresses.iter();
                addresses.all(|address| proxy.links.contains(address))
            };
            running.iter().find(carries)
        };
        let mut wanted = Vec::new();
        for link in &target.links {
            wanted.push(addresses_of(link, target)?);
        }
        let own = |link: &Link| !is_remote(link);
        let missing: Vec<LinkAddress> = target
            .links
            .iter()
            .zip(&wanted)
            .filter(|(link, addresses)| own(link) && carrier(addresses).is_none())
            .flat_map(|(_, addresses)| addresses.clone())
            .collect();
        let started = match missing.is_empty() {
            true => None,
            false => Some(ProxyClient::new(
                start_proxy(&missing, program, state, run_id).await?,
            )?),
        };
        let mut links = Links {
            clients: Vec::new(),
            started,
            adopted: Vec::new(),
        };
        for (link, addresses) in target.links.iter().zip(&wanted) {
            let client = match (&link.path, carrier(addresses), &links.started) {
                (
                    LinkPath::Address(LinkAddresses {
                        proxy: Some(proxy), ..
                    }),
                    ..,
                ) => {
                    let proxy = ProxyClient::remote(&Remote::of(proxy, target))?;
                    links
                        .adopted
                        .push(carried_elsewhere(&proxy, addresses).await?);
                    proxy
                }
                (_, Some(proxy), _) => {
                    links.adopted.push(adoption(&link.name, proxy));
                    ProxyClient::new(proxy.clone())?
                }
                (_, None, Some(started)) => started.clone(),
                // What has no carrier has been started.
                (_, None, None) => continue,
            };
            links.clients.push(client);
        }
        Ok(links)
    }

    /// Where hubs of the devices that have a link connect to.
    ///
    /// # Errors
    /// If the proxy does not say where it listens.
    pub fn detours(&self, target: &Target) -> Result<Detours, LinksError> {
        let mut detours = Detours::new();
        for (link, client) in target.links.iter().zip(&self.clients) {
            let LinkPath::Device(row) = link.path else {
                continue;
            };
            let device = &target.devices[row].name;
            let links = client
                .registration()
                .map(|registration| &registration.links);
            for address in links.into_iter().flatten() {
                if address.name != link.name {
                    continue;
                }
                let bad = |why: String| LinksError::Address {
                    link: link.name.clone(),
                    why,
                };
                let to = Endpoint::parse(&address.to).map_err(bad)?;
                let listen = address.listen.parse::<SocketAddr>();
                let listen = listen.map_err(|error| bad(error.to_string()))?;
                detours.insert((device.clone(), to), listen);
            }
        }
        Ok(detours)
    }

    /// The proxy that carries the link in row `link` of the target.
    #[must_use]
    pub fn client(&self, link: usize) -> Option<&ProxyClient> {
        self.clients.get(link)
    }

    /// What each link has carried and what faults of this run, whose ids begin with `run_id`, did to it: a sentence each.
    pub async fn told(&self, run_id: &str) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        for client in &self.clients {
            match client.links().await {
                Ok(states) => told.extend(states.iter().map(|state| account(state, run_id))),
                Err(error) => told.push(format!("what its links carried is not known: {error}")),
            }
        }
        told.sort();
        // Several links of one proxy are told by each of them.
        told.dedup();
        told
    }

    /// A sentence for each link that was adopted, for the user.
    #[must_use]
    pub fn adopted(&self) -> &[String] {
        &self.adopted
    }

    /// At the normal end of a run: ends the proxy that this run started; an adopted one goes on.
    ///
    /// # Errors
    /// If it does not end.
    pub async fn stop(self) -> Result<(), LinksError> {
        let Some(proxy) = self.started else {
            return Ok(());
        };
        proxy.stop().await?;
        Ok(ended(&proxy).await?)
    }
}

/// Waits until a proxy that was told to stop has ended.
pub(super) async fn ended(proxy: &ProxyClient) -> Result<(), ClientError> {
    // One elsewhere is not ours to end.
    let Some(Registration { process, .. }) = proxy.registration() else {
        return Ok(());
    };
    let end = Instant::now() + ENDS_WITHIN;
    while process.runs() {
        if Instant::now() >= end {
            let why = format!("still runs {ENDS_WITHIN:?} after it was told to stop");
            return Err(ClientError::Failed {
                proxy: Box::new(proxy.carrier().clone()),
                what: "/stop".to_owned(),
                why,
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// What a link has carried, for people.
fn account(state: &LinkState, run_id: &str) -> String {
    let mut text = format!(
        "link {}: {} connections accepted, {} refused, {} cut, {} open; {} to the target, {} to clients",
        state.name,
        state.accepted,
        state.refused,
        state.cut,
        state.open,
        bytes(state.to_target_bytes),
        bytes(state.to_client_bytes),
    );
    for fault in state.past.iter().chain(&state.faults) {
        let name = fault.id.strip_prefix(run_id);
        if let Some(name) = name.and_then(|rest| rest.strip_prefix('-')) {
            text.push_str(&format!(
                "; {name} reached {} connections, {} hits",
                fault.reached, fault.hits
            ));
        }
    }
    text
}

fn is_remote(link: &Link) -> bool {
    let addresses = link.addresses();
    addresses.is_some_and(|addresses| addresses.proxy.is_some())
}

/// Where a link listens and leads: a link of a device once for each of its shards, at ports of the system's choice.
fn addresses_of(link: &Link, target: &Target) -> Result<Vec<LinkAddress>, LinksError> {
    let address = |listen: String, to: String| LinkAddress {
        name: link.name.clone(),
        listen,
        to,
    };
    let device = match &link.path {
        LinkPath::Address(LinkAddresses { listen, to, .. }) => {
            return Ok(vec![address(listen.to_string(), to.to_string())]);
        }
        LinkPath::Device(row) => &target.devices[*row],
    };
    let mut addresses: Vec<LinkAddress> = Vec::new();
    for (_, shard) in &device.shards {
        let to = Endpoint::parse(&shard.to_string()).map_err(|why| LinksError::Address {
            link: link.name.clone(),
            why,
        })?;
        let to = to.to_string();
        // Shards that share an address are one on the wire.
        if addresses.iter().all(|known| known.to != to) {
            addresses.push(address("127.0.0.1:0".to_owned(), to));
        }
    }
    Ok(addresses)
}

/// Has a proxy elsewhere carry a link; gives a sentence for the user. It goes on after the run: the target depends on it.
async fn carried_elsewhere(
    proxy: &ProxyClient,
    addresses: &[LinkAddress],
) -> Result<String, LinksError> {
    let mut said = Vec::new();
    for link in addresses {
        let already = proxy.carry(link).await?;
        let how = if already {
            "is carried"
        } else {
            "is carried from now on"
        };
        said.push(format!(
            "link {}: {how} by {}, from {} to {}; it will be left so",
            link.name,
            proxy.carrier(),
            link.listen,
            link.to
        ));
    }
    Ok(said.join("; "))
}

fn adoption(link: &str, proxy: &Registration) -> String {
    let run = proxy
        .run
        .as_ref()
        .map_or_else(|| "by hand".to_owned(), |run| format!("by run {run}"));
    format!(
        "link {link}: goes on through fault proxy {}, started {run}; it will be left running",
        proxy.process.pid
    )
}

async fn start_proxy(
    links: &[LinkAddress],
    program: &Path,
    state: &StateDirectory,
    run_id: &str,
) -> Result<Registration, LinksError> {
    let log = state.run(run_id)?.join("proxy.log");
    let output = state::open_private(OpenOptions::new().append(true).create(true), &log)?;
    let mut command = state.command(program);
    command.args(["proxy", "--run", run_id]);
    // A Ctrl-C meant for the run must not reach it.
    command.process_group(0);
    for LinkAddress { name, listen, to } in links {
        command.arg("--link").arg(format!("{name}={listen}={to}"));
    }
    let errors = output.try_clone().map_err(LinksError::Spawn)?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let mut child = command.spawn().map_err(LinksError::Spawn)?;
    let registered = registration(&mut child, state, &log).await;
    if registered.is_err() {
        // It may be gone already.
        let _ = child.kill();
        let _ = child.wait();
    } else {
        // Nobody else reaps it should it end before us.
        std::thread::spawn(move || child.wait());
    }
    registered
}

async fn registration(
    child: &mut Child,
    state: &StateDirectory,
    log: &Path,
) -> Result<Registration, LinksError> {
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    let not_started = |why: String| LinksError::NotStarted {
        why,
        log: log.to_owned(),
    };
    let end = Instant::now() + STARTS_WITHIN;
    loop {
        if let Some(registration) = running(state)?
            .into_iter()
            .find(|proxy| proxy.process.pid == pid)
        {
            return Ok(registration);
        }
        if child.try_wait().map_err(LinksError::Spawn)?.is_some() {
            let said = state::read_private(log)?;
            return Err(not_started(
                said.lines().last().unwrap_or("it said nothing").to_owned(),
            ));
        }
        if Instant::now() >= end {
            return Err(not_started(format!(
                "it was not ready within {STARTS_WITHIN:?}"
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

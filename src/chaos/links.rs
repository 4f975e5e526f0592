//! The links of a target: carried by a proxy process that this run starts, or by one that an earlier run left standing because the
//! target's connections depend on it.

use super::process::Identity;
use super::proxy::client::{ClientError, ProxyClient, running};
use super::proxy::wire::{LinkAddress, Registration};
use crate::net::state::{self, StateDirectory, StateError};
use crate::plan::Target;
use std::fs::OpenOptions;
use std::io;
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
        let wanted: Vec<LinkAddress> = target.links.iter().map(address_of).collect();
        let running = running(state)?;
        let carrier = |link: &LinkAddress| running.iter().find(|proxy| proxy.links.contains(link));
        let missing: Vec<LinkAddress> = wanted
            .iter()
            .filter(|link| carrier(link).is_none())
            .cloned()
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
        for link in &wanted {
            match (carrier(link), &links.started) {
                (Some(proxy), _) => {
                    links.adopted.push(adoption(link, proxy));
                    links.clients.push(ProxyClient::new(proxy.clone())?);
                }
                (None, Some(started)) => links.clients.push(started.clone()),
                // What has no carrier has been started.
                (None, None) => {}
            }
        }
        Ok(links)
    }

    /// The proxy that carries the link in row `link` of the target.
    #[must_use]
    pub fn client(&self, link: usize) -> Option<&ProxyClient> {
        self.clients.get(link)
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
    let process: &Identity = &proxy.registration().process;
    let end = Instant::now() + ENDS_WITHIN;
    while process.runs() {
        if Instant::now() >= end {
            let why = format!("still runs {ENDS_WITHIN:?} after it was told to stop");
            return Err(ClientError::Failed {
                proxy: process.clone(),
                what: "/stop".to_owned(),
                why,
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

fn address_of(link: &crate::plan::fault::Link) -> LinkAddress {
    LinkAddress {
        name: link.name.clone(),
        listen: link.listen.to_string(),
        to: link.to.to_string(),
    }
}

fn adoption(link: &LinkAddress, proxy: &Registration) -> String {
    let run = proxy
        .run
        .as_ref()
        .map_or_else(|| "by hand".to_owned(), |run| format!("by run {run}"));
    format!(
        "link {}: goes on through fault proxy {}, started {run}; it will be left running",
        link.name, proxy.process.pid
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

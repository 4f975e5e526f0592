//! The proxy as a process: starts the links, registers itself, ends on `stop`, SIGTERM or SIGINT.

use super::control::{self, Control};
use super::link::{Link, Unreached};
use super::links::Links;
use super::toxiproxy::{self, Settings};
use super::wire::{LinkAddress, Registration};
use super::{canary, wire};
use crate::chaos::process::Identity;
use crate::net::state::{self, StateDirectory};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Arguments of `rushhour proxy`.
#[derive(Debug, Clone, clap::Args)]
pub struct ProxyArguments {
    /// A link, as NAME=LISTEN=TO (db=127.0.0.1:6432=10.0.0.5:5432); may be given several times, and one name too: then faults act on
    /// all its addresses together
    #[arg(long = "link", value_name = "NAME=LISTEN=TO", value_parser = parse_link, required_unless_present = "api")]
    pub links: Vec<LinkAddress>,
    /// Where faults are set and removed; a loopback address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub control: SocketAddr,
    /// Where Toxiproxy's HTTP API is served, for its clients; an address that is not loopback needs --api-token-file
    #[arg(long, value_name = "ADDRESS")]
    pub api: Option<SocketAddr>,
    /// A file that holds the token which every request to the API must show as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE", requires = "api")]
    pub api_token_file: Option<PathBuf>,
    /// Serve counters of bytes under /metrics of the API, under Toxiproxy's names
    #[arg(long, requires = "api")]
    pub proxy_metrics: bool,
    /// How a client sees that what is behind a link can't be reached; by default `reset` on links, `close` on proxies of the API, as
    /// Toxiproxy does
    #[arg(long, value_enum)]
    pub(super) unreached: Option<Unreached>,
    /// The seed of what faults draw: jitter, sizes, and which connections they act on
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The run that starts it
    #[arg(long, hide = true)]
    pub run: Option<String>,
}

fn parse_link(text: &str) -> Result<LinkAddress, String> {
    let parts: Vec<&str> = text.split('=').collect();
    let [name, listen, to] = parts[..] else {
        return Err("write NAME=LISTEN=TO, for example db=127.0.0.1:6432=10.0.0.5:5432".to_owned());
    };
    if name.is_empty() || !listen.contains(':') || !to.contains(':') {
        return Err("the name must not be empty, and both addresses need a port".to_owned());
    }
    Ok(LinkAddress {
        name: name.to_owned(),
        listen: listen.to_owned(),
        to: to.to_owned(),
    })
}

/// Runs a proxy until it is told to stop.
///
/// # Errors
/// If it can't start: an address is taken, the control port is not loopback, or the state directory can't be used.
pub fn run(arguments: ProxyArguments) -> Result<(), ProxyError> {
    if !arguments.control.ip().is_loopback() {
        return Err(ProxyError::NotLoopback(arguments.control));
    }
    let api_token = api_token(&arguments)?;
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(arguments, api_token));
    // Connections end with the process; nothing here is worth waiting for.
    runtime.shutdown_background();
    served
}

/// Every connection takes two; a failure leaves the limit as it is, and accepting says when it is reached.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// The token of the API, which one that others can reach must have.
fn api_token(arguments: &ProxyArguments) -> Result<Option<String>, ProxyError> {
    match (&arguments.api_token_file, arguments.api) {
        (Some(file), _) => {
            let unreadable = |source| ProxyError::Token {
                file: file.clone(),
                source,
            };
            let token = std::fs::read_to_string(file).map_err(unreadable)?;
            let token = token.trim();
            if token.is_empty() {
                return Err(unreadable(io::Error::other("it is empty")));
            }
            Ok(Some(token.to_owned()))
        }
        (None, Some(api)) if !api.ip().is_loopback() => Err(ProxyError::OpenToAll(api)),
        _ => Ok(None),
    }
}

async fn serve(arguments: ProxyArguments, api_token: Option<String>) -> Result<(), ProxyError> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let links = Arc::new(Links::default());
    let addresses = start_links(&arguments, &links).await?;
    let api = match arguments.api {
        Some(address) => Some(
            TcpListener::bind(address)
                .await
                .map_err(|source| ProxyError::Api { address, source })?,
        ),
        None => None,
    };
    let listener = TcpListener::bind(arguments.control).await?;
    let registered = register(Registration {
        process: Identity::ours().map_err(io::Error::other)?,
        run: arguments.run,
        control: listener.local_addr()?,
        token: random_token()?,
        links: addresses,
    })?;
    let stop = Arc::new(Notify::new());
    let token = registered.registration.token.clone();
    let control = Arc::new(Control {
        links: Arc::clone(&links),
        echo: canary::echo().await?,
        token: Some(token),
        stop: Arc::clone(&stop),
        is_own: true,
    });
    // Runs elsewhere reach the same requests at the API, by its token; to end the proxy is not theirs.
    let elsewhere = Arc::new(Control {
        links: Arc::clone(&links),
        echo: control.echo,
        token: api_token.clone(),
        stop: Arc::clone(&stop),
        is_own: false,
    });
    let settings = Settings {
        links,
        token: api_token,
        metrics: arguments.proxy_metrics,
        seed: arguments.seed,
        unreached: arguments.unreached.unwrap_or(Unreached::Close),
    };
    registered.announce(api.as_ref().and_then(|api| api.local_addr().ok()));
    let toxiproxy = async {
        match api {
            Some(listener) => {
                let both = control::router(elsewhere).merge(toxiproxy::router(settings));
                axum::serve(listener, both).await
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        served = async { axum::serve(listener, control::router(control)).await } => served?,
        served = toxiproxy => served?,
        () = stop.notified() => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    Ok(())
}

/// Starts the links of the command line; gives their real addresses.
async fn start_links(
    arguments: &ProxyArguments,
    links: &Links,
) -> Result<Vec<LinkAddress>, ProxyError> {
    let mut started = Vec::new();
    for given in &arguments.links {
        if links.find(&given.name).is_some() {
            continue;
        }
        let all = arguments.links.iter();
        let addresses: Vec<LinkAddress> = all
            .filter(|address| address.name == given.name)
            .cloned()
            .collect();
        let unreached = arguments.unreached.unwrap_or(Unreached::Reset);
        let link = Link::new(&given.name, addresses, unreached);
        let listens = link.start().await;
        listens.map_err(|source| ProxyError::Listen {
            address: given.clone(),
            source,
        })?;
        started.extend(link.addresses());
        links.insert(link);
    }
    Ok(started)
}

/// The registration file, removed when the proxy ends.
struct Registered {
    path: PathBuf,
    registration: Registration,
}

impl Registered {
    /// One line of JSON for whoever started it by hand; the token stays in the file.
    fn announce(&self, api: Option<SocketAddr>) {
        let ready = serde_json::json!({
            "control": format!("http://{}{}", self.registration.control, wire::PREFIX),
            "api": api.map(|api| format!("http://{api}")),
            "links": self.registration.links,
            "registration": self.path,
        });
        // Nobody may be reading any more, which is no reason to end.
        let _ = writeln!(io::stdout(), "{ready}");
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // A leftover is recognised by its dead process.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn register(registration: Registration) -> Result<Registered, ProxyError> {
    let directory = StateDirectory::of_user()?.proxies()?;
    let path = directory.join(format!("{}.json", registration.process.pid));
    let text = serde_json::to_string(&registration).map_err(io::Error::other)?;
    state::write_private(&path, &text)?;
    Ok(Registered { path, registration })
}

fn random_token() -> Result<String, ProxyError> {
    let mut random = [0_u8; 24];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Why the proxy can't start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("--control {0}: only a loopback address, anybody who reaches it can break the links")]
    NotLoopback(SocketAddr),
    #[error(
        "--api {0}: anybody who reaches it can break the links; give it a token with --api-token-file, or a loopback address"
    )]
    OpenToAll(SocketAddr),
    #[error("--api-token-file {}: {source}", file.display())]
    Token { file: PathBuf, source: io::Error },
    #[error("--api {address}: can't listen: {source}")]
    Api {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("link `{}` can't listen on {}: {source}", address.name, address.listen)]
    Listen {
        address: LinkAddress,
        source: io::Error,
    },
    #[error(transparent)]
    State(#[from] state::StateError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

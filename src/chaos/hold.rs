//! The fault `hold`: sessions of a database or a pooler are taken and kept, so that others wait. A process of its own holds them: its
//! end lets go of them, whatever it dies of, and it ends with whoever started it.

use super::faults::Setup;
use super::process::{Identity, Pinned};
use super::request::{hosts_of, read};
use super::undo::Standing;
use crate::net::connect::Source;
use crate::net::hosts::Endpoint;
use crate::net::secrets::Secrets;
use crate::plan::target::{SecretSource, Target};
use crate::plan::template::Template;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Write};
use std::process::Stdio;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, NoTls};

/// How long one session may take to come about.
const SESSION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the holder may take to hold them all.
const HOLDS_WITHIN: Duration = Duration::from_secs(30);
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// Sessions that are asked for at the same time.
const AT_ONCE: usize = 16;
/// What the sessions call themselves, so that an operator sees whose they are.
const APPLICATION: &str = "rushhour hold";

/// The undo: the process that holds the sessions has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndHolder {
    pub component: String,
    pub connections: u32,
    pub holder: Identity,
}

/// What the holder is told, on its standard input: an address may hold a password, and arguments can be read by everybody.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    /// May name secrets.
    database: String,
    connections: u32,
    secrets: BTreeMap<String, SecretSource>,
    never: Vec<String>,
}

/// What the holder says, a line each time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Held {
    /// Sessions that are open, each inside a transaction.
    held: u32,
    /// How many of them the server counts, if it can tell.
    counted: Option<u64>,
    /// Why there are not more.
    why: Option<String>,
}

/// A holder that has been started and waits for its order.
pub(super) struct Hold {
    order: Order,
    undo: EndHolder,
    running: Mutex<Running>,
}

struct Running {
    child: Child,
    order: Option<ChildStdin>,
    said: Lines<BufReader<ChildStdout>>,
}

impl Hold {
    pub(super) async fn arm(
        component: &str,
        database: &Template,
        connections: u32,
        setup: &Setup,
    ) -> Result<Hold, String> {
        let target = &setup.plan.target;
        let redactor = read(&target.secrets).map_err(|error| error.to_string())?;
        let written = database.to_string();
        let order = Order {
            database: redactor.redactor().redact(&written).into_owned(),
            connections,
            secrets: target.secrets.clone(),
            never: target.never.clone(),
        };
        let mut command = Command::from(setup.state.command(&setup.program));
        command
            .arg("hold")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let started = command.spawn();
        let mut child = started.map_err(|error| format!("the holder can't be started: {error}"))?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let holder = pid.and_then(|pid| Identity::of(pid).ok());
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(holder), (Some(input), Some(output))) = (holder, pipes) else {
            return Err("the holder ended at once".to_owned());
        };
        Ok(Hold {
            order,
            undo: EndHolder {
                component: component.to_owned(),
                connections,
                holder,
            },
            running: Mutex::new(Running {
                child,
                order: Some(input),
                said: BufReader::new(output).lines(),
            }),
        })
    }

    pub(super) fn undo(&self) -> EndHolder {
        self.undo.clone()
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        let mut running = self.running.lock().await;
        let mut line = serde_json::to_string(&self.order).map_err(|error| error.to_string())?;
        line.push('\n');
        let Some(input) = &mut running.order else {
            return Err("the holder has its order already".to_owned());
        };
        let told = input.write_all(line.as_bytes()).await;
        told.map_err(|error| format!("the holder does not listen: {error}"))
    }

    pub(super) async fn observe(&self) -> Result<String, String> {
        let mut running = self.running.lock().await;
        let said = tokio::time::timeout(HOLDS_WITHIN, running.said.next_line()).await;
        let held: Held = match said {
            Ok(Ok(Some(line))) => serde_json::from_str(&line).map_err(|error| error.to_string())?,
            Ok(_) => {
                let ended = running.child.wait().await;
                return Err(format!("the holder has ended: {ended:?}"));
            }
            Err(_) => return Err(format!("not all sessions within {HOLDS_WITHIN:?}")),
        };
        let counted = match held.counted {
            Some(counted) => format!(", {counted} counted by the server"),
            None => String::new(),
        };
        let seen = format!(
            "{} of {} sessions are held{counted}",
            held.held, self.undo.connections
        );
        let enough = held.held == self.undo.connections
            && held
                .counted
                .is_none_or(|count| count >= u64::from(held.held));
        match (enough, held.why) {
            (true, _) => Ok(seen),
            (false, Some(why)) => Err(format!("{seen}: {why}")),
            (false, None) => Err(seen),
        }
    }
}

/// Whose sessions would be held, and what would let go of them.
pub(super) fn look(database: &str, target: &Target) -> Result<(String, String), String> {
    let secrets = read(&target.secrets).map_err(|error| error.to_string())?;
    let address = resolved(database, &secrets)?;
    let endpoint = Endpoint::parse(&address)?;
    hosts_of(&endpoint.to_string(), &target.never).map_err(|error| error.to_string())?;
    Ok((
        format!("sessions of {endpoint}"),
        "the process that holds them is ended".to_owned(),
    ))
}

fn resolved(database: &str, secrets: &Secrets) -> Result<String, String> {
    let known = |name: &str| {
        let secret = name.strip_prefix("secret.")?;
        secrets.value(secret).map(str::to_owned)
    };
    let address = Template::parse(database).map_err(|error| error.to_string())?;
    Ok(address.resolve(&known).to_string())
}

impl EndHolder {
    pub(super) fn standing(&self) -> Standing {
        match self.holder.runs() {
            true => Standing::Stands(format!("{} holds sessions", self.holder)),
            false => Standing::Healed(format!("{} has ended, and its sessions", self.holder)),
        }
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let said = format!("ended {}", self.holder);
        let Ok(holder) = Pinned::of(&self.holder) else {
            return Ok(said);
        };
        holder.kill().map_err(|error| error.to_string())?;
        let ended = holder.ended(ENDS_WITHIN).await;
        ended.map(|()| said).map_err(|error| error.to_string())
    }
}

impl fmt::Display for EndHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "let go of {} sessions of {}: end {}",
            self.connections, self.component, self.holder
        )
    }
}

/// `rushhour hold`: takes its order from standard input, holds, and ends when standard input does.
///
/// # Errors
/// If it can't say what it holds.
pub fn run() -> std::io::Result<()> {
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    // Whoever started it may have gone before it was told anything.
    if input.read_line(&mut line)? == 0 {
        return Ok(());
    }
    let order: Order = serde_json::from_str(&line)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    // The sessions stay open as long as they are kept here.
    let (held, _sessions) = runtime.block_on(hold(&order)).unwrap_or_else(|why| {
        let held = Held {
            why: Some(why),
            ..Held::default()
        };
        (held, Vec::new())
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(&held)?)?;
    out.flush()?;
    // Until the end of the input: whatever the run dies of, the kernel closes it.
    line.clear();
    while input.read_line(&mut line)? > 0 {
        line.clear();
    }
    Ok(())
}

async fn hold(order: &Order) -> Result<(Held, Vec<Client>), String> {
    let secrets = read(&order.secrets).map_err(|error| error.to_string())?;
    let address = resolved(&order.database, &secrets)?;
    let redact = |text: String| secrets.redactor().redact(&text).into_owned();
    let mut config = Config::from_str(&address).map_err(|error| redact(error.to_string()))?;
    config.application_name(APPLICATION);
    let (config, address) = (Arc::new(config), Arc::new(address));
    let never = Arc::new(order.never.clone());
    let mut sessions: Vec<Client> = Vec::new();
    let mut why = None;
    let wanted = usize::try_from(order.connections).unwrap_or(usize::MAX);
    while sessions.len() < wanted && why.is_none() {
        let mut opening = tokio::task::JoinSet::new();
        for _ in sessions.len()..wanted.min(sessions.len() + AT_ONCE) {
            let (config, address) = (Arc::clone(&config), Arc::clone(&address));
            let never = Arc::clone(&never);
            opening.spawn(async move {
                let opened =
                    tokio::time::timeout(SESSION_TIMEOUT, session(&config, &address, &never));
                opened.await.unwrap_or_else(|_| {
                    Err(format!(
                        "no session within {SESSION_TIMEOUT:?}: there is none left"
                    ))
                })
            });
        }
        for opened in opening.join_all().await {
            match opened {
                Ok(session) => sessions.push(session),
                Err(error) => why = Some(redact(error)),
            }
        }
    }
    let held = Held {
        held: u32::try_from(sessions.len()).unwrap_or(u32::MAX),
        counted: match sessions.first() {
            Some(session) => count(session).await,
            None => None,
        },
        why,
    };
    Ok((held, sessions))
}

/// A session inside a transaction: a pooler that lends connections by the transaction lends it for good.
async fn session(config: &Config, address: &str, never: &[String]) -> Result<Client, String> {
    let endpoint = Endpoint::parse(address)?;
    let hosts = hosts_of(&endpoint.to_string(), never).map_err(|error| error.to_string())?;
    let peers = hosts
        .peers(&endpoint)
        .await
        .map_err(|error| error.to_string())?;
    let peer = peers.first().ok_or("the host has no address")?;
    let stream = crate::net::connect::connect(*peer, Source::System).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let (client, connection) = config
        .connect_raw(stream, NoTls)
        .await
        .map_err(|error| explained(&error))?;
    // It ends with its session; the error of one that was cut off is told by the next use of the client.
    tokio::spawn(connection);
    client
        .batch_execute("BEGIN")
        .await
        .map_err(|error| explained(&error))?;
    client
        .simple_query("SELECT 1")
        .await
        .map_err(|error| explained(&error))?;
    Ok(client)
}

/// How many sessions of ours the server counts; `None` if it keeps no such view.
async fn count(session: &Client) -> Option<u64> {
    let query =
        format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{APPLICATION}'");
    let rows = session.simple_query(&query).await.ok()?;
    rows.iter().find_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    })
}

fn explained(error: &tokio_postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |told| told.message().to_owned())
}

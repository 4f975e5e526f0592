//! Faults on a container of docker or podman: killed, stopped, paused, out of its network. It is known by its full id, which a new
//! container of the same name does not have, and it must carry the label that the target file names.

use super::command::{CommandError, StoredCommand};
use super::undo::Standing;
use crate::plan::component::{Act, Container};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

const SHOWS_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Characters of an id that people are shown.
const SHORT_ID: usize = 12;

/// The undo: the container runs, is not paused, and is in its network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestoreContainer {
    pub name: String,
    pub id: String,
    /// `docker` or `podman`; the arguments are added.
    pub engine: StoredCommand,
    pub wrong: Wrong,
}

/// What is wrong with a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrong {
    Down,
    Paused,
    /// With what it was known by in the network.
    Isolated {
        network: String,
        aliases: Vec<String>,
        /// The address that it had asked for, if it had.
        address: Option<String>,
    },
}

/// What the engine says of a container.
struct Seen {
    id: String,
    running: bool,
    paused: bool,
    networks: Value,
    labels: Value,
}

/// A fault on a container that is ready.
pub(super) struct OnContainer {
    act: Act,
    undo: RestoreContainer,
}

impl OnContainer {
    pub(super) async fn arm(
        container: &Container,
        act: Act,
        cli: &BTreeMap<String, PathBuf>,
    ) -> Result<OnContainer, String> {
        let engine = StoredCommand::cli(container.engine.program(), cli, &[]).map_err(text)?;
        let name = &container.name;
        let seen = inspect(&engine, name).await?;
        let seen = seen.ok_or_else(|| format!("there is no container {name}"))?;
        let (key, wanted) = &container.label;
        if seen.labels[key.as_str()].as_str() != Some(wanted) {
            return Err(format!(
                "container {name} does not carry the label {key}={wanted}: it is left alone"
            ));
        }
        if !seen.running || seen.paused {
            return Err(format!("container {name} is {seen} already"));
        }
        let wrong = match (act, &container.network) {
            (Act::Pause, _) => Wrong::Paused,
            (Act::Isolate, Some(network)) => isolated(name, network, &seen)?,
            _ => Wrong::Down,
        };
        let undo = RestoreContainer {
            name: name.clone(),
            id: seen.id,
            engine,
            wrong,
        };
        Ok(OnContainer { act, undo })
    }

    pub(super) fn touches(&self) -> String {
        format!("container {}, id {}", self.undo.name, self.undo.id)
    }

    pub(super) fn undo(&self) -> RestoreContainer {
        self.undo.clone()
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        let id = &self.undo.id;
        let arguments: &[&str] = match (self.act, &self.undo.wrong) {
            (Act::Kill { .. }, _) => &["kill", id],
            (Act::Pause, _) => &["pause", id],
            (_, Wrong::Isolated { network, .. }) => &["network", "disconnect", network, id],
            _ => &["stop", id],
        };
        self.undo.run(arguments).await
    }

    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + SHOWS_WITHIN;
        loop {
            let seen = inspect(&self.undo.engine, &self.undo.id).await?;
            let what = seen.as_ref().map_or("gone".to_owned(), Seen::to_string);
            if !seen.is_some_and(|seen| self.undo.wrong.is_mended(&seen)) {
                return Ok(format!(
                    "{} is {what}{}",
                    self.undo.called(),
                    self.undo.wrong
                ));
            }
            if Instant::now() >= end {
                return Err(format!("{} is still {what}", self.undo.called()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn isolated(name: &str, network: &str, seen: &Seen) -> Result<Wrong, String> {
    let there = &seen.networks[network];
    if there.is_null() {
        return Err(format!("container {name} is not in the network {network}"));
    }
    let aliases = there["Aliases"].as_array().into_iter().flatten();
    let address = there["IPAMConfig"]["IPv4Address"].as_str();
    Ok(Wrong::Isolated {
        network: network.to_owned(),
        // The engine adds the short id itself.
        aliases: aliases
            .filter_map(Value::as_str)
            .filter(|alias| !seen.id.starts_with(alias))
            .map(str::to_owned)
            .collect(),
        address: address.filter(|text| !text.is_empty()).map(str::to_owned),
    })
}

impl Wrong {
    fn is_mended(&self, seen: &Seen) -> bool {
        match self {
            Wrong::Down => seen.running,
            Wrong::Paused => !seen.paused,
            Wrong::Isolated { network, .. } => !seen.networks[network.as_str()].is_null(),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Down | Wrong::Paused => Ok(()),
            Wrong::Isolated { network, .. } => write!(formatter, ", out of {network}"),
        }
    }
}

impl RestoreContainer {
    /// Name and short id.
    fn called(&self) -> String {
        let short: String = self.id.chars().take(SHORT_ID).collect();
        format!("container {} ({short})", self.name)
    }

    pub(super) async fn standing(&self) -> Result<Standing, String> {
        if let Some(seen) = inspect(&self.engine, &self.id).await? {
            let what = format!("{} is {seen}", self.called());
            return Ok(match self.wrong.is_mended(&seen) {
                true => Standing::Healed(what),
                false => Standing::Stands(format!("{what}{}", self.wrong)),
            });
        }
        let successor = inspect(&self.engine, &self.name).await?;
        Ok(match successor.filter(|seen| seen.running) {
            Some(_) => Standing::Healed(format!(
                "{} was replaced by another one, which runs",
                self.called()
            )),
            None => Standing::Stands(format!(
                "{} was removed, and no other of its name runs: start it by hand",
                self.called()
            )),
        })
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let mut arguments = match &self.wrong {
            Wrong::Down => vec!["start"],
            Wrong::Paused => vec!["unpause"],
            Wrong::Isolated {
                network,
                aliases,
                address,
            } => {
                let mut words = vec!["network", "connect"];
                aliases
                    .iter()
                    .for_each(|alias| words.extend(["--alias", alias.as_str()]));
                address
                    .iter()
                    .for_each(|address| words.extend(["--ip", address.as_str()]));
                words.push(network);
                words
            }
        };
        arguments.push(&self.id);
        self.run(&arguments).await?;
        Ok(self.engine.with(&arguments).to_string())
    }

    async fn run(&self, arguments: &[&str]) -> Result<(), String> {
        let ran = self.engine.with(arguments).succeed().await;
        ran.map(|_| ()).map_err(text)
    }
}

/// `None`: there is no such container.
async fn inspect(engine: &StoredCommand, name: &str) -> Result<Option<Seen>, String> {
    let command = engine.with(&["container", "inspect", name]);
    let ran = command.run().await.map_err(text)?;
    if ran.code != Some(0) {
        let said = ran.errors.to_lowercase();
        // Docker says `No such container`, podman `no such container` or `no container with name or ID`.
        if said.contains("no such container") || said.contains("no container with name") {
            return Ok(None);
        }
        return Err(text(command.failed(&ran)));
    }
    let list: Value = serde_json::from_str(&ran.output)
        .map_err(|error| format!("{command} printed something else than JSON: {error}"))?;
    let one = &list[0];
    let id = one["Id"].as_str().filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| format!("{command} named no id"))?;
    Ok(Some(Seen {
        id: id.to_owned(),
        running: one["State"]["Running"].as_bool().unwrap_or_default(),
        paused: one["State"]["Paused"].as_bool().unwrap_or_default(),
        networks: one["NetworkSettings"]["Networks"].clone(),
        labels: one["Config"]["Labels"].clone(),
    }))
}

fn text(error: CommandError) -> String {
    error.to_string()
}

impl fmt::Display for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.running, self.paused) {
            (_, true) => "paused",
            (true, false) => "running",
            (false, false) => "down",
        })
    }
}

impl fmt::Display for RestoreContainer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let called = self.called();
        match &self.wrong {
            Wrong::Down => write!(formatter, "start {called} again"),
            Wrong::Paused => write!(formatter, "unpause {called}"),
            Wrong::Isolated { network, .. } => write!(formatter, "connect {called} to {network}"),
        }
    }
}

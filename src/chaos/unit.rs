//! Faults on a unit of systemd: killed, stopped or frozen, started or thawed again. What is so is asked of systemd, never read from an
//! exit code.

use super::command::{CommandError, StoredCommand};
use super::undo::Standing;
use crate::plan::component::Act;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

const SHOWS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const PROPERTIES: &str = "--property=LoadState,ActiveState,FreezerState,InvocationID,MainPID";

/// The undo: the unit is active, or thawed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestoreUnit {
    pub unit: String,
    /// `systemctl`; its arguments are added.
    pub systemctl: StoredCommand,
    pub frozen: bool,
    /// As it was before.
    pub before: UnitState,
}

/// What systemd says of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct UnitState {
    pub active: String,
    pub freezer: String,
    /// Another one for each start (systemd.exec(5)).
    pub invocation: String,
    pub main_pid: String,
}

/// A fault on a unit that is ready.
pub(super) struct OnUnit {
    act: Act,
    undo: RestoreUnit,
}

impl OnUnit {
    pub(super) async fn arm(
        unit: &str,
        act: Act,
        cli: &BTreeMap<String, PathBuf>,
    ) -> Result<OnUnit, String> {
        let systemctl = StoredCommand::cli("systemctl", cli, &[]).map_err(text)?;
        let before = look(&systemctl, unit).await?;
        if before.active != "active" {
            return Err(format!("{unit} is {}, not active", before.active));
        }
        if act == Act::Pause && before.freezer != "running" {
            return Err(format!("{unit} can't be frozen: {}", before.freezer));
        }
        let undo = RestoreUnit {
            unit: unit.to_owned(),
            systemctl,
            frozen: act == Act::Pause,
            before,
        };
        Ok(OnUnit { act, undo })
    }

    pub(super) fn touches(&self) -> String {
        let RestoreUnit { unit, before, .. } = &self.undo;
        format!("{unit}, {before}, invocation {}", before.invocation)
    }

    pub(super) fn undo(&self) -> RestoreUnit {
        self.undo.clone()
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        let RestoreUnit { unit, before, .. } = &self.undo;
        let now = self.undo.look().await?;
        if now.invocation != before.invocation {
            return Err(format!("{unit} was started anew while it was looked at"));
        }
        let arguments: &[&str] = match self.act {
            Act::Kill { .. } => &["kill", "--signal=SIGKILL", unit],
            Act::Pause => &["freeze", unit],
            _ => &["stop", unit],
        };
        self.undo.run(arguments).await.map(|_| ())
    }

    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + SHOWS_WITHIN;
        loop {
            let now = self.undo.look().await?;
            let bites = match self.act {
                Act::Pause => now.freezer == "frozen",
                Act::Kill { .. } => {
                    now.active != "active" || now.main_pid != self.undo.before.main_pid
                }
                _ => now.active == "inactive" || now.active == "failed",
            };
            if bites {
                return Ok(format!("{} is {now}", self.undo.unit));
            }
            if Instant::now() >= end {
                return Err(format!("{} is still {now}", self.undo.unit));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl RestoreUnit {
    pub(super) async fn standing(&self) -> Result<Standing, String> {
        let now = self.look().await?;
        let seen = format!("{} is {now}", self.unit);
        let healed = match self.frozen {
            // Whoever was started anew is not frozen.
            true => now.freezer != "frozen" && now.freezer != "freezing",
            false => now.active == "active",
        };
        Ok(match healed {
            true => Standing::Healed(seen),
            false => Standing::Stands(seen),
        })
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let verb = if self.frozen { "thaw" } else { "start" };
        self.run(&[verb, &self.unit]).await?;
        Ok(format!("systemctl {verb} {}", self.unit))
    }

    async fn look(&self) -> Result<UnitState, String> {
        look(&self.systemctl, &self.unit).await
    }

    async fn run(&self, arguments: &[&str]) -> Result<String, String> {
        self.systemctl.with(arguments).succeed().await.map_err(text)
    }
}

async fn look(systemctl: &StoredCommand, unit: &str) -> Result<UnitState, String> {
    let said = systemctl.with(&["show", PROPERTIES, unit]).succeed().await;
    let said = said.map_err(text)?;
    let value = |key: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().trim().to_owned()
    };
    if value("LoadState=") != "loaded" {
        return Err(format!("systemd knows no unit {unit}"));
    }
    Ok(UnitState {
        active: value("ActiveState="),
        freezer: value("FreezerState="),
        invocation: value("InvocationID="),
        main_pid: value("MainPID="),
    })
}

fn text(error: CommandError) -> String {
    error.to_string()
}

impl fmt::Display for UnitState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.active)?;
        if self.freezer == "frozen" {
            formatter.write_str(", frozen")?;
        }
        match self.main_pid.as_str() {
            "" | "0" => Ok(()),
            pid => write!(formatter, " as process {pid}"),
        }
    }
}

impl fmt::Display for RestoreUnit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.frozen { "thaw" } else { "start" };
        write!(formatter, "systemctl {verb} {}", self.unit)
    }
}

//! One run from start to report: plan, drive, inject, drain, settle, judge.
//!
//! Decides the order of things and what ends a run. It measures nothing and formats nothing itself.

pub mod ending;
pub mod interrupt;

use crate::plan::Plan;
use crate::plan::target::Environment;
use crate::spec::{self, Sources};
use ending::Ending;
use std::path::PathBuf;

/// What `run` and `check` are given.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArguments {
    /// The profile: who, how many, how they arrive and retry, what happens when, what is expected.
    pub profile: PathBuf,
    /// The target file, in place of the profile's own.
    #[arg(long, value_name = "FILE")]
    pub target: Option<PathBuf>,
    /// An experiment whose faults are part of the run; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub chaos: Vec<PathBuf>,
    /// The seed, in place of the profile's own.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// The lab's database: a real PostgreSQL in place of the embedded one.
    #[arg(long, value_name = "postgres://…")]
    pub database: Option<String>,
    /// A defect of the lab to switch on; may be given several times.
    #[arg(long, value_name = "DEFECT")]
    pub on: Vec<String>,
    /// Where the folder of the run is made.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Needed for a target whose environment is production.
    #[arg(long)]
    pub allow_production: bool,
}

impl RunArguments {
    fn sources(&self) -> Sources {
        Sources {
            profile: self.profile.clone(),
            target: self.target.clone(),
            chaos: self.chaos.clone(),
            seed: self.seed,
            database: self.database.clone(),
            on: self.on.clone(),
        }
    }
}

/// Why a run ended before it could be judged.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Nothing was sent: bad arguments, a bad file, a machine or a target that can't take the run.
    #[error("{0}")]
    Refused(String),
}

impl Stopped {
    fn refused(error: impl std::fmt::Display) -> Stopped {
        Stopped::Refused(error.to_string())
    }

    fn ending(&self) -> Ending {
        match self {
            Stopped::Refused(_) => Ending::Refused,
        }
    }
}

/// Reads what `run` would read and prints the plan.
#[must_use]
pub fn check(arguments: &RunArguments) -> Ending {
    match plan(arguments) {
        Ok(_) => Ending::Passed,
        Err(stopped) => tell(&stopped),
    }
}

/// The checked plan; production targets need a flag.
fn plan(arguments: &RunArguments) -> Result<Plan, Stopped> {
    let plan = spec::read(&arguments.sources()).map_err(Stopped::refused)?;
    if plan.target.environment == Environment::Production && !arguments.allow_production {
        return Err(Stopped::Refused(format!(
            "error: {} says `environment: production`; a run against it needs --allow-production",
            plan.target.file.display()
        )));
    }
    Ok(plan)
}

fn tell(stopped: &Stopped) -> Ending {
    eprintln!("{stopped}");
    stopped.ending()
}

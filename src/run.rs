//! One run from start to report: plan, drive, inject, drain, settle, judge.
//!
//! Decides the order of things and what ends a run. It measures nothing and formats nothing itself.

mod chaos_parts;
pub mod compare;
pub mod doctor;
mod drive;
mod earlier;
pub mod ending;
mod finish;
mod folder;
mod interim;
pub mod interrupt;
mod lab_process;
mod limits;
mod prepare;
mod quiet_log;
mod readmit;
mod repeat;
mod timeline;
mod trail;
mod usage;
mod watching;

use crate::chaos::dry_run::look;
use crate::plan::Plan;
use crate::plan::boundary::Likeness;
use crate::plan::target::Environment;
use crate::spec::{self, Sources, similar};
use ending::Ending;
use interrupt::Interrupt;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// What stands for no profile where none has to be given.
pub const NO_PROFILE: &str = "-";

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
    /// An earlier run: what `1.2x last` in an expectation is compared with.
    #[arg(long, value_name = "RUN")]
    pub against: Option<PathBuf>,
    /// Show the running test to Prometheus at this address, such as 127.0.0.1:9464, or at this port of 127.0.0.1.
    #[arg(long, value_name = "ADDR", value_parser = metrics_address)]
    pub metrics: Option<SocketAddr>,
    /// Needed for a target whose environment is production.
    #[arg(long)]
    pub allow_production: bool,
}

/// An address, or a port of the loopback interface.
fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => text
            .parse()
            .map_err(|_| "write an address with its port, or a port".to_owned()),
    }
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

    /// The command that runs the same again.
    fn replay(&self) -> String {
        let mut words = vec![
            "rushhour run".to_owned(),
            self.profile.display().to_string(),
        ];
        let mut option = |name: &str, value: String| words.push(format!("{name} {value}"));
        self.target
            .iter()
            .for_each(|file| option("--target", file.display().to_string()));
        self.chaos
            .iter()
            .for_each(|file| option("--chaos", file.display().to_string()));
        self.seed
            .iter()
            .for_each(|seed| option("--seed", seed.to_string()));
        self.on
            .iter()
            .for_each(|defect| option("--on", defect.clone()));
        self.against
            .iter()
            .for_each(|run| option("--against", run.display().to_string()));
        if self.database.is_some() {
            // The address may hold a password.
            option("--database", "…".to_owned());
        }
        words.join(" ")
    }
}

/// Why a run ended before it could be judged.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Nothing was sent: bad arguments, a bad file, a machine or a target that can't take the run.
    #[error("{0}")]
    Refused(String),
    /// The program itself went wrong.
    #[error("{0}")]
    Internal(String),
    /// A signal came before the load.
    #[error("ended before the load began")]
    Interrupted(Ending),
}

impl Stopped {
    fn refused(error: impl std::fmt::Display) -> Stopped {
        Stopped::Refused(error.to_string())
    }

    fn internal(error: impl std::fmt::Display) -> Stopped {
        Stopped::Internal(error.to_string())
    }

    fn ending(&self) -> Ending {
        match self {
            Stopped::Refused(_) => Ending::Refused,
            Stopped::Internal(_) => Ending::Internal,
            Stopped::Interrupted(ending) => *ending,
        }
    }
}

/// Runs a profile to its end, whatever that is; several times with seeds of their own if that is asked for.
#[must_use]
pub fn run(arguments: &RunArguments, times: Option<u32>, interrupt: &Interrupt) -> Ending {
    quiet_log::install();
    let once = |arguments: &RunArguments| {
        let mut folder = None;
        let ending = run_once(arguments, interrupt, &mut folder);
        (ending, folder)
    };
    match times {
        None => once(arguments).0,
        Some(times) => repeat::repeat(arguments, times, interrupt, once)
            .unwrap_or_else(|stopped| tell(&stopped)),
    }
}

/// Runs a profile once; `folder` is where its results are, as soon as there is one.
fn run_once(
    arguments: &RunArguments,
    interrupt: &Interrupt,
    folder: &mut Option<PathBuf>,
) -> Ending {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return tell(&Stopped::internal(error)),
    };
    let ended = runtime.block_on(async {
        interrupt.listen().map_err(Stopped::internal)?;
        let prepared = prepare::prepare(arguments, interrupt).await?;
        *folder = Some(prepared.folder.path().to_owned());
        drive::drive(prepared, interrupt).await
    });
    // A look-up that hangs in the system's resolver must not hold the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended.unwrap_or_else(|stopped| tell(&stopped))
}

/// Reads what `run` would read, prints the plan, and looks at what its faults would touch now; or, with `like`, prints the small system
/// that is similar to a large one.
#[must_use]
pub fn check(arguments: &RunArguments, like: Option<&str>) -> Ending {
    let checked = match like {
        Some(like) => similar::system(like)
            .map_err(Stopped::Refused)
            .and_then(|system| print(&Likeness(system).to_string())),
        None if arguments.profile.as_os_str() == NO_PROFILE => Err(Stopped::Refused(
            "error: check what? give a profile, or --like N,c,s,T,policy".to_owned(),
        )),
        None => dry_run(arguments),
    };
    match checked {
        Ok(()) => Ending::Passed,
        Err(stopped) => tell(&stopped),
    }
}

fn dry_run(arguments: &RunArguments) -> Result<(), Stopped> {
    let plan = plan(arguments)?;
    print(&limits::outlook(&plan)?)?;
    if plan.faults.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Stopped::internal)?;
    let looks = runtime.block_on(look(&plan));
    runtime.shutdown_timeout(Duration::from_secs(1));
    let (text, unresolved) = chaos_parts::looks_text(&looks);
    print(&text)?;
    if unresolved.is_empty() {
        return Ok(());
    }
    Err(Stopped::Refused(unresolved.join("\n")))
}

/// The checked plan; production targets need a flag.
fn plan(arguments: &RunArguments) -> Result<Plan, Stopped> {
    let mut plan = spec::read(&arguments.sources()).map_err(Stopped::refused)?;
    let against = arguments.against.as_deref().map(earlier::against);
    plan.against = against.transpose().map_err(Stopped::refused)?;
    if plan.target.environment == Environment::Production && !arguments.allow_production {
        return Err(Stopped::Refused(format!(
            "error: {} says `environment: production`; a run against it needs --allow-production",
            plan.target.file.display()
        )));
    }
    Ok(plan)
}

/// Prints to standard output; a reader that has gone is no error, a full disk is.
fn print(text: &str) -> Result<(), Stopped> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Stopped::Internal(format!(
            "error: can't write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

fn tell(stopped: &Stopped) -> Ending {
    eprintln!("{stopped}");
    stopped.ending()
}

//! Commands, help texts, the table of exit codes.
//!
//! Decides which command runs and with which arguments; what a command does stands elsewhere.

use crate::chaos::heal::{HealArguments, Healing};
use crate::chaos::proxy::ProxyArguments;
use crate::chaos::watchdog::WatchdogArguments;
use crate::chaos::{heal, hold, proxy, watchdog};
use crate::lab::{self, Defect, LabArguments, PartArguments};
use crate::plan::metric::catalogue;
use crate::run::compare::CompareArguments;
use crate::run::doctor::{self, DoctorArguments};
use crate::run::ending::Ending;
use crate::run::interrupt::Interrupt;
use crate::run::{self, RunArguments};
use crate::spec::schema::{FileKind, schema};
use clap::{Parser, Subcommand};
use std::io::Write;

/// Load generation and chaos testing for fleets of connected devices and the people who use them.
#[derive(Debug, Parser)]
#[command(name = "rushhour", version, after_help = Ending::table())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a profile against its target and judge it.
    Run {
        #[command(flatten)]
        arguments: RunArguments,
        /// Run it so many times, each with the next seed, and tell all of them together.
        #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeat: Option<u32>,
    },
    /// Read the same files as `run`, print the plan, and look up what its faults would touch; nothing is changed.
    #[command(mut_arg("profile", |profile| profile.required(false).default_value(run::NO_PROFILE)))]
    Check {
        #[command(flatten)]
        arguments: RunArguments,
        /// Print the small run that is similar to a large system: hubs, connections of its pool, how long a connect holds one, timeout,
        /// policy.
        #[arg(long, value_name = "N,c,s,T,policy")]
        like: Option<String>,
    },
    /// Compare two runs, or two repetitions: what got worse, and whether chance explains it.
    Compare(CompareArguments),
    /// Undo what a dead run left behind, from its journal alone.
    Heal(HealArguments),
    /// Start the embedded target and keep it until Ctrl-C.
    Lab(LabArguments),
    /// One process of the embedded target.
    #[command(hide = true)]
    LabPart(PartArguments),
    /// Carry links, so that faults can be put on them.
    Proxy(ProxyArguments),
    /// Reach everything that a target file names and read its probes once, before any load.
    Doctor(DoctorArguments),
    /// Print the catalogue: what expectations may measure, and what a running test exports.
    Metrics,
    /// Print the JSON Schema of a kind of file, for editors that check while you write.
    Schema {
        /// Which file.
        #[arg(value_enum)]
        kind: FileKind,
    },
    /// Hold sessions of a database for a run.
    #[command(hide = true)]
    Hold,
    /// Heal after a run that is killed.
    #[command(hide = true)]
    Watchdog(WatchdogArguments),
}

/// Runs the program with the arguments of the process and gives its exit code.
#[must_use]
pub fn main() -> u8 {
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            eprintln!("error: can't listen for Ctrl-C: {error}");
            return Ending::Internal.code();
        }
    };
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors; what can't be printed (a closed pipe) has nobody to read it.
            let _ = error.print();
            return if error.use_stderr() {
                Ending::Refused.code()
            } else {
                Ending::Passed.code()
            };
        }
    };
    if let Command::Run { arguments, .. } | Command::Check { arguments, .. } = &arguments.command
        && let Err(refused) = known_defects(arguments)
    {
        return refused.code();
    }
    match arguments.command {
        Command::Run { arguments, repeat } => run::run(&arguments, repeat, &interrupt).code(),
        Command::Check { arguments, like } => run::check(&arguments, like.as_deref()).code(),
        Command::Compare(arguments) => run::compare::compare(&arguments).code(),
        Command::Heal(arguments) => healed(heal::run(&arguments)).code(),
        Command::Lab(arguments) => lab::run(arguments),
        Command::LabPart(arguments) => lab::part(arguments),
        Command::Proxy(arguments) => match proxy::run(arguments) {
            Ok(()) => Ending::Passed.code(),
            Err(error) => {
                eprintln!("rushhour proxy: {error}");
                Ending::Refused.code()
            }
        },
        Command::Doctor(arguments) => doctor::doctor(&arguments, &interrupt).code(),
        Command::Metrics => print(&catalogue()),
        Command::Schema { kind } => print(schema(kind)),
        Command::Hold => match hold::run() {
            Ok(()) => Ending::Passed.code(),
            Err(error) => {
                eprintln!("rushhour hold: {error}");
                Ending::Internal.code()
            }
        },
        Command::Watchdog(arguments) => healed(watchdog::run(&arguments)).code(),
    }
}

/// Only here is known which defects the lab has.
fn known_defects(arguments: &RunArguments) -> Result<(), Ending> {
    let unknown = arguments
        .on
        .iter()
        .find_map(|name| name.parse::<Defect>().err());
    match unknown {
        None => Ok(()),
        Some(unknown) => {
            eprintln!("error: --on: {unknown}");
            Err(Ending::Refused)
        }
    }
}

/// Prints a text that needs nothing else. A closed pipe has nobody to read it.
fn print(text: &str) -> u8 {
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ending::Passed.code()
}

fn healed(healing: Healing) -> Ending {
    match healing {
        Healing::Done => Ending::Passed,
        Healing::Remains => Ending::Unhealed,
        Healing::Refused => Ending::Refused,
    }
}

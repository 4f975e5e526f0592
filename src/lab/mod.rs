//! The embedded target: a small but real system to break, in real processes.
//!
//! It stands where the target stands and knows nothing of the rest of the crate: it is reached over the wire only.
//!
//! ```text
//! supervisor     owns the others; nothing of the lab outlives it
//!   database     SQLite behind the PostgreSQL wire protocol, with a stated service time
//!   gateway      HTTP API, dispatch of commands, presence, authentication, the pool of connections to the database
//!   shard-1 …    MQTT brokers, each with a link to the gateway
//! ```
//!
//! Every process is this binary again, as `rushhour lab-part …`.

mod children;
mod database;
mod defect;
mod gateway;
mod lifeline;
mod listen;
mod messages;
mod pki;
mod settings;
mod shard;
mod supervisor;

pub use defect::Defect;

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `rushhour lab`: starts the embedded target and runs it until it is told to end.
#[derive(Debug, Clone, Args)]
pub struct LabArguments {
    /// Folder for `lab.json` and the pid files; without it a temporary one, removed at the end
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Number of MQTT shards
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub shards: u16,
    /// A PostgreSQL in place of the embedded database: `postgres://user@host:port/name`
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// What the shards speak: plain TCP, TLS, or TLS with client certificates. The authority is `pki/ca.pem` in the folder
    #[arg(long, value_enum, default_value_t = Tls::Off)]
    pub tls: Tls,
    /// Defect that is on from the start; may be given more than once
    #[arg(long, value_name = "DEFECT")]
    pub on: Vec<String>,
    /// Setting of the lab; may be given more than once
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The gateway reaches its database only through `db-link`, where somebody else listens
    #[arg(long)]
    pub through_link: bool,
    /// End when standard input ends
    #[arg(long)]
    pub stop_with_parent: bool,
}

/// What the shards speak below MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tls {
    /// Plain TCP
    Off,
    /// TLS with a certificate of the lab's own authority
    Server,
    /// The same, and hubs must show a certificate of that authority
    Mutual,
}

/// `rushhour lab-part`: one process of the lab, started by its supervisor.
#[derive(Debug, Clone, Args)]
pub struct PartArguments {
    #[arg(value_enum)]
    part: Part,
    /// What the supervisor decided for it, as JSON
    configuration: String,
}

/// The kinds of process that the supervisor starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Database,
    Gateway,
    Shard,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Database => "database",
            Part::Gateway => "gateway",
            Part::Shard => "shard",
        }
    }
}

/// Runs the lab until it is told to end: by SIGTERM or SIGINT, or by the end of standard input if asked for.
///
/// Gives the exit code: 0 after an orderly end, 1 if it could not start or run, 2 for arguments that are wrong.
#[must_use]
pub fn run(arguments: LabArguments) -> u8 {
    let plan = match supervisor::Plan::of(arguments) {
        Ok(plan) => plan,
        Err(problem) => {
            eprintln!("rushhour lab: {problem}");
            return 2;
        }
    };
    match supervisor::run(plan) {
        Ok(()) => 0,
        Err(problem) => {
            eprintln!("rushhour lab: {problem}");
            1
        }
    }
}

/// Runs one process of the lab until its supervisor ends. Gives the exit code.
#[must_use]
pub fn part(arguments: PartArguments) -> u8 {
    let outcome = match arguments.part {
        Part::Database => read(&arguments.configuration).and_then(database::run),
        Part::Gateway => read(&arguments.configuration).and_then(gateway::run),
        Part::Shard => read(&arguments.configuration).and_then(shard::run),
    };
    match outcome {
        Ok(()) => 0,
        Err(why) => {
            lifeline::say(&messages::ChildSays::Failed {
                why: why.to_string(),
            });
            1
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, PartError> {
    serde_json::from_str(text).map_err(|source| PartError::Configuration { source })
}

/// Why a process of the lab could not do its part.
#[derive(Debug, thiserror::Error)]
enum PartError {
    #[error(
        "lab-part is started by `rushhour lab` only; its configuration can't be read: {source}"
    )]
    Configuration { source: serde_json::Error },
    #[error("{0}")]
    Listen(#[from] listen::ListenError),
    #[error("the runtime can't start: {0}")]
    Runtime(#[from] std::io::Error),
    #[error("the embedded database can't be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Database(#[from] gateway::DatabaseError),
    #[error("{0}")]
    Tls(#[from] shard::TlsError),
}

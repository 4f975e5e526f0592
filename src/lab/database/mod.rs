//! The embedded database: SQLite in memory behind the PostgreSQL wire protocol, in its own process.
//!
//! Every query takes a stated time and so many are served at the same time; both are settings. The time passes without
//! holding a thread, so that thousands of waiting queries cost nothing else.

mod sqlite;
mod wire;

use super::messages::ChildSays;
use super::settings::Settings;
use super::{PartError, lifeline, listen};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// What the supervisor decided for the database.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Configuration {
    pub port: u16,
    pub settings: Settings,
}

/// Runs the database until its supervisor ends.
///
/// # Errors
/// If its port can't be listened on or SQLite can't be opened.
pub fn run(configuration: Configuration) -> Result<(), PartError> {
    lifeline::tie(|_| {});
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(configuration))
}

async fn serve(configuration: Configuration) -> Result<(), PartError> {
    let _interrupts = lifeline::ignore_interrupts();
    listen::raise_file_limit();
    let service = Duration::from_millis(configuration.settings.service_ms);
    let parallelism =
        usize::try_from(configuration.settings.database_parallelism).unwrap_or(usize::MAX);
    let handlers = Arc::new(wire::Handlers::new(
        sqlite::Store::open()?,
        service,
        parallelism,
    ));
    let listener = listen::listen(configuration.port)?;
    lifeline::say(&ChildSays::Listening);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                tokio::spawn(pgwire::tokio::process_socket(
                    stream,
                    None,
                    Arc::clone(&handlers),
                ));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

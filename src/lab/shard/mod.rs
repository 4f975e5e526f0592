//! One MQTT shard: a small broker of MQTT 3.1.1 and 5 for hubs, in its own process, with a link to the gateway.
//!
//! It serves QoS 0 and 1, persistent sessions, wills and retained messages, all of it in memory: what it knows ends with
//! its process. It must not know why a hub may connect or where it belongs; the gateway does.

mod admit;
mod broker;
mod ending;
mod link;
mod mailbox;
mod packet;
mod session;
mod stream;
mod tls;
mod topics;
mod wire;

pub use tls::{TlsError, TlsFiles};

use super::messages::ChildSays;
use super::settings::Settings;
use super::{PartError, lifeline, listen};
use broker::Broker;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What the supervisor decided for a shard.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Configuration {
    /// From 1.
    pub number: u16,
    /// Where hubs connect.
    pub port: u16,
    /// Where the gateway takes links of shards.
    pub gateway: u16,
    /// With it hubs speak TLS.
    pub tls: Option<TlsFiles>,
    pub settings: Settings,
}

/// Room for what sessions tell the gateway; when it is full, sessions wait.
const LINK_QUEUE: usize = 10_000;

/// Runs the shard until its supervisor ends.
///
/// # Errors
/// If its port can't be listened on, or its certificates can't be used.
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
    let acceptor = configuration.tls.as_ref().map(tls::acceptor).transpose()?;
    let listener = listen::listen(configuration.port)?;
    let (to_gateway, messages) = mpsc::channel(LINK_QUEUE);
    let broker = Arc::new(Broker::new(configuration.settings.clone(), to_gateway));
    tokio::spawn(Arc::clone(&broker).sweep());
    tokio::spawn(link::keep(configuration, Arc::clone(&broker), messages));
    lifeline::say(&ChildSays::Listening);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(session::serve(
                    stream,
                    acceptor.clone(),
                    Arc::clone(&broker),
                ));
            }
            // Out of file descriptors: those who wait in the backlog may still get their turn.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

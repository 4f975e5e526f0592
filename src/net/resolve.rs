//! Names to addresses, each looked up once in a run.
//!
//! A reconnect storm with a look-up per connect would become a storm on the resolver, which is not what is tested. Knows
//! nothing of which hosts are allowed.

use super::hosts::HostError;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

type Answer = Arc<OnceCell<Arc<[IpAddr]>>>;

/// The answers so far, by host.
#[derive(Debug, Default)]
pub(super) struct Resolver {
    answers: Mutex<HashMap<String, Answer>>,
}

impl Resolver {
    /// The addresses of a name in the system's order; of an address, itself. Never empty.
    pub(super) async fn addresses(&self, host: &str) -> Result<Arc<[IpAddr]>, HostError> {
        let answer = {
            // The map is whole at every moment, even if somebody panicked while holding it.
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(answers.entry(host.to_owned()).or_default())
        };
        answer.get_or_try_init(|| look_up(host)).await.cloned()
    }
}

async fn look_up(host: &str) -> Result<Arc<[IpAddr]>, HostError> {
    let none = |why: String| HostError::NoAddress {
        host: host.to_owned(),
        why,
    };
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(Arc::from([address]));
    }
    let found = tokio::net::lookup_host((host, 0))
        .await
        .map_err(|error| none(error.to_string()))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address.ip()) {
            addresses.push(address.ip());
        }
    }
    if addresses.is_empty() {
        Err(none("the resolver gave none".to_owned()))
    } else {
        Ok(addresses.into())
    }
}

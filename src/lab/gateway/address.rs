//! Where the gateway's database is.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio_postgres::config::Host;

/// A PostgreSQL by its URL, reached directly or through a link on this machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DatabaseAddress {
    url: String,
    link: Option<u16>,
}

/// A database address that can't be used. Says nothing of the URL itself: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error("`--database` can't be read ({source}); write it as postgres://user@host:port/name")]
    Form { source: tokio_postgres::Error },
    #[error("`--database` names no TCP host; write it as postgres://user@host:port/name")]
    NoHost,
}

impl DatabaseAddress {
    /// Reads a URL.
    ///
    /// # Errors
    /// If it is no PostgreSQL URL, or one without a host.
    pub fn parse(url: &str) -> Result<DatabaseAddress, AddressError> {
        let config = url
            .parse::<tokio_postgres::Config>()
            .map_err(|source| AddressError::Form { source })?;
        match config.get_hosts().first() {
            Some(Host::Tcp(_)) => Ok(DatabaseAddress {
                url: url.to_owned(),
                link: None,
            }),
            _ => Err(AddressError::NoHost),
        }
    }

    /// The lab's own database.
    pub fn embedded(port: u16) -> DatabaseAddress {
        DatabaseAddress {
            url: format!("postgres://lab@127.0.0.1:{port}/lab"),
            link: None,
        }
    }

    /// The same database by way of a port of this machine.
    pub fn through(self, link: u16) -> DatabaseAddress {
        DatabaseAddress {
            link: Some(link),
            ..self
        }
    }

    /// Where it is itself, whatever the way to it.
    pub fn host_and_port(&self) -> String {
        let config = self.config();
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            _ => Ipv4Addr::LOCALHOST.to_string(),
        };
        format!(
            "{host}:{}",
            config.get_ports().first().copied().unwrap_or(5432)
        )
    }

    /// Where the gateway connects to.
    pub fn way(&self) -> String {
        self.link
            .map_or_else(|| self.host_and_port(), |port| format!("127.0.0.1:{port}"))
    }

    /// How the gateway connects.
    pub fn connection(&self, limit: Duration) -> tokio_postgres::Config {
        let direct = self.config();
        let mut config = match self.link {
            None => direct,
            Some(port) => {
                let mut config = tokio_postgres::Config::new();
                config.host(Ipv4Addr::LOCALHOST.to_string()).port(port);
                direct.get_user().map(|user| config.user(user));
                direct
                    .get_password()
                    .map(|password| config.password(password));
                direct.get_dbname().map(|name| config.dbname(name));
                config
            }
        };
        config
            .connect_timeout(limit)
            .application_name("rushhour lab");
        config
    }

    fn config(&self) -> tokio_postgres::Config {
        self.url.parse().expect("it was read once before")
    }
}

//! PostgreSQL, and poolers whose console speaks its protocol, by one connection that is opened before the load and held.
//!
//! Only simple queries: a console refuses the extended protocol and closes the connection.

use super::prometheus::Series;
use super::table::{Table, console};
use crate::event::Outcome;
use crate::measure::pool::{Gap, GapReason};
use crate::net::connect::{self, Source};
use crate::net::hosts::{Endpoint, Hosts};
use std::sync::Arc;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// What a database or console is asked.
#[derive(Debug, Clone)]
pub(super) enum Asks {
    /// A user's query.
    Query(String),
    /// The preset `postgres`.
    Database,
    /// `SHOW POOLS`, `SHOW STATS`, `SHOW DATABASES`.
    Console,
}

/// Who holds connections, and how many there may be. Slots reserved for superusers are not for applications.
const IN_USE: &str = "select count(*) as in_use, \
     current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as max \
     from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()";
/// Connections opened since the statistics began, from version 14 on.
const SESSIONS: &str =
    "select datname as database, sessions from pg_stat_database where datname is not null";
/// The first version, as `server_version_num` writes it, that counts sessions.
const COUNTS_SESSIONS: u32 = 140_000;

/// A connection that is held, or is to be opened again.
pub(super) struct Session {
    config: Config,
    endpoint: Endpoint,
    hosts: Arc<Hosts>,
    asks: Asks,
    client: Option<Client>,
    counts_sessions: bool,
}

impl Session {
    /// A session to the database of this address, not yet opened.
    ///
    /// # Errors
    /// If the text is no address of a PostgreSQL; the address is not repeated, since it may hold a password.
    pub fn new(address: &str, asks: Asks, hosts: &Arc<Hosts>) -> Result<Session, String> {
        let endpoint = Endpoint::parse(address)?;
        let config = address
            .parse()
            .map_err(|error: tokio_postgres::Error| error.to_string())?;
        Ok(Session {
            config,
            endpoint,
            hosts: Arc::clone(hosts),
            asks,
            client: None,
            counts_sessions: false,
        })
    }

    /// Asks once. A connection that broke is opened again by the next reading.
    pub async fn read(&mut self) -> Result<Vec<Series>, Gap> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = None;
            self.client = Some(self.open().await?);
        }
        let said = self.ask().await;
        if said.is_err() {
            self.client = None;
        }
        said
    }

    /// Gives the connection up: an answer that did not come in time would be taken for that of the next question.
    pub fn give_up(&mut self) {
        self.client = None;
    }

    async fn open(&mut self) -> Result<Client, Gap> {
        let peers = self.hosts.peers(&self.endpoint).await;
        let peers = peers.map_err(|error| self.gap(GapReason::Unreachable, &error))?;
        let mut stream = Err(self.gap(GapReason::Unreachable, &"no address"));
        for peer in peers {
            match connect::connect(peer, Source::System).await {
                Ok(connected) => {
                    stream = Ok(connected);
                    break;
                }
                Err(error) => {
                    let reason = if connect::outcome(&error) == Outcome::TimedOut {
                        GapReason::TimedOut
                    } else {
                        GapReason::Unreachable
                    };
                    stream = Err(self.gap(reason, &error));
                }
            }
        }
        let (client, connection) = self
            .config
            .connect_raw(stream?, NoTls)
            .await
            .map_err(|error| self.refused(&error))?;
        // It ends with the client; what went wrong is told to whoever asks next.
        tokio::spawn(async move { drop(connection.await) });
        if matches!(self.asks, Asks::Database) {
            let said = self.table(&client, "show server_version_num").await?;
            let cell = said.rows.first().and_then(|row| row.first()?.clone());
            let version = cell.and_then(|text| text.parse::<u32>().ok());
            self.counts_sessions = version.is_some_and(|version| version >= COUNTS_SESSIONS);
        }
        Ok(client)
    }

    async fn ask(&self) -> Result<Vec<Series>, Gap> {
        let Some(client) = &self.client else {
            return Err(self.gap(GapReason::Unreachable, &"no connection"));
        };
        match &self.asks {
            Asks::Query(query) => Ok(self.table(client, query).await?.series(&[])),
            Asks::Database => {
                let mut series = self.table(client, IN_USE).await?.series(&[]);
                if self.counts_sessions {
                    series.extend(self.table(client, SESSIONS).await?.series(&["database"]));
                }
                Ok(series)
            }
            Asks::Console => {
                let pools = self.table(client, "SHOW POOLS").await?;
                let stats = self.table(client, "SHOW STATS").await?;
                let databases = self.table(client, "SHOW DATABASES").await?;
                Ok(console(&pools, &stats, &databases))
            }
        }
    }

    async fn table(&self, client: &Client, query: &str) -> Result<Table, Gap> {
        let said = client
            .simple_query(query)
            .await
            .map_err(|error| self.refused(&error))?;
        let mut table = Table::default();
        for message in said {
            let SimpleQueryMessage::Row(row) = message else {
                continue;
            };
            if table.columns.is_empty() {
                let names = row.columns().iter().map(|column| column.name().to_owned());
                table.columns = names.collect();
            }
            let cells = (0..row.len()).map(|place| row.get(place).map(str::to_owned));
            table.rows.push(cells.collect());
        }
        Ok(table)
    }

    fn refused(&self, error: &tokio_postgres::Error) -> Gap {
        match error.as_db_error() {
            Some(refusal) => self.gap(
                GapReason::Refused,
                &format!("{}: {}", refusal.code().code(), refusal.message()),
            ),
            None => self.gap(GapReason::Unreachable, error),
        }
    }

    fn gap(&self, reason: GapReason, why: &dyn std::fmt::Display) -> Gap {
        Gap {
            reason,
            detail: format!("{}: {why}", self.endpoint),
        }
    }
}

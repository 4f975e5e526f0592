//! The bounded pool of real connections to the database: who waits, for how long, and for what.

use super::address::DatabaseAddress;
use super::waits::Waits;
use crate::lab::settings::Settings;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row};

/// What a connection is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Schema,
    Authentication,
    Refresh,
    Command,
    Dispatch,
    Acknowledge,
    Login,
    Near,
    Unlock,
    Candidate,
    Trip,
    End,
    Status,
    Return,
    Returned,
    Booking,
}

impl Endpoint {
    pub const ALL: [Endpoint; 16] = [
        Endpoint::Schema,
        Endpoint::Authentication,
        Endpoint::Refresh,
        Endpoint::Command,
        Endpoint::Dispatch,
        Endpoint::Acknowledge,
        Endpoint::Login,
        Endpoint::Near,
        Endpoint::Unlock,
        Endpoint::Candidate,
        Endpoint::Trip,
        Endpoint::End,
        Endpoint::Status,
        Endpoint::Return,
        Endpoint::Returned,
        Endpoint::Booking,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Schema => "schema",
            Endpoint::Authentication => "authentication",
            Endpoint::Refresh => "refresh",
            Endpoint::Command => "command",
            Endpoint::Dispatch => "dispatch",
            Endpoint::Acknowledge => "acknowledge",
            Endpoint::Login => "login",
            Endpoint::Near => "near",
            Endpoint::Unlock => "unlock",
            Endpoint::Candidate => "candidate",
            Endpoint::Trip => "trip",
            Endpoint::End => "end",
            Endpoint::Status => "status",
            Endpoint::Return => "return",
            Endpoint::Returned => "returned",
            Endpoint::Booking => "booking",
        }
    }
}

/// Why the database gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("{waiting} requests wait for a database connection already; the queue is full")]
    QueueFull { waiting: u64 },
    #[error("no database connection became free within {} ms", limit.as_millis())]
    AcquireTimeout { limit: Duration },
    #[error(
        "the database at {place} can't be reached ({reason}); start it, or check host, port, user and name"
    )]
    Unreachable { place: String, reason: String },
    #[error("the database at {place} gave no answer within {} ms", limit.as_millis())]
    QueryTimeout { place: String, limit: Duration },
    #[error("the database at {place} failed: {reason}")]
    Query { place: String, reason: String },
}

/// A parameter of a query.
#[derive(Debug, Clone, Copy)]
pub enum Parameter<'a> {
    Text(&'a str),
    Number(i64),
}

impl<'a> Parameter<'a> {
    fn typed(&'a self) -> (&'a (dyn ToSql + Sync), Type) {
        match self {
            Parameter::Text(text) => (text, Type::TEXT),
            Parameter::Number(number) => (number, Type::INT8),
        }
    }
}

/// Counters of the pool, from its start.
#[derive(Debug, Default)]
pub struct PoolCounts {
    pub acquires: [AtomicU64; Endpoint::ALL.len()],
    pub waiting: AtomicU64,
    pub timeouts: AtomicU64,
    pub refused: AtomicU64,
    pub opened: AtomicU64,
    pub failed_opens: AtomicU64,
    pub lost: AtomicU64,
}

/// The pool.
pub struct Pool {
    connection: tokio_postgres::Config,
    place: String,
    size: usize,
    queue: u64,
    /// The cure: so few may wait that who waits is still wanted when its turn comes.
    is_bounded: AtomicBool,
    acquire_timeout: Duration,
    query_timeout: Duration,
    /// Time that every query takes, if the database doesn't take it by itself.
    service: Option<f64>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Client>>,
    pub waits: Waits,
    pub counts: PoolCounts,
}

/// Counts a request as waiting while it lives.
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicU64) -> Waiting<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// A pool without connections yet.
    pub fn new(
        address: &DatabaseAddress,
        size: u64,
        settings: &Settings,
        sleeps_itself: bool,
    ) -> Pool {
        let acquire_timeout = Duration::from_millis(settings.acquire_timeout_ms);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Pool {
            connection: address.connection(acquire_timeout),
            place: address.way(),
            size,
            queue: settings.pool_queue,
            is_bounded: AtomicBool::new(false),
            acquire_timeout,
            query_timeout: Duration::from_millis(settings.query_timeout_ms),
            service: (!sleeps_itself && settings.service_ms > 0)
                .then(|| settings.service_ms as f64 / 1000.0),
            permits: Arc::new(Semaphore::new(size)),
            idle: Mutex::default(),
            waits: Waits::default(),
            counts: PoolCounts::default(),
        }
    }

    /// A connection for the endpoint's use, in the order of asking.
    ///
    /// # Errors
    /// If the queue is full, none became free in time, or a new one was needed and could not be opened.
    pub async fn acquire(self: &Arc<Self>, endpoint: Endpoint) -> Result<Lease, DatabaseError> {
        let asked = Instant::now();
        let waiting = self.counts.waiting.load(Ordering::Relaxed);
        if self.permits.available_permits() == 0 && waiting >= self.longest_queue() {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return Err(DatabaseError::QueueFull { waiting });
        }
        let waiting = Waiting::begin(&self.counts.waiting);
        let taken = tokio::time::timeout(self.acquire_timeout, self.take()).await;
        drop(waiting);
        self.waits.add(asked.elapsed());
        match taken {
            Ok(Ok(lease)) => {
                self.counts.acquires[endpoint as usize].fetch_add(1, Ordering::Relaxed);
                Ok(lease)
            }
            Ok(Err(problem)) => Err(problem),
            Err(_) => {
                self.counts.timeouts.fetch_add(1, Ordering::Relaxed);
                Err(DatabaseError::AcquireTimeout {
                    limit: self.acquire_timeout,
                })
            }
        }
    }

    async fn take(self: &Arc<Self>) -> Result<Lease, DatabaseError> {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .expect("the pool's semaphore is never closed");
        let client = match self.idle_client() {
            Some(client) => client,
            None => self.open().await?,
        };
        Ok(Lease {
            client: Some(client),
            pool: Arc::clone(self),
            _permit: permit,
        })
    }

    fn idle_client(&self) -> Option<Client> {
        let mut idle = self.idle();
        while let Some(client) = idle.pop() {
            if !client.is_closed() {
                return Some(client);
            }
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().expect("nobody panics while holding it")
    }

    async fn open(&self) -> Result<Client, DatabaseError> {
        match self.connection.connect(NoTls).await {
            Ok((client, connection)) => {
                // Its end shows as `is_closed` of the client.
                tokio::spawn(connection);
                self.counts.opened.fetch_add(1, Ordering::Relaxed);
                Ok(client)
            }
            Err(error) => {
                self.counts.failed_opens.fetch_add(1, Ordering::Relaxed);
                Err(DatabaseError::Unreachable {
                    place: self.place.clone(),
                    reason: reason(&error),
                })
            }
        }
    }

    /// Keeps the pool full for ever: opens what is missing, drops what was lost.
    pub async fn replenish(self: Arc<Self>) {
        const AGAIN_AFTER: Duration = Duration::from_millis(250);
        loop {
            self.idle().retain(|client| {
                let open = !client.is_closed();
                self.counts
                    .lost
                    .fetch_add(u64::from(!open), Ordering::Relaxed);
                open
            });
            while self.idle().len() < self.permits.available_permits() {
                let Ok(permit) = self.permits.try_acquire() else {
                    break;
                };
                let Ok(Ok(client)) = tokio::time::timeout(self.acquire_timeout, self.open()).await
                else {
                    break;
                };
                self.idle().push(client);
                drop(permit);
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Bounds the queue to twice the connections, or no more.
    pub fn bound(&self, bounded: bool) {
        self.is_bounded.store(bounded, Ordering::Relaxed);
    }

    fn longest_queue(&self) -> u64 {
        if self.is_bounded.load(Ordering::Relaxed) {
            self.queue.min(2 * self.size as u64)
        } else {
            self.queue
        }
    }

    /// Connections that the pool may have.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Connections that somebody has now.
    pub fn in_use(&self) -> usize {
        self.size - self.permits.available_permits().min(self.size)
    }

    /// Connections that nobody has now.
    pub fn idle_count(&self) -> usize {
        self.idle().len()
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// A connection in use. It goes back to the pool when dropped, unless something went wrong with it.
pub struct Lease {
    client: Option<Client>,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Runs a query that gives rows. Parameters are `$1`, `$2` … in the order of their first use.
    ///
    /// # Errors
    /// If the database fails or gives no answer in time.
    pub async fn rows(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        let typed: Vec<_> = parameters.iter().map(Parameter::typed).collect();
        self.guarded(async |client| client.query_typed(sql, &typed).await)
            .await
    }

    /// Runs a statement; gives how many rows it touched.
    ///
    /// # Errors
    /// If the database fails or gives no answer in time.
    pub async fn execute(
        &mut self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, DatabaseError> {
        let typed: Vec<_> = parameters.iter().map(Parameter::typed).collect();
        self.guarded(async |client| client.execute_typed(sql, &typed).await)
            .await
    }

    /// Runs statements without parameters.
    ///
    /// # Errors
    /// If the database fails or gives no answer in time.
    pub async fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.guarded(async |client| client.batch_execute(sql).await)
            .await
    }

    /// Runs something on the connection, which counts as broken until it has come back whole.
    async fn guarded<T>(
        &mut self,
        ask: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, DatabaseError> {
        let place = || self.pool.place.clone();
        let Some(client) = self.client.take() else {
            return Err(DatabaseError::Query {
                place: place(),
                reason: "the connection was lost before".to_owned(),
            });
        };
        let limit = self.pool.query_timeout;
        let both = async {
            // Sent before the query itself and answered in the same round trip.
            let pause = async {
                if let Some(seconds) = self.pool.service {
                    client
                        .query_typed("SELECT pg_sleep($1)", &[(&seconds, Type::FLOAT8)])
                        .await?;
                }
                Ok(())
            };
            tokio::try_join!(pause, ask(&client)).map(|((), answer)| answer)
        };
        match tokio::time::timeout(limit, both).await {
            Ok(Ok(answer)) => {
                self.client = Some(client);
                Ok(answer)
            }
            Ok(Err(error)) => {
                if error.as_db_error().is_some() && !client.is_closed() {
                    self.client = Some(client);
                }
                Err(DatabaseError::Query {
                    place: place(),
                    reason: reason(&error),
                })
            }
            Err(_) => Err(DatabaseError::QueryTimeout {
                place: place(),
                limit,
            }),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.client.take() {
            Some(client) if !client.is_closed() => self.pool.idle().push(client),
            _ => {
                self.pool.counts.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

//! The gateway process: HTTP API, dispatch of commands, presence, authentication, and the pool that they share.

mod address;
mod admin;
mod api;
mod authentication;
mod book;
mod commands;
mod counts;
mod dispatch;
mod edge;
mod exposition;
mod layers;
mod pool;
mod presence;
mod rebalance;
mod riders;
mod service;
mod shard_cache;
mod shard_map;
mod shards;
mod stations;
mod statistics;
mod store;
mod tokens;
mod trips;
mod waits;

pub use address::{AddressError, DatabaseAddress};
pub use pool::DatabaseError;

use super::defect::{Defect, Switches};
use super::messages::{ChildSays, Moves, ParentSays};
use super::settings::Settings;
use super::{PartError, lifeline, listen};
use book::Book;
use counts::Counts;
use dispatch::Workers;
use pool::{Endpoint, Pool};
use presence::Presence;
use serde::{Deserialize, Serialize};
use shard_cache::ShardCache;
use shard_map::ShardMap;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, oneshot};

/// How long a database may take to be there when nobody announced that it comes later.
const DATABASE_LIMIT: Duration = Duration::from_secs(5);

/// What the supervisor decided for the gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Configuration {
    pub api: u16,
    pub metrics: u16,
    pub shard_link: u16,
    pub shards: u16,
    /// Where they listen.
    pub shard_ports: Vec<u16>,
    pub database: DatabaseAddress,
    /// The database takes its service time by itself.
    pub sleeps_itself: bool,
    /// The database may become reachable later; the lab is ready without it.
    pub wait_for_database: bool,
    pub on: Vec<String>,
    pub settings: Settings,
}

/// What all parts of the gateway share.
pub struct Gateway {
    settings: Settings,
    shards: u16,
    switches: Switches,
    pool: Arc<Pool>,
    /// Of status refreshes, unless they share the other one.
    status_pool: Arc<Pool>,
    edge: edge::Edge,
    layers: layers::Layers,
    returns: stations::Returns,
    /// So many checks of hubs may use the pool at the same time, where they are held back.
    admission: Semaphore,
    counts: Counts,
    presence: Presence,
    book: Book,
    links: shards::Links,
    map: ShardMap,
    cache: ShardCache,
    workers: Workers,
    /// Serial numbers of revoked hubs: the cache that authentication answers from.
    revoked: RwLock<HashSet<String>>,
    trips: trips::Trips,
    tokens: tokens::Tokens,
    generations: AtomicU64,
    database_ready: AtomicBool,
    /// Who waits for a shard to be started anew.
    restarts: Mutex<HashMap<u16, Vec<oneshot::Sender<Option<String>>>>>,
    started: Instant,
    /// The same moment in seconds of Unix time.
    started_unix: f64,
}

/// Runs the gateway until its supervisor ends.
///
/// # Errors
/// If a port can't be listened on or the database can't be reached.
pub fn run(configuration: Configuration) -> Result<(), PartError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let inside = runtime.enter();
    // Nobody but the edge knows where the service listens.
    let service = listen::listen(0)?;
    let (returns, taken) = stations::Returns::new();
    let gateway = Arc::new(Gateway::new(
        &configuration,
        service.local_addr()?,
        returns,
    )?);
    drop(inside);
    let for_parent = Arc::clone(&gateway);
    lifeline::tie(move |said| for_parent.restarted(said));
    runtime.block_on(async {
        tokio::spawn(service::serve(Arc::clone(&gateway), service));
        tokio::spawn(stations::book_all(Arc::clone(&gateway), taken));
        serve(gateway, configuration).await
    })
}

async fn serve(gateway: Arc<Gateway>, configuration: Configuration) -> Result<(), PartError> {
    let _interrupts = lifeline::ignore_interrupts();
    listen::raise_file_limit();
    let api = listen::listen(configuration.api)?;
    let links = listen::listen(configuration.shard_link)?;
    exposition::start(Arc::clone(&gateway), configuration.metrics)?;
    tokio::spawn(shards::accept(Arc::clone(&gateway), links));
    commands::start(&gateway);
    dispatch::start(&gateway);
    let server = tokio::spawn(api::serve(Arc::clone(&gateway), api));
    lifeline::say(&ChildSays::Listening);
    if configuration.wait_for_database {
        let later = Arc::clone(&gateway);
        tokio::spawn(async move { later.prepare_database(None).await });
    } else {
        gateway.prepare_database(Some(DATABASE_LIMIT)).await?;
    }
    gateway.wait_for_shards().await;
    lifeline::say(&ChildSays::Ready);
    server.await.map_err(std::io::Error::other)??;
    Ok(())
}

impl Gateway {
    fn new(
        configuration: &Configuration,
        service: SocketAddr,
        returns: stations::Returns,
    ) -> Result<Gateway, PartError> {
        let settings = configuration.settings.clone();
        let switches = Switches::default();
        for defect in configuration
            .on
            .iter()
            .filter_map(|name| name.parse::<Defect>().ok())
        {
            switches.set(defect, true);
        }
        let pool = |size| {
            let pool = Pool::new(
                &configuration.database,
                size,
                &settings,
                configuration.sleeps_itself,
            );
            pool.bound(switches.is_on(Defect::BoundedPoolQueue));
            Arc::new(pool)
        };
        let (attempts, timeout_ms) = (settings.gateway_attempts, settings.gateway_timeout_ms);
        let at_once = usize::try_from(settings.pool_size / 2).unwrap_or(usize::MAX);
        Ok(Gateway {
            shards: configuration.shards,
            pool: pool(settings.pool_size),
            status_pool: pool(settings.status_pool_size),
            edge: edge::Edge::new(service, attempts, timeout_ms).map_err(std::io::Error::other)?,
            layers: layers::Layers::default(),
            returns,
            admission: Semaphore::new(at_once.max(1)),
            switches,
            counts: Counts::default(),
            presence: Presence::default(),
            book: Book::new(settings.dispatch_queue),
            links: shards::Links::default(),
            map: ShardMap::new(
                configuration.shard_ports.clone(),
                Moves::UseAnotherServer.connack(),
            ),
            cache: ShardCache::new(Duration::from_secs(settings.shard_cache_s)),
            workers: Workers::new(settings.dispatch_workers),
            revoked: RwLock::default(),
            trips: trips::Trips::default(),
            tokens: tokens::Tokens::default(),
            generations: AtomicU64::new(1),
            database_ready: AtomicBool::new(false),
            restarts: Mutex::default(),
            started: Instant::now(),
            started_unix: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0.0, |since| since.as_secs_f64()),
            settings,
        })
    }

    /// Makes the tables and fills the pool, as soon as the database can be reached.
    async fn prepare_database(
        self: &Arc<Self>,
        limit: Option<Duration>,
    ) -> Result<(), DatabaseError> {
        let started = Instant::now();
        loop {
            match self.create_tables().await {
                Ok(()) => break,
                Err(problem) if limit.is_some_and(|limit| started.elapsed() > limit) => {
                    return Err(problem);
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        self.database_ready.store(true, Ordering::Relaxed);
        tokio::spawn(Arc::clone(&self.pool).replenish());
        tokio::spawn(Arc::clone(&self.status_pool).replenish());
        Ok(())
    }

    async fn create_tables(&self) -> Result<(), DatabaseError> {
        let mut lease = self.pool.acquire(Endpoint::Schema).await?;
        store::create(&mut lease, &self.settings).await?;
        let revoked = store::revoked(&mut lease).await?;
        *self
            .revoked
            .write()
            .expect("nobody panics while holding it") = revoked.into_iter().collect();
        Ok(())
    }

    async fn wait_for_shards(&self) {
        while self.links.count() < usize::from(self.shards) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn restarted(&self, said: ParentSays) {
        let ParentSays::Restarted { shard, problem } = said;
        let waiting = self
            .restarts
            .lock()
            .expect("nobody panics while holding it")
            .remove(&shard);
        for tell in waiting.unwrap_or_default() {
            let _ = tell.send(problem.clone());
        }
    }
}

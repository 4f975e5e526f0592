//! One link: listens, connects to its target for each client, counts.

use super::carry::Connection;
use super::chain::{Chain, Direction, Latency};
use super::wire::{LatencyState, LinkAddress, LinkState};
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long accepting rests when the process is out of sockets.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A named path to one address.
pub(super) struct Link {
    pub(super) address: LinkAddress,
    chain: watch::Sender<Arc<Chain>>,
    counters: Arc<Counters>,
}

/// What a link has carried.
#[derive(Debug, Default)]
pub(super) struct Counters {
    open: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    to_target_bytes: AtomicU64,
    to_client_bytes: AtomicU64,
    delayed_chunks: AtomicU64,
}

impl Counters {
    pub(super) fn carried(&self, direction: Direction, bytes: usize) {
        let count = match direction {
            Direction::ToTarget => &self.to_target_bytes,
            Direction::ToClient => &self.to_client_bytes,
        };
        count.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn held(&self, delayed: bool) {
        self.delayed_chunks
            .fetch_add(u64::from(delayed), Ordering::Relaxed);
    }
}

/// Counts a connection as open for as long as it lives.
struct Open(Arc<Counters>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Link {
    /// Listens at the link's address.
    pub(super) async fn open(mut address: LinkAddress) -> io::Result<(Arc<Link>, TcpListener)> {
        let listener = TcpListener::bind(&address.listen).await?;
        if address.listen.ends_with(":0") {
            address.listen = listener.local_addr()?.to_string();
        }
        let (chain, _) = watch::channel(Arc::new(Chain::default()));
        Ok((
            Arc::new(Link {
                address,
                chain,
                counters: Arc::default(),
            }),
            listener,
        ))
    }

    /// Accepts for ever.
    pub(super) async fn serve(self: Arc<Link>, listener: TcpListener) {
        let mut number = 0;
        loop {
            let client = match listener.accept().await {
                Ok((client, _)) => client,
                Err(error) => {
                    eprintln!(
                        "link {}: a connection could not be accepted: {error}",
                        self.address.name
                    );
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            number += 1;
            self.counters.accepted.fetch_add(1, Ordering::Relaxed);
            self.counters.open.fetch_add(1, Ordering::Relaxed);
            let open = Open(Arc::clone(&self.counters));
            tokio::spawn(Arc::clone(&self).connect(client, number, open));
        }
    }

    /// Connects onward and carries. A target that refuses is shown to the client as an RST: that is the nearest to a refusal that
    /// is left once the connection is accepted.
    async fn connect(self: Arc<Link>, client: TcpStream, number: u64, open: Open) {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.address.to)).await {
            Ok(Ok(target)) => {
                self.carry(client, target, number, Arc::clone(&open.0))
                    .await
            }
            Ok(Err(_)) | Err(_) => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                // Fails only on a socket that is dead already.
                let _ = SockRef::from(&client).set_linger(Some(Duration::ZERO));
            }
        }
    }

    async fn carry(
        &self,
        client: TcpStream,
        target: TcpStream,
        number: u64,
        counters: Arc<Counters>,
    ) {
        for socket in [&client, &target] {
            // A socket that refuses the option is dead, and is found so at once.
            let _ = socket.set_nodelay(true);
        }
        let chain = self.chain.subscribe();
        Connection {
            number,
            client,
            target,
            chain,
            counters,
        }
        .run()
        .await;
    }

    /// One round trip through this link's chain, by a connection of our own to `echo`; counted nowhere.
    pub(super) async fn canary(&self, echo: SocketAddr) -> io::Result<Duration> {
        let door = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let (outside, inside) = tokio::join!(TcpStream::connect(door.local_addr()?), door.accept());
        let (outside, (inside, _)) = (outside?, inside?);
        outside.set_nodelay(true)?;
        let target = TcpStream::connect(echo).await?;
        // Number 0 is no real connection's.
        let carried = self.carry(inside, target, 0, Arc::default());
        tokio::select! {
            reading = super::canary::round_trip(outside) => reading,
            () = carried => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the canary's connection ended")),
        }
    }

    /// Sets a latency, for existing and new connections.
    pub(super) fn set(self: &Arc<Link>, latency: Latency) {
        if let Some(until) = latency.until {
            let link = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep_until(until).await;
                link.change(|chain| chain.expire(Instant::now()));
            });
        }
        self.change(|chain| {
            chain.set(latency);
            true
        });
    }

    /// Removes a fault by its id; what it held leaves at once.
    pub(super) fn remove(&self, id: &str) -> bool {
        self.change(|chain| chain.remove(id))
    }

    fn change(&self, change: impl FnOnce(&mut Chain) -> bool) -> bool {
        self.chain
            .send_if_modified(|chain| change(Arc::make_mut(chain)))
    }

    /// The link and its numbers now.
    pub(super) fn state(&self) -> LinkState {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let now = Instant::now();
        LinkState {
            address: self.address.clone(),
            open: read(&self.counters.open),
            accepted: read(&self.counters.accepted),
            refused: read(&self.counters.refused),
            to_target_bytes: read(&self.counters.to_target_bytes),
            to_client_bytes: read(&self.counters.to_client_bytes),
            delayed_chunks: read(&self.counters.delayed_chunks),
            latencies: self
                .chain
                .borrow()
                .latencies()
                .iter()
                .map(|latency| state_of(latency, now))
                .collect(),
        }
    }
}

fn state_of(latency: &Latency, now: Instant) -> LatencyState {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    LatencyState {
        id: latency.id.clone(),
        add_us: micros(latency.add),
        jitter_us: micros(latency.jitter),
        way: latency.way,
        left_ms: latency
            .until
            .map(|until| micros(until.saturating_duration_since(now)) / 1000),
    }
}

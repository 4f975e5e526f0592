//! One link: listens, connects to its target for each client, counts. It can be switched off and on again, and be pointed elsewhere.

use super::carry::Connection;
use super::chain::{Chain, Cut, Direction, Toxic};
use super::counters::{Counters, Open};
use super::tally::Tallied;
use super::wire::{CanaryOrder, CanaryReading, FaultState, LinkAddress, LinkState};
use crate::dice::Dice;
use crate::plan::fault::CutBy;
use nix::sys::socket::{Backlog, listen};
use socket2::SockRef;
use std::collections::BTreeSet;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long accepting rests when the process is out of sockets.
const ACCEPT_REST: Duration = Duration::from_millis(50);
/// Keeps the choice of connections to cut apart from other draws under the same seed: "cut" in ASCII.
const CUT_PURPOSE: u64 = 0x0063_7574;

/// How a client sees that the target can't be reached, its connection being accepted already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreached {
    /// By RST, the nearest to a refusal that is left.
    Reset,
    /// By FIN, as Toxiproxy does: its clients expect that they can connect.
    Close,
}

/// A named path to one address.
pub(super) struct Link {
    pub(super) name: String,
    unreached: Unreached,
    chain: watch::Sender<Arc<Chain>>,
    counters: Arc<Counters>,
    place: Mutex<Place>,
    /// Numbers of the connections that are carried now.
    live: Mutex<BTreeSet<u64>>,
    /// Number of the latest connection.
    numbered: AtomicU64,
}

/// Where a link listens and where it leads.
struct Place {
    listen: String,
    to: String,
    serving: Option<Serving>,
}

/// A link that is on.
struct Serving {
    stop: CancellationToken,
    accepting: JoinHandle<()>,
}

/// Takes a connection off the list of those that live.
struct Living {
    link: Arc<Link>,
    number: u64,
}

impl Drop for Living {
    fn drop(&mut self) {
        lock(&self.link.live).remove(&self.number);
    }
}

/// A panic while holding it leaves plain data behind, which is as good as ever.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// A link that is off.
    pub(super) fn new(address: LinkAddress, unreached: Unreached) -> Arc<Link> {
        let (chain, _) = watch::channel(Arc::new(Chain::default()));
        Arc::new(Link {
            name: address.name,
            unreached,
            chain,
            counters: Arc::default(),
            place: Mutex::new(Place {
                listen: address.listen,
                to: address.to,
                serving: None,
            }),
            live: Mutex::default(),
            numbered: AtomicU64::new(0),
        })
    }

    /// Switches it on: from now on it listens, and its address is the real one.
    ///
    /// # Errors
    /// If it can't listen there.
    pub(super) async fn start(self: &Arc<Link>) -> io::Result<()> {
        if self.is_on() {
            return Ok(());
        }
        let listener = bind(&self.address().listen).await?;
        let stop = CancellationToken::new();
        let mut place = lock(&self.place);
        place.listen = listener.local_addr()?.to_string();
        place.serving = Some(Serving {
            stop: stop.clone(),
            accepting: tokio::spawn(Arc::clone(self).serve(listener, stop)),
        });
        Ok(())
    }

    /// Switches it off: nobody listens any more when this returns, and every connection ends with FIN.
    pub(super) async fn stop(&self) {
        let serving = lock(&self.place).serving.take();
        if let Some(Serving { stop, accepting }) = serving {
            stop.cancel();
            // It ends at once; one that panicked has ended, too.
            let _ = accepting.await;
        }
    }

    pub(super) fn is_on(&self) -> bool {
        lock(&self.place).serving.is_some()
    }

    /// Where it listens and where it leads, now.
    pub(super) fn address(&self) -> LinkAddress {
        let place = lock(&self.place);
        LinkAddress {
            name: self.name.clone(),
            listen: place.listen.clone(),
            to: place.to.clone(),
        }
    }

    /// Gives it another address; it must be off.
    pub(super) fn move_to(&self, listen: String, to: String) {
        let mut place = lock(&self.place);
        place.listen = listen;
        place.to = to;
    }

    /// Accepts until it is stopped.
    async fn serve(self: Arc<Link>, listener: TcpListener, stop: CancellationToken) {
        let mut chain = self.chain.subscribe();
        let mut door = Door::Open(listener);
        loop {
            let refuses = chain.borrow_and_update().refuses_all();
            door = match door.turned(!refuses) {
                Ok(door) => door,
                // Only a socket that is none any more can't be told.
                Err(error) => return self.complain("can't listen or refuse any more", &error),
            };
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                changed = chain.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                accepted = door.accept() => accepted,
            };
            match accepted {
                Ok(client) => self.accepted(client, &stop),
                Err(error) => {
                    self.complain("a connection could not be accepted", &error);
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    fn complain(&self, what: &str, error: &io::Error) {
        eprintln!("link {}: {what}: {error}", self.name);
    }

    fn accepted(self: &Arc<Link>, client: TcpStream, stop: &CancellationToken) {
        let number = self.numbered.fetch_add(1, Ordering::Relaxed) + 1;
        self.counters.accepted();
        let refused_by = self.chain.borrow().refuses(number).cloned();
        if let Some(fault) = refused_by {
            fault.tally.hit(1);
            self.counters.refused();
            reset_on_close(&client);
            return;
        }
        lock(&self.live).insert(number);
        let living = Living {
            link: Arc::clone(self),
            number,
        };
        let open = self.counters.open();
        tokio::spawn(Arc::clone(self).connect(client, living, open, stop.clone()));
    }

    /// Connects onward and carries.
    async fn connect(
        self: Arc<Link>,
        client: TcpStream,
        living: Living,
        _open: Open,
        stop: CancellationToken,
    ) {
        let to = self.address().to;
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(&to)).await {
            Ok(Ok(target)) => {
                let counters = Arc::clone(&self.counters);
                self.carry(client, target, living.number, stop, counters)
                    .await;
            }
            Ok(Err(_)) | Err(_) => {
                self.counters.refused();
                if self.unreached == Unreached::Reset {
                    reset_on_close(&client);
                }
            }
        }
    }

    async fn carry(
        &self,
        client: TcpStream,
        target: TcpStream,
        number: u64,
        stop: CancellationToken,
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
            stop,
            counters,
        }
        .run()
        .await;
    }

    /// Sends a canary through this link's chain, by a connection of our own to `echo`; counted nowhere.
    pub(super) async fn canary(
        &self,
        echo: SocketAddr,
        order: &CanaryOrder,
    ) -> io::Result<CanaryReading> {
        let door = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let (outside, inside) = tokio::join!(TcpStream::connect(door.local_addr()?), door.accept());
        let (outside, (inside, _)) = (outside?, inside?);
        outside.set_nodelay(true)?;
        let target = TcpStream::connect(echo).await?;
        let stop = CancellationToken::new();
        // Number 0 is no real connection's.
        let carried = self.carry(inside, target, 0, stop, Arc::default());
        let mut flight = std::pin::pin!(super::canary::fly(outside, order));
        Ok(tokio::select! {
            reading = &mut flight => reading,
            () = carried => flight.await,
        })
    }

    /// Sets a toxic, for existing connections, new ones, or both, as it says.
    pub(super) fn set(self: &Arc<Link>, mut toxic: Toxic) {
        toxic.born = self.numbered.load(Ordering::Relaxed);
        if let Some(until) = toxic.until {
            let link = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep_until(until).await;
                link.change(|chain| chain.expire(Instant::now()));
            });
        }
        self.change(|chain| {
            chain.set(toxic);
            true
        });
    }

    /// Removes a fault by its id; what it held leaves at once.
    pub(super) fn remove(&self, id: &str) -> bool {
        self.change(|chain| chain.remove(id))
    }

    /// Cuts `share` of the connections that live now, spread evenly over `within`: exactly the share, rounded to whole connections,
    /// a choice without replacement under `seed`. Gives their number and how many lived.
    pub(super) fn cut(
        &self,
        id: &str,
        share: f64,
        within: Duration,
        by: CutBy,
        seed: u64,
    ) -> (usize, usize) {
        let live: Vec<u64> = lock(&self.live).iter().copied().collect();
        let count = (live.len() as f64 * share.clamp(0.0, 1.0)).round() as usize;
        let mut order: Vec<(u64, u64)> = live
            .iter()
            .map(|number| (Dice::named(seed, CUT_PURPOSE, *number).bits(), *number))
            .collect();
        order.sort_unstable();
        order.truncate(count);
        let step = within
            .checked_div(u32::try_from(count).unwrap_or(u32::MAX))
            .unwrap_or_default();
        let now = Instant::now();
        let mut victims: Vec<(u64, Instant)> = order
            .iter()
            .zip(0..)
            .map(|((_, number), place)| (*number, now + step * place))
            .collect();
        victims.sort_unstable();
        let cut = Cut {
            id: id.to_owned(),
            by,
            victims,
        };
        self.change(|chain| {
            chain.cut(cut, now);
            true
        });
        (count, live.len())
    }

    fn change(&self, change: impl FnOnce(&mut Chain) -> bool) -> bool {
        self.chain
            .send_if_modified(|chain| change(Arc::make_mut(chain)))
    }

    /// What it has carried, by way.
    pub(super) fn carried_bytes(&self, direction: Direction) -> u64 {
        self.counters.bytes(direction)
    }

    /// The link and its numbers now.
    pub(super) fn state(&self) -> LinkState {
        let now = Instant::now();
        let chain = self.chain.borrow();
        let faults = chain.toxics().iter().map(|toxic| state_of(toxic, now));
        self.counters
            .state(self.address(), self.is_on(), faults.collect())
    }
}

/// The socket of a link. Shut it stays bound and does not listen, so the system refuses and nobody else can take the address.
enum Door {
    Open(TcpListener),
    Shut(std::net::TcpListener),
}

impl Door {
    fn turned(self, open: bool) -> io::Result<Door> {
        match (self, open) {
            (Door::Open(listener), false) => {
                // Out of the runtime's hands: what it knows of a socket does not survive that it stops listening.
                let listener = listener.into_std()?;
                // On Linux this ends listening and keeps the address.
                SockRef::from(&listener).shutdown(Shutdown::Read)?;
                Ok(Door::Shut(listener))
            }
            (Door::Shut(listener), true) => {
                listen(&listener, Backlog::MAXCONN)?;
                Ok(Door::Open(TcpListener::from_std(listener)?))
            }
            (door, _) => Ok(door),
        }
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        match self {
            Door::Open(listener) => listener.accept().await.map(|(client, _)| client),
            Door::Shut(_) => std::future::pending().await,
        }
    }
}

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// Listens at an address. A port that the system chose is bound once more by its number, while the first socket still holds it: the
/// system takes back what was not asked for by number when a socket stops listening.
async fn bind(listen: &str) -> io::Result<TcpListener> {
    if !listen.ends_with(":0") {
        return TcpListener::bind(listen).await;
    }
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such address");
    let any = tokio::net::lookup_host(listen).await?.next();
    let any = any.ok_or_else(unknown)?;
    let socket = |at: SocketAddr| {
        let socket = if at.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(at)?;
        io::Result::Ok(socket)
    };
    let holder = socket(any)?;
    socket(holder.local_addr()?)?.listen(BACKLOG)
}

fn reset_on_close(socket: &TcpStream) {
    // Fails only on a socket that is dead already.
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}

fn state_of(toxic: &Toxic, now: Instant) -> FaultState {
    let Tallied {
        acts_on,
        reached,
        foreign,
        hits,
    } = toxic.tally.read();
    FaultState {
        id: toxic.id.clone(),
        kind: toxic.kind,
        to_target: toxic.ways.to_target,
        to_client: toxic.ways.to_client,
        toxicity: toxic.toxicity,
        connections: toxic.connections,
        left_ms: toxic.until.map(|until| {
            let left = until.saturating_duration_since(now);
            u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
        }),
        acts_on,
        reached,
        foreign,
        hits,
    }
}

//! One link: listens, connects to its target for each client, counts. It can be switched off and on again, and be pointed elsewhere.

use super::carry::Connection;
use super::chain::{Chain, Cut, Direction, Toxic};
use super::counters::{Counters, Open};
use super::door::{Door, bind, connect, reset_on_close};
use super::tally::Tallied;
use super::wire::{CanaryOrder, CanaryReading, FaultState, LinkAddress, LinkState};
use crate::dice::Dice;
use crate::plan::fault::CutBy;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Faults that have ended are remembered, so many of a link.
const REMEMBERED: usize = 64;
/// How long accepting rests when the process is out of sockets.
const ACCEPT_REST: Duration = Duration::from_millis(50);
/// Keeps the choice of connections to cut apart from other draws under the same seed: "cut" in ASCII.
const CUT_PURPOSE: u64 = 0x0063_7574;

/// How a client sees that the target can't be reached, its connection being accepted already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Unreached {
    /// By RST, the nearest to a refusal that is left.
    Reset,
    /// By FIN, as Toxiproxy does: its clients expect that they can connect.
    Close,
}

/// A named path: to one address, or from each of several to one of its own. Faults act on all of it.
pub(super) struct Link {
    pub(super) name: String,
    unreached: Unreached,
    chain: watch::Sender<Arc<Chain>>,
    counters: Arc<Counters>,
    place: Mutex<Place>,
    /// Numbers of the connections that are carried now.
    live: Mutex<BTreeSet<u64>>,
    /// What faults that have ended came to.
    past: Mutex<VecDeque<FaultState>>,
    /// Number of the latest connection.
    numbered: AtomicU64,
}

/// Where a link listens and where it leads.
struct Place {
    addresses: Vec<LinkAddress>,
    serving: Option<Serving>,
}

/// A link that is on.
struct Serving {
    stop: CancellationToken,
    accepting: Vec<JoinHandle<()>>,
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
    /// A link that is off. There is one address at least, and all are of the same name.
    pub(super) fn new(name: &str, addresses: Vec<LinkAddress>, unreached: Unreached) -> Arc<Link> {
        let (chain, _) = watch::channel(Arc::new(Chain::default()));
        Arc::new(Link {
            name: name.to_owned(),
            unreached,
            chain,
            counters: Arc::default(),
            place: Mutex::new(Place {
                addresses,
                serving: None,
            }),
            live: Mutex::default(),
            past: Mutex::default(),
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
        let mut addresses = self.addresses();
        let mut listeners = Vec::new();
        for address in &mut addresses {
            let listener = bind(&address.listen).await?;
            address.listen = listener.local_addr()?.to_string();
            listeners.push(listener);
        }
        let stop = CancellationToken::new();
        let serve = |(listener, address): (TcpListener, &LinkAddress)| {
            tokio::spawn(Arc::clone(self).serve(listener, address.to.clone(), stop.clone()))
        };
        let accepting = listeners.into_iter().zip(&addresses).map(serve).collect();
        *lock(&self.place) = Place {
            addresses,
            serving: Some(Serving { stop, accepting }),
        };
        Ok(())
    }

    /// Switches it off: nobody listens any more when this returns, and every connection ends with FIN.
    pub(super) async fn stop(&self) {
        let serving = lock(&self.place).serving.take();
        if let Some(Serving { stop, accepting }) = serving {
            stop.cancel();
            for accepting in accepting {
                // It ends at once; one that panicked has ended, too.
                let _ = accepting.await;
            }
        }
    }

    pub(super) fn is_on(&self) -> bool {
        lock(&self.place).serving.is_some()
    }

    /// Where it listens and where it leads, now.
    pub(super) fn addresses(&self) -> Vec<LinkAddress> {
        lock(&self.place).addresses.clone()
    }

    /// The first of its addresses, or its only one.
    pub(super) fn address(&self) -> LinkAddress {
        let nowhere = LinkAddress {
            name: self.name.clone(),
            listen: String::new(),
            to: String::new(),
        };
        lock(&self.place)
            .addresses
            .first()
            .cloned()
            .unwrap_or(nowhere)
    }

    /// Gives it another address, and no more than that; it must be off.
    pub(super) fn move_to(&self, listen: String, to: String) {
        let name = self.name.clone();
        lock(&self.place).addresses = vec![LinkAddress { name, listen, to }];
    }

    /// Accepts until it is stopped.
    async fn serve(self: Arc<Link>, listener: TcpListener, to: String, stop: CancellationToken) {
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
                Ok((client, from)) => self.accepted(client, (&to, from.ip()), &stop),
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

    fn accepted(
        self: &Arc<Link>,
        client: TcpStream,
        (to, from): (&str, IpAddr),
        stop: &CancellationToken,
    ) {
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
        let counted = (living, open);
        tokio::spawn(Arc::clone(self).connect(
            client,
            (to.to_owned(), from),
            counted,
            stop.clone(),
        ));
    }

    /// Connects onward and carries.
    async fn connect(
        self: Arc<Link>,
        client: TcpStream,
        (to, from): (String, IpAddr),
        counted: (Living, Open),
        stop: CancellationToken,
    ) {
        match tokio::time::timeout(CONNECT_TIMEOUT, connect(&to, from)).await {
            Ok(Ok(target)) => {
                // Idle connections are many, and each would keep it.
                drop(to);
                let counters = Arc::clone(&self.counters);
                self.carry(client, target, counted.0.number, stop, counters)
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
                link.change(|chain| link.keep(chain.expire(Instant::now())));
            });
        }
        self.change(|chain| {
            chain.set(toxic);
            true
        });
    }

    /// Removes a fault by its id; what it held leaves at once.
    pub(super) fn remove(&self, id: &str) -> bool {
        self.change(|chain| self.keep(chain.remove(id)))
    }

    /// Keeps in mind what faults that have ended came to; false if there were none.
    fn keep(&self, ended: Vec<Arc<Toxic>>) -> bool {
        let now = Instant::now();
        let mut past = lock(&self.past);
        past.extend(ended.iter().map(|toxic| state_of(toxic, now)));
        while past.len() > REMEMBERED {
            past.pop_front();
        }
        !ended.is_empty()
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
        let past = lock(&self.past).iter().cloned().collect();
        let chain = self.chain.borrow();
        let faults = chain.toxics().iter().map(|toxic| state_of(toxic, now));
        self.counters.state(
            &self.name,
            self.addresses(),
            self.is_on(),
            (faults.collect(), past),
        )
    }
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

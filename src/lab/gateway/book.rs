//! The commands that are on their way: what stage each has reached, what wakes it, when it expires.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Before a command that could not be handed over is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is being written to the database.
    Storing,
    /// It stands in the dispatch queue, or a worker has it.
    Queued,
    /// Its hub is away.
    Waiting,
    /// It could not be handed over now, and is tried again soon.
    Parked,
    /// It went to the hub's session.
    Sent { generation: u64, delivered: bool },
}

struct Entry {
    serial: String,
    action: String,
    begun: Instant,
    expires: Instant,
    storing: u32,
    stage: Stage,
}

/// A command in a worker's hands.
pub struct Taken {
    pub serial: String,
    pub action: String,
    pub expires: Instant,
}

/// What to do with a command that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Store it, then tell `stored` or `not_stored`.
    Store,
    /// It is on its way already.
    Known,
    /// Too many are on their way.
    Full,
}

/// Commands by stage, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stages {
    pub storing: u64,
    pub queued: u64,
    pub waiting: u64,
    pub parked: u64,
    pub sent: u64,
    pub delivered: u64,
}

/// The book of commands on their way.
pub struct Book {
    inside: Mutex<Inside>,
    queue: flume::Sender<String>,
    queued: flume::Receiver<String>,
    most: usize,
}

#[derive(Default)]
struct Inside {
    live: HashMap<String, Entry>,
    by_serial: HashMap<String, Vec<String>>,
    expiries: BTreeSet<(Instant, String)>,
    parked: BTreeSet<(Instant, String)>,
}

impl Book {
    /// A book for at most so many commands at a time.
    pub fn new(most: u64) -> Book {
        // One place for each command on its way: each stands in the queue at most once.
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (queue, queued) = flume::bounded(most);
        Book {
            inside: Mutex::default(),
            queue,
            queued,
            most,
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics while holding it")
    }

    /// The queue that workers take ids from.
    pub fn queued(&self) -> flume::Receiver<String> {
        self.queued.clone()
    }

    /// A command was handed in.
    pub fn begin(&self, id: &str, serial: &str, action: &str, ttl: Duration) -> Begin {
        let mut inside = self.inside();
        if let Some(entry) = inside.live.get_mut(id) {
            if entry.stage != Stage::Storing {
                return Begin::Known;
            }
            entry.storing += 1;
            return Begin::Store;
        }
        if inside.live.len() >= self.most {
            return Begin::Full;
        }
        let begun = Instant::now();
        let expires = begun + ttl;
        let entry = Entry {
            serial: serial.to_owned(),
            action: action.to_owned(),
            begun,
            expires,
            storing: 1,
            stage: Stage::Storing,
        };
        inside.live.insert(id.to_owned(), entry);
        inside
            .by_serial
            .entry(serial.to_owned())
            .or_default()
            .push(id.to_owned());
        inside.expiries.insert((expires, id.to_owned()));
        Begin::Store
    }

    /// It is stored: it goes into the queue, unless it is there already.
    pub fn stored(&self, id: &str) {
        let mut inside = self.inside();
        if let Some(entry) = inside.live.get_mut(id)
            && entry.stage == Stage::Storing
        {
            self.enqueue(&mut inside, id);
        }
    }

    /// It isn't stored, or need not go anywhere; forgotten, unless somebody else is storing it still.
    pub fn not_stored(&self, id: &str) {
        let mut inside = self.inside();
        let Some(entry) = inside.live.get_mut(id) else {
            return;
        };
        entry.storing = entry.storing.saturating_sub(1);
        if entry.stage == Stage::Storing && entry.storing == 0 {
            inside.forget(id);
        }
    }

    /// What a worker has to know about a command from the queue; `None` if it is over.
    pub fn taken(&self, id: &str) -> Option<Taken> {
        let inside = self.inside();
        let entry = inside
            .live
            .get(id)
            .filter(|entry| entry.stage == Stage::Queued)?;
        Some(Taken {
            serial: entry.serial.clone(),
            action: entry.action.clone(),
            expires: entry.expires,
        })
    }

    /// The hub is away: the command waits for it, unless `is_back` says that it came back this moment.
    pub fn wait(&self, id: &str, is_back: impl FnOnce(&str) -> bool) {
        let mut inside = self.inside();
        let Some(entry) = inside.live.get_mut(id) else {
            return;
        };
        entry.stage = Stage::Waiting;
        // Asked under the lock: who comes back after this finds the command waiting.
        if is_back(&entry.serial) {
            self.enqueue(&mut inside, id);
        }
    }

    /// Hands the command over by `send`, unless it is over; parked if `send` says no.
    pub fn send(&self, id: &str, generation: u64, send: impl FnOnce() -> bool) -> bool {
        let mut inside = self.inside();
        let Some(entry) = inside.live.get_mut(id) else {
            return false;
        };
        if send() {
            entry.stage = Stage::Sent {
                generation,
                delivered: false,
            };
            return true;
        }
        inside.park(id);
        false
    }

    /// It could not go on now.
    pub fn park(&self, id: &str) {
        self.inside().park(id);
    }

    /// The shard could not hand it to the session: it is tried again soon, or `at_once`. False if that was known already.
    pub fn undelivered(&self, id: &str, at_once: bool) -> bool {
        let mut inside = self.inside();
        let is_sent = matches!(
            inside.live.get(id),
            Some(Entry {
                stage: Stage::Sent {
                    delivered: false,
                    ..
                },
                ..
            })
        );
        if is_sent && at_once {
            self.enqueue(&mut inside, id);
        } else if is_sent {
            inside.park(id);
        }
        is_sent
    }

    /// The hub took it; false if that is nothing new.
    pub fn delivered(&self, id: &str) -> bool {
        match self.inside().live.get_mut(id) {
            Some(Entry {
                stage: Stage::Sent { delivered, .. },
                ..
            }) => !std::mem::replace(delivered, true),
            _ => false,
        }
    }

    /// The hub takes commands again.
    pub fn hub_back(&self, serial: &str) {
        let mut inside = self.inside();
        for id in inside.ids_of(serial, |stage| stage == Stage::Waiting) {
            self.enqueue(&mut inside, &id);
        }
    }

    /// The session ended: what was sent on it and not taken is sent again when the hub is there.
    pub fn session_lost(&self, serial: &str, generation: u64, is_back: impl Fn(&str) -> bool) {
        let lost = self.inside().ids_of(serial, |stage| {
            stage
                == Stage::Sent {
                    generation,
                    delivered: false,
                }
        });
        for id in lost {
            self.wait(&id, &is_back);
        }
    }

    /// The session goes on with another connection, and so does what was sent on it.
    pub fn resumed(&self, serial: &str, old: u64, new: u64) {
        let mut inside = self.inside();
        let went = Stage::Sent {
            generation: old,
            delivered: false,
        };
        for id in inside.ids_of(serial, |stage| stage == went) {
            if let Some(entry) = inside.live.get_mut(&id) {
                entry.stage = Stage::Sent {
                    generation: new,
                    delivered: false,
                };
            }
        }
    }

    /// It is over; false if it was already.
    pub fn finish(&self, id: &str) -> bool {
        self.inside().forget(id)
    }

    /// Takes out what has expired, and puts into the queue what was parked long enough.
    pub fn tick(&self) -> Vec<String> {
        let now = Instant::now();
        let mut inside = self.inside();
        while let Some((due, id)) = inside.parked.first().cloned() {
            if due > now {
                break;
            }
            inside.parked.pop_first();
            if inside
                .live
                .get(&id)
                .is_some_and(|entry| entry.stage == Stage::Parked)
            {
                self.enqueue(&mut inside, &id);
            }
        }
        let mut expired = Vec::new();
        while let Some((due, id)) = inside.expiries.first().cloned() {
            if due > now {
                break;
            }
            inside.forget(&id);
            expired.push(id);
        }
        expired
    }

    /// How many are in which stage.
    pub fn stages(&self) -> Stages {
        let mut stages = Stages::default();
        for entry in self.inside().live.values() {
            let place = match entry.stage {
                Stage::Storing => &mut stages.storing,
                Stage::Queued => &mut stages.queued,
                Stage::Waiting => &mut stages.waiting,
                Stage::Parked => &mut stages.parked,
                Stage::Sent {
                    delivered: false, ..
                } => &mut stages.sent,
                Stage::Sent {
                    delivered: true, ..
                } => &mut stages.delivered,
            };
            *place += 1;
        }
        stages
    }

    /// For how long the oldest command that stands in the queue, or is to be tried again, has been on its way.
    pub fn oldest(&self) -> Duration {
        let now = Instant::now();
        let inside = self.inside();
        let ages = inside
            .live
            .values()
            .filter(|entry| matches!(entry.stage, Stage::Queued | Stage::Parked))
            .map(|entry| now.duration_since(entry.begun));
        ages.max().unwrap_or_default()
    }

    /// The stage of a command on its way.
    pub fn stage(&self, id: &str) -> Option<Stage> {
        self.inside().live.get(id).map(|entry| entry.stage)
    }

    fn enqueue(&self, inside: &mut Inside, id: &str) {
        if self.queue.try_send(id.to_owned()).is_err() {
            // Ids of commands that are over can still fill the queue for a moment.
            inside.park(id);
        } else if let Some(entry) = inside.live.get_mut(id) {
            entry.stage = Stage::Queued;
        }
    }
}

impl Inside {
    fn park(&mut self, id: &str) {
        if let Some(entry) = self.live.get_mut(id) {
            entry.stage = Stage::Parked;
            self.parked
                .insert((Instant::now() + AGAIN_AFTER, id.to_owned()));
        }
    }

    fn ids_of(&self, serial: &str, wanted: impl Fn(Stage) -> bool) -> Vec<String> {
        let ids = self.by_serial.get(serial).into_iter().flatten();
        ids.filter(|id| self.live.get(*id).is_some_and(|entry| wanted(entry.stage)))
            .cloned()
            .collect()
    }

    fn forget(&mut self, id: &str) -> bool {
        let Some(entry) = self.live.remove(id) else {
            return false;
        };
        self.expiries.remove(&(entry.expires, id.to_owned()));
        if let Some(ids) = self.by_serial.get_mut(&entry.serial) {
            ids.retain(|other| other != id);
            if ids.is_empty() {
                self.by_serial.remove(&entry.serial);
            }
        }
        true
    }
}

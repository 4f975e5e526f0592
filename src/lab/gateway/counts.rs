//! Everything that the gateway counts from its start, beside the pool.

use crate::lab::messages::{Cause, TlsTrouble};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that happened, to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    CommandsAccepted,
    CommandsRefused,
    CommandsDispatched,
    CommandsDelivered,
    CommandsAcknowledged,
    CommandsExpired,
    CommandsForgotten,
    CommandsUnmarked,
    AnswersUnknown,
    StatesReported,
    ChecksFromCache,
    ChecksFromDatabase,
    ChecksUnanswered,
    Rechecks,
    Reauthenticated,
    DispatchRetries,
    Logins,
    TripsStarted,
    TripsEnded,
    TripsDuplicated,
}

impl Count {
    pub const ALL: [Count; 20] = [
        Count::CommandsAccepted,
        Count::CommandsRefused,
        Count::CommandsDispatched,
        Count::CommandsDelivered,
        Count::CommandsAcknowledged,
        Count::CommandsExpired,
        Count::CommandsForgotten,
        Count::CommandsUnmarked,
        Count::AnswersUnknown,
        Count::StatesReported,
        Count::ChecksFromCache,
        Count::ChecksFromDatabase,
        Count::ChecksUnanswered,
        Count::Rechecks,
        Count::Reauthenticated,
        Count::DispatchRetries,
        Count::Logins,
        Count::TripsStarted,
        Count::TripsEnded,
        Count::TripsDuplicated,
    ];

    /// Its name in metrics and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Count::CommandsAccepted => "commands_accepted",
            Count::CommandsRefused => "commands_refused",
            Count::CommandsDispatched => "commands_dispatched",
            Count::CommandsDelivered => "commands_delivered",
            Count::CommandsAcknowledged => "commands_acknowledged",
            Count::CommandsExpired => "commands_expired",
            Count::CommandsForgotten => "commands_forgotten",
            Count::CommandsUnmarked => "commands_unmarked",
            Count::AnswersUnknown => "answers_unknown",
            Count::StatesReported => "states_reported",
            Count::ChecksFromCache => "checks_from_cache",
            Count::ChecksFromDatabase => "checks_from_database",
            Count::ChecksUnanswered => "checks_unanswered",
            Count::Rechecks => "rechecks",
            Count::Reauthenticated => "reauthentications",
            Count::DispatchRetries => "dispatch_retries",
            Count::Logins => "logins",
            Count::TripsStarted => "trips_started",
            Count::TripsEnded => "trips_ended",
            Count::TripsDuplicated => "trips_duplicated",
        }
    }
}

/// Connects and ends of sessions of one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShardCounts {
    pub connects: u64,
    pub disconnects: BTreeMap<Cause, u64>,
    pub refused: BTreeMap<Cause, u64>,
    /// Commands handed to it.
    pub dispatches: u64,
    /// Those of them that went there by an earlier shard map, while the hub is somewhere else.
    pub stale_dispatches: u64,
    /// TLS handshakes that began a session anew.
    pub full_handshakes: u64,
    /// TLS handshakes that resumed one.
    pub resumed_handshakes: u64,
    pub failed_handshakes: BTreeMap<TlsTrouble, u64>,
}

/// The counters.
#[derive(Debug, Default)]
pub struct Counts {
    counts: [AtomicU64; Count::ALL.len()],
    shards: Mutex<BTreeMap<u16, ShardCounts>>,
}

impl Counts {
    /// Counts one more.
    pub fn add(&self, what: Count) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    /// Changes the counters of a shard.
    pub fn of_shard(&self, shard: u16, change: impl FnOnce(&mut ShardCounts)) {
        change(
            self.shards
                .lock()
                .expect("nobody panics while holding it")
                .entry(shard)
                .or_default(),
        );
    }

    /// The counters of every shard that has been heard of.
    pub fn shards(&self) -> BTreeMap<u16, ShardCounts> {
        self.shards
            .lock()
            .expect("nobody panics while holding it")
            .clone()
    }
}

//! The defects of the postmortems, and the cures for them, as switches: which there are, and whether each is on.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// One defect or cure that can be switched on and off while the lab runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Hubs are authenticated and re-checked by a query to the database, through the pool that commands use
    /// (2026-07-24).
    AuthFromDatabase,
    /// A check that takes longer than `auth_expires_after_ms` counts as an expired session: the shard closes the
    /// connection (2026-07-24).
    SlowAuthExpiresSession,
    /// Dispatch believes where it found a hub before, whatever the generation of the shard map is now (2026-07-09).
    ShardMapIgnoresGeneration,
    /// A command that a shard rejected stands in the dispatch queue again at once (2026-07-09).
    ImmediateDispatchRetry,
    /// Commands are accepted and stored, and never handed to a hub: the proof that a verdict notices.
    AcceptsAndForgets,
    /// An unlock asks for every candidate bike over a connection of its own while it holds one (2026-07-18).
    ConnectionPerCandidate,
    /// Refreshes of stations' status take their connections from the pool that unlocks use (2026-07-18).
    SharedPool,
    /// A return that is sent again is booked again.
    ReturnsWithoutIdempotency,
    /// The station service fails every request: the proof that retries of all layers multiply.
    StationQueriesFail,
    /// A cure: no more requests may wait for a connection than twice as many as there are.
    BoundedPoolQueue,
    /// A cure: checks of hubs in the database use at most half of the pool at the same time.
    AuthenticationAdmission,
    /// A cure: refreshes of stations' status are turned away before they need a connection.
    ShedStatus,
}

/// A name that no defect has.
#[derive(Debug, thiserror::Error)]
#[error("there is no defect `{name}`; known are {}", names())]
pub struct UnknownDefect {
    name: String,
}

impl Defect {
    /// Every defect.
    pub const ALL: [Defect; 12] = [
        Defect::AuthFromDatabase,
        Defect::SlowAuthExpiresSession,
        Defect::ShardMapIgnoresGeneration,
        Defect::ImmediateDispatchRetry,
        Defect::AcceptsAndForgets,
        Defect::ConnectionPerCandidate,
        Defect::SharedPool,
        Defect::ReturnsWithoutIdempotency,
        Defect::StationQueriesFail,
        Defect::BoundedPoolQueue,
        Defect::AuthenticationAdmission,
        Defect::ShedStatus,
    ];

    /// The name by which it is switched.
    pub fn name(self) -> &'static str {
        match self {
            Defect::AuthFromDatabase => "auth-from-database",
            Defect::SlowAuthExpiresSession => "slow-auth-expires-session",
            Defect::ShardMapIgnoresGeneration => "shard-map-ignores-generation",
            Defect::ImmediateDispatchRetry => "immediate-dispatch-retry",
            Defect::AcceptsAndForgets => "accepts-and-forgets",
            Defect::ConnectionPerCandidate => "connection-per-candidate",
            Defect::SharedPool => "shared-pool",
            Defect::ReturnsWithoutIdempotency => "returns-without-idempotency",
            Defect::StationQueriesFail => "station-queries-fail",
            Defect::BoundedPoolQueue => "bounded-pool-queue",
            Defect::AuthenticationAdmission => "authentication-admission",
            Defect::ShedStatus => "shed-status",
        }
    }
}

fn names() -> String {
    Defect::ALL.map(|defect| format!("`{defect}`")).join(", ")
}

impl fmt::Display for Defect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Defect {
    type Err = UnknownDefect;

    fn from_str(name: &str) -> Result<Defect, UnknownDefect> {
        Defect::ALL
            .into_iter()
            .find(|defect| defect.name() == name)
            .ok_or_else(|| UnknownDefect {
                name: name.to_owned(),
            })
    }
}

/// Which defects are on.
#[derive(Debug, Default)]
pub struct Switches([AtomicBool; Defect::ALL.len()]);

impl Switches {
    /// Whether the defect is on now.
    pub fn is_on(&self, defect: Defect) -> bool {
        self.0[defect as usize].load(Ordering::Relaxed)
    }

    /// Switches the defect on or off.
    pub fn set(&self, defect: Defect, on: bool) {
        self.0[defect as usize].store(on, Ordering::Relaxed);
    }
}

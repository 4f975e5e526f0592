//! Whether two runs asked the same of their target.

use super::{IssuerGroup, Plan, RiderGroup};

/// FNV-1a, 64 bits (Fowler, Noll, Vo): good enough to tell plans apart, and no secret depends on it.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

impl Plan {
    /// The same for two plans with the same agents, arrivals, times, triggers and faults. Seed, target and expectations may differ: they are
    /// what runs are compared for.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let riders = self.riders.iter().cloned().map(|group| RiderGroup {
            arrivals: group.arrivals.evened(),
            ..group
        });
        let issuers = self.issuers.iter().cloned().map(|group| IssuerGroup {
            arrivals: group.arrivals.evened(),
            ..group
        });
        let load = format!(
            "{:?}",
            (
                (self.duration, self.baseline, self.sustain),
                (&self.hubs, &self.docks),
                (riders.collect::<Vec<_>>(), issuers.collect::<Vec<_>>()),
                (&self.triggers, &self.faults),
            )
        );
        let hash = load.bytes().fold(BASIS, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(PRIME)
        });
        format!("{hash:016x}")
    }
}

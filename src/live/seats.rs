//! On which shard each hub stands now, and the ids that commands have been given, for whoever has to know it at once: hubs, issuers and
//! ghosts.

use super::given::Given;
use crate::event::{Event, Offset};
use crate::plan::Plan;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of the time in a seat: microseconds for 35 years.
const TIME_BITS: u32 = 50;
const STANDS: u64 = 1 << 63;
const KNOWN: u64 = 1 << 62;

/// One word for each hub, so that neither telling nor reading ever waits.
#[derive(Debug)]
pub struct Seats {
    groups: Vec<Box<[AtomicU64]>>,
    given: Given,
}

/// Where a hub is, or was last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    pub shard: usize,
    /// The session stands; otherwise it has ended.
    pub stands: bool,
    /// Since then.
    pub since: Offset,
}

impl Seats {
    /// Nobody is known to be anywhere.
    #[must_use]
    pub fn of(plan: &Plan) -> Seats {
        let group = |count: u32| (0..count).map(|_| AtomicU64::new(0)).collect();
        Seats {
            groups: plan.hubs.iter().map(|hubs| group(hubs.count)).collect(),
            given: Given::of(plan),
        }
    }

    /// Ids that the target has given to commands.
    pub(super) fn given(&self) -> &Given {
        &self.given
    }

    /// Takes what a hub tells of its session; other events are ignored.
    pub fn take(&self, event: &Event) {
        if let Event::Standing {
            group,
            hub,
            shard,
            stands,
            at,
        } = event
            && let Some(seat) = self.seat(usize::from(*group), u64::from(*hub))
        {
            let stands = if *stands { STANDS } else { 0 };
            // A device has at most 4,096 shards that fit; what does not is another hub's affair in no case.
            let shard = u64::from(*shard & 0x0fff) << TIME_BITS;
            let time = at.0 & ((1 << TIME_BITS) - 1);
            seat.store(KNOWN | stands | shard | time, Ordering::Relaxed);
        }
    }

    /// Where hub `hub` of a group is; `None` as long as it has stood nowhere.
    #[must_use]
    pub fn of_hub(&self, group: usize, hub: u64) -> Option<Seat> {
        let word = self.seat(group, hub)?.load(Ordering::Relaxed);
        (word & KNOWN != 0).then(|| Seat {
            shard: usize::try_from((word >> TIME_BITS) & 0x0fff).unwrap_or_default(),
            stands: word & STANDS != 0,
            since: Offset(word & ((1 << TIME_BITS) - 1)),
        })
    }

    fn seat(&self, group: usize, hub: u64) -> Option<&AtomicU64> {
        self.groups.get(group)?.get(usize::try_from(hub).ok()?)
    }
}

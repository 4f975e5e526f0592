//! Which hub stands on which shard, who moved, and what moving did to commands.
//!
//! Fed by what hubs tell of their own sessions and, where the target file allows it, by what ghost subscribers see.

use super::ledger::State;
use crate::event::{CommandId, Event, Offset, ReferenceVerdict};
use crate::plan::routing::hub_of;
use crate::plan::{HubGroup, Plan};
use std::collections::BTreeMap;

/// Distinct names of other servers that are kept; more are counted under [`OTHERS`].
const MOST_REFERENCES: usize = 32;
/// What stands for the names that are not kept.
pub const OTHERS: &str = "others";
/// No shard yet.
const NOWHERE: u16 = u16::MAX;

/// Where hubs are, over the whole run so far.
#[derive(Debug, Clone)]
pub struct Places {
    /// Parallel to `Plan::hubs`.
    pub groups: Vec<GroupPlaces>,
    /// By row of the target's devices and of their shards: the ghosts that have watched.
    ghosts: BTreeMap<(u16, u16), Watch>,
}

/// How well the ghost on one shard has watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Watch {
    /// How often it stopped watching, for so long in all.
    gaps: u64,
    blind_us: u64,
    /// Since when it does not watch; `None` while it does.
    blind_since: Option<Offset>,
}

/// How well the ghosts of a device have watched, all of its shards together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watched {
    /// How often one stopped watching.
    pub gaps: u64,
    /// For how long one did not watch, the times of all added up.
    pub blind_us: u64,
}

/// One group of hubs.
#[derive(Debug, Clone, Default)]
pub struct GroupPlaces {
    /// Hubs that stand on each shard now; empty where the device has one shard.
    pub standing: Vec<u32>,
    /// Sessions that began on another shard than the hub's session before.
    pub moves: u64,
    /// Hubs that moved at least once.
    pub moved_hubs: u64,
    /// Commands that were due after their hub had left its first shard, by the state in which they were first settled.
    pub commands: [u64; State::ALL.len()],
    /// What became of the names of other servers, with how often.
    pub references: BTreeMap<(ReferenceVerdict, String), u64>,
    pub stale: Stale,
    /// `standing` at the end of every closed second of the clock.
    pub by_second: Vec<Box<[u32]>>,
    /// By hub.
    hubs: Vec<HubPlace>,
}

/// Commands that arrived on a shard where their hub no longer was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stale {
    pub seen: u64,
    /// The longest time from a hub's standing elsewhere to such a command, in microseconds.
    pub longest_after_us: u64,
    /// By the issuer group, and the second of the clock in which they were seen.
    pub by_second: BTreeMap<(u16, u64), u64>,
}

#[derive(Debug, Clone, Copy)]
struct HubPlace {
    shard: u16,
    left: Offset,
    /// When it left its first shard, once it stands on another.
    moved: Option<Offset>,
}

impl Places {
    pub(super) fn new(plan: &Plan) -> Places {
        let group = |group: &HubGroup| {
            let shards = plan.target.devices[group.device].shards.len();
            if shards < 2 {
                return GroupPlaces::default();
            }
            let nowhere = HubPlace {
                shard: NOWHERE,
                left: Offset::ZERO,
                moved: None,
            };
            GroupPlaces {
                standing: vec![0; shards],
                hubs: vec![nowhere; group.count as usize],
                ..GroupPlaces::default()
            }
        };
        Places {
            groups: plan.hubs.iter().map(group).collect(),
            ghosts: BTreeMap::new(),
        }
    }

    /// How well the ghosts of this device have watched until `end`; `None` if there were none.
    #[must_use]
    pub fn watched(&self, device: usize, end: Offset) -> Option<Watched> {
        let mut all: Option<Watched> = None;
        for (_, watch) in self
            .ghosts
            .iter()
            .filter(|((row, _), _)| usize::from(*row) == device)
        {
            let open = watch.blind_since.filter(|since| *since < end);
            let sum = all.get_or_insert_default();
            sum.gaps += watch.gaps + u64::from(open.is_some());
            sum.blind_us += watch.blind_us + open.map_or(0, |since| end.0 - since.0);
        }
        all
    }

    /// Takes an event about places; others are ignored. They are to come in the order of their times.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Standing {
                group,
                hub,
                shard,
                stands,
                at,
            } => {
                if let Some(row) = self.groups.get_mut(usize::from(*group)) {
                    row.stands(*hub, *shard, *stands, *at);
                }
            }
            Event::Reference {
                group,
                text,
                verdict,
                ..
            } => {
                if let Some(row) = self.groups.get_mut(usize::from(*group)) {
                    row.reference(text, *verdict);
                }
            }
            Event::Stale {
                group,
                command,
                after_us,
                at,
                ..
            } => {
                if let Some(row) = self.groups.get_mut(usize::from(*group)) {
                    let stale = &mut row.stale;
                    stale.seen += 1;
                    stale.longest_after_us = stale.longest_after_us.max(*after_us);
                    let second = (command.issuer, at.second());
                    *stale.by_second.entry(second).or_default() += 1;
                }
            }
            Event::Ghost {
                device,
                shard,
                watches,
                at,
            } => self
                .ghosts
                .entry((*device, *shard))
                .or_default()
                .turns(*watches, *at),
            _ => {}
        }
    }

    /// A second is closed.
    pub(super) fn second(&mut self) {
        for row in self
            .groups
            .iter_mut()
            .filter(|row| !row.standing.is_empty())
        {
            row.by_second.push(row.standing.clone().into_boxed_slice());
        }
    }

    /// A command of a group for this hub was settled. Gives the shard where the hub is or was last, if it is known.
    pub(super) fn settled(
        &mut self,
        plan: &Plan,
        id: CommandId,
        due: Option<Offset>,
        state: State,
    ) -> Option<usize> {
        let to = plan.issuers.get(usize::from(id.issuer))?.to;
        let count = plan.hubs.get(to)?.count;
        let row = self.groups.get_mut(to)?;
        let hub = usize::try_from(hub_of(plan.seed, id, count)).ok()?;
        let place = row.hubs.get(hub)?;
        if let (Some(due), Some(moved)) = (due, place.moved)
            && due >= moved
        {
            row.commands[state as usize] += 1;
        }
        Some(place.shard)
            .filter(|shard| *shard != NOWHERE)
            .map(usize::from)
    }
}

impl Watch {
    fn turns(&mut self, watches: bool, at: Offset) {
        if !watches {
            self.blind_since.get_or_insert(at);
        } else if let Some(since) = self.blind_since.take() {
            self.gaps += 1;
            self.blind_us += at.0.saturating_sub(since.0);
        }
    }
}

impl GroupPlaces {
    fn stands(&mut self, hub: u32, shard: u16, stands: bool, at: Offset) {
        let (Some(place), Some(standing)) = (
            self.hubs.get_mut(hub as usize),
            self.standing.get_mut(usize::from(shard)),
        ) else {
            return;
        };
        if !stands {
            *standing = standing.saturating_sub(1);
            place.left = at;
            return;
        }
        *standing += 1;
        if place.shard != NOWHERE && place.shard != shard {
            self.moves += 1;
            if place.moved.is_none() {
                self.moved_hubs += 1;
                place.moved = Some(place.left);
            }
        }
        place.shard = shard;
    }

    fn reference(&mut self, text: &str, verdict: ReferenceVerdict) {
        let known = self.references.contains_key(&(verdict, text.to_owned()));
        let text = if known || self.references.len() < MOST_REFERENCES {
            text
        } else {
            OTHERS
        };
        *self
            .references
            .entry((verdict, text.to_owned()))
            .or_default() += 1;
    }
}

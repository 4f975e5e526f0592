//! What the sessions of a world went through.

use super::world::World;
use rushhour::event::{Event, HubChange, Offset};
use std::collections::BTreeMap;

impl World {
    /// How many hubs are connected.
    pub fn connected(&self) -> i32 {
        let change = |event: &Event| match event {
            Event::Hub {
                change: HubChange::Connected | HubChange::Freed,
                ..
            } => 1,
            Event::Hub {
                change: HubChange::Lost(_) | HubChange::Left | HubChange::Stuck,
                ..
            } => -1,
            _ => 0,
        };
        self.told.iter().map(|(_, event)| change(event)).sum()
    }

    /// When hub changes of this kind were told, by hub.
    pub fn changes(&self, wanted: HubChange) -> BTreeMap<u64, Vec<Offset>> {
        self.changes_like(|change| change == wanted)
    }

    /// When sessions were lost, for whatever cause, by hub.
    pub fn lost(&self) -> BTreeMap<u64, Vec<Offset>> {
        self.changes_like(HubChange::is_lost)
    }

    fn changes_like(&self, wanted: impl Fn(HubChange) -> bool) -> BTreeMap<u64, Vec<Offset>> {
        let mut by_hub: BTreeMap<u64, Vec<Offset>> = BTreeMap::new();
        for (id, event) in &self.told {
            if let Event::Hub { change, at, .. } = event
                && wanted(*change)
            {
                by_hub.entry(id.index).or_default().push(*at);
            }
        }
        by_hub
    }
}

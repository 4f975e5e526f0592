//! The shard map: which hub belongs on which shard, and the generation that says which map is meant.
//!
//! The first map holds nobody to anything: a hub belongs where it connects. A hub that was moved belongs where it was moved
//! to, until the next map says something else.

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard};

/// A hub that the map moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Where it was under the first map.
    pub first: u16,
    /// Where it belongs now.
    pub now: u16,
}

/// The map.
#[derive(Debug)]
pub struct ShardMap {
    /// The port of each shard.
    ports: Vec<u16>,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    generation: u64,
    moves: HashMap<String, Move>,
    /// The reason code by which a hub is turned away from a shard that isn't its own.
    code: u8,
    linked: BTreeSet<u16>,
}

impl ShardMap {
    /// The first map of shards that listen on these ports.
    pub fn new(ports: Vec<u16>, code: u8) -> ShardMap {
        ShardMap {
            ports,
            inside: Mutex::new(Inside {
                generation: 1,
                moves: HashMap::new(),
                code,
                linked: BTreeSet::new(),
            }),
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics while holding it")
    }

    /// From 1; every change is one more.
    pub fn generation(&self) -> u64 {
        self.inside().generation
    }

    /// Hubs that are not where they were under the first map.
    pub fn moved(&self) -> usize {
        let inside = self.inside();
        let moved = |hub: &&Move| hub.now != hub.first;
        inside.moves.values().filter(moved).count()
    }

    /// A shard is linked. Not for the first time it is a new one in the old one's place, and the map changes.
    pub fn linked(&self, shard: u16) {
        let mut inside = self.inside();
        if !inside.linked.insert(shard) {
            inside.generation += 1;
        }
    }

    /// The next shard behind this one.
    pub fn behind(&self, shard: u16) -> u16 {
        let shards = u16::try_from(self.ports.len()).unwrap_or(u16::MAX);
        shard % shards + 1
    }

    /// Moves hubs from the shard that is named first to the one that is named second, by a new map. Gives its generation.
    pub fn rebalance(&self, hubs: &[(String, u16, u16)], code: u8) -> u64 {
        let mut inside = self.inside();
        inside.generation += 1;
        inside.code = code;
        for (serial, from, to) in hubs {
            let first = inside.moves.get(serial).map_or(*from, |hub| hub.first);
            let hub = Move { first, now: *to };
            inside.moves.insert(serial.clone(), hub);
        }
        inside.generation
    }

    /// The first map again, as a new one. Gives its generation and where each hub that was moved belongs.
    pub fn undo(&self, code: u8) -> (u64, HashMap<String, u16>) {
        let mut inside = self.inside();
        inside.generation += 1;
        inside.code = code;
        let mut back = HashMap::new();
        for (serial, hub) in &mut inside.moves {
            if hub.now != hub.first {
                hub.now = hub.first;
                back.insert(serial.clone(), hub.first);
            }
        }
        (inside.generation, back)
    }

    /// The shard that the map holds the hub to, if it isn't this one, and the reason code that says so.
    pub fn elsewhere(&self, serial: &str, shard: u16) -> Option<(u8, u16)> {
        let inside = self.inside();
        let belongs = inside.moves.get(serial)?.now;
        (belongs != shard).then_some((inside.code, belongs))
    }

    /// Where a hub has to connect, and by the map of which generation: where it was moved to, else where it is, else
    /// where its serial number says.
    pub fn shard_of(&self, serial: &str, is_on: Option<u16>) -> (u16, u64) {
        let inside = self.inside();
        let shards = self.ports.len().max(1) as u64;
        let by_number = || u16::try_from(hash(serial) % shards).unwrap_or(0) + 1;
        let shard = inside
            .moves
            .get(serial)
            .map(|hub| hub.now)
            .or(is_on)
            .unwrap_or_else(by_number);
        (shard, inside.generation)
    }

    /// The port of a shard.
    pub fn port(&self, shard: u16) -> u16 {
        let at = usize::from(shard).saturating_sub(1);
        self.ports.get(at).copied().unwrap_or(0)
    }

    /// `host:port` of a shard.
    pub fn address(&self, shard: u16) -> String {
        format!("{}:{}", Ipv4Addr::LOCALHOST, self.port(shard))
    }
}

/// A number of the text that is the same in every run (FNV-1a).
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The place of a text in an order that has nothing to do with how it begins, the same in every run: FNV-1a keeps texts together that
/// begin alike, so the finalizer of MurmurHash3 (64 bits) follows it.
pub fn lot(text: &str) -> u64 {
    let mut lot = hash(text);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        lot = (lot ^ (lot >> 33)).wrapping_mul(factor);
    }
    lot ^ (lot >> 33)
}

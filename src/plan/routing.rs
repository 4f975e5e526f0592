//! Which hub a command is for, and to which shard a hub belongs: known from the plan alone.

use super::Plan;
use super::identity::{IdentitySource, Rows};
use super::target::{Device, Find};
use super::{HubGroup, Template};
use crate::dice::Dice;
use crate::event::CommandId;
use std::sync::Arc;

/// Keeps the choice of a hub apart from other draws of the seed.
const CHOICE_OF_HUB: u64 = 0x6875_6273;

/// The index within its group of the hub that command `id` is for: uniform over the `count` hubs of the group.
#[must_use]
pub fn hub_of(seed: u64, id: CommandId, count: u32) -> u64 {
    Dice::named(
        seed,
        (CHOICE_OF_HUB << 32) | u64::from(id.issuer),
        id.number,
    )
    .below(u64::from(count))
}

/// The row of the shard that hub `index` of a group belongs to; the first where the file alone does not say it.
#[must_use]
pub fn shard_of(device: &Device, hubs: &HubGroup, index: u64) -> usize {
    match &device.find {
        Find::Hash(template) => {
            let text = rendered(template, hubs, index);
            let shards = device.shards.len().max(1) as u64;
            usize::try_from(fnv_1a(text.as_bytes()) % shards).unwrap_or_default()
        }
        Find::List(Some(template)) => {
            let text = rendered(template, hubs, index);
            let mut names = device.shards.iter();
            names
                .position(|(name, _)| *name == text)
                .unwrap_or_default()
        }
        Find::Balancer | Find::List(None) | Find::Ask(_) | Find::Redirect => 0,
    }
}

/// The first hub of a group that is to begin with a shard which its device does not have, and what it calls that shard.
#[must_use]
pub fn unknown_shard(device: &Device, hubs: &HubGroup) -> Option<(u64, String)> {
    let Find::List(Some(template)) = &device.find else {
        return None;
    };
    (0..u64::from(hubs.count))
        .map(|index| (index, rendered(template, hubs, index)))
        .find(|(_, text)| device.shards.iter().all(|(name, _)| name != text))
}

fn rendered(template: &Template, hubs: &HubGroup, index: u64) -> String {
    let mut text = String::new();
    let rendered = template.render_into(&mut text, |name, out| match name {
        "serial" => {
            out.push_str(&hubs.serial(index));
            true
        }
        name => hubs
            .column(index, name)
            .map(|value| out.push_str(value))
            .is_some(),
    });
    debug_assert!(
        rendered.is_ok(),
        "other names are refused when the target file is read"
    );
    text
}

impl Plan {
    /// The row of the device's identities that the connections of issuers to its broker use: the first that no hub has.
    #[must_use]
    pub fn publisher_rows(&self, device: usize) -> Option<Rows> {
        let set = self.target.devices.get(device)?.identity?;
        let of_hubs = self.hubs.iter().filter_map(|group| group.identity.as_ref());
        let first = of_hubs
            .filter(|rows| rows.set == set)
            .map(|rows| rows.first + rows.count)
            .max();
        let table = match &self.target.identities.get(set)?.source {
            IdentitySource::Csv(table) => Some(Arc::clone(table)),
            IdentitySource::Issue(_) => None,
        };
        Some(Rows {
            set,
            first: first.unwrap_or_default(),
            count: 1,
            table,
        })
    }

    /// The row in `Device::shards` of the hub that a command is for; `None` for a command of no group of the plan.
    #[must_use]
    pub fn shard_of_command(&self, id: CommandId) -> Option<usize> {
        let group = self
            .hubs
            .get(self.issuers.get(usize::from(id.issuer))?.to)?;
        let device = self.target.devices.get(group.device)?;
        let hub = hub_of(self.seed, id, group.count);
        Some(shard_of(device, group, hub))
    }
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): the hash by which target files say where a hub belongs.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::fnv_1a;

    /// Vectors of the authors (draft-eastlake-fnv, appendix).
    #[test]
    fn hashes_as_the_authors_say() {
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}

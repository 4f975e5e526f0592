//! What a share of a group of hubs does by itself, at once or one after the other: renew certificates, authenticate anew.

use super::fault::How;
use crate::dice::Dice;
use std::time::Duration;

/// Which hubs of a group take part, and when each has its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wave {
    /// Row in `Plan::hubs`.
    pub group: usize,
    /// 0 to 1; which hubs is drawn from the seed.
    pub share: f64,
    /// The turns lie within this time; zero means at once.
    pub within: Duration,
    pub jitter: Jitter,
}

/// How the turns lie within their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// At even distances, in an order drawn from the seed.
    None,
    /// Each uniformly within the time, drawn from the seed.
    Full,
}

impl Wave {
    /// Which of `count` hubs have a turn, with the time of each from the trigger's own, the earliest first.
    ///
    /// Exactly the share, rounded to whole hubs; a random choice without replacement under `seed`.
    #[must_use]
    pub fn turns(&self, seed: u64, count: u32) -> Vec<(u32, Duration)> {
        let chosen = chosen(seed, count, self.share);
        let taking_part = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
        let step = self.within.checked_div(taking_part).unwrap_or_default();
        let mut turns: Vec<(u32, Duration)> = match self.jitter {
            Jitter::None => chosen
                .into_iter()
                .zip(0..)
                .map(|(index, place)| (index, step * place))
                .collect(),
            Jitter::Full => chosen
                .into_iter()
                .map(|index| {
                    let mut dice = Dice::named(seed, MOMENT, u64::from(index));
                    (index, dice.between(Duration::ZERO, self.within))
                })
                .collect(),
        };
        turns.sort_by_key(|(_, at)| *at);
        turns
    }
}

/// A share of `count` hubs, rounded to whole ones, in an order drawn from `seed`.
pub(super) fn chosen(seed: u64, count: u32, share: f64) -> Vec<u32> {
    let wanted = (f64::from(count) * share.clamp(0.0, 1.0)).round() as u32;
    let mut order: Vec<(u64, u32)> = (0..count)
        .map(|index| (Dice::named(seed, CHOICE, u64::from(index)).bits(), index))
        .collect();
    order.sort_unstable();
    order.truncate(wanted as usize);
    order.into_iter().map(|(_, index)| index).collect()
}

/// Keep these draws apart from others under the same seed: "drop" and "turn" in ASCII.
const CHOICE: u64 = 0x6472_6f70;
const MOMENT: u64 = 0x7475_726e;

/// Hubs take their next certificate into use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Renew {
    pub wave: Wave,
    pub sessions: OldSessions,
}

/// What a hub that has a new certificate does with the session that it made with the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldSessions {
    /// Ends it this way and connects again at once.
    End(How),
    /// Lets it live; the next handshake, whenever it comes, uses the new certificate.
    Keep,
}

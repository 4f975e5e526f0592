//! Randomness drawn from (seed, agent, count).
//!
//! A draw depends on who draws and how often it has drawn, never on the order of events in the program, so the same seed
//! gives the same run on any number of threads. Not for secrets: keys and tokens come from the operating system.

use crate::event::{AgentId, AgentKind};
use std::time::Duration;

/// One agent's stream of draws.
#[derive(Debug, Clone)]
pub struct Dice {
    stream: u64,
    count: u32,
}

impl Dice {
    /// The stream of `agent` under `seed`.
    #[must_use]
    pub fn of(seed: u64, agent: AgentId) -> Dice {
        let kind = match agent.kind {
            AgentKind::Hub => 1,
            AgentKind::Rider => 2,
            AgentKind::Issuer => 3,
            AgentKind::Dock => 4,
        };
        Dice::named(seed, (kind << 32) | u64::from(agent.group), agent.index)
    }

    /// A stream for something that is no agent (a schedule, a choice of hubs); `purpose` keeps the streams apart.
    #[must_use]
    pub fn named(seed: u64, purpose: u64, index: u64) -> Dice {
        Dice {
            stream: mix(mix(mix(seed) ^ purpose) ^ index),
            count: 0,
        }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.count = self.count.wrapping_add(1);
        mix(self.stream ^ mix(u64::from(self.count)))
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn fraction(&mut self) -> f64 {
        // 53 bits fit a double exactly.
        let numerator = (self.bits() >> 11) as f64;
        numerator / 9_007_199_254_740_992.0
    }

    /// Uniform in `0..bound`; 0 for a bound of 0. Lemire's multiplication; its bias is below 2⁻³² for any bound that a plan allows.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(bound);
        (product >> 64) as u64
    }

    /// Uniform in [`low`, `high`) to the microsecond; `low` if the range is empty.
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let width = high.saturating_sub(low);
        low + Duration::from_micros(
            self.below(u64::try_from(width.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014) after its increment: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

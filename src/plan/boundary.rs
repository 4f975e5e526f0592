//! The collapse boundary of a mass reconnect, as a formula; and which small system is similar to a large one.
//!
//! A pool that serves μ a second in order, and goes on with what nobody waits for any more, comes back from at most
//! D* = μT + μ(1 − ρ)(T + E[B]) hubs: T is their timeout, E[B] the mean wait at the cap of their backoff, ρ what the pool did before
//! (field notes on recovery, §0.1). Hubs whose first attempts are spread over S come back from the larger root D of
//! D² − D(M + A + C) + CM = 0 with A = μT, C = μ(1 − ρ)(T + E[B]), M = μ(1 − ρ)S: those that arrive until the wait reaches T are served.
//! Two systems with the same D/(μT), E[B]/T, ρ and s/T do the same in the same time (§0.5).

use crate::plan::outlook::policy_text;
use crate::plan::quantity::{count, duration, rate};
use crate::retry::Retry;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// Width of the coin toss at the boundary: ± 4 % at μT = 390, and by 1 ÷ √(μT) (field notes on recovery, §2.3).
const COIN_WIDTH: f64 = 0.04;
const COIN_AT: f64 = 390.0;

/// Hubs that a small run should not exceed, if fewer are similar too.
const MOST_HUBS: u64 = 20_000;

/// Everything that the boundary depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boundary {
    /// Connects a second.
    pub per_second: f64,
    /// Share that is used by something else.
    pub background: f64,
    pub timeout: Duration,
    pub mean_wait: Duration,
    /// First attempts are spread over this.
    pub spread: Duration,
}

impl Boundary {
    /// D*: the largest disconnect from which the target comes back by itself.
    #[must_use]
    pub fn critical_number(&self) -> f64 {
        let timeout = self.timeout.as_secs_f64();
        let left = self.per_second * (1.0 - self.background.clamp(0.0, 1.0));
        let first = self.per_second * timeout;
        let later = left * (timeout + self.mean_wait.as_secs_f64());
        let spread = left * self.spread.as_secs_f64();
        let sum = first + later + spread;
        f64::midpoint(sum, (sum * sum - 4.0 * later * spread).max(0.0).sqrt())
    }

    /// Within this share of D* chance decides.
    #[must_use]
    pub fn coin(&self) -> f64 {
        let wave = (self.per_second * self.timeout.as_secs_f64()).max(1.0);
        (COIN_WIDTH * (COIN_AT / wave).sqrt()).min(1.0)
    }
}

/// A fleet and the pool that lets it in.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    pub hubs: u64,
    /// Connections of the pool, and how long each connect holds one.
    pub connections: u64,
    pub service: Duration,
    pub timeout: Duration,
    pub retry: Retry,
}

impl System {
    /// Its boundary, with an idle pool and hubs that come back at once.
    #[must_use]
    pub fn boundary(&self) -> Boundary {
        Boundary {
            per_second: self.connections as f64 / self.service.as_secs_f64(),
            background: 0.0,
            timeout: self.timeout,
            mean_wait: self.retry.backoff.mean_at_cap(),
            spread: Duration::ZERO,
        }
    }

    /// The small system that is similar: fleet and pool divided by the same number, everything else as it is. The pool is as small as a
    /// boundary within 4 % allows, and smaller where the fleet would be too large.
    #[must_use]
    pub fn small(&self) -> System {
        let one = self.boundary();
        let wave_of_one =
            one.per_second * one.timeout.as_secs_f64() / self.connections.max(1) as f64;
        let sharp = (COIN_AT / wave_of_one).ceil().max(1.0) as u64;
        let hubs_of_one = self.hubs as f64 / self.connections.max(1) as f64;
        let affordable = ((MOST_HUBS as f64 / hubs_of_one) as u64).max(1);
        let connections = sharp.min(affordable).min(self.connections);
        System {
            hubs: (hubs_of_one * connections as f64).round() as u64,
            connections,
            ..self.clone()
        }
    }
}

/// What `check --like` prints.
#[derive(Debug, Clone, PartialEq)]
pub struct Likeness(pub System);

impl Display for Likeness {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Likeness(large) = self;
        let small = large.small();
        writeln!(out, "The system")?;
        system(large, out)?;
        let (number, fleet) = (large.boundary().critical_number(), large.hubs as f64);
        if number < fleet {
            writeln!(
                out,
                "  a disconnect of the whole fleet does not end by itself; one of {} does, with some room to spare",
                count((number * 0.8) as u64)
            )?;
        } else {
            writeln!(out, "  even a disconnect of the whole fleet ends by itself")?;
        }
        writeln!(out, "\nA small system that does the same in the same time")?;
        system(&small, out)?;
        let boundary = small.boundary();
        let timeout = small.timeout.as_secs_f64();
        writeln!(
            out,
            "  the same in both: N/(μT) = {:.2}, E[B]/T = {:.2}, s/T = {:.4}; keep the pool's other load and its longest queue, divided alike",
            small.hubs as f64 / (boundary.per_second * timeout),
            boundary.mean_wait.as_secs_f64() / timeout,
            small.service.as_secs_f64() / timeout,
        )?;
        writeln!(
            out,
            "\nIn the target file (against the lab) and in the profile\n  lab: {{ on: [ auth-from-database ], settings: {{ pool_size: {}, service_ms: {}, pool_queue: 1000000, acquire_timeout_ms: 600000 }} }}\n  \
             homes: {{ device: hub, count: {}, timeout: {}, reconnect: {{ {}, first: 0s }} }}",
            small.connections,
            small.service.as_millis().max(1),
            small.hubs,
            duration(small.timeout),
            yaml(&small.retry),
        )
    }
}

fn system(system: &System, out: &mut Formatter<'_>) -> fmt::Result {
    let boundary = system.boundary();
    let number = boundary.critical_number();
    writeln!(
        out,
        "  {} hubs, a pool of {} that a connect holds for {}: {} connects; timeout {}, then {}",
        count(system.hubs),
        count(system.connections),
        duration(system.service),
        rate(boundary.per_second),
        duration(system.timeout),
        policy_text(&system.retry),
    )?;
    writeln!(
        out,
        "  critical number D* = μ(2T + E[B]) = {} hubs, {:.1}% of the fleet, known within {:.0}%",
        count(number.round() as u64),
        number / system.hubs.max(1) as f64 * 100.0,
        boundary.coin() * 100.0
    )
}

/// The policy as a profile writes it.
fn yaml(retry: &Retry) -> String {
    use crate::retry::Backoff;
    let grown = |name: &str, base, cap| {
        format!(
            "{name}: {{ base: {}, cap: {} }}",
            duration(base),
            duration(cap)
        )
    };
    match retry.backoff {
        Backoff::Immediate => "immediate: {}".to_owned(),
        Backoff::Fixed { every } => format!("fixed: {{ every: {} }}", duration(every)),
        Backoff::Exponential { base, cap, .. } => grown("exponential", base, cap),
        Backoff::FullJitter { base, cap, .. } => grown("full_jitter", base, cap),
        Backoff::EqualJitter { base, cap, .. } => grown("equal_jitter", base, cap),
        Backoff::Decorrelated { base, cap } => grown("decorrelated", base, cap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::Backoff;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    const SECOND: u64 = 1_000_000;

    fn boundary(policy: Backoff, timeout_s: u64, background: f64) -> f64 {
        let of = Boundary {
            per_second: 2500.0,
            background,
            timeout: Duration::from_secs(timeout_s),
            mean_wait: policy.mean_at_cap(),
            spread: Duration::ZERO,
        };
        of.critical_number() / (of.per_second * of.timeout.as_secs_f64())
    }

    fn full_jitter(cap_s: u64) -> Backoff {
        Backoff::FullJitter {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(cap_s),
            factor: 2.0,
        }
    }

    /// The table of the field notes (§4.4), which simulation agrees with within 2 %.
    #[test]
    fn the_formula_is_that_of_the_notes() {
        let every = Duration::from_secs(1);
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.051, "{found}");
        near(boundary(Backoff::Immediate, 5, 0.0), 2.0);
        near(boundary(Backoff::Fixed { every }, 5, 0.0), 2.2);
        near(boundary(full_jitter(60), 5, 0.0), 8.0);
        near(boundary(full_jitter(300), 5, 0.0), 32.0);
        near(boundary(full_jitter(60), 5, 0.3), 5.9);
        near(boundary(full_jitter(60), 5, 0.7), 3.1);
    }

    /// A pool of 10 × 50 ms in order, T = 1 s, a fixed wait of 500 ms: whether all of `hubs` are back within three minutes. An attempt that
    /// nobody waits for any more is served all the same (Kiefer and Wolfowitz: start = the later of arrival and the earliest free server).
    fn comes_back(hubs: u64, spread_us: u64) -> bool {
        let (service, timeout, wait) = (SECOND / 20, SECOND, SECOND / 2);
        let mut free: BinaryHeap<Reverse<u64>> = (0..10).map(|_| Reverse(0)).collect();
        let mut attempts: BinaryHeap<Reverse<(u64, u64)>> = (0..hubs)
            .map(|hub| Reverse((spread_us * hub / hubs, hub)))
            .collect();
        while let Some(Reverse((at, hub))) = attempts.pop() {
            if at > 180 * SECOND {
                return false;
            }
            let earliest = free.pop().map_or(0, |Reverse(at)| at);
            let end = at.max(earliest) + service;
            free.push(Reverse(end));
            if end - at > timeout {
                attempts.push(Reverse((at + timeout + wait, hub)));
            }
        }
        true
    }

    /// With hubs that come back at once and with hubs whose first attempts are spread over a second or three.
    #[test]
    fn a_simulated_pool_collapses_where_the_formula_says() {
        for spread_s in [0, 1, 3] {
            let of = Boundary {
                per_second: 200.0,
                background: 0.0,
                timeout: Duration::from_secs(1),
                mean_wait: Duration::from_millis(500),
                spread: Duration::from_secs(spread_s),
            };
            let number = of.critical_number();
            let spread_us = spread_s * SECOND;
            assert!(comes_back((number * 0.9) as u64, spread_us), "{spread_s} s");
            assert!(
                !comes_back((number * 1.15) as u64, spread_us),
                "{spread_s} s"
            );
        }
    }

    /// The laptop's run has the same share of its fleet as critical number as the system of a million hubs.
    #[test]
    fn the_small_system_is_similar() {
        let large = System {
            hubs: 1_000_000,
            connections: 500,
            service: Duration::from_millis(200),
            timeout: Duration::from_secs(5),
            retry: Retry::of(full_jitter(60)),
        };
        let small = large.small();
        assert_eq!((small.hubs, small.connections), (20_000, 10));
        let share = |system: &System| system.boundary().critical_number() / system.hubs as f64;
        assert!((share(&large) - share(&small)).abs() < 1e-9);
    }
}

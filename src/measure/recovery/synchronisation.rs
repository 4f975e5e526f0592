//! Whether attempts come in step: seen from outside, by tenths of a second.

use std::f64::consts::TAU;
use std::time::Duration;

/// Parts of a second.
pub const TENTHS: usize = 10;

/// Attempts in each tenth of one second.
pub type Tenths = [u16; TENTHS];

/// Dispersion is taken within blocks of this many seconds, so that a rate that falls slowly is not taken for waves.
const BLOCK_SECONDS: usize = 5;

/// Fewer attempts than this say nothing.
const FEWEST_ATTEMPTS: u64 = 50;

/// The index of dispersion of attempts per tenth of a second: variance ÷ mean, 1 where everybody comes by chance and alone, pooled over
/// blocks of five seconds. `None` if there are too few.
#[must_use]
pub fn dispersion(seconds: &[Tenths]) -> Option<f64> {
    let (mut squares, mut means, mut all) = (0.0, 0.0, 0);
    for block in seconds.chunks(BLOCK_SECONDS) {
        let bins = || block.iter().flatten().map(|count| f64::from(*count));
        let count = (block.len() * TENTHS) as f64;
        let mean = bins().sum::<f64>() / count;
        squares += bins().map(|bin| (bin - mean).powi(2)).sum::<f64>();
        means += (count - 1.0) * mean;
        all += block
            .iter()
            .flatten()
            .map(|count| u64::from(*count))
            .sum::<u64>();
    }
    (all >= FEWEST_ATTEMPTS && means > 0.0).then(|| squares / means)
}

/// How much attempts gather at one phase of the retry period: |Σ e^(2πit/P)| ÷ n, 0 where they are spread, 1 where all are in step.
#[must_use]
pub fn phase_concentration(seconds: &[Tenths], period: Duration) -> Option<f64> {
    let period = period.as_secs_f64();
    let (mut real, mut imaginary, mut all) = (0.0, 0.0, 0_u64);
    if period <= 0.0 {
        return None;
    }
    for (second, tenths) in seconds.iter().enumerate() {
        for (tenth, count) in tenths.iter().enumerate().filter(|(_, count)| **count > 0) {
            let at = second as f64 + (tenth as f64 + 0.5) / TENTHS as f64;
            let (sine, cosine) = (TAU * at / period).sin_cos();
            real += cosine * f64::from(*count);
            imaginary += sine * f64::from(*count);
            all += u64::from(*count);
        }
    }
    (all >= FEWEST_ATTEMPTS).then(|| real.hypot(imaginary) / all as f64)
}

//! When the n-th arrival is due.
//!
//! Pure: the schedule is data, [`Schedule::due`] is a function of n alone, and n counts from 1. Worker k of m takes the n
//! with n % m == k.
//!
//! All spreads are one time change: arrival n stands at a position on the axis "expected arrivals so far" (`even`: at n itself; `poisson`:
//! where a Poisson process of rate 1 has its n-th point; `recorded`: at a drawn place within its bin), and is due when the integral of the
//! rate reaches that position.

mod poisson;
mod recorded;

use poisson::Points;
use recorded::Counts;
use std::time::Duration;

/// How arrivals spread around the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// The n-th arrival is due when the integral of the rate reaches n.
    Even,
    /// An inhomogeneous Poisson process with the same rate, drawn from the seed.
    Poisson { seed: u64 },
    /// So many in each piece as were recorded, at places drawn from the seed.
    Recorded { seed: u64 },
}

/// A stretch of time in which the rate changes linearly from `from_per_second` to `to_per_second`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    pub from_per_second: f64,
    pub to_per_second: f64,
    pub lasts: Duration,
}

/// An open-loop schedule: pieces laid end to end from 0:00.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    spread: Spread,
    pieces: Vec<Piece>,
    /// For each piece, where it lies.
    stretches: Vec<Stretch>,
    positions: Positions,
}

/// Where arrivals stand on the axis of expected arrivals.
#[derive(Debug, Clone, PartialEq)]
enum Positions {
    Even,
    Poisson(Points),
    Recorded(Counts),
}

/// Where a piece lies: in time, and on the axis of expected arrivals.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    begins: Duration,
    ends: Duration,
    before: f64,
    after: f64,
}

impl Schedule {
    /// The schedule of `pieces`, whose rates are finite and not negative.
    #[must_use]
    pub fn new(spread: Spread, pieces: Vec<Piece>) -> Schedule {
        let mut stretches = Vec::with_capacity(pieces.len());
        let (mut begins, mut before) = (Duration::ZERO, 0.0);
        for piece in &pieces {
            let ends = begins.saturating_add(piece.lasts);
            let after = before + piece.arrivals();
            stretches.push(Stretch {
                begins,
                ends,
                before,
                after,
            });
            (begins, before) = (ends, after);
        }
        let positions = match spread {
            Spread::Even => Positions::Even,
            Spread::Poisson { seed } => Positions::Poisson(Points::of(seed)),
            Spread::Recorded { seed } => {
                let count = |piece: &Piece| piece.arrivals().round() as u64;
                let counts: Vec<u64> = pieces.iter().map(count).collect();
                Positions::Recorded(Counts::of(seed, &counts))
            }
        };
        Schedule {
            spread,
            pieces,
            stretches,
            positions,
        }
    }

    /// A recording: exactly `counts[k]` arrivals in the k-th stretch of `bin`, which is longer than nothing.
    #[must_use]
    pub fn recorded(seed: u64, bin: Duration, counts: &[u64]) -> Schedule {
        let piece = |count: &u64| {
            let per_second = *count as f64 / bin.as_secs_f64();
            Piece {
                from_per_second: per_second,
                to_per_second: per_second,
                lasts: bin,
            }
        };
        Schedule::new(
            Spread::Recorded { seed },
            counts.iter().map(piece).collect(),
        )
    }

    /// How arrivals spread around the rate.
    #[must_use]
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// The pieces, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// When the last piece ends, from 0:00.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        self.stretches
            .last()
            .map_or(Duration::ZERO, |stretch| stretch.ends)
    }

    /// When arrival `n` (from 1) is due, from 0:00; `None` if the schedule has fewer arrivals. Never earlier than arrival n − 1.
    #[must_use]
    pub fn due(&self, n: u64) -> Option<Duration> {
        let position = self.position(n)?;
        self.time_of(position)
    }

    /// When arrival `n` is due if the schedule goes on at its last rate beyond its end; `None` if that rate is zero.
    #[must_use]
    pub fn due_extended(&self, n: u64) -> Option<Duration> {
        let position = self.position(n)?;
        if let Some(due) = self.time_of(position) {
            return Some(due);
        }
        let beyond_seconds = (position - self.expected()) / self.last_rate();
        let beyond = Duration::try_from_secs_f64(beyond_seconds).ok()?;
        Some(self.lasts().saturating_add(beyond))
    }

    /// How many arrivals there are up to the end, those at the end included.
    #[must_use]
    pub fn total(&self) -> u64 {
        let end = self.expected() + tolerance(self.expected());
        match &self.positions {
            Positions::Even => end.floor() as u64,
            Positions::Poisson(points) => points.up_to(end),
            Positions::Recorded(counts) => counts.total(),
        }
    }

    /// How many arrivals are expected in all: the integral of the rate.
    #[must_use]
    pub fn expected(&self) -> f64 {
        self.stretches.last().map_or(0.0, |stretch| stretch.after)
    }

    /// The integral of the rate from 0:00 to `at`: how many arrivals are expected until then. Beyond the end it stands still.
    #[must_use]
    pub fn expected_until(&self, at: Duration) -> f64 {
        match self.row_at(at) {
            None => self.expected(),
            Some((piece, stretch)) => {
                stretch.before + piece.arrivals_until((at - stretch.begins).as_secs_f64())
            }
        }
    }

    /// The rate at `at`, per second. Where two pieces meet, that of the later one; from the end on, the last rate.
    #[must_use]
    pub fn rate_at(&self, at: Duration) -> f64 {
        match self.row_at(at) {
            None => self.last_rate(),
            Some((piece, stretch)) => piece.rate_after((at - stretch.begins).as_secs_f64()),
        }
    }

    /// The highest rate, per second.
    #[must_use]
    pub fn peak_per_second(&self) -> f64 {
        self.pieces
            .iter()
            .map(|piece| piece.from_per_second.max(piece.to_per_second))
            .fold(0.0, f64::max)
    }

    /// The same rates without the dice: equal for two schedules that differ by their seed alone.
    #[must_use]
    pub fn evened(&self) -> Schedule {
        Schedule::new(Spread::Even, self.pieces.clone())
    }

    /// The rate at the end, per second; zero without pieces.
    #[must_use]
    pub fn last_rate(&self) -> f64 {
        self.pieces.last().map_or(0.0, |piece| piece.to_per_second)
    }

    /// Where arrival `n` stands on the axis of expected arrivals; `None` for 0.
    fn position(&self, n: u64) -> Option<f64> {
        match &self.positions {
            _ if n == 0 => None,
            Positions::Even => Some(n as f64),
            Positions::Poisson(points) => Some(points.position(n)),
            Positions::Recorded(counts) => match counts.place(n) {
                Some((bin, share)) => {
                    let stretch = self.stretches.get(bin)?;
                    Some(stretch.before + (stretch.after - stretch.before) * share)
                }
                // Beyond the recording they come evenly.
                None => Some(self.expected() + n.saturating_sub(counts.total()) as f64),
            },
        }
    }

    /// When the integral of the rate reaches `position`, if it does. A position within rounding error of a piece's end is at that end, so
    /// that no arrival at the very end is lost and none slips behind a pause.
    fn time_of(&self, position: f64) -> Option<Duration> {
        let reached = |after: f64| after + tolerance(after) >= position;
        let row = self
            .stretches
            .partition_point(|stretch| !reached(stretch.after));
        let (piece, stretch) = self.pieces.get(row).zip(self.stretches.get(row))?;
        if position >= stretch.after - tolerance(stretch.after) {
            return Some(stretch.ends);
        }
        let inside = piece.time_of((position - stretch.before).max(0.0));
        Some((stretch.begins + inside).min(stretch.ends))
    }

    /// The piece that `at` lies in; `None` from the end on.
    fn row_at(&self, at: Duration) -> Option<(&Piece, &Stretch)> {
        let row = self.stretches.partition_point(|stretch| stretch.ends <= at);
        self.pieces.get(row).zip(self.stretches.get(row))
    }
}

impl Piece {
    /// The integral of the rate over the whole piece.
    fn arrivals(&self) -> f64 {
        (self.from_per_second + self.to_per_second) / 2.0 * self.lasts.as_secs_f64()
    }

    /// The integral of the rate over its first `seconds`.
    fn arrivals_until(&self, seconds: f64) -> f64 {
        (self.from_per_second + self.rate_after(seconds)) / 2.0 * seconds
    }

    fn rate_after(&self, seconds: f64) -> f64 {
        self.from_per_second + self.slope() * seconds
    }

    /// Change of the rate per second, per second. Not asked of a piece without length.
    fn slope(&self) -> f64 {
        (self.to_per_second - self.from_per_second) / self.lasts.as_secs_f64()
    }

    /// When the integral reaches `arrivals`, which it does before the end. The quadratic r·t + s·t²/2 = x is solved in the form
    /// 2x ÷ (r + √(r² + 2sx)), which subtracts nothing that is nearly equal and holds for s = 0 too.
    fn time_of(&self, arrivals: f64) -> Duration {
        let (rate, slope) = (self.from_per_second, self.slope());
        let seconds = if slope == 0.0 {
            arrivals / rate
        } else {
            2.0 * arrivals / (rate + (rate * rate + 2.0 * slope * arrivals).max(0.0).sqrt())
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(self.lasts)
    }
}

/// The rounding error that `arrivals`, a sum of products, may carry: far below one arrival, and far above what doubles lose.
fn tolerance(arrivals: f64) -> f64 {
    1e-9 + arrivals * 8.0 * f64::EPSILON
}

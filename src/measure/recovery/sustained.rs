//! Whether a signal stays in its band from a second on.

use super::SignalRows;
use super::band::Band;
use std::ops::Range;

/// A run of more bad seconds than this is a dip, however few they are of the whole.
const LONGEST_BAD_RUN: usize = 5;

/// The confidence of the allowance: a healthy signal is refused once in a thousand looks.
const ALLOWANCE_CONFIDENCE: f64 = 0.999;

/// Of what the plan offers, this share must be tried: silence is not health.
const ACTIVE_SHARE: f64 = 0.90;

/// Arrivals by chance come in fewer than the plan expects: this many of their standard deviations (the root of the number).
const CHANCE: f64 = 2.0;

/// In a second in which the plan offers at least this many, none tried or none ended is a bad second, not a missing one. By chance
/// that happens once in 3000 seconds.
const TELLING_OFFER: f64 = 8.0;

/// Of a signal that does not depend on activity, this share of the seconds must be known.
const KNOWN_SHARE: f64 = 0.8;

/// An onset is this many of the next [`ONSET_SECONDS`] seconds outside the band.
const ONSET_BAD: usize = 3;
const ONSET_SECONDS: usize = 5;

/// A collapse is this many of [`COLLAPSE_SECONDS`] seconds outside the band: what only flutters leaves it, and does not collapse.
const COLLAPSE_BAD: usize = 8;
pub(super) const COLLAPSE_SECONDS: usize = 10;

/// A signal's seconds, judged against its band.
#[derive(Debug)]
pub(super) struct Judged {
    /// Outside the band that is entered, or silent.
    outside: Vec<bool>,
    /// Outside the band that is left, or silent.
    bad: Vec<bool>,
    silent: Vec<bool>,
    /// Number of bad, known, tried and expected up to each row, so that a window costs two look-ups.
    bad_before: Vec<usize>,
    /// Number of rows up to each at which a run of more than [`LONGEST_BAD_RUN`] bad rows stands.
    long_runs_before: Vec<usize>,
    known_before: Vec<usize>,
    tried_before: Vec<f64>,
    expected_before: Vec<f64>,
    depends_on_activity: bool,
    exceed_rate: f64,
}

/// The answer for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
    /// Too few seconds could be read.
    Unknown,
}

impl Judged {
    /// Judges every row; `quiet` are the rows of the quiet time, which also say how many attempts an offer leads to.
    pub(super) fn new(signal: &SignalRows, band: &Band, quiet: &Range<usize>) -> Judged {
        let expected = expected(signal, quiet);
        let tried = |row: usize| {
            signal.activity.as_ref().map_or(0.0, |activity| {
                activity.attempts.get(row).copied().unwrap_or(0.0)
            })
        };
        let mut judged = Judged {
            outside: Vec::with_capacity(signal.rows.len()),
            bad: Vec::with_capacity(signal.rows.len()),
            silent: Vec::with_capacity(signal.rows.len()),
            bad_before: vec![0],
            long_runs_before: vec![0],
            known_before: vec![0],
            tried_before: vec![0.0],
            expected_before: vec![0.0],
            depends_on_activity: signal.activity.is_some(),
            exceed_rate: band.quiet_exceed_rate,
        };
        let mut run = 0;
        for (row, value) in signal.rows.iter().enumerate() {
            let silent = expected[row] >= TELLING_OFFER && (value.is_none() || tried(row) == 0.0);
            let bad = silent || value.is_some_and(|value| band.is_outside_leave(value));
            judged
                .outside
                .push(silent || value.is_some_and(|value| band.is_outside_enter(value)));
            judged.bad.push(bad);
            judged.silent.push(silent);
            run = if bad { run + 1 } else { 0 };
            judged
                .long_runs_before
                .push(judged.long_runs_before[row] + usize::from(run > LONGEST_BAD_RUN));
            judged
                .bad_before
                .push(judged.bad_before[row] + usize::from(bad));
            judged
                .known_before
                .push(judged.known_before[row] + usize::from(silent || value.is_some()));
            judged
                .tried_before
                .push(judged.tried_before[row] + tried(row));
            judged
                .expected_before
                .push(judged.expected_before[row] + expected[row]);
        }
        judged
    }

    /// The first row of `rows` from which on the band is left: itself outside, and 3 of the 5 rows from it on, as far as they lie before
    /// `horizon`.
    pub(super) fn onset(&self, rows: Range<usize>, horizon: usize) -> Option<usize> {
        let horizon = horizon.min(self.outside.len());
        (rows.start..rows.end.min(horizon)).find(|row| {
            let next = &self.outside[*row..(*row + ONSET_SECONDS).min(horizon)];
            next[0] && next.iter().filter(|outside| **outside).count() >= ONSET_BAD
        })
    }

    /// Whether seconds from `horizon` on may still make one of `rows` an onset.
    pub(super) fn may_begin(&self, rows: Range<usize>, horizon: usize) -> bool {
        let horizon = horizon.min(self.outside.len());
        let open = rows.start.max((horizon + 1).saturating_sub(ONSET_SECONDS));
        (open..rows.end.min(horizon)).any(|row| {
            let seen = &self.outside[row..horizon];
            let to_come = ONSET_SECONDS - seen.len();
            seen[0] && seen.iter().filter(|outside| **outside).count() + to_come >= ONSET_BAD
        })
    }

    /// Whether the signal stays in its band over `rows`.
    pub(super) fn holds(&self, rows: Range<usize>) -> Holds {
        let length = rows.len();
        if length == 0 || rows.end > self.bad.len() || self.bad[rows.start] {
            return Holds::No;
        }
        let bad = self.bad_before[rows.end] - self.bad_before[rows.start];
        let known = self.known_before[rows.end] - self.known_before[rows.start];
        if bad > 0 && (bad > allowance(known, self.exceed_rate) || self.has_long_run(rows.clone()))
        {
            return Holds::No;
        }
        if !self.depends_on_activity {
            let enough = known as f64 >= KNOWN_SHARE * length as f64;
            return if enough { Holds::Yes } else { Holds::Unknown };
        }
        let tried = self.tried_before[rows.end] - self.tried_before[rows.start];
        let expected = self.expected_before[rows.end] - self.expected_before[rows.start];
        let enough = ACTIVE_SHARE * expected - CHANCE * expected.sqrt();
        if tried >= enough {
            Holds::Yes
        } else {
            Holds::No
        }
    }

    pub(super) fn bad_in(&self, rows: Range<usize>) -> u64 {
        (self.bad_before[rows.end] - self.bad_before[rows.start]) as u64
    }

    /// A run that began before the rows counts with what of it lies in them.
    fn has_long_run(&self, rows: Range<usize>) -> bool {
        let first_end = rows.start + LONGEST_BAD_RUN;
        // A run that is long at row `first_end` or later, less what lies before `rows`, has six bad rows within them.
        first_end < rows.end && self.long_runs_before[rows.end] > self.long_runs_before[first_end]
    }

    /// Whether the rows are as bad as a collapse: [`COLLAPSE_BAD`] of the [`COLLAPSE_SECONDS`] from this one on, itself among them.
    pub(super) fn collapses_at(&self, row: usize) -> bool {
        let next = self.outside.get(row..row + COLLAPSE_SECONDS);
        next.is_some_and(|next| {
            next[0] && next.iter().filter(|outside| **outside).count() >= COLLAPSE_BAD
        })
    }

    /// Whether nobody tried although the plan offered enough to tell.
    pub(super) fn is_silent(&self, row: usize) -> bool {
        self.silent.get(row).copied().unwrap_or(false)
    }

    /// How much the plan offers in a row, as attempts.
    pub(super) fn expected_in(&self, row: usize) -> f64 {
        self.expected_before[row + 1] - self.expected_before[row]
    }

    /// How much was tried in a row.
    pub(super) fn tried_in(&self, row: usize) -> f64 {
        self.tried_before[row + 1] - self.tried_before[row]
    }

    pub(super) fn depends_on_activity(&self) -> bool {
        self.depends_on_activity
    }
}

/// Attempts that each row's offer leads to: the offer times attempts per offer of the quiet time, at most one for one (retries are
/// not counted on).
fn expected(signal: &SignalRows, quiet: &Range<usize>) -> Vec<f64> {
    let Some(activity) = &signal.activity else {
        return vec![0.0; signal.rows.len()];
    };
    let total = |column: &[f64]| {
        column
            .get(quiet.clone())
            .map_or(0.0, |rows| rows.iter().sum::<f64>())
    };
    let offered = total(&activity.offered);
    let ratio = if offered > 0.0 {
        (total(&activity.attempts) / offered).min(1.0)
    } else {
        1.0
    };
    (0..signal.rows.len())
        .map(|row| {
            activity
                .offered
                .get(row)
                .map_or(0.0, |offered| offered * ratio)
        })
        .collect()
}

/// How many of `seconds` may be bad: the smallest k for which a binomial (seconds, rate) is at most k with 99.9 %.
fn allowance(seconds: usize, rate: f64) -> usize {
    if rate >= 1.0 {
        return seconds;
    }
    let odds = rate.ln() - (1.0 - rate).ln();
    // In logarithms: (1 − rate)^seconds of a long window is below the smallest double.
    let mut log_probability = seconds as f64 * (1.0 - rate).ln();
    let mut reached = log_probability.exp();
    let mut allowed = 0;
    while reached < ALLOWANCE_CONFIDENCE && allowed < seconds {
        log_probability += ((seconds - allowed) as f64).ln() - ((allowed + 1) as f64).ln() + odds;
        reached += log_probability.exp();
        allowed += 1;
    }
    allowed
}

#[cfg(test)]
mod tests {
    use super::allowance;

    /// 17 of 720 seconds may leave the band when 1 % did in the quiet time (field notes on recovery, §0.9).
    #[test]
    fn the_allowance_is_the_binomial_quantile() {
        assert_eq!(allowance(720, 0.01), 17);
        assert_eq!(allowance(30, 0.002), 2);
        assert_eq!(allowance(0, 0.01), 0);
        assert_eq!(allowance(100, 1.0), 100);
    }

    #[test]
    fn the_allowance_survives_long_windows() {
        let allowed = allowance(7200, 0.5);
        assert!((3700..3760).contains(&allowed), "{allowed}");
    }
}

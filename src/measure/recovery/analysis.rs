//! From columns of seconds to one answer for each mark.

use super::band::{self, Band, Baseline, FEWEST_QUIET_SECONDS};
use super::collapse::collapses;
use super::effect::effect;
use super::fate::{Fate, fate, observation_needed};
use super::reconnects::multiplier;
use super::sustained::{Holds, Judged};
use super::{
    Effect, Ending, MarkSpan, Observation, Recovery, RecoveryOutcome, Settings, SignalKind,
    SignalRecovery, SignalRows, micros,
};
use crate::event::Offset;
use std::ops::Range;
use std::time::Duration;

/// The answer for every mark that began, in the order of their begins.
#[must_use]
pub fn analyse(observation: &Observation, settings: &Settings) -> Vec<Recovery> {
    let mut marks: Vec<MarkSpan> = observation.marks.clone();
    marks.sort_by_key(|mark| (mark.begin, mark.id));
    let mut quiet_before = None;
    let mut recoveries: Vec<Recovery> = Vec::with_capacity(marks.len());
    for mark in &marks {
        let quiet = quiet_rows(observation, settings, mark, &recoveries).or(quiet_before.clone());
        quiet_before.clone_from(&quiet);
        let look = Look::new(observation, settings, mark, &marks);
        recoveries.push(look.recovery(mark, quiet));
    }
    recoveries
}

/// Whether more watching can change nothing: every mark has its answer.
#[must_use]
pub fn decided(recoveries: &[Recovery]) -> bool {
    recoveries
        .iter()
        .all(|recovery| recovery.outcome != RecoveryOutcome::Undecided)
}

/// The quiet rows before a mark: up to the baseline's length, not before 0:00 nor before an earlier mark's recovery. `None` if
/// less than half of it is left; then the quiet time before the earlier mark stands in.
fn quiet_rows(
    observation: &Observation,
    settings: &Settings,
    mark: &MarkSpan,
    earlier: &[Recovery],
) -> Option<Range<usize>> {
    let row = |offset: Offset| row_of(observation, offset);
    let end = row(mark.begin);
    let wanted = seconds(settings.baseline).max(FEWEST_QUIET_SECONDS);
    let mut start = end.saturating_sub(wanted).max(row(observation.quiet_from));
    for recovery in earlier {
        start = start.max(match (&recovery.outcome, recovery.end) {
            (RecoveryOutcome::Recovered { at, .. }, _) => row(*at),
            (RecoveryOutcome::NotNeeded, Some(end)) => row(end) + 1,
            _ => usize::MAX,
        });
    }
    let fewest = if earlier.is_empty() {
        FEWEST_QUIET_SECONDS
    } else {
        (wanted / 2).max(FEWEST_QUIET_SECONDS)
    };
    (start < end && end - start >= fewest).then_some(start..end)
}

/// What may be looked at for one mark.
pub(super) struct Look<'a> {
    pub observation: &'a Observation,
    pub sustain: usize,
    pub begin: usize,
    /// Row of the removal; `None` while the mark acts.
    pub end: Option<usize>,
    pub removal: Option<Offset>,
    /// The first row that belongs to a later mark, or the end of the columns.
    pub horizon: usize,
    cut_by_mark: bool,
    /// Seconds after the removal before anything is called metastable.
    pub observation_needed: usize,
}

/// A signal with its band, judged.
pub(super) struct Watched<'a> {
    pub rows: &'a SignalRows,
    pub band: Band,
    pub judged: Judged,
    pub onset: Option<usize>,
}

impl Watched<'_> {
    pub(super) fn is_stock(&self) -> bool {
        matches!(
            self.rows.kind,
            SignalKind::Backlog { .. } | SignalKind::Connected
        )
    }

    /// Of a stock: how much there is; hubs count that are away.
    pub(super) fn stock(&self, row: usize) -> Option<f64> {
        let value = self.rows.rows.get(row).copied().flatten()?;
        match self.rows.kind {
            SignalKind::Connected => Some((self.band.baseline.median - value).max(0.0)),
            _ => Some(value),
        }
    }

    pub(super) fn stock_baseline(&self) -> f64 {
        match self.rows.kind {
            SignalKind::Connected => 0.0,
            _ => self.band.baseline.median,
        }
    }

    /// The share of the quiet time's goodput; nothing where nobody tried although the plan offered.
    pub(super) fn goodput(&self, row: usize) -> Option<f64> {
        if self.judged.is_silent(row) {
            return Some(0.0);
        }
        let value = self.rows.rows.get(row).copied().flatten()?;
        let median = self.band.baseline.median;
        (median > 0.0).then(|| value / median)
    }

    /// How far beyond the edge of its band, in the direction that is worse; negative within it.
    pub(super) fn excess(&self, row: usize) -> Option<f64> {
        let value = if self.judged.is_silent(row) {
            0.0
        } else {
            self.rows.rows.get(row).copied().flatten()?
        };
        Some(if self.band.lower_is_worse {
            self.band.leave - value
        } else {
            value - self.band.leave
        })
    }

    pub(super) fn is_healthy(&self, row: usize) -> bool {
        self.excess(row).is_none_or(|excess| excess <= 0.0)
    }

    /// Whether it holds over all of these rows.
    pub(super) fn is_back(&self, rows: Range<usize>) -> bool {
        self.judged.holds(rows) == Holds::Yes
    }
}

impl<'a> Look<'a> {
    fn new(
        observation: &'a Observation,
        settings: &Settings,
        mark: &MarkSpan,
        marks: &[MarkSpan],
    ) -> Look<'a> {
        let length = observation
            .signals
            .iter()
            .map(|signal| signal.rows.len())
            .min()
            .unwrap_or(0);
        let row = |offset| row_of(observation, offset).min(length);
        // A mark that begins while this one acts overlaps: both recover together, so only a later one ends the look.
        let next = mark.end.and_then(|end| {
            marks
                .iter()
                .filter(|other| other.begin >= end && other.begin > mark.begin)
                .map(|other| row(other.begin))
                .min()
        });
        let horizon = next.unwrap_or(length).min(length);
        Look {
            observation,
            sustain: seconds(settings.sustain).max(1),
            begin: row(mark.begin),
            end: mark.end.map(row),
            removal: mark.end,
            horizon,
            cut_by_mark: horizon < length,
            observation_needed: seconds(observation_needed(settings)),
        }
    }

    fn recovery(&self, mark: &MarkSpan, quiet: Option<Range<usize>>) -> Recovery {
        let watched: Vec<Watched<'_>> = match &quiet {
            Some(quiet) => self
                .observation
                .signals
                .iter()
                .filter_map(|rows| self.watch(rows, quiet))
                .collect(),
            None => Vec::new(),
        };
        let onset = watched.iter().filter_map(|signal| signal.onset).min();
        let (outcome, recovered) = self.outcome(mark, &watched, onset, quiet.as_ref());
        let left_again = recovered.and_then(|row| {
            let after = row + self.sustain..self.horizon;
            watched
                .iter()
                .filter_map(|signal| signal.judged.onset(after.clone(), self.horizon))
                .min()
        });
        let collapses = recovered.map_or_else(Vec::new, |row| collapses(self, &watched, row));
        // An effect that was never seen has no length.
        let effect = match onset {
            Some(_) => effect(self, &watched, recovered),
            None => Effect::default(),
        };
        Recovery {
            mark: mark.id,
            begin: mark.begin,
            end: mark.end,
            onset: onset.map(|row| self.offset_of(row)),
            outcome,
            left_again: left_again.map(|row| self.offset_of(row)),
            collapses,
            effect,
            signals: self.signals(&watched),
            reconnects: self
                .observation
                .hubs
                .as_ref()
                .zip(quiet)
                .and_then(|(hubs, quiet)| {
                    multiplier(hubs, &quiet, self.begin..self.horizon, |row| {
                        self.offset_of(row)
                    })
                }),
        }
    }

    /// The signal with its band; `None` if the quiet time had too few of its values.
    fn watch<'s>(&self, rows: &'s SignalRows, quiet: &Range<usize>) -> Option<Watched<'s>> {
        let values = rows.rows.get(quiet.clone())?;
        let baseline = Baseline::of(
            values,
            self.offset_of(quiet.start),
            self.offset_of(quiet.end),
        )?;
        let band = Band::around(baseline, rows.kind, values);
        let judged = Judged::new(rows, &band, quiet);
        let onset = judged.onset(self.onsets(), self.horizon);
        Some(Watched {
            rows,
            band,
            judged,
            onset,
        })
    }

    /// A mark's effect starts while it acts or within the sustain time after it; what starts later is something else.
    fn onsets(&self) -> Range<usize> {
        let latest = self.end.map_or(self.horizon, |end| end + self.sustain);
        self.begin..latest.min(self.horizon)
    }

    /// Whether the next seconds may show that an effect has begun.
    fn may_begin(&self, watched: &[Watched<'_>]) -> bool {
        let is_open = self.observation.ending == Ending::Running && !self.cut_by_mark;
        is_open
            && watched
                .iter()
                .any(|signal| signal.judged.may_begin(self.onsets(), self.horizon))
    }

    fn outcome(
        &self,
        mark: &MarkSpan,
        watched: &[Watched<'_>],
        onset: Option<usize>,
        quiet: Option<&Range<usize>>,
    ) -> (RecoveryOutcome, Option<usize>) {
        let censored = |why: &str, at_least| {
            let at_least_us = micros(at_least);
            (
                RecoveryOutcome::Censored {
                    why: why.to_owned(),
                    at_least_us,
                },
                None,
            )
        };
        let Some(quiet) = quiet.filter(|_| !watched.is_empty()) else {
            return censored(
                "there were too few quiet seconds before it to compare with",
                Duration::ZERO,
            );
        };
        let (Some(removal), Some(end)) = (mark.end, self.end) else {
            return match &self.observation.ending {
                Ending::Running => (RecoveryOutcome::Undecided, None),
                _ => censored("it still acted when the run ended", Duration::ZERO),
            };
        };
        for signal in watched {
            let values = signal.rows.rows.get(quiet.clone()).unwrap_or(&[]);
            if let Some(drift) = band::drift(values, &signal.band) {
                let why = format!(
                    "{} moved by {:+.0} % in the quiet time before it",
                    signal.rows.name,
                    drift * 100.0
                );
                return censored(&why, Duration::ZERO);
            }
        }
        let from = onset.map_or(end, |onset| onset.max(end));
        let mut blind = None;
        for row in self.complete(from) {
            match together(watched, row..row + self.sustain) {
                (Holds::Yes, _) if onset.is_none() && self.may_begin(watched) => {
                    return (RecoveryOutcome::Undecided, None);
                }
                (Holds::Yes, _) => return (self.recovered(mark, removal, onset, row), Some(row)),
                (Holds::Unknown, name) => blind = blind.or(name.map(|name| (name, row))),
                (Holds::No, _) => {}
            }
        }
        let since_removal = |row: usize| self.offset_of(row).since(removal);
        if let Some((name, row)) =
            blind.filter(|_| self.observation.ending != Ending::Running || self.cut_by_mark)
        {
            return censored(
                &format!("{name} could not be read for long enough"),
                since_removal(row),
            );
        }
        (
            self.not_recovered(watched, quiet, from, since_removal),
            None,
        )
    }

    /// The rows from `from` on from which a whole sustain time can be seen.
    pub(super) fn complete(&self, from: usize) -> Range<usize> {
        let last = self.horizon.checked_sub(self.sustain);
        last.map_or(from..from, |last| from..last + 1)
    }

    fn recovered(
        &self,
        mark: &MarkSpan,
        removal: Offset,
        onset: Option<usize>,
        row: usize,
    ) -> RecoveryOutcome {
        if onset.is_none() {
            return RecoveryOutcome::NotNeeded;
        }
        let at = self.offset_of(row).max(removal);
        RecoveryOutcome::Recovered {
            at,
            from_injection_us: micros(at.since(mark.begin)),
            from_removal_us: micros(at.since(removal)),
            declared: self.offset_of(row + self.sustain),
        }
    }

    /// No complete window held: why, and what is known all the same.
    fn not_recovered(
        &self,
        watched: &[Watched<'_>],
        quiet: &Range<usize>,
        from: usize,
        since_removal: impl Fn(usize) -> Duration,
    ) -> RecoveryOutcome {
        let tail_from = from.max((self.horizon + 1).saturating_sub(self.sustain));
        let tail = (tail_from..self.horizon)
            .find(|row| together(watched, *row..self.horizon).0 == Holds::Yes);
        let at_least_us = micros(since_removal(tail.unwrap_or(self.horizon)));
        let censored = |why: String| RecoveryOutcome::Censored { why, at_least_us };
        if self.cut_by_mark {
            return censored("the next trigger or fault began before it was decided".to_owned());
        }
        match (&self.observation.ending, tail) {
            (Ending::Running, _) => RecoveryOutcome::Undecided,
            (Ending::Interrupted(by), _) => censored(by.clone()),
            (Ending::Settled, Some(row)) => censored(format!(
                "in its band for the last {} s, but the run ended before that had held for {} s",
                self.horizon - row,
                self.sustain
            )),
            (Ending::Settled, None) => match fate(self, watched, quiet) {
                Fate::Draining { eta, stock } => RecoveryOutcome::Recovering {
                    within_us: at_least_us,
                    eta_us: micros(eta),
                    stock,
                },
                Fate::Stuck { signal, goodput } => RecoveryOutcome::Metastable {
                    within_us: at_least_us,
                    signal,
                    goodput,
                },
                Fate::Unclear(why) => censored(why),
            },
        }
    }

    fn signals(&self, watched: &[Watched<'_>]) -> Vec<SignalRecovery> {
        let of = |rows: &SignalRows| {
            let name = rows.name.clone();
            let Some(signal) = watched
                .iter()
                .find(|signal| std::ptr::eq(signal.rows, rows))
            else {
                return SignalRecovery {
                    name,
                    band: None,
                    onset: None,
                    recovered: None,
                    worst: None,
                    bad_seconds: 0,
                };
            };
            let seen = self.begin.min(self.horizon)..self.horizon;
            SignalRecovery {
                name,
                band: Some(signal.band),
                onset: signal.onset.map(|row| self.offset_of(row)),
                recovered: self.recovered_alone(signal).map(|row| self.offset_of(row)),
                worst: self.worst(signal, seen.clone()),
                bad_seconds: signal.judged.bad_in(seen),
            }
        };
        self.observation.signals.iter().map(of).collect()
    }

    pub(super) fn recovered_alone(&self, signal: &Watched<'_>) -> Option<usize> {
        let end = self.end?;
        let from = signal.onset.map_or(end, |onset| onset.max(end));
        self.complete(from)
            .find(|row| signal.judged.holds(*row..*row + self.sustain) == Holds::Yes)
    }

    fn worst(&self, signal: &Watched<'_>, rows: Range<usize>) -> Option<(f64, Offset)> {
        let mut worst: Option<(f64, usize)> = None;
        for row in rows {
            let Some(value) = signal.rows.rows[row] else {
                continue;
            };
            if worst.is_none_or(|(known, _)| signal.band.is_worse(value, known)) {
                worst = Some((value, row));
            }
        }
        worst.map(|(value, row)| (value, self.offset_of(row)))
    }

    pub(super) fn offset_of(&self, row: usize) -> Offset {
        Offset((self.observation.first_second + row as u64) * 1_000_000)
    }
}

/// Whether all signals hold over the rows; the name is of one that could not be read.
pub(super) fn together<'w>(
    watched: &'w [Watched<'_>],
    rows: Range<usize>,
) -> (Holds, Option<&'w str>) {
    let mut unknown = None;
    for signal in watched {
        match signal.judged.holds(rows.clone()) {
            Holds::No => return (Holds::No, None),
            Holds::Unknown => unknown = Some(signal.rows.name.as_str()),
            Holds::Yes => {}
        }
    }
    if unknown.is_some() {
        (Holds::Unknown, unknown)
    } else {
        (Holds::Yes, None)
    }
}

fn row_of(observation: &Observation, offset: Offset) -> usize {
    usize::try_from(offset.second().saturating_sub(observation.first_second)).unwrap_or(usize::MAX)
}

fn seconds(duration: Duration) -> usize {
    usize::try_from(duration.as_micros().div_ceil(1_000_000)).unwrap_or(usize::MAX)
}

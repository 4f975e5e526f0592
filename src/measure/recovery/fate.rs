//! What to say of a target that was watched to the end and is not back: it drains, it is stuck, or it is not known.
//!
//! Two windows must agree: by one alone a slow drain looks stuck (field notes on recovery, §2.2).

use super::analysis::{Look, Watched};
use super::trend::{Trend, median_of, trend};
use super::{Settings, SignalKind};
use std::ops::Range;
use std::time::Duration;

/// Below this share of the quiet time's goodput a target that does not drain is metastable.
const METASTABLE_GOODPUT: f64 = 0.5;
/// A load up to this share above the quiet time's counts as no higher.
const SAME_LOAD: f64 = 1.1;
/// A stock drains if it shrinks by more than this share of what is too much of it in a window, and more than noise explains.
const DRAINS_SHARE: f64 = 0.02;
const DRAINS_ERRORS: f64 = 3.0;
/// Seconds of a window at least.
const SHORTEST_WINDOW: usize = 3;

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    Draining { eta: Duration, stock: String },
    Stuck { signal: String, goodput: f64 },
    Unclear(String),
}

/// How long a target must be watched after the removal before it is called metastable: three times timeout and longest wait, ten
/// timeouts, and the sustain time (the notes' 120 s are the longest sustain time of a gate).
pub(super) fn observation_needed(settings: &Settings) -> Duration {
    let echo = settings.timeout + settings.longest_wait;
    (echo * 3).max(settings.timeout * 10).max(settings.sustain)
}

/// The fate of what is not back at the end of the columns.
pub(super) fn fate(look: &Look<'_>, watched: &[Watched<'_>], quiet: &Range<usize>) -> Fate {
    let needed = look.observation_needed.max(3 * SHORTEST_WINDOW);
    let end = look.end.unwrap_or(look.horizon);
    let seen = look.horizon.saturating_sub(end);
    if seen < needed {
        return Fate::Unclear(format!(
            "it was watched for {seen} s after its end, and {needed} s tell a slow recovery from none: make `settle` longer"
        ));
    }
    let window = needed / 3;
    let last = look.horizon;
    let windows = [last - 2 * window..last - window, last - window..last];
    let bad: Vec<&Watched<'_>> = watched
        .iter()
        .filter(|signal| !signal.is_back(windows[1].clone()))
        .collect();
    let stocks: Vec<&Watched<'_>> = bad
        .iter()
        .copied()
        .filter(|signal| signal.is_stock())
        .collect();
    // Work that is missed is what shrinks or not where nothing piles up.
    let shrinking = if stocks.is_empty() { &bad } else { &stocks };
    let drains: Vec<[Option<Trend>; 2]> = shrinking
        .iter()
        .map(|signal| windows.clone().map(|rows| draining(signal, rows)))
        .collect();
    let draining_all = drains.iter().all(|both| both.iter().all(Option::is_some));
    if draining_all && !drains.is_empty() {
        return slowest(look, shrinking, &drains);
    }
    let none_drains = drains.iter().flatten().all(Option::is_none);
    if let Some(higher) = watched
        .iter()
        .find(|signal| is_loaded_more(signal, quiet, &windows))
    {
        return Fate::Unclear(format!(
            "more is asked for than in the quiet time before it ({})",
            higher.rows.name
        ));
    }
    let worst = bad
        .iter()
        .filter_map(|signal| {
            let both = windows.clone().map(|rows| goodput(look, signal, rows));
            Some((signal, both[0]?.max(both[1]?)))
        })
        .min_by(|(_, a), (_, b)| a.total_cmp(b));
    match worst {
        Some((signal, goodput)) if goodput < METASTABLE_GOODPUT && none_drains => Fate::Stuck {
            signal: signal.rows.name.clone(),
            goodput,
        },
        _ => Fate::Unclear(
            "out of its band to the end, neither draining in both of the last two windows nor stuck".to_owned(),
        ),
    }
}

/// The stock that takes longest at the rate of both windows.
fn slowest(look: &Look<'_>, signals: &[&Watched<'_>], drains: &[[Option<Trend>; 2]]) -> Fate {
    let etas = signals.iter().zip(drains).filter_map(|(signal, both)| {
        let rate = -f64::midpoint(both[0]?.slope, both[1]?.slope);
        let left = signal.excess(look.horizon.checked_sub(1)?)?.max(0.0);
        Some((left / rate, signal.rows.name.clone()))
    });
    let slowest = etas.max_by(|(a, _), (b, _)| a.total_cmp(b));
    let (seconds, stock) = slowest.unwrap_or_default();
    Fate::Draining {
        eta: Duration::from_secs_f64(seconds.clamp(0.0, 1e9)),
        stock,
    }
}

/// The trend of what is too much of it, if that shrinks for certain.
fn draining(signal: &Watched<'_>, rows: Range<usize>) -> Option<Trend> {
    let points: Vec<(f64, f64)> = rows
        .filter_map(|row| Some((row as f64, signal.excess(row)?)))
        .collect();
    let found = trend(&points)?;
    let mut levels: Vec<f64> = points.iter().map(|(_, excess)| *excess).collect();
    let level = median_of(&mut levels)?.abs();
    let shrinks = -found.moved > DRAINS_SHARE * level && -found.moved > DRAINS_ERRORS * found.error;
    shrinks.then_some(found)
}

/// The middle share of the goodput over the rows. Of hubs: of those that went away, how many are back.
fn goodput(look: &Look<'_>, signal: &Watched<'_>, rows: Range<usize>) -> Option<f64> {
    let median = signal.band.baseline.median;
    let mut shares: Vec<f64> = match signal.rows.kind {
        SignalKind::Goodput => rows.filter_map(|row| signal.goodput(row)).collect(),
        SignalKind::Connected => {
            let known = signal.rows.rows.get(look.begin..look.horizon)?;
            let trough = known.iter().flatten().copied().min_by(f64::total_cmp)?;
            let values = rows.filter_map(|row| signal.rows.rows[row]);
            values
                .map(|value| (value - trough) / (median - trough))
                .collect()
        }
        SignalKind::Backlog { .. } | SignalKind::Wait { .. } => return None,
    };
    median_of(&mut shares).filter(|share| share.is_finite())
}

fn is_loaded_more(signal: &Watched<'_>, quiet: &Range<usize>, windows: &[Range<usize>; 2]) -> bool {
    let Some(activity) = &signal.rows.activity else {
        return false;
    };
    let mean = |rows: &Range<usize>| {
        let offered = activity.offered.get(rows.clone())?;
        Some(offered.iter().sum::<f64>() / offered.len().max(1) as f64)
    };
    let Some(before) = mean(quiet) else {
        return false;
    };
    windows
        .iter()
        .any(|rows| mean(rows).is_some_and(|now| now > SAME_LOAD * before))
}

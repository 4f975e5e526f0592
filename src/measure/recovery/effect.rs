//! What a mark cost: successes, time offline, attempts.

use super::analysis::{Look, Watched};
use super::stocks::{self, Backlog};
use super::synchronisation::{Tenths, dispersion, phase_concentration};
use super::{HubRows, SignalKind, WorkRows};
use crate::event::Offset;
use serde::Serialize;
use std::ops::Range;

/// Amplification is worst over this many seconds.
const WORST_SECONDS: usize = 10;

/// From a mark's begin to the recovery, or as far as was watched.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Effect {
    pub backlogs: Vec<Backlog>,
    /// One row for each signal of useful work that left its band.
    pub losses: Vec<Loss>,
    /// Minutes that hubs missed below the quiet time's number of them; `None` without hubs.
    pub offline_hub_minutes: Option<f64>,
    /// Journeys that ended without success: each is another rider.
    pub failed_journeys: Option<u64>,
    pub amplification: Option<Amplification>,
    pub synchronisation: Option<Synchronisation>,
}

/// What one signal lost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    pub signal: String,
    /// Successes that the quiet time's goodput would have had; `None` where it is not known how much was asked for.
    pub lost_successes: Option<f64>,
    /// The resilience triangle: the share of the goodput that was missing, on average.
    pub area: f64,
    /// The lowest share of the quiet time's goodput, and when.
    pub nadir: f64,
    pub nadir_at: Offset,
    /// Share of the goodput that came back a second, from the nadir to the recovery.
    pub rapidity_per_second: Option<f64>,
}

/// Attempts for each action.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Amplification {
    pub overall: f64,
    pub worst: f64,
    /// Begin of the worst ten seconds.
    pub worst_at: Offset,
}

/// How much in step hubs came back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Synchronisation {
    /// Variance ÷ mean of attempts a tenth of a second; 1 is chance.
    pub index: f64,
    /// At the retry period; 1 is all in step.
    pub phase_concentration: Option<f64>,
}

/// The effect over the rows from the mark's begin to `to`.
pub(super) fn effect(look: &Look<'_>, watched: &[Watched<'_>], recovered: Option<usize>) -> Effect {
    let to = recovered
        .map_or(look.horizon, |row| row.min(look.horizon))
        .max(look.begin);
    let rows = look.begin..to;
    let goodputs = watched
        .iter()
        .filter(|signal| signal.rows.kind == SignalKind::Goodput && signal.onset.is_some());
    Effect {
        backlogs: stocks::backlogs(look, watched),
        losses: goodputs
            .filter_map(|signal| loss(look, signal, rows.clone(), recovered))
            .collect(),
        offline_hub_minutes: offline(watched, rows.clone()),
        failed_journeys: look.observation.work.as_ref().map(|work| {
            let failed = work.failed_journeys.get(rows.clone());
            failed.map_or(0, |failed| failed.iter().sum::<f64>() as u64)
        }),
        amplification: look
            .observation
            .work
            .as_ref()
            .and_then(|work| amplification(look, work, &rows)),
        synchronisation: look
            .observation
            .hubs
            .as_ref()
            .and_then(|hubs| synchronisation(hubs, &rows)),
    }
}

fn loss(
    look: &Look<'_>,
    signal: &Watched<'_>,
    rows: Range<usize>,
    recovered: Option<usize>,
) -> Option<Loss> {
    let median = signal.band.baseline.median;
    let (mut missing, mut seconds, mut lost) = (0.0, 0.0, 0.0);
    let mut nadir: Option<(f64, usize)> = None;
    for row in rows {
        let Some(share) = signal.goodput(row) else {
            continue;
        };
        missing += 1.0 - share.min(1.0);
        seconds += 1.0;
        let expected = signal.judged.expected_in(row);
        let served = signal.rows.rows[row].unwrap_or(0.0) * signal.judged.tried_in(row);
        lost += (median * expected - served).max(0.0);
        if nadir.is_none_or(|(lowest, _)| share < lowest) {
            nadir = Some((share, row));
        }
    }
    let (lowest, nadir_row) = nadir?;
    let rapidity = recovered
        .filter(|row| *row > nadir_row)
        .map(|row| (1.0 - lowest) / (row - nadir_row) as f64);
    Some(Loss {
        signal: signal.rows.name.clone(),
        lost_successes: signal.judged.depends_on_activity().then_some(lost),
        area: missing / seconds,
        nadir: lowest,
        nadir_at: look.offset_of(nadir_row),
        rapidity_per_second: rapidity,
    })
}

fn offline(watched: &[Watched<'_>], rows: Range<usize>) -> Option<f64> {
    let mut groups = watched
        .iter()
        .filter(|signal| signal.rows.kind == SignalKind::Connected)
        .peekable();
    groups.peek()?;
    let away =
        |signal: &Watched<'_>| -> f64 { rows.clone().filter_map(|row| signal.stock(row)).sum() };
    Some(groups.map(away).sum::<f64>() / 60.0)
}

/// Attempts ÷ actions that were under way: those at the begin and those started.
fn amplification(look: &Look<'_>, work: &WorkRows, rows: &Range<usize>) -> Option<Amplification> {
    let over = |rows: Range<usize>| {
        let before = rows.start.checked_sub(1);
        let under_way = before
            .and_then(|row| work.under_way.get(row))
            .unwrap_or(&0.0);
        let actions = under_way + work.started.get(rows.clone())?.iter().sum::<f64>();
        (actions > 0.0).then(|| work.attempted[rows].iter().sum::<f64>() / actions)
    };
    let overall = over(rows.clone())?;
    let last = rows.end.saturating_sub(WORST_SECONDS).max(rows.start);
    let (worst, worst_row) = (rows.start..=last)
        .filter_map(|row| Some((over(row..(row + WORST_SECONDS).min(rows.end))?, row)))
        .fold((0.0, rows.start), |worst, next| {
            if next.0 > worst.0 { next } else { worst }
        });
    Some(Amplification {
        overall,
        worst,
        worst_at: look.offset_of(worst_row),
    })
}

fn synchronisation(hubs: &HubRows, rows: &Range<usize>) -> Option<Synchronisation> {
    let tenths: &[Tenths] = hubs.tenths.get(rows.clone())?;
    Some(Synchronisation {
        index: dispersion(tenths)?,
        phase_concentration: hubs
            .period
            .and_then(|period| phase_concentration(tenths, period)),
    })
}

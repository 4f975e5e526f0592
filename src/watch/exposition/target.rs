//! What probes read, and what triggers and faults did.

use super::{Labels, Page, Seen};
use crate::event::Offset;
use crate::measure::pool::PoolSeries;
use crate::measure::recovery::RecoveryOutcome;
use crate::plan::signal::Signal;
use std::ops::Range;

/// Seconds over which waits are taken, and within which a reading is one of now.
const WINDOW_SECONDS: u64 = 5;

/// The families that show a gauge, as it was last read.
const GAUGES: [(&str, Signal, f64); 9] = [
    ("rushhour_probe_waiting", Signal::Waiting, 1.0),
    ("rushhour_probe_in_use", Signal::InUse, 1.0),
    ("rushhour_probe_max", Signal::Max, 1.0),
    ("rushhour_probe_saturation_ratio", Signal::Saturation, 1.0),
    ("rushhour_probe_connections", Signal::Connections, 1.0),
    ("rushhour_probe_depth", Signal::Depth, 1.0),
    ("rushhour_probe_age_seconds", Signal::Age, 1e-6),
    ("rushhour_probe_value", Signal::Value, 1.0),
    ("rushhour_probe_wait_p99_seconds", Signal::WaitP99, 1e-6),
];

/// The families that show how much a counter grew since the run began.
const COUNTERS: [(&str, Signal); 5] = [
    ("rushhour_probe_timeouts_total", Signal::Timeouts),
    ("rushhour_probe_connects_total", Signal::Connects),
    ("rushhour_probe_disconnects_total", Signal::Disconnects),
    ("rushhour_probe_takeovers_total", Signal::Takeovers),
    ("rushhour_probe_dropped_total", Signal::Dropped),
];

/// Every probed source.
pub(super) fn probes(seen: &Seen<'_>, page: &mut Page) {
    let plan = seen.collector.plan();
    let end = seen.collector.series().end();
    let second = |second: u64| Offset(second.saturating_mul(1_000_000));
    // What was read in the second that is not closed yet is known already.
    let now = second(end + 1);
    let recent = second(end.saturating_sub(WINDOW_SECONDS))..now;
    let whole = Offset::ZERO..now;
    let sources = || plan.target.probes.sources.iter().zip(seen.pools);
    let each = |value: &dyn Fn(&PoolSeries) -> Option<f64>| {
        let samples = sources().filter_map(|(source, series)| {
            let labels: Labels<'_> = vec![
                ("source", source.name.as_str()),
                ("plays", source.plays.name()),
            ];
            Some((labels, value(series)?))
        });
        samples.collect::<Vec<_>>()
    };
    let up = each(&|series| Some(f64::from(u8::from(series.is_seeing()))));
    page.family("rushhour_probe_up", up);
    let wait = each(&|series| Some(series.wait_mean(recent.clone())?.judged_us / 1e6));
    page.family("rushhour_probe_wait_seconds", wait);
    for (name, signal, scale) in GAUGES {
        let values = each(&|series| {
            let told = series.gauge(signal, recent.clone()).map(|span| span.last);
            let p99 = |series: &PoolSeries| {
                let estimate = series.wait_quantile(recent.clone(), 0.99)?;
                (!estimate.at_least).then_some(estimate.value_us)
            };
            let value = if signal == Signal::WaitP99 {
                p99(series)
            } else {
                told
            };
            Some(value? * scale)
        });
        page.family(name, values);
    }
    let stalls = each(&|series| Some(f64::from(u8::from(series.is_stalled(recent.clone())?))));
    page.family("rushhour_probe_stalled", stalls);
    let stalled = each(&|series| Some(series.stalled(whole.clone())?.as_secs_f64()));
    page.family("rushhour_probe_stalled_seconds_total", stalled);
    let acquires = each(&|series| series.acquires(whole.clone()));
    page.family("rushhour_probe_acquires_total", acquires);
    for (name, signal) in COUNTERS {
        page.family(
            name,
            each(&|series| series.increase_of(signal, whole.clone())),
        );
    }
    let duration = each(&|series| Some(series.costs()?.last_us as f64 / 1e6));
    page.family("rushhour_probe_duration_seconds", duration);
    blindness(seen, second(end), page);
    gaps(seen, &whole, page);
}

/// Time without readings since 0:00; of a whole run it may shrink by a moment when a late reading comes.
fn blindness(seen: &Seen<'_>, now: Offset, page: &mut Page) {
    let Some(zero) = seen.collector.marks().zero.filter(|zero| *zero < now) else {
        return;
    };
    let sources = &seen.collector.plan().target.probes.sources;
    let rows = sources.iter().zip(seen.pools).map(|(source, series)| {
        let blind = series.blind(zero..now).share * now.since(zero).as_secs_f64();
        let labels: Labels<'_> = vec![
            ("source", source.name.as_str()),
            ("plays", source.plays.name()),
        ];
        (labels, blind)
    });
    page.family("rushhour_probe_blind_seconds", rows);
}

fn gaps(seen: &Seen<'_>, whole: &Range<Offset>, page: &mut Page) {
    let sources = &seen.collector.plan().target.probes.sources;
    let rows = sources.iter().zip(seen.pools).flat_map(|(source, series)| {
        let gaps = series.source_summary(whole.clone()).gaps;
        gaps.into_iter().map(|(reason, count)| {
            let labels: Labels<'_> = vec![
                ("source", source.name.as_str()),
                ("plays", source.plays.name()),
                ("reason", reason),
            ];
            (labels, count as f64)
        })
    });
    page.family("rushhour_probe_gaps_total", rows.collect::<Vec<_>>());
}

/// Triggers and faults, and how the target came back from them.
pub(super) fn marks(seen: &Seen<'_>, page: &mut Page) {
    let marks = seen.collector.marks();
    let active = |is_fault: bool, label: &'static str| {
        let rows = marks
            .rows
            .iter()
            .filter(move |mark| mark.is_fault == is_fault);
        rows.map(move |mark| {
            let acts = mark.begin.is_some() && mark.end.is_none() && mark.failed.is_none();
            (vec![(label, mark.name.as_str())], f64::from(u8::from(acts)))
        })
    };
    page.family("rushhour_trigger_active", active(false, "trigger"));
    page.family("rushhour_fault_active", active(true, "fault"));
    let named = || {
        seen.recoveries.iter().filter_map(|recovery| {
            let mark = marks.rows.iter().find(|mark| mark.id == recovery.mark)?;
            Some((mark.name.as_str(), &recovery.outcome))
        })
    };
    let good = |outcome: &RecoveryOutcome| {
        matches!(
            outcome,
            RecoveryOutcome::NotNeeded | RecoveryOutcome::Recovered { .. }
        )
    };
    page.family(
        "rushhour_recovered",
        named().map(|(name, outcome)| (vec![("mark", name)], f64::from(u8::from(good(outcome))))),
    );
    let times = named().flat_map(|(name, outcome)| {
        let times = match outcome {
            RecoveryOutcome::NotNeeded => Some((0, 0)),
            RecoveryOutcome::Recovered {
                from_injection_us,
                from_removal_us,
                ..
            } => Some((*from_injection_us, *from_removal_us)),
            _ => None,
        };
        let rows = times.map(|(injection, removal)| {
            [("injection", injection), ("removal", removal)]
                .map(|(from, us)| (vec![("mark", name), ("from", from)], us as f64 / 1e6))
        });
        rows.into_iter().flatten()
    });
    page.family("rushhour_recovery_seconds", times.collect::<Vec<_>>());
}

//! The critical number, as rows and as a sentence.

use super::data::{CriticalRow, IntervalRow};
use crate::measure::Collector;
use crate::measure::critical::{Critical, Interval, Side, critical};
use crate::measure::figures;
use crate::measure::pool::PoolSeries;

pub(super) fn rows(collector: &Collector, pools: &[PoolSeries]) -> Vec<CriticalRow> {
    critical(collector, pools)
        .iter()
        .map(|found| row(collector, found))
        .collect()
}

fn row(collector: &Collector, found: &Critical) -> CriticalRow {
    let plan = collector.plan();
    let interval = |interval: Interval| IntervalRow {
        low: interval.low,
        middle: interval.middle,
        high: Some(interval.high).filter(|high| high.is_finite()),
    };
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    CriticalRow {
        mark: plan.mark_name(found.mark).to_owned(),
        group: plan
            .hubs
            .get(found.group)
            .map(|group| group.name.clone())
            .unwrap_or_default(),
        fleet: found.fleet,
        dropped: found.dropped,
        number: interval(found.number),
        share: interval(found.share()),
        at_least: found.at_least,
        side: match found.side() {
            Side::Below => "below",
            Side::Near => "near",
            Side::Above => "above",
        }
        .to_owned(),
        connects_per_second: interval(found.per_second),
        seen: found.seen.clone(),
        background: interval(found.background),
        timeout_us: micros(found.timeout),
        mean_wait_us: micros(found.mean_wait),
        spread_us: micros(found.spread),
    }
}

/// What it is, what it was made of, and where the run lies.
pub(super) fn sentences(row: &CriticalRow) -> Vec<String> {
    let number = |value: f64| figures::number(value.round());
    let span = |of: &IntervalRow| match of.high {
        Some(high) => format!(
            "{} ({} to {})",
            number(of.middle),
            number(of.low),
            number(high)
        ),
        None => format!("at least {}", number(of.low)),
    };
    let what = if row.at_least {
        format!("at least {} hubs", number(row.number.low))
    } else {
        format!("{} hubs", span(&row.number))
    };
    let against = if row.at_least {
        row.number.low
    } else {
        row.number.middle
    };
    let times = row.dropped as f64 / against.max(1.0);
    let side = match row.side.as_str() {
        "below" => "below it, where the target comes back by itself",
        "above" => "above it, where the target does not come back by itself",
        _ if row.at_least => "not below what is certain",
        _ => "so near to it that chance decides",
    };
    let time = |us: u64| figures::time(us as f64);
    vec![
        format!(
            "{}: {what} of {} come back by themselves; {} dropped {}, {} times that: {side}",
            row.group,
            figures::count(row.fleet),
            row.mark,
            figures::count(row.dropped),
            figures::number(times),
        ),
        format!(
            "made of {} connects/s ({}), timeout {}, mean wait {}, first attempts spread over {}, {} used by others",
            span(&row.connects_per_second),
            row.seen,
            time(row.timeout_us),
            time(row.mean_wait_us),
            time(row.spread_us),
            figures::share(row.background.middle),
        ),
    ]
}

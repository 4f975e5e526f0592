//! What probes read, as rows.

use super::data::{PoolRow, PoolSpan, ProbeCost, SignalFigures, ValueRow};
use super::timeline::load_seconds;
use crate::event::Offset;
use crate::measure::pool::PoolSeries;
use crate::measure::{Collector, Marks};
use crate::plan::signal::Signal;
use crate::plan::target::Plays;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

pub(super) fn rows(collector: &Collector, pools: &[PoolSeries]) -> Vec<PoolRow> {
    let load = load_seconds(collector);
    let window = Offset(load.start * 1_000_000)..Offset(load.end * 1_000_000);
    let sources = collector.plan().target.probes.sources.iter().zip(pools);
    let rows = sources.map(|(source, series)| {
        let summary = series.source_summary(window.clone());
        let is_pool = source.plays == Plays::Pool;
        PoolRow {
            source: source.name.clone(),
            plays: source.plays.name().to_owned(),
            readings: summary.readings,
            blind: summary.blind.share,
            blind_longest_us: summary.blind.longest_us,
            gaps: summary
                .gaps
                .iter()
                .map(|(reason, count)| ((*reason).to_owned(), *count))
                .collect::<BTreeMap<_, _>>(),
            last_gap: summary.last_gap,
            restarts: summary.restarts,
            value: value(source.plays, series, window.clone()),
            overall: is_pool.then(|| span(collector, "load".to_owned(), series, window.clone())),
            signals: signals(series, &window),
            assumption: source.origin.assumption().map(str::to_owned),
            cost: summary.costs.map(|costs| ProbeCost {
                answers: costs.answers,
                mean_us: costs.mean_us,
                longest_us: costs.longest_us,
                bytes: costs.bytes,
                bad_lines: costs.bad_lines,
                duplicate_lines: costs.duplicate_lines,
            }),
            spans: if is_pool {
                mark_spans(collector, series, &window)
            } else {
                Vec::new()
            },
        }
    });
    rows.collect()
}

fn value(plays: Plays, series: &PoolSeries, window: Range<Offset>) -> Option<ValueRow> {
    let signal = match plays {
        Plays::Value => Signal::Value,
        Plays::Queue => Signal::Depth,
        Plays::Pool | Plays::Broker => return None,
    };
    let span = series.gauge(signal, window)?;
    Some(ValueRow {
        least: span.min,
        mean: span.mean,
        most: span.max,
        last: span.last,
    })
}

/// Before, during and after each mark: the quiet time, its begin to its end, its end to the next mark.
fn mark_spans(collector: &Collector, series: &PoolSeries, load: &Range<Offset>) -> Vec<PoolSpan> {
    let marks = collector.marks();
    let mut spans = Vec::new();
    for row in &marks.rows {
        let Some(begin) = row.begin else { continue };
        let end = row.end.unwrap_or(load.end);
        let quiet =
            Offset(begin.0.saturating_sub(micros(collector.plan().baseline))).max(load.start);
        let mut add = |part: &str, window: Range<Offset>| {
            if window.start < window.end {
                let name = format!("{part} {}", row.name);
                spans.push(span(collector, name, series, window));
            }
        };
        add("before", quiet..begin);
        // A moment has no length: the second in which it was is looked at.
        add(
            "during",
            begin..end.max(begin.after(Duration::from_secs(1))),
        );
        add("after", end..next_begin(marks, end).unwrap_or(load.end));
    }
    spans
}

fn next_begin(marks: &Marks, after: Offset) -> Option<Offset> {
    marks
        .rows
        .iter()
        .filter_map(|row| row.begin)
        .filter(|begin| *begin > after)
        .min()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Every signal that the source has.
fn signals(series: &PoolSeries, window: &Range<Offset>) -> Vec<SignalFigures> {
    let of = |signal: Signal| {
        let gauge = series.gauge(signal, window.clone());
        let gauge = gauge.filter(|_| !signal.is_counter());
        let grew = series.increase_of(signal, window.clone());
        (gauge.is_some() || grew.is_some()).then(|| SignalFigures {
            signal: signal.name().to_owned(),
            is_time: signal.is_time(),
            least: gauge.map(|span| span.min),
            mean: gauge.map(|span| span.mean),
            most: gauge.map(|span| span.max),
            last: gauge.map(|span| span.last),
            grew,
            per_second: series.rate_of(signal, window.clone()),
        })
    };
    Signal::ALL.into_iter().filter_map(of).collect()
}

fn span(
    collector: &Collector,
    span: String,
    series: &PoolSeries,
    window: Range<Offset>,
) -> PoolSpan {
    let requests = collector.requests(window.start.second()..window.end.second());
    let summary = series.summary(window);
    PoolSpan {
        span,
        wait_mean_us: summary.wait.map(|wait| wait.judged_us),
        wait_by_counters_us: summary.wait.and_then(|wait| wait.by_counters_us),
        wait_by_little_us: summary.wait.and_then(|wait| wait.by_little_us),
        wait_p99_us: summary.wait_p99.map(|estimate| estimate.value_us),
        wait_p99_at_least: summary.wait_p99.is_some_and(|estimate| estimate.at_least),
        waiting_max: summary.waiting.map(|waiting| waiting.max),
        in_use_max: summary.in_use.map(|in_use| in_use.max),
        max: summary.max,
        saturation_max: summary.saturation.map(|saturation| saturation.max),
        stalled_us: summary.stalled_us,
        timeouts: summary.timeouts,
        acquires_per_request: summary
            .acquires
            .filter(|_| requests > 0)
            .map(|acquires| acquires / requests as f64),
        acquires: summary.acquires,
    }
}

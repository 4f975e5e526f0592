//! What readings of a pool mean: both means, stalls, blindness, quantiles, restarts.

use proptest::prelude::*;
use rushhour::event::Offset;
use rushhour::measure::pool::{
    Cost, Counter, Estimate, Gap, GapReason, PoolSeries, Reading, Sample, Value,
};
use rushhour::plan::signal::Signal;
use std::ops::Range;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A target's counters as they stand.
#[derive(Debug, Clone, Copy, Default)]
struct Pool {
    waited_s: f64,
    count: f64,
    waiting: f64,
    timeouts: f64,
}

fn at(second: u64) -> Offset {
    Offset(second * 1_000_000)
}

fn seconds(range: Range<u64>) -> Range<Offset> {
    at(range.start)..at(range.end)
}

fn counter(counter: Counter, value: f64) -> Value {
    Value::Counter {
        counter,
        series: String::new(),
        value,
    }
}

fn values(pool: Pool) -> Vec<Value> {
    vec![
        counter(Counter::WaitSum, pool.waited_s * 1e6),
        counter(Counter::WaitCount, pool.count),
        counter(Counter::Of(Signal::Timeouts), pool.timeouts),
        Value::Gauge {
            signal: Signal::Waiting,
            value: pool.waiting,
        },
    ]
}

fn add(series: &mut PoolSeries, second: u64, values: Vec<Value>) {
    let reading = Reading {
        cost: Cost::default(),
        at: at(second),
        started: None,
        values,
    };
    series.add(Sample {
        source: 0,
        at: at(second),
        instances: vec![Ok(reading)],
    });
}

fn gap(series: &mut PoolSeries, second: u64) {
    let gap = Gap {
        reason: GapReason::TimedOut,
        detail: "no answer in time".to_owned(),
    };
    series.add(Sample {
        source: 0,
        at: at(second),
        instances: vec![Err(gap)],
    });
}

/// One reading a second, as `each` says.
fn series(length: u64, each: impl Fn(u64) -> Pool) -> PoolSeries {
    let mut series = PoolSeries::new(SECOND);
    for second in 0..length {
        add(&mut series, second, values(each(second)));
    }
    series
}

#[test]
fn counters_and_littles_law_agree_on_a_steady_pool() {
    // 100 requests a second wait 50 ms each, so five wait at any time.
    let series = series(60, |second| Pool {
        waited_s: second as f64 * 5.0,
        count: second as f64 * 100.0,
        waiting: 5.0,
        timeouts: 0.0,
    });
    let wait = series.wait_mean(seconds(10..50)).unwrap();
    assert_eq!(wait.by_counters_us, Some(50_000.0));
    assert_eq!(wait.by_little_us, Some(50_000.0));
    assert_eq!(wait.judged_us, 50_000.0);
    assert_eq!(series.stalled(seconds(0..60)), Some(Duration::ZERO));
}

/// Ten clients stuck for 12 s: the counters stay flat, then 120 s of waiting appear in one step. During the stall only Little's
/// law and the stall itself can tell.
#[test]
fn a_stall_is_seen_while_the_counters_are_frozen() {
    let series = series(60, |second| match second {
        0..20 => Pool {
            waited_s: 0.0,
            count: second as f64 * 100.0,
            waiting: 0.0,
            timeouts: 0.0,
        },
        20..32 => Pool {
            waited_s: 0.0,
            count: 1900.0,
            waiting: 10.0,
            timeouts: 0.0,
        },
        _ => Pool {
            waited_s: 120.0,
            count: 1910.0 + (second - 32) as f64 * 100.0,
            waiting: 0.0,
            timeouts: 0.0,
        },
    });
    let during = series.wait_mean(seconds(20..31)).unwrap();
    assert_eq!(
        during.by_counters_us, None,
        "no wait ended: there is no ratio, and it is not zero"
    );
    assert!(during.judged_us >= 10_000_000.0, "{during:?}");
    assert_eq!(
        series.stalled(seconds(0..60)),
        Some(Duration::from_secs(12))
    );
    assert_eq!(series.stalled(seconds(40..60)), Some(Duration::ZERO));
    let by_second = series.wait_by_second(0, 60);
    assert_eq!(by_second[10], Some(0.0));
    assert_eq!(
        by_second[28],
        Some(10_000_000.0),
        "the head of the queue has waited since second 19"
    );
}

/// Measured on PgBouncer 1.18: with timeouts the counter ratio read a third too low, Little's law 2 % off.
#[test]
fn with_timeouts_the_larger_mean_is_judged() {
    // 100 arrive a second; 30 give up after 1 s (their wait is in no counter), 70 wait 0.5 s: 65 wait at any time, and the mean is 0.65 s.
    let mut series = PoolSeries::new(SECOND);
    for second in 0..60 {
        let mut read = values(Pool {
            waited_s: second as f64 * 35.0,
            count: second as f64 * 70.0,
            waiting: 65.0 + (second % 2) as f64 * 2.0 - 1.0,
            timeouts: second as f64 * 30.0,
        });
        read.push(counter(Counter::Of(Signal::Acquires), second as f64 * 70.0));
        add(&mut series, second, read);
    }
    let wait = series.wait_mean(seconds(5..55)).unwrap();
    assert_eq!(wait.by_counters_us, Some(500_000.0));
    assert!((wait.judged_us - 650_000.0).abs() < 7_000.0, "{wait:?}");
    assert_eq!(wait.by_little_us, Some(wait.judged_us));
    assert_eq!(
        series.increase_of(Signal::Timeouts, seconds(5..55)),
        Some(1500.0)
    );
}

/// A histogram that counts give-ups goes on growing in a stall: what grows is not what was acquired.
#[test]
fn nobody_gets_a_connection_while_all_give_up() {
    let series = series(30, |second| {
        let gave_up = second.saturating_sub(10).min(10) as f64 * 20.0;
        let served = second as f64 * 50.0 - second.saturating_sub(10).min(10) as f64 * 50.0;
        Pool {
            waited_s: gave_up * 5.0,
            count: served + gave_up,
            waiting: if gave_up > 0.0 { 100.0 } else { 0.0 },
            timeouts: gave_up,
        }
    });
    assert_eq!(
        series.stalled(seconds(0..30)),
        Some(Duration::from_secs(10))
    );
    assert_eq!(series.acquires(seconds(10..20)), Some(0.0));
    let wait = series.wait_mean(seconds(11..20)).unwrap();
    assert_eq!(wait.by_counters_us, Some(5_000_000.0));
    assert!((wait.judged_us - 5_000_000.0).abs() < 1.0, "{wait:?}");
}

/// Sampled once a second, one moment of bad luck must not overrule what every single wait was counted by.
#[test]
fn one_unlucky_reading_does_not_overrule_the_counters() {
    let series = series(60, |second| Pool {
        waited_s: second as f64 * 0.1,
        count: second as f64 * 100.0,
        waiting: if second == 30 { 40.0 } else { 0.0 },
        timeouts: 0.0,
    });
    let wait = series.wait_mean(seconds(0..60)).unwrap();
    assert!(wait.by_little_us.unwrap() > 6_000.0, "{wait:?}");
    assert!((wait.judged_us - 1000.0).abs() < 1e-6, "{wait:?}");
}

#[test]
fn an_idle_pool_has_no_mean_wait() {
    let series = series(20, |_| Pool {
        count: 7.0,
        waited_s: 1.0,
        ..Pool::default()
    });
    assert_eq!(series.wait_mean(seconds(0..20)), None);
    assert_eq!(series.acquires(seconds(0..20)), Some(0.0));
}

#[test]
fn where_only_waiters_are_counted_none_means_no_wait() {
    let mut series = PoolSeries::new(SECOND);
    for second in 0..10 {
        add(
            &mut series,
            second,
            vec![
                counter(Counter::WaitSum, 5e6),
                counter(Counter::Waiters, 3.0),
            ],
        );
    }
    assert_eq!(series.wait_mean(seconds(0..10)).unwrap().judged_us, 0.0);
    let stalled = |series: &PoolSeries, part| series.stalled(seconds(part)).unwrap();
    assert_eq!(stalled(&series, 0..10), Duration::ZERO, "nobody waits");
    // Requests begin to wait, and no wait ends: of Go's pools that is all that a stall shows.
    for second in 10..20 {
        let waiters = 3.0 + (second - 9) as f64;
        add(
            &mut series,
            second,
            vec![
                counter(Counter::WaitSum, 5e6),
                counter(Counter::Waiters, waiters),
            ],
        );
    }
    assert_eq!(stalled(&series, 0..20), Duration::from_secs(10));
}

/// PgBouncer before 1.23: transactions count when a query arrives, so that in a stall only the time waited stands still.
#[test]
fn where_arrivals_are_counted_a_stall_is_seen_by_the_time_that_stands_still() {
    let mut series = PoolSeries::new(SECOND);
    for second in 0..20_u64 {
        let (waited, waiting) = if second < 10 {
            (second as f64 * 4e6, 4.0)
        } else {
            (36e6, 4.0 + (second - 9) as f64)
        };
        let gauge = Value::Gauge {
            signal: Signal::Waiting,
            value: waiting,
        };
        let read = vec![
            counter(Counter::WaitSum, waited),
            counter(Counter::Of(Signal::Arrivals), second as f64 * 10.0),
            gauge,
        ];
        add(&mut series, second, read);
    }
    let before = series.wait_mean(seconds(1..9)).unwrap();
    assert_eq!(before.by_counters_us, Some(400_000.0));
    assert_eq!(before.by_little_us, Some(400_000.0));
    let stalled = series.stalled(seconds(0..20));
    assert_eq!(stalled, Some(Duration::from_secs(10)));
    let during = series.wait_mean(seconds(12..20)).unwrap();
    assert_eq!(during.by_counters_us, Some(0.0));
    assert!(during.judged_us > 1e6, "{during:?}");
}

/// What somebody else has computed counts where nothing else is known; the longest seen is the longest wait.
#[test]
fn a_mean_and_a_p99_that_are_told_are_taken() {
    let mut series = PoolSeries::new(SECOND);
    for second in 0..4_u64 {
        let gauge = |signal, value| Value::Gauge { signal, value };
        let (mean, p99) = (1000.0 * (1 + second) as f64, 9000.0 + second as f64);
        let told = [gauge(Signal::Wait, mean), gauge(Signal::WaitP99, p99)];
        let longest = gauge(Signal::WaitMax, 20_000.0 - second as f64);
        add(&mut series, second, [&told[..], &[longest]].concat());
    }
    assert_eq!(series.wait_mean(seconds(0..4)).unwrap().judged_us, 2500.0);
    let exact = |estimate: Option<Estimate>| estimate.filter(|one| !one.at_least).unwrap().value_us;
    assert_eq!(exact(series.wait_quantile(seconds(0..4), 0.99)), 9003.0);
    assert_eq!(series.wait_quantile(seconds(0..4), 0.5), None);
    assert_eq!(exact(series.wait_max(seconds(0..4))), 20_000.0);
}

#[test]
fn gaps_are_blind_time_and_a_late_reading_is_not() {
    let mut series = PoolSeries::new(SECOND);
    for second in 0..100 {
        match second {
            40..51 => gap(&mut series, second),
            _ => add(&mut series, second, values(Pool::default())),
        }
    }
    let blind = series.blind(seconds(0..100));
    assert_eq!(blind.longest_us, 11_000_000);
    assert!((blind.share - 0.11).abs() < 1e-9, "{blind:?}");
    assert_eq!(series.blind(seconds(60..90)).share, 0.0);
    assert_eq!(series.blind(seconds(42..48)).share, 1.0);
    assert_eq!(
        series.blind(seconds(90..110)).longest_us,
        10_000_000,
        "the readings ended at 99 s"
    );
    let never = PoolSeries::new(SECOND);
    assert_eq!(
        never.blind(seconds(5..15)).share,
        1.0,
        "a source that never answered"
    );

    let mut late = PoolSeries::new(SECOND);
    for second in 0..20 {
        let reading = Reading {
            cost: Cost::default(),
            at: Offset(second * 1_000_000 + (second % 3) * 150_000),
            started: None,
            values: values(Pool::default()),
        };
        late.add(Sample {
            source: 0,
            at: at(second),
            instances: vec![Ok(reading)],
        });
    }
    assert_eq!(late.blind(seconds(0..20)).share, 0.0);
}

fn bucket(at_most_us: f64, value: f64) -> Value {
    counter(Counter::WaitBucket { at_most_us }, value)
}

fn with_buckets(counts: &[(f64, f64)]) -> PoolSeries {
    let mut series = PoolSeries::new(SECOND);
    let zero = counts
        .iter()
        .map(|(bound, _)| bucket(*bound, 0.0))
        .collect();
    add(&mut series, 0, zero);
    add(
        &mut series,
        1,
        counts
            .iter()
            .map(|(bound, count)| bucket(*bound, *count))
            .collect(),
    );
    series
}

#[test]
fn a_p99_is_interpolated_and_never_said_beyond_the_last_bound() {
    let reaching = with_buckets(&[(1000.0, 900.0), (2000.0, 1000.0), (f64::INFINITY, 1000.0)]);
    let p99 = reaching.wait_quantile(seconds(0..2), 0.99).unwrap();
    assert_eq!((p99.value_us, p99.at_least), (1900.0, false));

    let capped = with_buckets(&[(1000.0, 900.0), (2000.0, 950.0), (f64::INFINITY, 1000.0)]);
    let p99 = capped.wait_quantile(seconds(0..2), 0.99).unwrap();
    assert_eq!((p99.value_us, p99.at_least), (2000.0, true));
    let p50 = capped.wait_quantile(seconds(0..2), 0.5).unwrap();
    assert!((p50.value_us - 500.0 / 900.0 * 1000.0).abs() < 1e-9 && !p50.at_least);
}

#[test]
fn few_observations_give_the_bound_of_the_highest_bucket() {
    let few = with_buckets(&[(1000.0, 40.0), (2000.0, 50.0), (f64::INFINITY, 50.0)]);
    let p99 = few.wait_quantile(seconds(0..2), 0.99).unwrap();
    assert_eq!((p99.value_us, p99.at_least), (2000.0, false));
    assert_eq!(few.wait_max(seconds(0..2)).unwrap().value_us, 2000.0);
}

#[test]
fn a_lagging_bucket_is_made_monotonic_and_without_the_infinite_one_there_is_no_p99() {
    let lagging = with_buckets(&[(1000.0, 500.0), (2000.0, 499.0), (f64::INFINITY, 500.0)]);
    assert_eq!(lagging.wait_max(seconds(0..2)).unwrap().value_us, 1000.0);
    let torn = with_buckets(&[(1000.0, 500.0), (2000.0, 600.0)]);
    assert_eq!(torn.wait_quantile(seconds(0..2), 0.99), None);
}

#[test]
fn a_changed_start_time_counts_from_zero_even_where_the_value_is_higher() {
    let mut series = PoolSeries::new(SECOND);
    for (second, started, count) in [(0, 1.0, 10.0), (1, 1.0, 15.0), (2, 2.0, 40.0)] {
        let reading = Reading {
            cost: Cost::default(),
            at: at(second),
            started: Some(started),
            values: vec![counter(Counter::Of(Signal::Acquires), count)],
        };
        series.add(Sample {
            source: 0,
            at: at(second),
            instances: vec![Ok(reading)],
        });
    }
    assert_eq!(series.acquires(seconds(0..3)), Some(45.0));
}

/// A counter that appears with its first event, as OpenTelemetry's do, counts from zero; one that was there at the first reading
/// does not.
#[test]
fn a_series_that_appears_later_counts_from_zero() {
    let mut series = PoolSeries::new(SECOND);
    add(
        &mut series,
        0,
        vec![counter(Counter::Of(Signal::Acquires), 1000.0)],
    );
    add(
        &mut series,
        1,
        vec![counter(Counter::Of(Signal::Acquires), 1001.0)],
    );
    add(
        &mut series,
        2,
        vec![
            counter(Counter::Of(Signal::Acquires), 1002.0),
            counter(Counter::Of(Signal::Timeouts), 3.0),
        ],
    );
    assert_eq!(series.acquires(seconds(0..3)), Some(2.0));
    assert_eq!(
        series.increase_of(Signal::Timeouts, seconds(0..3)),
        Some(3.0)
    );
}

proptest! {
    /// Whatever restarts happen on however many instances, the increase is exactly what was counted while readings saw it.
    #[test]
    fn increases_survive_restarts(
        steps in (1_usize..4).prop_flat_map(|instances| {
            let step = proptest::collection::vec((0_u32..50, prop::bool::weighted(0.1)), instances);
            proptest::collection::vec(step, 1..40)
        })
    ) {
        let instances = steps[0].len();
        let mut counts = vec![1000_u64; instances];
        let mut series = PoolSeries::new(SECOND);
        let mut counted = 0_u64;
        let reading = |second, count: u64| Ok(Reading {
            cost: Cost::default(),
            at: at(second),
            started: None,
            values: vec![counter(Counter::Of(Signal::Acquires), count as f64)],
        });
        let sample = |second, counts: &[u64]| Sample {
            source: 0,
            at: at(second),
            instances: counts.iter().map(|count| reading(second, *count)).collect(),
        };
        series.add(sample(0, &counts));
        for (second, step) in (1..).zip(&steps) {
            for (count, (more, restarts)) in counts.iter_mut().zip(step) {
                let more = u64::from(*more);
                // A restart that is not seen as one (the counter is already past its old value) can't be told from growth.
                if *restarts && more < *count {
                    *count = more;
                } else {
                    *count += more;
                }
                counted += more;
            }
            series.add(sample(second, &counts));
        }
        let read = series.acquires(seconds(0..steps.len() as u64 + 1));
        prop_assert_eq!(read, Some(counted as f64));
    }

    /// Windows that lie side by side add up to the whole.
    #[test]
    fn windows_add_up(counts in proptest::collection::vec(0_u32..100, 2..60), cut in 0_u64..60) {
        let mut total = 0.0;
        let mut series = PoolSeries::new(SECOND);
        for (second, more) in (0..).zip(&counts) {
            total += f64::from(*more);
            add(&mut series, second, vec![counter(Counter::Of(Signal::Acquires), total)]);
        }
        let end = counts.len() as u64;
        let cut = cut.min(end);
        let part = |range: Range<u64>| series.acquires(seconds(range)).unwrap_or(0.0);
        prop_assert_eq!(part(0..cut) + part(cut..end), part(0..end));
    }
}

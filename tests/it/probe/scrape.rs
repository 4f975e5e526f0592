//! Asking over real sockets: two instances, a slow one, a dead one, one that starts anew.

use super::metrics_server::MetricsServer;
use super::running::{EVERY, Running, TIMEOUT};
use rushhour::event::Offset;
use rushhour::measure::pool::{Counter, GapReason, Sample, Value};
use rushhour::plan::signal::Signal;
use std::sync::Arc;
use std::time::Duration;

fn text(waited_s: f64, count: u64, waiting: u64) -> String {
    format!(
        "db_client_connection_wait_time_seconds_sum {waited_s}\ndb_client_connection_wait_time_seconds_count {count}\n\
         db_client_connection_pending_requests {waiting}\ndb_client_connection_max 5\n\
         db_client_connection_count{{db_client_connection_state=\"used\"}} 5\n"
    )
}

fn good(sample: &Sample) -> bool {
    sample.instances.iter().all(Result::is_ok)
}

fn has_gap(sample: &Sample, reason: GapReason) -> bool {
    sample
        .instances
        .iter()
        .any(|instance| instance.as_ref().is_err_and(|gap| gap.reason == reason))
}

#[test]
fn two_instances_are_summed_before_the_mean_is_made() {
    let (first, second) = (
        MetricsServer::start(&text(0.0, 0, 1)),
        MetricsServer::start(&text(0.0, 0, 2)),
    );
    let running = Running::start(&[first.url(), second.url()]);
    running.wait(0, "a first round", |samples| samples.iter().any(good));
    // 90 waits of 1 ms and 10 of 11 ms: the mean of all is 2 ms, the mean of the means would be 6 ms.
    first.say(&text(0.09, 90, 1));
    second.say(&text(0.11, 10, 2));
    let told = running.told();
    running.wait(told, "two more rounds", |samples| {
        samples.iter().filter(|sample| good(sample)).count() >= 2
    });
    let (series, end) = running.series();
    let whole = Offset::ZERO..end.after(EVERY);
    assert_eq!(
        series.wait_mean(whole.clone()).unwrap().by_counters_us,
        Some(2000.0)
    );
    assert_eq!(series.waiting_max(whole.clone()), Some(3.0));
    assert_eq!(series.gauge(Signal::Max, whole.clone()).unwrap().last, 10.0);
    assert_eq!(series.saturation(whole).unwrap().max, 1.0);
}

#[test]
fn a_slow_instance_is_a_gap_and_never_holds_up_the_beat() {
    let server = MetricsServer::start(&text(0.0, 0, 0));
    let running = Running::start(&[server.url()]);
    running.wait(0, "a first round", |samples| samples.iter().any(good));
    server.answer_after(TIMEOUT * 5);
    let told = running.told();
    let begin = running.clock.now();
    running.wait(told, "four gaps", |samples| {
        samples
            .iter()
            .filter(|sample| has_gap(sample, GapReason::TimedOut))
            .count()
            >= 4
    });
    let gaps_end = running.clock.now();
    server.answer_after(Duration::ZERO);
    let told = running.told();
    running.wait(told, "an answer again", |samples| samples.iter().any(good));
    let samples = running.samples.lock().unwrap().clone();
    // No overlap: a round begins only after the one before has been given up.
    for pair in samples
        .windows(2)
        .filter(|pair| has_gap(&pair[0], GapReason::TimedOut))
    {
        assert!(
            pair[1].at >= pair[0].at.after(TIMEOUT),
            "{:?} {:?}",
            pair[0].at,
            pair[1].at
        );
    }
    let (series, _) = running.series();
    let blind = series.blind(begin..gaps_end);
    assert!(
        blind.share > 0.4,
        "{blind:?}: four of four readings did not come about"
    );
    assert!(blind.longest_us >= 200_000, "{blind:?}");
}

#[test]
fn an_instance_that_dies_makes_the_source_blind_from_then_on() {
    let (first, mut second) = (
        MetricsServer::start(&text(0.0, 0, 0)),
        MetricsServer::start(&text(0.0, 0, 0)),
    );
    let running = Running::start(&[first.url(), second.url()]);
    running.wait(0, "a first round", |samples| samples.iter().any(good));
    second.die();
    let told = running.told();
    running.wait(told, "gaps of one instance", |samples| {
        samples
            .iter()
            .filter(|sample| has_gap(sample, GapReason::Unreachable) && sample.instances[0].is_ok())
            .count()
            >= 5
    });
    let now = running.clock.now();
    let (series, end) = running.series();
    let summary = series.source_summary(Offset(now.0 - 300_000)..end);
    assert_eq!(summary.blind.share, 1.0, "{summary:?}");
    assert!(summary.gaps["unreachable"] >= 5, "{summary:?}");
    assert!(
        summary
            .last_gap
            .unwrap()
            .contains(&second.address.to_string())
    );
}

#[test]
fn a_restart_of_one_instance_does_not_swallow_the_other_ones_increase() {
    let (first, second) = (
        MetricsServer::start(&text(1.0, 100, 0)),
        MetricsServer::start(&text(5.0, 500, 0)),
    );
    let running = Running::start(&[first.url(), second.url()]);
    running.wait(0, "a first round", |samples| samples.iter().any(good));
    let told = running.told();
    first.say(&text(1.5, 150, 0));
    second.say(&text(0.1, 10, 0));
    running.wait(told, "the restart", |samples| {
        samples.iter().filter(|sample| good(sample)).count() >= 3
    });
    let (series, end) = running.series();
    let whole = Offset::ZERO..end.after(EVERY);
    // 50 of the one, 10 since its restart of the other; a difference of sums would say −440.
    assert_eq!(series.acquires(whole.clone()), Some(60.0));
    assert_eq!(series.source_summary(whole).restarts, 1);
}

#[test]
fn a_text_without_any_signal_is_a_gap_that_says_so() {
    let server = MetricsServer::start("something_else 1\n");
    let running = Running::start(&[server.url()]);
    running.wait(0, "a gap", |samples| {
        samples
            .iter()
            .any(|sample| has_gap(sample, GapReason::NothingFound))
    });
}

#[test]
fn the_last_round_reads_what_the_counters_say_at_the_end() {
    let server = MetricsServer::start(&text(0.0, 0, 0));
    let running = Running::start(&[server.url()]);
    running.wait(0, "a first round", |samples| samples.iter().any(good));
    server.say(&text(0.7, 7, 0));
    let samples = Arc::clone(&running.samples);
    let mut running = running;
    running.handle.take().unwrap().stop();
    let last = samples.lock().unwrap().last().unwrap().clone();
    let reading = last.instances[0].as_ref().unwrap();
    let count = reading.values.iter().find_map(|value| match value {
        Value::Counter {
            counter: Counter::WaitCount,
            value,
            ..
        } => Some(*value),
        _ => None,
    });
    assert_eq!(count, Some(7.0));
}

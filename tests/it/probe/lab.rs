//! The lab as a target: what the probe says of its pool against what the lab's own clock says.

use super::running::{EVERY, Running};
use crate::support::lab::Lab;
use rushhour::event::Offset;
use rushhour::measure::pool::Sample;
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const RIDERS: usize = 24;

/// The lab with riders that ask without pause.
struct Busy {
    stop: Arc<AtomicBool>,
    riders: JoinSet<()>,
}

impl Busy {
    fn start(lab: &Arc<Lab>) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let mut riders = JoinSet::new();
        for rider in 0..RIDERS {
            let (lab, stop) = (Arc::clone(lab), Arc::clone(&stop));
            riders.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    lab.get(&format!("/v1/bikes/near?rider={rider:06}")).await;
                }
            });
        }
        Busy { stop, riders }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.riders.join_all().await;
    }
}

/// Mean wait in microseconds by the lab's own clock between two looks.
fn mean_us(before: &Value, after: &Value) -> f64 {
    let increase = |name: &str| {
        let at = |stats: &Value| stats["pool"][name].as_f64().unwrap();
        at(after) - at(before)
    };
    increase("wait_sum_us") / increase("wait_count")
}

fn answers(samples: &[Sample]) -> usize {
    samples
        .iter()
        .filter(|sample| sample.instances[0].is_ok())
        .count()
}

/// Within 10 % of the lab's own timing, by counters and by Little's law alone (24 riders on 2 connections: 22 wait).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pool_wait_is_what_the_lab_itself_measured() {
    let lab = Arc::new(Lab::start(&[
        "--set",
        "pool_size=2",
        "--set",
        "service_ms=20",
    ]));
    let probe = Running::start(&[format!("{}/metrics", lab.says("metrics"))]);
    let busy = Busy::start(&lab);
    tokio::time::sleep(EVERY * 5).await;
    let (begin, before) = (probe.clock.now(), lab.stats().await);
    let told = probe.told();
    let probe = tokio::task::spawn_blocking(move || {
        probe.wait(told, "thirty readings under load", |samples| {
            answers(samples) >= 30
        });
        probe
    })
    .await
    .unwrap();
    let (after, end) = (lab.stats().await, probe.clock.now());
    busy.end().await;
    let (series, _) = tokio::task::spawn_blocking(move || probe.series())
        .await
        .unwrap();

    let window: Range<Offset> = begin..end;
    let exact = mean_us(&before, &after);
    let wait = series.wait_mean(window.clone()).unwrap();
    let near = |found: f64| (found - exact).abs() <= 0.1 * exact;
    assert!(
        near(wait.by_counters_us.unwrap()),
        "{wait:?}, the lab says {exact}"
    );
    assert!(
        near(wait.by_little_us.unwrap()),
        "{wait:?}, the lab says {exact}"
    );
    assert!(near(wait.judged_us), "{wait:?}, the lab says {exact}");
    let p99 = series.wait_quantile(window.clone(), 0.99).unwrap();
    assert!(!p99.at_least && p99.value_us >= exact, "{p99:?}");
    assert!(series.saturation(window.clone()).unwrap().mean > 0.9);
    assert_eq!(series.stalled(window), Some(Duration::ZERO));
}

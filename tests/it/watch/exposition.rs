//! The exported page: values, not only names.

use crate::measure::stage::Stage;
use crate::report::scene::evening;
use crate::support::service::program;
use rushhour::event::Offset;
use rushhour::measure::pool::{Cost, Counter, PoolSeries, Reading, Sample, Value};
use rushhour::measure::recovery::Ending;
use rushhour::plan::Template;
use rushhour::plan::metric::{FAMILIES, METRICS, catalogue, family};
use rushhour::plan::probe::{Origin, Plays, ProbeSource, Signals};
use rushhour::plan::signal::Signal;
use rushhour::probe::prometheus::{Scan, scan};
use rushhour::watch::exposition::{Health, Seen, page};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

const POOL: &str = "gateway \"pool\"";

/// A pool that hands out ten connections a second after 20 ms each, four requests waiting.
fn pool(until: u64) -> PoolSeries {
    let mut series = PoolSeries::new(Duration::from_secs(1));
    for second in 0..=until {
        let counter = |counter, value| Value::Counter {
            counter,
            series: String::new(),
            value,
        };
        let gauge = |signal, value| Value::Gauge { signal, value };
        let count = second as f64 * 10.0;
        let reading = Reading {
            at: Offset(second * 1_000_000),
            started: None,
            values: vec![
                counter(Counter::WaitSum, count * 20_000.0),
                counter(Counter::WaitCount, count),
                counter(Counter::Of(Signal::Timeouts), second as f64),
                gauge(Signal::InUse, 8.0),
                gauge(Signal::Max, 10.0),
            ],
            cost: Cost {
                took_us: 3000,
                bytes: 100,
                ..Cost::default()
            },
        };
        series.add(Sample {
            source: 0,
            at: Offset(second * 1_000_000),
            instances: vec![Ok(reading)],
        });
    }
    series
}

fn shown(stage: &Stage, pools: &[PoolSeries]) -> String {
    let recoveries = stage.collector.recoveries(pools, Ending::Settled);
    page(&Seen {
        collector: &stage.collector,
        pools,
        recoveries: &recoveries,
        health: Health {
            cpu_ratio: Some(0.25),
            resident_bytes: Some(96 * 1_048_576),
            open_files: Some(31),
            open_files_limit: Some(4096),
        },
        run: "20261204-0630-k3",
    })
}

fn value(scan: &Scan, name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |series: &&rushhour::probe::prometheus::Series| {
        series.name == name
            && labels
                .iter()
                .all(|(label, value)| series.label(label) == Some(value))
    };
    let mut found = scan.series.iter().filter(fits);
    let first = found.next();
    let first = first.unwrap_or_else(|| panic!("no {name} {labels:?}"));
    assert!(found.next().is_none(), "{name} {labels:?} is more than one");
    first.value
}

#[test]
fn what_is_exported_is_what_was_measured() {
    let stage = evening();
    let text = shown(&stage, &[]);
    let read = scan(text.as_bytes(), |_| true);
    assert_eq!((read.bad_lines, read.duplicate_lines), (0, 0));
    let unlock = [("group", "commuters"), ("action", "unlock")];
    let of = |name: &str, labels: &[(&str, &str)]| value(&read, name, labels);
    let ended = |outcome: &'static str| {
        let labels = [unlock.as_slice(), &[("outcome", outcome)]].concat();
        of("rushhour_actions_ended_total", &labels)
    };
    assert_eq!(of("rushhour_actions_started_total", &unlock), 600.0);
    assert_eq!((ended("ok"), ended("failed")), (594.0, 6.0));
    assert_eq!(of("rushhour_actions_in_flight", &unlock), 0.0);
    assert_eq!(of("rushhour_action_latency_seconds_count", &unlock), 594.0);
    let bucket = |le: &str| {
        let labels = [unlock.as_slice(), &[("le", le)]].concat();
        of("rushhour_action_latency_seconds_bucket", &labels)
    };
    // 54 seconds of fast ones, of which one in ten took just 50 ms, and six seconds of 1.2 s.
    assert_eq!((bucket("0.025"), bucket("0.25")), (0.0, 540.0));
    assert_eq!((bucket("2.5"), bucket("+Inf")), (594.0, 594.0));
    let homes = [("group", "homes")];
    assert_eq!(of("rushhour_hubs", &homes), 10.0);
    assert_eq!(of("rushhour_hubs_connected", &homes), 10.0);
    assert_eq!(
        of(
            "rushhour_hub_sessions_lost_total",
            &[("group", "homes"), ("cause", "reset")]
        ),
        5.0
    );
    let state =
        |state: &'static str| of("rushhour_commands", &[("group", "app"), ("state", state)]);
    assert_eq!(of("rushhour_commands_due_total", &[("group", "app")]), 60.0);
    assert_eq!(
        (state("in time"), state("late"), state("lost")),
        (58.0, 1.0, 1.0)
    );
    assert_eq!(of("rushhour_trigger_active", &[("trigger", "drop")]), 0.0);
    assert_eq!(of("rushhour_generator_cpu_ratio", &[]), 0.25);
    assert_eq!(of("rushhour_generator_open_files", &[]), 31.0);
    assert_eq!(
        of(
            "rushhour_run_info",
            &[("run", "20261204-0630-k3"), ("seed", "42")]
        ),
        1.0
    );
}

/// A stage whose target has a probed pool.
fn probed() -> Stage {
    let mut plan = crate::report::scene::plan_with_a_drop();
    plan.target.probes.sources.push(ProbeSource {
        name: POOL.to_owned(),
        plays: Plays::Pool,
        origin: Origin::Scrape(vec![Template::literal("http://127.0.0.1:1/metrics")]),
        labels: Vec::new(),
        signals: Signals::Preset("otel-db".to_owned()),
    });
    let mut stage = Stage::new(plan);
    stage.finish_at(85.0);
    stage
}

#[test]
fn a_pool_is_exported_as_it_was_read() {
    let stage = probed();
    let end = stage.collector.series().end();
    let text = shown(&stage, &[pool(end)]);
    let read = scan(text.as_bytes(), |_| true);
    assert_eq!((read.bad_lines, read.duplicate_lines), (0, 0));
    let of = |name: &str| value(&read, name, &[("source", POOL), ("plays", "pool")]);
    assert_eq!(of("rushhour_probe_wait_seconds"), 0.02);
    assert_eq!(of("rushhour_probe_in_use"), 8.0);
    assert_eq!(of("rushhour_probe_max"), 10.0);
    assert_eq!(of("rushhour_probe_saturation_ratio"), 0.8);
    assert_eq!(of("rushhour_probe_timeouts_total"), end as f64);
    // Who gave up got none.
    assert_eq!(of("rushhour_probe_acquires_total"), end as f64 * 9.0);
    assert_eq!(of("rushhour_probe_up"), 1.0);
    assert_eq!(of("rushhour_probe_duration_seconds"), 0.003);
    assert_eq!(of("rushhour_probe_blind_seconds"), 0.0);
    assert!(
        !text.contains("rushhour_probe_depth"),
        "a pool has no depth"
    );
}

#[test]
fn names_units_and_help_are_those_that_promtool_wants() {
    let Some(promtool) = program("promtool") else {
        return;
    };
    let stage = probed();
    let text = shown(&evening(), &[]) + &shown(&stage, &[pool(stage.collector.series().end())]);
    // Both pages have the run's own families: promtool wants each once.
    let mut seen = BTreeSet::new();
    let mut kept = String::new();
    let mut keep = true;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# HELP ") {
            keep = seen.insert(head.split(' ').next().unwrap().to_owned());
        }
        if keep {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let mut checked = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checked
        .stdin
        .take()
        .unwrap()
        .write_all(kept.as_bytes())
        .unwrap();
    let output = checked.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_catalogue_is_whole_and_without_repetition() {
    let mut names = BTreeSet::new();
    for family in FAMILIES {
        assert!(names.insert(family.name), "{} stands twice", family.name);
        assert!(family.help.ends_with('.'), "{}", family.name);
    }
    for row in METRICS {
        assert!(
            row.exported.is_empty() || family(row.exported).is_some(),
            "{} is shown by {}, which nothing exports",
            row.word,
            row.exported
        );
    }
    let text = catalogue();
    assert!(FAMILIES.iter().all(|family| text.contains(family.name)));
    assert!(METRICS.iter().all(|row| text.contains(row.means)));
}

//! Every preset against a recorded sample of each of its generations: the format as its source writes it, values made up.

use super::numbers::{BROKERS, Case, Is, POOLERS, POOLS};
use rushhour::measure::pool::{Counter, Value};
use rushhour::plan::Template;
use rushhour::plan::probe::{Origin, ProbeSource, Signals};
use rushhour::plan::signal::{PRESETS, Signal};
use rushhour::probe::extract::{Extracted, Extractor};
use rushhour::probe::json;
use rushhour::probe::prometheus::Series;
use rushhour::probe::sys::SysTopics;
use rushhour::probe::table::{Table, console};
use std::collections::BTreeSet;
use std::path::PathBuf;

use Is::{Not, Signal as Of, Top, Waited, Waiters, Waits};

fn sample(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/probe/samples");
    std::fs::read_to_string(path.join(name)).unwrap()
}

fn source(preset: &str, labels: &[(&str, &str)]) -> ProbeSource {
    let plays = PRESETS
        .iter()
        .find(|known| known.name == preset)
        .unwrap()
        .plays;
    ProbeSource {
        name: "sample".to_owned(),
        plays,
        origin: Origin::Scrape(vec![Template::literal("http://127.0.0.1:1/")]),
        labels: labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect(),
        signals: Signals::Preset(preset.to_owned()),
    }
}

/// The table of this name in a sample of several.
fn table(text: &str, name: &str) -> Table {
    let lines = text
        .split("== ")
        .find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
    let cells = |line: &str| -> Vec<String> { line.split('|').map(str::to_owned).collect() };
    let mut lines = lines.unwrap().lines();
    let columns = cells(lines.next().unwrap());
    let row = |line: &str| cells(line).into_iter().map(Some).collect();
    Table {
        columns,
        rows: lines.map(row).collect(),
    }
}

fn series(name: &str, text: &str, extractor: &Extractor) -> Option<Vec<Series>> {
    let of = |part: &str| table(text, part);
    match name.rsplit_once('.').unwrap().1 {
        "json" => {
            let document = serde_json::from_str(text).unwrap();
            Some(json::at_paths(&document, extractor.metrics()))
        }
        "sys" => {
            let mut topics = SysTopics::default();
            for line in text.lines() {
                let (topic, payload) = line.split_once(' ').unwrap();
                topics.heard(topic, payload);
            }
            topics.settle();
            Some(topics.series())
        }
        "table" if name.starts_with("postgres") => Some(
            [
                of("IN_USE").series(&[]),
                of("SESSIONS").series(&["database"]),
            ]
            .concat(),
        ),
        "table" => Some(console(&of("POOLS"), &of("STATS"), &of("DATABASES"))),
        _ => None,
    }
}

fn extracted(name: &str, preset: &str, labels: &[(&str, &str)]) -> Extracted {
    let extractor = Extractor::of(&source(preset, labels)).unwrap();
    let text = sample(name);
    match series(name, &text, &extractor) {
        Some(series) => extractor.extract(series),
        None => extractor.read(text.as_bytes()),
    }
}

fn counted(extracted: &Extracted, wanted: Counter) -> Option<f64> {
    let values = extracted.values.iter().filter_map(|value| match value {
        Value::Counter { counter, value, .. } if *counter == wanted => Some(*value),
        _ => None,
    });
    values.reduce(|a, b| a + b)
}

fn gauged(extracted: &Extracted, wanted: Signal) -> Option<f64> {
    let values = extracted.values.iter().filter_map(|value| match value {
        Value::Gauge { signal, value } if *signal == wanted => Some(*value),
        _ => None,
    });
    values.reduce(if wanted.is_time() {
        f64::max
    } else {
        |a, b| a + b
    })
}

fn check((name, preset, labels, numbers): &Case) {
    let found = extracted(name, preset, labels);
    for is in *numbers {
        let (wanted, read) = match *is {
            Of(signal, value) => (
                Some(value),
                gauged(&found, signal).or(counted(&found, Counter::Of(signal))),
            ),
            Waited(value) => (Some(value), counted(&found, Counter::WaitSum)),
            Waits(value) => (Some(value), counted(&found, Counter::WaitCount)),
            Waiters(value) => (Some(value), counted(&found, Counter::Waiters)),
            Top(value) => {
                let tops = found.values.iter().filter_map(|value| match value {
                    Value::Counter {
                        counter: Counter::WaitBucket { at_most_us },
                        ..
                    } if at_most_us.is_finite() => Some(*at_most_us),
                    _ => None,
                });
                (Some(value), tops.reduce(f64::max))
            }
            Not(signal) => {
                let is_there = found.found.iter().any(|(found, _)| *found == signal);
                (None, is_there.then_some(f64::NAN))
            }
        };
        let near = match (wanted, read) {
            // mosquitto rounds its averages to two digits: less than an event in what they are made into.
            (Some(wanted), Some(read)) => {
                (wanted - read).abs() <= if *preset == "mosquitto" { 0.5 } else { 1e-3 }
            }
            (wanted, read) => wanted == read,
        };
        assert!(near, "{name} as {preset} {labels:?}: {is:?} was {read:?}");
    }
}

#[test]
fn pools_have_the_numbers_of_their_samples() {
    POOLS.iter().for_each(check);
}

#[test]
fn poolers_and_postgresql_have_the_numbers_of_their_samples() {
    POOLERS.iter().for_each(check);
}

#[test]
fn brokers_have_the_numbers_of_their_samples() {
    BROKERS.iter().for_each(check);
}

#[test]
fn every_preset_has_a_sample_and_every_sample_is_looked_at() {
    let cases = || POOLS.iter().chain(POOLERS).chain(BROKERS);
    let seen: BTreeSet<&str> = cases().map(|case| case.1).collect();
    let known: BTreeSet<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    assert_eq!(seen, known);
    let files: BTreeSet<String> = cases().map(|case| case.0.to_owned()).collect();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/probe/samples");
    let listed: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files, listed);
}

/// The two conventions of `avg_wait_time`: waiting clients up to 1.22, microseconds of one wait from 1.23 on. Neither is read.
#[test]
fn the_averages_of_pgbouncer_are_never_read() {
    for name in ["pgbouncer-1.18.table", "pgbouncer-1.25.table"] {
        let text = sample(name);
        let other = text
            .replace("|34950000", "|1")
            .replace("|360000\n", "|9999999\n");
        assert_ne!(text, other);
        let read = |text: &str| {
            let extractor = Extractor::of(&source("pgbouncer", &[])).unwrap();
            let series = series(name, text, &extractor).unwrap();
            extractor.extract(series).values
        };
        assert_eq!(read(&text), read(&other), "{name}");
    }
}

/// A restarted mosquitto begins to count again; what it told before must not be taken for a growth.
#[test]
fn a_mosquitto_that_starts_anew_counts_from_nothing() {
    let mut topics = SysTopics::default();
    topics.heard("$SYS/broker/uptime", "100 seconds");
    topics.heard("$SYS/broker/load/connections/1min", "0.00");
    topics.heard("$SYS/broker/uptime", "110 seconds");
    topics.heard("$SYS/broker/load/connections/1min", "276.33");
    topics.heard("$SYS/broker/uptime", "5 seconds");
    topics.heard("$SYS/broker/load/connections/1min", "0.00");
    topics.settle();
    let connects = |topics: &SysTopics| {
        let series = topics.series();
        let found = series.iter().find(|series| series.name == "connects");
        found.unwrap().value
    };
    assert_eq!(connects(&topics), 0.0);
}

#[test]
fn what_a_prometheus_server_answers_becomes_series() {
    let body = br#"{"status":"success","data":{"resultType":"vector","result":[
        {"metric":{"queue":"a"},"value":[1700000000.1,"12"]},{"metric":{"queue":"b"},"value":[1700000000.1,"30.5"]}]}}"#;
    let series = json::of_query("depth", body).unwrap();
    let read: Vec<(&str, Option<&str>, f64)> = series
        .iter()
        .map(|one| (one.name.as_str(), one.label("queue"), one.value))
        .collect();
    assert_eq!(
        read,
        [("depth", Some("a"), 12.0), ("depth", Some("b"), 30.5)]
    );
    let scalar =
        br#"{"status":"success","data":{"resultType":"scalar","result":[1700000000.1,"7"]}}"#;
    assert_eq!(json::of_query("depth", scalar).unwrap()[0].value, 7.0);
    let refused =
        br#"{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}"#;
    assert_eq!(
        json::of_query("depth", refused),
        Err("parse error: unexpected end".to_owned())
    );
    let range = br#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    assert!(
        json::of_query("depth", range)
            .unwrap_err()
            .contains("gives a matrix")
    );
}

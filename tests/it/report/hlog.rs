//! `latency.hlog` as the usual tools read it.

use super::scene;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use rushhour::report::hlog;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

#[test]
fn the_log_is_read_back_with_every_value() {
    let mut stage = scene::evening();
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_366_400);
    let mut text = hlog::header(started);
    text.push_str(&hlog::lines(&stage.collector.take_intervals()));
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut begins = None;
    let mut unlocks = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        match entry.expect("every line is read") {
            LogEntry::StartTime(time) => begins = Some(time),
            LogEntry::BaseTime(_) => {}
            LogEntry::Interval(interval) => {
                let bytes = decoded(interval.encoded_histogram());
                let histogram: hdrhistogram::Histogram<u64> = Deserializer::new()
                    .deserialize(&mut bytes.as_slice())
                    .expect("a V2 histogram");
                let tag = interval.tag().expect("a tag").as_str().to_owned();
                if tag == "commuters/unlock" {
                    unlocks.add(&histogram).unwrap();
                }
                *counts.entry(tag).or_default() += histogram.len();
            }
        }
    }
    assert_eq!(begins, Some(Duration::from_secs(1_796_366_400)));
    let total = &stage.collector.totals().operations[2].latency;
    assert_eq!(counts["commuters/unlock"], total.count());
    assert_eq!(counts["app/command"], 60);
    let p95 = total.percentile_us(95.0).unwrap();
    assert!(
        unlocks.equivalent(unlocks.value_at_percentile(95.0), p95),
        "the same p95, to the bucket"
    );
}

/// Base64 with the usual alphabet and padding.
fn decoded(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut held, mut bytes) = (0_u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let digit = ALPHABET
            .iter()
            .position(|letter| *letter == byte)
            .expect("a letter of base64");
        bits = bits << 6 | u32::try_from(digit).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}

//! `latency.hlog`: an HdrHistogram interval log (version 1.3, V2 compressed), one line an operation and interval, written as the run
//! goes. Times are microseconds; the third column is the maximum in milliseconds, as the format's readers expect it.

use crate::measure::Interval;
use crate::measure::histogram::LONGEST_US;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::time::{Duration, SystemTime};

/// Microseconds in a millisecond: the maximum's column is written in these.
const MAX_VALUE_DIVISOR: f64 = 1_000.0;

/// The file's first lines. `started`: when the run's clock began; interval times count from there.
#[must_use]
pub fn header(started: SystemTime) -> String {
    let since = started
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64();
    format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {since:.3} (seconds since epoch)]\n\
         #[BaseTime: {since:.3} (seconds since epoch)]\n\
         #[MaxValueDivisor: {MAX_VALUE_DIVISOR:.3}]\n\
         #rushhour: latency from the due time in microseconds, tagged group/operation\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// The lines of these intervals.
#[must_use]
pub fn lines(intervals: &[Interval]) -> String {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.with_max_value_divisor(MAX_VALUE_DIVISOR);
    let begins = {
        let written = builder.begin_log_with(&mut bytes, &mut serializer).is_ok();
        debug_assert!(written, "a vector takes everything");
        bytes.len()
    };
    // The builder repeats its heading; the file has one already.
    let mut text = String::new();
    for interval in intervals {
        bytes.clear();
        let line = builder
            .begin_log_with(&mut bytes, &mut serializer)
            .ok()
            .and_then(|mut writer| {
                let start = Duration::from_secs(interval.start_s);
                let length = Duration::from_secs(interval.length_s);
                writer
                    .write_histogram(&dense(interval), start, length, Tag::new(&interval.tag))
                    .ok()
            });
        line.expect("a histogram within its bounds goes into a vector");
        text.push_str(&String::from_utf8_lossy(&bytes[begins..]));
    }
    text
}

/// The same histogram in the form that the format knows.
fn dense(interval: &Interval) -> Histogram<u64> {
    let mut dense = Histogram::new_with_bounds(1, LONGEST_US, 3)
        .expect("one microsecond to an hour at three digits");
    for (value, count) in interval.latency.buckets() {
        dense
            .record_n(value, count)
            .expect("no value is longer than an hour");
    }
    dense
}

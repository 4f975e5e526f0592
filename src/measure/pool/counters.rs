//! How much counters grew, each series by itself: a restart of one instance must not hide in a sum.

use super::{Counter, Reading, Value};
use std::collections::HashMap;

/// The last value of every series of every instance.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    last: HashMap<SeriesKey, f64>,
    instances: HashMap<usize, Option<f64>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SeriesKey {
    instance: usize,
    counter: u8,
    /// Bits of the bucket's bound, so that `le="1"` and `le="1.0"` are one bucket.
    bound: u64,
    series: String,
}

impl Counters {
    /// The increase of every counter since the instance's last reading, and whether the instance restarted.
    ///
    /// The first reading of an instance gives none. A value below the last one, or another start time of the process, is a
    /// restart: the counter grew from 0 (the rule of Prometheus). A series that appears later counts from 0: its label is new.
    pub(super) fn increases(
        &mut self,
        instance: usize,
        reading: Reading,
    ) -> (Vec<(Counter, f64)>, bool) {
        let known = self.instances.insert(instance, reading.started);
        let first = known.is_none();
        let mut restarted = matches!((known.flatten(), reading.started), (Some(before), Some(now)) if before != now);
        let by_start_time = restarted;
        let mut increases = Vec::new();
        for value in reading.values {
            let Value::Counter {
                counter,
                series,
                value,
            } = value
            else {
                continue;
            };
            if !value.is_finite() || value < 0.0 {
                continue;
            }
            let last = self
                .last
                .insert(SeriesKey::new(instance, counter, series), value);
            let increase = match last {
                _ if first => continue,
                Some(last) if value < last => {
                    restarted = true;
                    value
                }
                Some(last) if !by_start_time => value - last,
                _ => value,
            };
            increases.push((counter, increase));
        }
        (increases, restarted)
    }
}

impl SeriesKey {
    fn new(instance: usize, counter: Counter, series: String) -> SeriesKey {
        let (counter, bound) = match counter {
            Counter::WaitSum => (0, 0),
            Counter::WaitCount => (1, 0),
            Counter::Waiters => (2, 0),
            Counter::Arrivals => (3, 0),
            Counter::WaitBucket { at_most_us } => (4, at_most_us.to_bits()),
            Counter::Of(signal) => (5, signal as u64),
        };
        SeriesKey {
            instance,
            counter,
            bound,
            series,
        }
    }
}

//! A histogram of times with the buckets of HdrHistogram, kept sparse.
//!
//! Values are microseconds from 0 to one hour at three significant digits, in the buckets that HdrHistogram uses for
//! `lowest = 1`, `significant = 3` (so that the interval log is exact). Most seconds of most operations touch a few dozen of the
//! 23 552 buckets: only those are kept, which makes a second of 40 operations a few kilobytes instead of megabytes.

/// The longest time told apart, in microseconds; longer ones count as this.
pub const LONGEST_US: u64 = 3_600_000_000;

/// Buckets of half a power of two: 1024 steps.
const HALF: u64 = 1024;
/// Buckets below `LONGEST_US`.
const BUCKETS: usize = 23 * 1024;

/// Counts of times in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// Sorted by bucket.
    counts: Vec<(u16, u32)>,
    count: u64,
    sum_us: u64,
    max_us: u64,
}

impl Histogram {
    /// Counts one time; longer than an hour counts as an hour.
    pub fn record(&mut self, value_us: u64) {
        let value = value_us.min(LONGEST_US);
        let bucket = bucket_of(value);
        match self
            .counts
            .binary_search_by_key(&bucket, |(bucket, _)| *bucket)
        {
            Ok(place) => self.counts[place].1 += 1,
            Err(place) => self.counts.insert(place, (bucket, 1)),
        }
        self.count += 1;
        self.sum_us += value;
        self.max_us = self.max_us.max(value);
    }

    /// How many times were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean in microseconds; `None` without a value.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_us as f64 / self.count as f64)
    }

    /// The longest time in microseconds; `None` without a value.
    #[must_use]
    pub fn max_us(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_us)
    }

    /// The time that `percentile` (0 to 100) of the values do not exceed, at the upper end of its bucket as HdrHistogram
    /// reads it; `None` without a value.
    #[must_use]
    pub fn percentile_us(&self, percentile: f64) -> Option<u64> {
        let rank = ((percentile / 100.0 * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in &self.counts {
            seen += u64::from(*count);
            if seen >= rank {
                return Some(bucket_end(*bucket).min(self.max_us));
            }
        }
        self.max_us()
    }

    /// How many values lie in buckets wholly above `limit_us`.
    #[must_use]
    pub fn count_above(&self, limit_us: u64) -> u64 {
        let first = self
            .counts
            .partition_point(|(bucket, _)| bucket_start(*bucket) <= limit_us);
        self.counts[first..]
            .iter()
            .map(|(_, count)| u64::from(*count))
            .sum()
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        self.counts = merged(&self.counts, &other.counts);
        self.count += other.count;
        self.sum_us += other.sum_us;
        self.max_us = self.max_us.max(other.max_us);
    }

    /// The sum of many histograms; cheaper than adding them one by one.
    #[must_use]
    pub fn sum<'a>(many: impl Iterator<Item = &'a Histogram>) -> Histogram {
        let mut dense: Vec<u32> = Vec::new();
        let mut sum = Histogram::default();
        for one in many.filter(|one| one.count > 0) {
            dense.resize(BUCKETS, 0);
            for (bucket, count) in &one.counts {
                dense[usize::from(*bucket)] += count;
            }
            sum.count += one.count;
            sum.sum_us += one.sum_us;
            sum.max_us = sum.max_us.max(one.max_us);
        }
        sum.counts = (0..).zip(dense).filter(|(_, count)| *count > 0).collect();
        sum
    }

    /// Its values as HdrHistogram has them: a value of each bucket in use and how often it was counted.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter()
            .map(|(bucket, count)| (bucket_start(*bucket), u64::from(*count)))
    }
}

fn merged(left: &[(u16, u32)], right: &[(u16, u32)]) -> Vec<(u16, u32)> {
    let mut both = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (
        left.iter().copied().peekable(),
        right.iter().copied().peekable(),
    );
    loop {
        match (left.peek().copied(), right.peek().copied()) {
            (Some(a), Some(b)) if a.0 == b.0 => {
                both.push((a.0, a.1 + b.1));
                left.next();
                right.next();
            }
            (Some(a), Some(b)) if a.0 < b.0 => both.extend(left.next().filter(|_| a.1 > 0)),
            (_, Some(_)) => both.extend(right.next()),
            (Some(_), None) => both.extend(left.next()),
            (None, None) => return both,
        }
    }
}

/// A value with b bits beyond the first 11 loses its last b bits: `b × 1024 + (value >> b)`.
fn bucket_of(value_us: u64) -> u16 {
    let shift = u64::from((u64::BITS - value_us.leading_zeros()).saturating_sub(11));
    let bucket = shift * HALF + (value_us >> shift);
    u16::try_from(bucket).expect("an hour in microseconds ends in bucket 23 551")
}

fn shift_of(bucket: u16) -> u64 {
    (u64::from(bucket) / HALF).saturating_sub(1)
}

fn bucket_start(bucket: u16) -> u64 {
    let shift = shift_of(bucket);
    (u64::from(bucket) - shift * HALF) << shift
}

fn bucket_end(bucket: u16) -> u64 {
    let shift = shift_of(bucket);
    bucket_start(bucket) + (1 << shift) - 1
}

//! The sparse histogram says what HdrHistogram says.

use proptest::prelude::*;
use rushhour::measure::Histogram;
use rushhour::measure::histogram::LONGEST_US;

fn both(values: &[u64]) -> (Histogram, hdrhistogram::Histogram<u64>) {
    let mut ours = Histogram::default();
    let mut theirs = hdrhistogram::Histogram::new_with_bounds(1, LONGEST_US, 3).unwrap();
    for value in values {
        ours.record(*value);
        theirs.record((*value).min(LONGEST_US)).unwrap();
    }
    (ours, theirs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Percentiles agree exactly (ours end at the exact maximum), sums are exact.
    #[test]
    fn percentiles_are_those_of_hdr_histogram(
        values in prop::collection::vec((0_u32..34).prop_flat_map(|bits| 0..=(1_u64 << bits)), 1..400),
        percentile in 0.1_f64..100.0,
    ) {
        let (ours, theirs) = both(&values);
        prop_assert_eq!(ours.count(), theirs.len());
        prop_assert_eq!(
            ours.percentile_us(percentile).unwrap(),
            theirs.value_at_percentile(percentile).min(values.iter().copied().max().unwrap().min(LONGEST_US))
        );
        let sum: u64 = values.iter().map(|value| value.min(&LONGEST_US)).sum();
        prop_assert!((ours.mean_us().unwrap() - sum as f64 / values.len() as f64).abs() < 1e-6);
    }

    /// Adding is the same as recording all in one.
    #[test]
    fn sums_of_histograms_are_histograms_of_sums(
        left in prop::collection::vec(0_u64..5_000_000, 0..200),
        right in prop::collection::vec(0_u64..5_000_000, 0..200),
    ) {
        let (mut added, _) = both(&left);
        let (other, _) = both(&right);
        let summed = Histogram::sum([&added, &other].into_iter());
        added.add(&other);
        let (whole, _) = both(&[left, right].concat());
        prop_assert_eq!(&added, &whole);
        prop_assert_eq!(&summed, &whole);
    }
}

#[test]
fn nothing_recorded_is_no_data() {
    let empty = Histogram::default();
    assert_eq!(
        (empty.percentile_us(99.0), empty.mean_us(), empty.max_us()),
        (None, None, None)
    );
}

#[test]
fn longer_than_an_hour_counts_as_an_hour() {
    let (ours, _) = both(&[u64::MAX]);
    assert_eq!(ours.max_us(), Some(LONGEST_US));
}

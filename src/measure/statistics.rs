//! What several runs say together. Values may be infinite: a recovery that was not seen to end took longer than any that was.
//!
//! Sources: field notes on recovery, §2.3; D. A. Darling's order statistics for the interval; Mann and Whitney (1947) for the
//! comparison, Hodges and Lehmann (1963) for its size.

/// The interval of a median from the values themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    pub low: f64,
    pub high: f64,
    /// The probability that the median lies within: 95 % takes six runs.
    pub confidence: f64,
}

/// Two groups of runs, compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Two-sided probability of such a difference by chance.
    pub p: f64,
    /// The middle of all differences, second group less first (Hodges–Lehmann).
    pub shift: f64,
}

/// Wanted of an interval where there are enough runs.
const CONFIDENCE: f64 = 0.95;

/// Below this product of sizes the distribution of U is counted out; above it the normal one is good to three digits.
const MOST_EXACT: usize = 2_500;

/// A sorted copy.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The smallest value that at least this share of the values does not exceed.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let sorted = sorted(values);
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

/// The middle value; of an even number the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[half]),
        _ if sorted[half].is_infinite() => Some(sorted[half]),
        _ => Some(f64::midpoint(sorted[half - 1], sorted[half])),
    }
}

/// The narrowest interval between two values, counted from both ends, that holds the median with 95 %; with fewer than six values all of
/// them, with what that is worth. `None` with fewer than two.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<MedianInterval> {
    let sorted = sorted(values);
    let count = sorted.len();
    if count < 2 {
        return None;
    }
    // The chance that fewer than k values lie below the median: binomial(n, ½) < k.
    let mut term = 0.5_f64.powi(i32::try_from(count).ok()?);
    let mut below = term;
    let (mut from_end, mut confidence) = (0, 1.0 - 2.0 * below);
    for k in 1..count / 2 {
        term *= (count - k + 1) as f64 / k as f64;
        below += term;
        if 1.0 - 2.0 * below < CONFIDENCE {
            break;
        }
        (from_end, confidence) = (k, 1.0 - 2.0 * below);
    }
    Some(MedianInterval {
        low: sorted[from_end],
        high: sorted[count - 1 - from_end],
        confidence,
    })
}

/// Compares two groups; `None` if one is empty.
#[must_use]
pub fn compare(first: &[f64], second: &[f64]) -> Option<Comparison> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let pairs = || {
        first
            .iter()
            .flat_map(|a| second.iter().map(move |b| (*a, *b)))
    };
    let u: f64 = pairs()
        .map(|(a, b)| {
            if b > a {
                1.0
            } else if b == a {
                0.5
            } else {
                0.0
            }
        })
        .sum();
    // Both beyond what was watched: no difference is known.
    let differences: Vec<f64> = pairs()
        .map(|(a, b)| if a == b { 0.0 } else { b - a })
        .collect();
    let most = (first.len() * second.len()) as f64;
    let far = u.max(most - u);
    let p = if first.len() * second.len() <= MOST_EXACT {
        (2.0 * exact_tail(first.len(), second.len(), far)).min(1.0)
    } else {
        normal_tail(first.len(), second.len(), far)
    };
    Some(Comparison {
        p,
        shift: median(&differences)?,
    })
}

/// P(U ≥ u) where both groups are alike: U counts the pairs whose second is larger, and the number of orders with U = k is that of the
/// partitions of k into at most m parts of at most n.
fn exact_tail(first: usize, second: usize, u: f64) -> f64 {
    let most = first * second;
    // ways[k]: with the first i values of a group placed, by U.
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    // The Gaussian binomial coefficient, one factor (1 − q^(n+i)) ÷ (1 − q^i) at a time.
    for i in 1..=first {
        let up = second + i;
        for k in (up..=most).rev() {
            ways[k] -= ways[k - up];
        }
        for k in i..=most {
            ways[k] += ways[k - i];
        }
    }
    let all: f64 = ways.iter().sum();
    let from = u.ceil() as usize;
    ways.get(from..)
        .map_or(0.0, |tail| tail.iter().sum::<f64>())
        / all
}

/// The same for large groups, both sides.
fn normal_tail(first: usize, second: usize, u: f64) -> f64 {
    let (m, n) = (first as f64, second as f64);
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let z = (u - m * n / 2.0 - 0.5).max(0.0) / deviation;
    (2.0 * upper_tail(z)).min(1.0)
}

/// P(Z > z) of the normal distribution, to 1.2 × 10⁻⁷ (Numerical Recipes, erfc by Chebyshev's fit).
fn upper_tail(z: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let sum = FIT.iter().rev().fold(0.0, |sum, factor| sum * t + factor);
    0.5 * t * (-x * x + sum).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field notes on recovery, §2.3.
    #[test]
    fn few_runs_prove_little() {
        let separate = |count: u32| {
            let first: Vec<f64> = (0..count).map(f64::from).collect();
            let second: Vec<f64> = (100..100 + count).map(f64::from).collect();
            compare(&first, &second).unwrap()
        };
        assert!((separate(3).p - 0.10).abs() < 1e-9);
        assert!((separate(4).p - 0.0286).abs() < 1e-4);
        assert!((separate(5).p - 0.0079).abs() < 1e-4);
        assert_eq!(separate(4).shift, 100.0);
        let same = compare(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((same.p, same.shift), (1.0, 0.0));
    }

    #[test]
    fn the_normal_tail_agrees_with_the_exact_one() {
        for u in [520.0, 560.0, 600.0] {
            let exact = 2.0 * exact_tail(30, 30, u);
            let normal = normal_tail(30, 30, u);
            assert!((exact - normal).abs() < 0.003, "{u}: {exact} {normal}");
        }
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6);
    }

    #[test]
    fn the_median_lies_between_the_values() {
        let of = |count: u32| {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            median_interval(&values).unwrap()
        };
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        assert_eq!(percent(of(3).confidence), 75.0);
        assert_eq!(percent(of(5).confidence), 93.8);
        assert_eq!(percent(of(6).confidence), 96.9);
        let ten = of(10);
        assert_eq!(
            (ten.low, ten.high, percent(ten.confidence)),
            (2.0, 9.0, 97.9)
        );
        assert_eq!(median_interval(&[1.0]), None);
    }

    /// Runs that did not recover are not left out: they are the longest.
    #[test]
    fn what_did_not_end_counts_as_longest() {
        let values = [10.0, f64::INFINITY, 12.0, 11.0, f64::INFINITY];
        assert_eq!(median(&values), Some(12.0));
        assert_eq!(quantile(&values, 0.9), Some(f64::INFINITY));
        assert_eq!(median(&[1.0, f64::INFINITY]), Some(f64::INFINITY));
        let both = compare(&values, &values).unwrap();
        assert_eq!((both.p, both.shift), (1.0, 0.0));
    }
}

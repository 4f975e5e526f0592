//! Arrival schedules: exact where they are even, faithful to the rate where they are random, pure functions of n everywhere.

use proptest::prelude::*;
use rushhour::arrivals::{Piece, Schedule, Spread};
use std::time::Duration;

fn piece(from_per_second: f64, to_per_second: f64, lasts: Duration) -> Piece {
    Piece {
        from_per_second,
        to_per_second,
        lasts,
    }
}

fn seconds(from_per_second: f64, to_per_second: f64, lasts_seconds: u64) -> Piece {
    piece(
        from_per_second,
        to_per_second,
        Duration::from_secs(lasts_seconds),
    )
}

fn even(pieces: &[Piece]) -> Schedule {
    Schedule::new(Spread::Even, pieces.to_vec())
}

fn poisson(seed: u64, pieces: &[Piece]) -> Schedule {
    Schedule::new(Spread::Poisson { seed }, pieces.to_vec())
}

fn all(schedule: &Schedule) -> Vec<Duration> {
    (1..).map_while(|n| schedule.due(n)).collect()
}

fn millis(schedule: &Schedule) -> Vec<u128> {
    all(schedule).iter().map(Duration::as_millis).collect()
}

#[test]
fn a_ramp_from_zero_has_its_first_arrival_when_the_integral_reaches_one() {
    let schedule = even(&[seconds(0.0, 1.0, 5)]);
    let first = schedule.due(1).unwrap().as_secs_f64();
    assert!((first - 10.0_f64.sqrt()).abs() < 1e-9, "{first}");
}

#[test]
fn up_along_and_down_gives_the_six_arrivals_of_the_issue() {
    let schedule = even(&[
        seconds(0.0, 1.0, 5),
        seconds(1.0, 1.0, 1),
        seconds(1.0, 0.0, 5),
    ]);
    assert_eq!(millis(&schedule), [3162, 4472, 5500, 6527, 7837, 11_000]);
    assert_eq!(
        schedule.due(6),
        Some(Duration::from_secs(11)),
        "the last one, at the very end"
    );
    assert_eq!(
        (schedule.total(), schedule.due(0), schedule.due(7)),
        (6, None, None)
    );
}

#[test]
fn arrivals_at_the_end_of_a_piece_come_before_the_pause_that_follows() {
    let schedule = even(&[
        seconds(2.0, 2.0, 1),
        seconds(0.0, 0.0, 60),
        seconds(0.0, 2.0, 1),
        seconds(0.0, 0.0, 0),
        seconds(1.0, 1.0, 1),
    ]);
    assert_eq!(millis(&schedule), [500, 1000, 62_000, 63_000]);
}

#[test]
fn the_last_arrival_survives_rates_that_binary_fractions_cannot_hold() {
    for (rate, lasts_seconds) in [
        (0.1, 30),
        (1.0 / 3.0, 9),
        (0.7, 10),
        (1.1, 100),
        (49.9, 600),
        (1.0 / 3600.0, 36_000),
    ] {
        let schedule = even(&[seconds(rate, rate, lasts_seconds)]);
        let expected = (rate * lasts_seconds as f64).round() as u64;
        assert_eq!(schedule.total(), expected, "{rate}/s for {lasts_seconds} s");
        assert_eq!(
            schedule.due(expected),
            Some(Duration::from_secs(lasts_seconds))
        );
        assert_eq!(schedule.due(expected + 1), None);
    }
}

#[test]
fn nothing_is_due_without_a_rate() {
    for pieces in [
        vec![],
        vec![seconds(0.0, 0.0, 600)],
        vec![seconds(5.0, 5.0, 0)],
    ] {
        for schedule in [even(&pieces), poisson(1, &pieces)] {
            assert_eq!((schedule.total(), schedule.due(1)), (0, None));
        }
    }
}

/// 100 000/s for 10 hours is 3.6 · 10⁹ arrivals; the last one is still where it belongs, to the microsecond.
#[test]
fn hours_at_a_high_rate_lose_nothing() {
    let hours: Vec<Piece> = (0..36_000)
        .map(|_| seconds(100_000.0, 100_000.0, 1))
        .collect();
    let schedule = even(&hours);
    assert_eq!(schedule.total(), 3_600_000_000);
    assert_eq!(
        schedule.due(3_600_000_000),
        Some(Duration::from_secs(36_000))
    );
    let before = schedule.due(3_599_999_999).unwrap();
    assert_eq!((Duration::from_secs(36_000) - before).as_nanos() / 1000, 10);
}

#[test]
fn beyond_its_end_a_schedule_goes_on_at_its_last_rate() {
    let schedule = even(&[seconds(0.0, 4.0, 3)]);
    let due: Vec<_> = (5..=8)
        .map(|n| schedule.due_extended(n).unwrap().as_millis())
        .collect();
    assert_eq!((schedule.total(), due), (6, vec![2738, 3000, 3250, 3500]));
    let ends_at_zero = even(&[seconds(4.0, 0.0, 3)]);
    assert_eq!(
        (ends_at_zero.due_extended(6), ends_at_zero.due_extended(7)),
        (Some(Duration::from_secs(3)), None)
    );
    let random = poisson(3, &[seconds(10.0, 10.0, 10)]);
    let total = random.total();
    assert!(random.due_extended(total + 1).unwrap() > Duration::from_secs(10));
    assert!(random.due_extended(total + 1000).unwrap() > Duration::from_secs(90));
}

#[test]
fn rates_can_be_asked() {
    let schedule = even(&[
        seconds(20.0, 20.0, 10),
        seconds(20.0, 120.0, 10),
        seconds(5.0, 5.0, 10),
    ]);
    let at = |at| schedule.rate_at(Duration::from_secs(at));
    assert_eq!(
        (at(0), at(10), at(15), at(20), at(30), at(99)),
        (20.0, 20.0, 70.0, 5.0, 5.0, 5.0)
    );
    assert_eq!(
        (schedule.peak_per_second(), schedule.last_rate()),
        (120.0, 5.0)
    );
    assert_eq!(schedule.lasts(), Duration::from_secs(30));
    assert_eq!(schedule.expected(), 950.0);
    assert_eq!(schedule.expected_until(Duration::from_secs(15)), 425.0);
}

/// The count in each of 1000 stretches of the same expectation 50 has mean 50 and variance 50; both are held to five standard errors. The
/// stretches differ in length (the rate is a ramp), so this shows that the process follows the rate, and that it is as random as a
/// Poisson process is, neither more even nor more clustered.
#[test]
fn a_poisson_schedule_follows_the_rate_and_is_as_uneven_as_it_should_be() {
    let schedule = poisson(7, &[seconds(0.0, 100.0, 1000)]);
    let mut counts = vec![0_u32; 1000];
    for due in all(&schedule) {
        let position = schedule.expected_until(due);
        counts[((position / 50.0) as usize).min(999)] += 1;
    }
    let mean = counts.iter().map(|count| f64::from(*count)).sum::<f64>() / 1000.0;
    let variance = counts
        .iter()
        .map(|count| (f64::from(*count) - mean).powi(2))
        .sum::<f64>()
        / 999.0;
    assert!(
        (mean - 50.0).abs() < 5.0 * (50.0_f64 / 1000.0).sqrt(),
        "mean {mean}"
    );
    assert!(
        (variance - 50.0).abs() < 5.0 * 50.0 * (2.0_f64 / 999.0).sqrt(),
        "variance {variance}"
    );
}

/// Gaps at a constant rate are exponential: their empirical distribution stays within 1.95 ÷ √n of it (Kolmogorov and Smirnov, one
/// false alarm in a thousand seeds; the seed is fixed).
#[test]
fn gaps_of_a_poisson_schedule_are_exponential() {
    let due = all(&poisson(11, &[seconds(10.0, 10.0, 2000)]));
    let mut gaps: Vec<f64> = due
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64())
        .collect();
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distance = gaps
        .iter()
        .enumerate()
        .map(|(row, gap)| (1.0 - (-10.0 * gap).exp() - row as f64 / count).abs())
        .fold(0.0, f64::max);
    assert!(
        distance < 1.95 / count.sqrt(),
        "{distance} over {count} gaps"
    );
}

#[test]
fn a_seed_gives_the_same_schedule_again_and_another_seed_another() {
    let pieces = [seconds(5.0, 50.0, 60)];
    assert_eq!(all(&poisson(1, &pieces)), all(&poisson(1, &pieces)));
    assert_ne!(all(&poisson(1, &pieces)), all(&poisson(2, &pieces)));
}

fn any_pieces() -> impl Strategy<Value = Vec<Piece>> {
    let rate = prop_oneof![
        Just(0.0),
        0.01..200.0_f64,
        (1_u32..100).prop_map(|n| f64::from(n) / 3.0)
    ];
    let one = (rate.clone(), rate, 0_u64..20_000)
        .prop_map(|(from, to, millis)| piece(from, to, Duration::from_millis(millis)));
    prop::collection::vec(one, 0..8)
}

fn any_spread() -> impl Strategy<Value = Spread> {
    prop_oneof![
        Just(Spread::Even),
        any::<u64>().prop_map(|seed| Spread::Poisson { seed })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn due_times_never_run_backwards_and_total_counts_them(pieces in any_pieces(), spread in any_spread()) {
        let schedule = Schedule::new(spread, pieces);
        let due = all(&schedule);
        prop_assert_eq!(due.len() as u64, schedule.total());
        prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(due.last().is_none_or(|last| *last <= schedule.lasts()));
    }

    /// At the due time of arrival n the integral of the rate is n, but for a nanosecond at the peak rate (times are whole nanoseconds) and
    /// for the snap to a piece's end, of which √(2 · tolerance · slope) is the worst.
    #[test]
    fn even_arrivals_are_due_when_the_integral_reaches_their_number(pieces in any_pieces()) {
        let schedule = Schedule::new(Spread::Even, pieces);
        for (n, due) in (1..).zip(all(&schedule)) {
            let integral = schedule.expected_until(due);
            prop_assert!((integral - f64::from(n)).abs() < 1e-5, "arrival {} at {:?}: {}", n, due, integral);
        }
    }

    #[test]
    fn workers_share_a_schedule_without_overlap(pieces in any_pieces(), spread in any_spread(), workers in 1_u64..9) {
        let schedule = Schedule::new(spread, pieces);
        let mut shared: Vec<(Duration, u64)> = Vec::new();
        for worker in 0..workers {
            shared.extend((1..=schedule.total()).filter(|n| n % workers == worker).map(|n| (schedule.due(n).unwrap(), n)));
        }
        shared.sort();
        let order: Vec<u64> = shared.iter().map(|(_, n)| *n).collect();
        prop_assert_eq!(order, (1..=schedule.total()).collect::<Vec<_>>());
    }

    #[test]
    fn the_end_changes_nothing_before_it(pieces in any_pieces(), spread in any_spread()) {
        let schedule = Schedule::new(spread, pieces);
        for n in 1..=schedule.total() {
            prop_assert_eq!(schedule.due_extended(n), schedule.due(n));
        }
    }
}

/// How many arrivals lie in each bin, when every one is asked for by its number alone.
fn by_bin(schedule: &Schedule, bin: Duration, bins: usize) -> Vec<u64> {
    let mut counts = vec![0; bins];
    for due in all(schedule) {
        let row = (due.as_secs_f64() / bin.as_secs_f64()).floor() as usize;
        counts[row.min(bins - 1)] += 1;
    }
    counts
}

proptest! {
    /// Exactly what was counted comes again, bin by bin, in order, under every seed.
    #[test]
    fn a_recording_is_repeated_exactly(
        seed in any::<u64>(),
        counts in prop::collection::vec(prop_oneof![2 => Just(0_u64), 5 => 1_u64..40, 1 => 100_u64..400], 1..30),
        bin_ms in 50_u64..120_000,
    ) {
        let bin = Duration::from_millis(bin_ms);
        let schedule = Schedule::recorded(seed, bin, &counts);
        prop_assert_eq!(schedule.total(), counts.iter().sum::<u64>());
        prop_assert_eq!(&by_bin(&schedule, bin, counts.len()), &counts);
        let dues = all(&schedule);
        prop_assert!(dues.is_sorted());
        prop_assert_eq!(dues.len() as u64, schedule.total());
        prop_assert_eq!(&all(&Schedule::recorded(seed, bin, &counts)), &dues, "the same seed gives the same places");
    }
}

/// The places within a bin are those of uniform draws: a Kolmogorov-Smirnov distance that 200,000 true ones exceed once in a million.
#[test]
fn a_recording_spreads_evenly_within_its_bins() {
    let schedule = Schedule::recorded(11, Duration::from_secs(1), &[100; 2_000]);
    let mut shares: Vec<f64> = all(&schedule)
        .iter()
        .map(|due| due.as_secs_f64().fract())
        .collect();
    shares.sort_by(f64::total_cmp);
    let count = shares.len() as f64;
    let distance = shares
        .iter()
        .zip(1..)
        .map(|(share, rank)| (share - f64::from(rank) / count).abs())
        .fold(0.0, f64::max);
    assert!(distance < 2.7 / count.sqrt(), "{distance}");
    // Not evenly spaced either: the gaps of a bin vary as those of random arrivals do, by about their mean.
    let gaps: Vec<f64> = all(&schedule)[..100]
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64())
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation =
        (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!(
        (0.5..2.0).contains(&(deviation / mean)),
        "{deviation} of {mean}"
    );
}

/// Whoever goes on after the end does so at the rate of the last bin.
#[test]
fn a_recording_goes_on_at_its_last_rate() {
    let schedule = Schedule::recorded(5, Duration::from_secs(10), &[50, 20]);
    assert_eq!(schedule.due(71), None);
    assert_eq!(schedule.due_extended(72), Some(Duration::from_secs(21)));
}

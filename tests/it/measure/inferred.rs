//! What is inferred without a probe: known systems give their own numbers, and a load without a knee gives none.

use rushhour::measure::inferred::{Load, knee};

fn load(done: f64, latency_us: f64) -> Load {
    Load {
        done,
        latency_us: Some(latency_us),
    }
}

/// A pool of `size` that holds a connection for `hold_us`: ten seconds alone, ten at half load, then twenty with `clients`.
fn pool(size: f64, hold_us: f64, clients: f64) -> Vec<Load> {
    let capacity = size * 1e6 / hold_us;
    let noise = |second: u32| 1.0 + f64::from(second * 7 % 5) / 500.0;
    let mut seconds = Vec::new();
    for second in 0..10 {
        seconds.push(load(capacity / 10.0, hold_us * noise(second)));
    }
    for second in 0..10 {
        seconds.push(load(capacity / 2.0, hold_us * noise(second)));
    }
    for second in 0..20 {
        // Little's law for everybody who is there.
        let latency_us = clients / capacity * 1e6;
        let noise = noise(second);
        seconds.push(load(capacity * noise, latency_us * noise));
    }
    seconds
}

/// The experiment of the field notes: 95.3 a second, 52 ms alone, 419 ms full; five connections and a wait of 366.5 ms in truth.
#[test]
fn the_knee_of_a_known_pool_gives_its_size_and_its_wait() {
    let mut seconds = vec![load(9.0, 52_000.0); 10];
    seconds.extend(vec![load(95.3, 419_000.0); 20]);
    let knee = knee(&seconds).unwrap();
    assert!((knee.effective_pool - 5.0).abs() < 0.1, "{knee:?}");
    assert!((knee.wait_us - 366_500.0).abs() < 1000.0, "{knee:?}");
}

#[test]
fn pools_of_many_sizes_are_found_within_five_percent() {
    for size in [2.0, 5.0, 20.0, 100.0] {
        for hold_us in [5000.0, 50_000.0] {
            let clients = size * 8.0;
            let knee = knee(&pool(size, hold_us, clients)).unwrap();
            assert!((knee.effective_pool / size - 1.0).abs() < 0.05, "{knee:?}");
            let wait_us = hold_us * (clients / size - 1.0);
            assert!((knee.wait_us / wait_us - 1.0).abs() < 0.05, "{knee:?}");
        }
    }
}

#[test]
fn a_load_without_a_knee_gives_nothing() {
    // Everything is quick.
    assert_eq!(knee(&vec![load(50.0, 10_000.0); 60]), None);
    // Slow, but the more there is the more gets done: no plateau.
    let growing: Vec<Load> = (1..=60)
        .map(|second| {
            let second = f64::from(second);
            load(second * 10.0, 10_000.0 * second)
        })
        .collect();
    assert_eq!(knee(&growing), None);
    // Three slow seconds are an accident.
    let mut accident = vec![load(50.0, 10_000.0); 60];
    accident[30..33].fill(load(50.0, 500_000.0));
    assert_eq!(knee(&accident), None);
    // As much was done before: it is slow for another reason.
    let mut slow = vec![load(50.0, 10_000.0); 60];
    slow[30..50].fill(load(50.0, 500_000.0));
    assert_eq!(knee(&slow), None);
    assert_eq!(knee(&[]), None);
}

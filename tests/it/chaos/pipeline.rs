//! The pure heart of the proxy: whatever is held back leaves whole, in order, and not before its time.

use bytes::Bytes;
use proptest::prelude::*;
use rushhour::chaos::proxy::chain::{Chain, Direction, Toxic, Ways};
use rushhour::chaos::proxy::pipeline::{Fate, Pipeline};
use rushhour::chaos::proxy::queue::End;
use rushhour::chaos::proxy::toxics::{
    Bandwidth, BlackHole, Kind, Latency, LimitData, ResetPeer, Slicer, SlowClose, Timeout,
};
use rushhour::plan::fault::Connections;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const MILLIS: fn(u64) -> Duration = Duration::from_millis;

fn toxic(id: &str, kind: Kind) -> Toxic {
    Toxic {
        id: id.to_owned(),
        ways: Ways::BOTH,
        toxicity: 1.0,
        kind,
        until: None,
        seed: 7,
        connections: Connections::All,
        born: 0,
        tally: Arc::default(),
    }
}

fn latency(add_ms: u64, jitter_ms: u64) -> Kind {
    Kind::Latency(Latency {
        latency_us: add_ms * 1_000,
        jitter_us: jitter_ms * 1_000,
    })
}

fn slicer(average_bytes: u64, variation_bytes: u64, delay_us: u64) -> Kind {
    Kind::Slicer(Slicer {
        average_bytes,
        variation_bytes,
        delay_us,
    })
}

/// A way under a chain, with a clock of its own.
struct Way {
    pipeline: Pipeline,
    chain: Chain,
    now: Instant,
    received: Vec<u8>,
}

impl Way {
    fn under(kinds: &[Kind]) -> Way {
        let mut way = Way {
            pipeline: Pipeline::new(Direction::ToTarget, 1),
            chain: Chain::default(),
            now: Instant::now(),
            received: Vec::new(),
        };
        for (id, kind) in kinds.iter().enumerate() {
            way.chain.set(toxic(&id.to_string(), *kind));
        }
        way.refit();
        way
    }

    fn refit(&mut self) {
        self.pipeline.refit(&self.chain, self.now);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.pipeline.push(self.now, Bytes::copy_from_slice(bytes));
    }

    /// Takes what is ready at this moment; gives the moment of the next change.
    fn take(&mut self, most: usize) -> Option<Instant> {
        let wake = self.pipeline.advance(self.now);
        if let Some(bytes) = self.pipeline.ready() {
            let taken = bytes.len().min(most);
            self.received.extend_from_slice(&bytes[..taken]);
            self.pipeline.delivered(taken);
        }
        wake
    }

    fn take_all(&mut self) -> Option<Instant> {
        loop {
            let wake = self.take(usize::MAX);
            if self.pipeline.ready().is_none() {
                return wake;
            }
        }
    }

    /// Lets time pass from change to change, at most so long; gives what has come by when, as lengths.
    fn pass(&mut self, time: Duration) -> Vec<(Duration, usize)> {
        let (begun, end) = (self.now, self.now + time);
        let mut seen = Vec::new();
        loop {
            let before = self.received.len();
            let wake = self.take_all();
            if self.received.len() > before {
                seen.push((self.now - begun, self.received.len() - before));
            }
            match wake.filter(|wake| *wake <= end && *wake > self.now) {
                Some(wake) => self.now = wake,
                None => {
                    self.now = end;
                    self.take_all();
                    return seen;
                }
            }
        }
    }
}

/// A step of a stream's life.
#[derive(Debug, Clone)]
enum Happens {
    Push(Vec<u8>),
    Pass(Duration),
    Set(u8, Kind),
    Remove(u8),
    /// The receiver takes so many bytes at most.
    Take(usize),
}

/// Toxics that lose nothing.
fn harmless() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (0..200_u64, 0..50_u64).prop_map(|(add, jitter)| latency(add, jitter)),
        (0..4_000_u64).prop_map(|bytes_per_second| Kind::Bandwidth(Bandwidth { bytes_per_second })),
        (0..20_u64, 0..20_u64, 0..3_000_u64)
            .prop_map(|(average, variation, delay)| slicer(average, variation, delay)),
        (0..300_000_u64).prop_map(|delay_us| Kind::SlowClose(SlowClose { delay_us })),
        Just(Kind::Noop),
    ]
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..40).prop_map(Happens::Push),
        (0..80_u64).prop_map(|millis| Happens::Pass(MILLIS(millis))),
        (0..4_u8, harmless()).prop_map(|(id, kind)| Happens::Set(id, kind)),
        (0..4_u8).prop_map(Happens::Remove),
        (1..64_usize).prop_map(Happens::Take),
    ]
}

proptest! {
    /// Toxics come, change and go while bytes pass: all arrive, in order, and once nothing acts any more, at once.
    #[test]
    fn loses_and_reorders_nothing(steps in proptest::collection::vec(happens(), 1..120)) {
        let mut way = Way::under(&[]);
        let mut sent = Vec::new();
        for step in steps {
            match step {
                Happens::Push(bytes) => {
                    sent.extend_from_slice(&bytes);
                    way.push(&bytes);
                }
                Happens::Pass(time) => way.now += time,
                Happens::Set(id, kind) => {
                    way.chain.set(toxic(&id.to_string(), kind));
                    way.refit();
                }
                Happens::Remove(id) => {
                    way.chain.remove(&id.to_string());
                    way.refit();
                }
                Happens::Take(most) => {
                    way.take(most);
                }
            }
            prop_assert_eq!(way.pipeline.held_bytes(), sent.len() - way.received.len());
            prop_assert_eq!(way.pipeline.fate(), Fate::GoesOn);
        }
        way.pipeline.end(way.now, End::Finished);
        way.chain = Chain::default();
        way.refit();
        way.take_all();
        prop_assert!(way.pipeline.is_finished());
        prop_assert_eq!(way.received, sent);
    }

    /// A chunk leaves at its arrival plus the sum of the delays, each within its jitter, and at the same moment every time.
    #[test]
    fn delays_add(add in 1..500_u64, other in 1..500_u64, jitter in 0..300_u64) {
        let arrival = || {
            let mut way = Way::under(&[latency(add, jitter), latency(other, 0)]);
            way.push(b"bytes");
            let seen = way.pass(Duration::from_secs(10));
            (seen[0].0, seen.len())
        };
        let (took, pieces) = arrival();
        prop_assert_eq!(pieces, 1);
        prop_assert!(took >= MILLIS(add.saturating_sub(jitter) + other));
        prop_assert!(took <= MILLIS(add + jitter + other));
        prop_assert_eq!(arrival(), (took, 1));
    }

    /// A narrow path takes as long as its rate says, in pieces of a tenth of a second.
    #[test]
    fn a_bandwidth_is_kept(bytes in 1..5_000_usize, bytes_per_second in 500..20_000_u64) {
        let mut way = Way::under(&[Kind::Bandwidth(Bandwidth { bytes_per_second })]);
        way.push(&vec![1; bytes]);
        let seen = way.pass(Duration::from_secs(60));
        let expected = bytes as f64 / bytes_per_second as f64;
        let last = seen.last().unwrap().0.as_secs_f64();
        prop_assert!((last - expected).abs() < 1e-4 * seen.len() as f64, "{last} {expected}");
        prop_assert!(seen.iter().all(|(_, piece)| *piece as u64 <= bytes_per_second / 10));
    }

    /// Pieces are within average ± variation but for the last, and apart by the pause.
    #[test]
    fn a_slicer_cuts(bytes in 1..400_usize, average in 1..60_u64, variation in 0..80_u64) {
        let mut way = Way::under(&[slicer(average, variation, 1_000)]);
        way.push(&vec![1; bytes]);
        let seen = way.pass(Duration::from_secs(2));
        let allowed = average.saturating_sub(variation).max(1)..=2 * average.max(variation);
        for (row, (at, piece)) in seen.iter().enumerate() {
            prop_assert_eq!(*at, MILLIS(row as u64));
            prop_assert!(*piece as u64 <= *allowed.end());
            prop_assert!(row + 1 == seen.len() || *piece as u64 >= *allowed.start());
        }
        prop_assert_eq!(way.received.len(), bytes);
    }
}

#[test]
fn a_slicer_without_a_size_cuts_nothing() {
    let mut way = Way::under(&[slicer(0, 0, 0)]);
    way.push(&[1; 100]);
    assert_eq!(way.pass(MILLIS(1)), [(Duration::ZERO, 100)]);
}

#[test]
fn a_reset_overtakes_what_is_held_once_it_is_due() {
    let mut way = Way::under(&[latency(100, 0)]);
    let start = way.now;
    way.push(b"first");
    way.pipeline.end(start + MILLIS(10), End::Reset);
    assert_eq!(way.pipeline.advance(start), Some(start + MILLIS(100)));
    way.pipeline.advance(start + MILLIS(105));
    assert_eq!(
        way.pipeline.ready().map(|bytes| &bytes[..]),
        Some(&b"first"[..])
    );
    assert_eq!(way.pipeline.fate(), Fate::GoesOn);
    // The receiver did not take it: an RST does not wait for that.
    way.pipeline.advance(start + MILLIS(110));
    assert_eq!(way.pipeline.fate(), Fate::Resets);
}

#[test]
fn a_limit_lets_so_many_bytes_through_and_keeps_its_count_over_changes() {
    for (limit, sent, passed, closes) in [
        (5, &["0123456789"][..], "01234", true),
        (10, &["0123456789"], "0123456789", true),
        (11, &["0123456789"], "0123456789", false),
        (15, &["0123456789", "abcdef"], "0123456789abcde", true),
        (0, &["0"], "", true),
        (0, &[], "", false),
    ] {
        let mut way = Way::under(&[Kind::LimitData(LimitData { bytes: limit })]);
        for bytes in sent {
            way.push(bytes.as_bytes());
            way.take_all();
        }
        assert_eq!(way.received, passed.as_bytes());
        let fate = if closes { Fate::Closes } else { Fate::GoesOn };
        assert_eq!(way.pipeline.fate(), fate, "{limit} {sent:?}");
    }
    let mut way = Way::under(&[Kind::LimitData(LimitData { bytes: 8 })]);
    way.push(b"0123");
    way.take_all();
    way.chain
        .set(toxic("0", Kind::LimitData(LimitData { bytes: 6 })));
    way.refit();
    way.push(b"4567");
    way.take_all();
    assert_eq!(way.received, b"012345");
}

#[test]
fn a_timeout_loses_bytes_and_closes_when_none_come_or_it_goes() {
    let timeout = |millis: u64| {
        Kind::Timeout(Timeout {
            timeout_us: millis * 1_000,
        })
    };
    let mut way = Way::under(&[timeout(100)]);
    way.push(b"lost");
    way.pass(MILLIS(60));
    way.push(b"lost");
    way.pass(MILLIS(99));
    assert_eq!(way.pipeline.fate(), Fate::GoesOn);
    way.pass(MILLIS(1));
    assert_eq!((way.pipeline.fate(), way.received.len()), (Fate::Closes, 0));
    let mut way = Way::under(&[timeout(0)]);
    way.push(b"lost");
    way.pass(Duration::from_secs(3_600));
    assert_eq!(way.pipeline.fate(), Fate::GoesOn);
    way.chain.remove("0");
    way.refit();
    way.take_all();
    assert_eq!((way.pipeline.fate(), way.received.len()), (Fate::Closes, 0));
}

#[test]
fn a_black_hole_swallows_the_end_too_and_resets_when_it_goes() {
    let mut way = Way::under(&[Kind::BlackHole(BlackHole {})]);
    way.push(b"lost");
    way.pipeline.end(way.now, End::Finished);
    way.pass(Duration::from_secs(60));
    assert!(!way.pipeline.is_finished());
    assert_eq!(way.pipeline.fate(), Fate::GoesOn);
    way.chain.remove("0");
    way.refit();
    assert_eq!(way.pipeline.fate(), Fate::Resets);
}

#[test]
fn a_reset_comes_to_an_idle_connection() {
    let mut way = Way::under(&[Kind::ResetPeer(ResetPeer { after_us: 10_000 })]);
    way.pass(MILLIS(9));
    assert_eq!(way.pipeline.fate(), Fate::GoesOn);
    way.pass(MILLIS(1));
    assert_eq!(way.pipeline.fate(), Fate::Resets);
}

#[test]
fn a_slow_close_delays_nothing_but_the_close() {
    let mut way = Way::under(&[Kind::SlowClose(SlowClose { delay_us: 50_000 })]);
    way.push(b"at once");
    way.take_all();
    assert_eq!(way.received, b"at once");
    way.pipeline.end(way.now, End::Finished);
    way.pass(MILLIS(49));
    assert!(!way.pipeline.is_finished());
    way.pass(MILLIS(1));
    assert!(way.pipeline.is_finished());
}

#[test]
fn a_toxic_acts_on_its_way_and_its_share_only_and_ends_at_its_deadline() {
    let now = Instant::now();
    let mut chain = Chain::default();
    chain.set(Toxic {
        ways: Ways::only(Direction::ToClient),
        toxicity: 0.3,
        until: Some(now + Duration::from_secs(5)),
        ..toxic("a", latency(1_000, 0))
    });
    let hit = |direction| {
        let acts = |connection: &u64| {
            let mut pipeline = Pipeline::new(direction, *connection);
            pipeline.refit(&chain, now);
            pipeline.has_toxics()
        };
        (1..=1_000).filter(acts).collect::<Vec<u64>>()
    };
    assert!(hit(Direction::ToTarget).is_empty());
    let chosen = hit(Direction::ToClient);
    // Four standard deviations of a binomial with 1000 draws of 0.3.
    assert!((242..=358).contains(&chosen.len()), "{}", chosen.len());
    assert_eq!(
        hit(Direction::ToClient),
        chosen,
        "the same seed, the same ones"
    );
    let mut later = chain.clone();
    assert!(later.expire(now + Duration::from_secs(4)).is_empty());
    assert_eq!(later.expire(now + Duration::from_secs(5)).len(), 1);
    assert!(later.toxics().is_empty());
}

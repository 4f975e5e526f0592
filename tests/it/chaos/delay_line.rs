//! The pure heart of the proxy: whatever is held back leaves whole, in order, and not before its time.

use bytes::Bytes;
use proptest::prelude::*;
use rushhour::chaos::proxy::delay_line::{DelayLine, End, Next};
use rushhour::chaos::proxy::{Chain, Latency};
use rushhour::plan::fault::Way;
use std::time::Duration;
use tokio::time::Instant;

fn latency(id: &str, add: Duration, jitter: Duration) -> Latency {
    Latency {
        id: id.to_owned(),
        add,
        jitter,
        way: Way::Both,
        until: None,
        seed: 7,
    }
}

/// A step of a stream's life.
#[derive(Debug, Clone)]
enum Step {
    Push(Vec<u8>),
    Pass(Duration),
    Add(u8, Duration, Duration),
    Remove(u8),
    /// The receiver takes so many bytes at most.
    Take(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let millis = |most| (0..most).prop_map(Duration::from_millis);
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..40).prop_map(Step::Push),
        millis(80_u64).prop_map(Step::Pass),
        (0..3_u8, millis(200_u64), millis(50_u64))
            .prop_map(|(id, add, jitter)| Step::Add(id, add, jitter)),
        (0..3_u8).prop_map(Step::Remove),
        (1..64_usize).prop_map(Step::Take),
    ]
}

proptest! {
    /// Latencies come and go while bytes pass: all arrive, in order, and once nothing delays any more, at once.
    #[test]
    fn loses_and_reorders_nothing(steps in proptest::collection::vec(step(), 1..120)) {
        let mut now = Instant::now();
        let mut line = DelayLine::default();
        let mut chain = Chain::default();
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Push(bytes) => {
                    sent.extend_from_slice(&bytes);
                    line.push(now, Bytes::from(bytes));
                }
                Step::Pass(time) => now += time,
                Step::Add(id, add, jitter) => chain.set(latency(&id.to_string(), add, jitter)),
                Step::Remove(id) => {
                    chain.remove(&id.to_string());
                }
                Step::Take(most) => {
                    if let Next::Bytes(bytes) = line.next(now, |chunk| chain.delay(direction(), 1, chunk)) {
                        let taken = bytes.len().min(most);
                        received.extend_from_slice(&bytes[..taken]);
                        line.sent(taken);
                    }
                }
            }
            prop_assert_eq!(line.held_bytes(), sent.len() - received.len());
        }
        line.end(now, End::Finished);
        while let Next::Bytes(bytes) = line.next(now, |_| Duration::ZERO) {
            received.extend_from_slice(&bytes);
            line.sent(bytes.len());
        }
        prop_assert_eq!(line.next(now, |_| Duration::ZERO), Next::End(End::Finished));
        prop_assert_eq!(received, sent);
    }

    /// A chunk leaves at its arrival plus the sum of the delays, each within its jitter: never before the sum of the least.
    #[test]
    fn delays_add(add in 1..500_u64, other in 1..500_u64, jitter in 0..300_u64, chunk in 1..1000_u64) {
        let millis = Duration::from_millis;
        let mut chain = Chain::default();
        chain.set(latency("a", millis(add), millis(jitter)));
        chain.set(latency("b", millis(other), Duration::ZERO));
        let delay = chain.delay(direction(), 3, chunk);
        prop_assert!(delay >= millis(add.saturating_sub(jitter) + other));
        prop_assert!(delay <= millis(add + jitter + other));
        prop_assert_eq!(delay, chain.delay(direction(), 3, chunk), "a draw is a function of its place");
    }
}

fn direction() -> rushhour::chaos::proxy::Direction {
    rushhour::chaos::proxy::Direction::ToTarget
}

#[test]
fn a_reset_overtakes_what_is_held_once_it_is_due() {
    let start = Instant::now();
    let delay = |_| Duration::from_millis(100);
    let mut line = DelayLine::default();
    line.push(start, Bytes::from_static(b"first"));
    line.end(start + Duration::from_millis(10), End::Reset);
    assert_eq!(
        line.next(start, delay),
        Next::At(start + Duration::from_millis(100))
    );
    assert_eq!(
        line.next(start + Duration::from_millis(105), delay),
        Next::Bytes(Bytes::from_static(b"first"))
    );
    // The receiver did not take it: an RST does not wait for that.
    assert_eq!(
        line.next(start + Duration::from_millis(110), delay),
        Next::End(End::Reset)
    );
}

#[test]
fn a_latency_acts_on_its_way_only_and_ends_at_its_deadline() {
    let now = Instant::now();
    let mut chain = Chain::default();
    let mut answers = latency("a", Duration::from_secs(1), Duration::ZERO);
    answers.way = Way::Answers;
    answers.until = Some(now + Duration::from_secs(5));
    chain.set(answers);
    assert!(!chain.delays(direction()));
    assert!(chain.delays(rushhour::chaos::proxy::Direction::ToClient));
    assert!(!chain.expire(now + Duration::from_secs(4)));
    assert!(chain.expire(now + Duration::from_secs(5)));
    assert!(chain.latencies().is_empty());
}

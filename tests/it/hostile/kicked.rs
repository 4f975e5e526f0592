//! A broker that accepts every session and ends it soon: hubs must go on backing off.

use super::broker::Broker;
use super::peer::{Move, Peer, Seen};
use super::stage::{LIMIT, plan};
use crate::live_hubs::fleet::start;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const HUBS: usize = 100;
const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_millis(1_600);
/// Sessions live that long.
const LIFE: Duration = Duration::from_millis(100);

/// When each hub (by the bytes of its CONNECT, which hold its client id) connected.
fn connects(peer: &Peer) -> BTreeMap<Vec<u8>, Vec<Instant>> {
    let mut connects: BTreeMap<Vec<u8>, Vec<Instant>> = BTreeMap::new();
    for line in peer.log() {
        if let Seen::Bytes(bytes) = line.seen
            && bytes[0] >> 4 == super::broker::CONNECT
        {
            connects.entry(bytes).or_default().push(line.at);
        }
    }
    connects
}

/// The mean gap between the n-th and the next connect of a hub, for the first `gaps`.
async fn mean_gaps(healthy_after: &str, gaps: usize) -> Vec<Duration> {
    let peer = Broker::session(vec![Move::Wait(LIFE), Move::Close])
        .serve()
        .await;
    let target = format!(
        "environment: test\ndevices: {{ hub: {{ shards: {{ only: \"mqtt://{}\" }}, \
         command: {{ topic: d/<serial>/cmd, id: {{ json: $.id }} }} }} }}\n",
        peer.address
    );
    let profile = format!(
        "target: target.yaml\nduration: 60s\nexpect: [ hubs connected >= 0% ]\nhubs:\n  homes: {{ device: hub, count: {HUBS}, \
         connect: {{ over: 0s }}, reconnect: {{ full_jitter: {{ base: {}ms, cap: {}ms }}, first: {}ms, healthy_after: {healthy_after} }} }}\n",
        BASE.as_millis(),
        CAP.as_millis(),
        BASE.as_millis(),
    );
    let (fleet, told) = start(plan(&profile, &target)).await;
    told.until(LIMIT, "every hub was there often enough", |_| {
        let connects = connects(&peer);
        connects.len() == HUBS && connects.values().all(|times| times.len() > gaps)
    })
    .await;
    fleet.stop(LIMIT).await;
    let connects = connects(&peer);
    (0..gaps)
        .map(|gap| {
            let sum: Duration = connects
                .values()
                .map(|times| times[gap + 1] - times[gap])
                .sum();
            sum / u32::try_from(HUBS).unwrap()
        })
        .collect()
}

/// A gap is the session's life and a wait drawn below 100, 200, 400, 800, 1600 and again 1600 ms, on average over 100 hubs half
/// of that within 6 % (2 σ). A machine that is busy adds the same to each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mean_gap_grows_from_connect_to_connect_up_to_the_cap() {
    let gaps = mean_gaps("30s", 6).await;
    for (shorter, longer) in gaps[..5].iter().zip(&gaps[1..5]) {
        assert!(longer > shorter, "{gaps:?}");
    }
    for at_cap in &gaps[4..] {
        let least = LIFE + CAP * 2 / 5;
        assert!(*at_cap > least && *at_cap < LIFE + CAP, "{gaps:?}");
    }
    assert!(gaps[4] > gaps[0] * 3, "{gaps:?}");
}

/// What proves that the test above can fail: where a session counts as healthy at once, the gap stays as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gap_stays_where_sessions_count_as_healthy() {
    let gaps = mean_gaps("1ms", 4).await;
    assert!(gaps[3] < gaps[0] * 2, "{gaps:?}");
}

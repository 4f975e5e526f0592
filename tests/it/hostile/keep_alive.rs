//! Servers that close the connections that they keep open, just when the next request comes: what may be sent again is, within
//! one attempt, and what may not ends it.

use super::peer::{Move, Peer, Said, Seen, http, serve};
use super::stage::{count, operation, run};
use crate::support::program::Home;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Of each group: 20/s for 2 s.
const RIDERS: usize = 40;
const FINE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// Answers the first request of a connection, and closes it instead of answering the second.
async fn closes_at_second() -> Peer {
    serve(http, |said: &Said| match said.nth {
        0 => Vec::new(),
        1 => vec![Move::Write(FINE.to_vec())],
        _ => vec![Move::Close],
    })
    .await
}

/// Answers, and closes the connection after 0 to 100 ms: a request comes every 50 ms.
async fn closes_at_random() -> Peer {
    let drawn = AtomicU64::new(7);
    serve(http, move |said: &Said| {
        if said.nth == 0 {
            return Vec::new();
        }
        let before = drawn.load(Ordering::Relaxed);
        let next = before
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        drawn.store(next, Ordering::Relaxed);
        let wait = Duration::from_millis((next >> 33) % 100);
        vec![Move::Write(FINE.to_vec()), Move::Wait(wait), Move::Close]
    })
    .await
}

fn ended(result: &Value, name: &str, outcome: &str) -> usize {
    let rows = operation(result, name)["outcomes"].as_array().unwrap();
    let row = rows.iter().find(|row| row["outcome"] == outcome);
    row.map_or(0, |row| count(row, "attempts"))
}

fn closed(peer: &Peer) -> usize {
    peer.count(|seen| *seen == Seen::Ended)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_connection_that_closes_is_no_failure_where_the_request_may_be_repeated() {
    let (reading, writing) = (closes_at_second().await, closes_at_second().await);
    let random = closes_at_random().await;
    let steps = [
        ("reads", "get", &reading),
        ("writes", "post", &writing),
        ("random", "get", &random),
    ];
    let mut target = "environment: test\njourneys:\n".to_owned();
    let mut profile =
        "target: target.yaml\nduration: 2s\ndrain: 2s\nexpect: [ reads success == 100% ]\nriders:\n".to_owned();
    for (name, method, peer) in steps {
        target += &format!(
            "  j-{name}: {{ steps: {{ {name}: {{ {method}: \"http://{}/\" }} }} }}\n",
            peer.address
        );
        profile += &format!(
            "  g-{name}: {{ journey: j-{name}, arrivals: {{ even: [ 20/s for 2s ] }}, max_in_flight: 100 }}\n"
        );
    }
    let home = Home::new();
    let finished = run(&home, &profile, &target).await;
    finished.expect_code(0);
    let result = finished.result();
    for name in ["reads", "writes", "random"] {
        assert_eq!(
            count(operation(&result, name), "attempts"),
            RIDERS,
            "{name}"
        );
    }
    // Every close is a request that was sent again: one more than attempts say, each on a connection that was not new.
    assert_eq!(ended(&result, "reads", "ok"), RIDERS);
    assert!(
        closed(&reading) > RIDERS / 4,
        "{} of the connections were kept",
        closed(&reading)
    );
    assert_eq!(reading.said(), RIDERS + closed(&reading));
    // A POST may have been carried out: it is never sent again.
    assert_eq!(ended(&result, "writes", "reset"), closed(&writing));
    assert_eq!(ended(&result, "writes", "ok"), RIDERS - closed(&writing));
    assert_eq!(writing.said(), RIDERS);
    assert_eq!(ended(&result, "random", "ok"), RIDERS);
    assert!(random.said() >= RIDERS);
}

//! A retry budget over real sockets: what the server counts while it fails every request.

use super::stage::{FIRST_STEP, Told, begin, plan, request, run, step};
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::get;
use rushhour::event::{Event, Outcome, RetryChange};
use rushhour::plan::target::Method;
use rushhour::retry::{Backoff, Retry, RetryBudget};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpListener;

/// Refuses everything with 503 and these headers; counts what arrives.
async fn refusing(
    headers: impl Fn() -> HeaderMap + Clone + Send + Sync + 'static,
) -> (SocketAddr, Arc<Mutex<Vec<Instant>>>) {
    let seen: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let record = Arc::clone(&seen);
    let refuse = get(move || {
        let headers = headers();
        record
            .lock()
            .expect("no test panics here")
            .push(Instant::now());
        async move { (StatusCode::SERVICE_UNAVAILABLE, headers) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().route("/", refuse);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, seen)
}

fn every(wait_ms: u64, attempts: u32) -> Retry {
    Retry {
        attempts: Some(attempts),
        ..Retry::of(Backoff::Fixed {
            every: Duration::from_millis(wait_ms),
        })
    }
}

fn changes(told: &Told, wanted: RetryChange) -> usize {
    let events = told.events();
    let is_wanted =
        |event: &&Event| matches!(event, Event::Retry { change, .. } if *change == wanted);
    events.iter().filter(is_wanted).count()
}

/// 200 riders a second with four attempts each, a target that refuses all of them: 1.1 attempts an action with a budget of 10 %, 4
/// without. The server's count is the one that is held to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_ten_percent_holds_amplification_at_one_point_one() {
    for (budget, least, most) in [(None, 1_600, 1_600), (Some(0.1), 430, 440)] {
        let (address, seen) = refusing(HeaderMap::new).await;
        let told = Told::default();
        let near = request(Method::Get, &format!("http://{address}/"));
        let mut plan = plan(vec![step("near", near)], 200.0, Duration::from_secs(2));
        plan.riders[0].retry = every(20, 4);
        plan.riders[0].retry.budget = budget.map(|share| RetryBudget {
            share,
            reserve_per_second: 0.0,
        });
        plan.drain = Duration::from_secs(10);
        run(plan, &told).await;
        let attempts = seen.lock().expect("no test panics here").len();
        assert!(
            (least..=most).contains(&attempts),
            "{attempts} attempts of 400 actions"
        );
        assert_eq!(attempts, told.attempted(FIRST_STEP));
        assert_eq!(told.finished(FIRST_STEP, Outcome::Refused(503)), 400);
        assert_eq!(changes(&told, RetryChange::Denied) > 0, budget.is_some());
    }
}

/// Several riders' workers ask at the same moment: 300 are refused at once, and no more than 30 come again.
#[tokio::test(flavor = "multi_thread")]
async fn a_burst_gets_no_more_than_its_budget() {
    let (address, seen) = refusing(HeaderMap::new).await;
    let told = Told::default();
    let near = request(Method::Get, &format!("http://{address}/"));
    let mut plan = plan(
        vec![step("near", near)],
        3_000.0,
        Duration::from_millis(100),
    );
    plan.riders[0].retry = every(0, 4);
    plan.riders[0].retry.budget = Some(RetryBudget {
        share: 0.1,
        reserve_per_second: 0.0,
    });
    plan.drain = Duration::from_secs(10);
    run(plan, &told).await;
    let attempts = seen.lock().expect("no test panics here").len();
    assert!(
        (320..=330).contains(&attempts),
        "{attempts} attempts of 300 actions"
    );
}

/// From the first to the second attempt of a rider who is refused with these headers.
async fn gaps(
    headers: impl Fn() -> HeaderMap + Clone + Send + Sync + 'static,
    retry: Retry,
) -> (Duration, Told) {
    let (address, seen) = refusing(headers).await;
    let told = Told::default();
    let near = request(Method::Get, &format!("http://{address}/"));
    let mut plan = plan(vec![step("near", near)], 1.0, Duration::from_secs(1));
    plan.riders[0].retry = retry;
    let (fleet, clock, _) = begin(&Arc::new(plan), &told).await;
    let limit = Instant::now() + Duration::from_secs(20);
    while seen.lock().expect("no test panics here").len() < 2 {
        assert!(Instant::now() < limit, "the second attempt never came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fleet.stop(clock.now()).await;
    let seen = seen.lock().expect("no test panics here");
    (seen[1] - seen[0], told)
}

fn in_seconds(seconds: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(
        axum::http::header::RETRY_AFTER,
        HeaderValue::from_static(seconds),
    )])
}

fn as_a_date() -> HeaderMap {
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3));
    let value = HeaderValue::from_str(&date).expect("a date is a header's value");
    HeaderMap::from_iter([(axum::http::header::RETRY_AFTER, value)])
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_respected_up_to_the_limit_or_not_at_all() {
    let (waits, respects) = (every(100, 2), |limit| Retry {
        retry_after: Some(Duration::from_millis(limit)),
        ..every(100, 2)
    });
    let two_seconds = || in_seconds("2");
    let (ignored, told) = gaps(two_seconds, waits).await;
    assert!(
        (Duration::from_millis(100)..Duration::from_secs(2)).contains(&ignored),
        "{ignored:?}"
    );
    assert_eq!(
        (
            changes(&told, RetryChange::Asked) >= 1,
            changes(&told, RetryChange::Postponed)
        ),
        (true, 0)
    );

    let (respected, told) = gaps(two_seconds, respects(60_000)).await;
    assert!(respected >= Duration::from_secs(2), "{respected:?}");
    assert_eq!(changes(&told, RetryChange::Postponed), 1);

    let (limited, told) = gaps(|| in_seconds("3600"), respects(500)).await;
    assert!(limited >= Duration::from_millis(500), "{limited:?}");
    assert_eq!(changes(&told, RetryChange::Postponed), 1);

    // Dates have whole seconds, so three of them are more than two.
    let (dated, _) = gaps(as_a_date, respects(60_000)).await;
    assert!(dated >= Duration::from_secs(2), "{dated:?}");

    let (odd, told) = gaps(|| in_seconds("soon"), respects(60_000)).await;
    assert!(odd < Duration::from_secs(2), "{odd:?}");
    assert_eq!(changes(&told, RetryChange::Asked), 0);
}

//! What the server counts equals what is told, whatever goes wrong, and the stop tells the rest.

use super::stage::{
    FIRST_STEP, JOURNEY, NO_RETRY, Told, begin, plan, request, run, step, template,
};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use rushhour::event::Outcome;
use rushhour::plan::target::Method;
use rushhour::retry::{Backoff, Retry};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// A server of bare sockets: what it does with each connection.
async fn serve_connections<F>(each: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(each(stream));
        }
    });
    address
}

/// Reads one request without a body; false at the end of the connection.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_leaves_everything_unfinished_with_its_age() {
    let address = serve_connections(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let mut plan = plan(steps, 40.0, Duration::from_secs(2));
    plan.drain = Duration::from_millis(300);
    let stop_took = run(plan, &told).await;

    assert_eq!(told.started(JOURNEY), 80);
    assert_eq!(told.attempted(FIRST_STEP), 80);
    assert_eq!(told.all_finished(JOURNEY), 0);
    let ages = told.ages(JOURNEY);
    assert_eq!(ages.len(), 80);
    assert_eq!(told.ages(FIRST_STEP).len(), 80);
    // The first was due 25 ms after 0:00, the last at the end: ages tell how long each has waited.
    let (oldest, youngest) = (ages.iter().max().unwrap(), ages.iter().min().unwrap());
    assert!(*oldest >= Duration::from_millis(2_200) && *youngest < Duration::from_millis(800));
    assert!(
        stop_took < Duration::from_millis(300) + Duration::from_secs(3),
        "{stop_took:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_covers_the_body_too() {
    let address = serve_connections(|mut stream| async move {
        if read_request(&mut stream).await {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
                .await;
            std::future::pending::<()>().await;
        }
    })
    .await;
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let mut plan = plan(steps, 20.0, Duration::from_secs(1));
    plan.riders[0].timeout = Duration::from_millis(300);
    plan.drain = Duration::from_secs(5);
    run(plan, &told).await;
    assert_eq!(told.finished(JOURNEY, Outcome::TimedOut), 20);
    assert_eq!(told.answered(FIRST_STEP, Outcome::TimedOut), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_carry_the_same_id_and_are_counted_as_the_server_counts_them() {
    // By idempotency key: how often it came. The first two attempts of each are refused.
    let seen: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let record = Arc::clone(&seen);
    let unlock = post(move |headers: HeaderMap, body: String| {
        let record = Arc::clone(&record);
        async move {
            let id = headers["idempotency-key"].to_str().unwrap().to_owned();
            assert_eq!(body, format!("{{\"request\":\"{id}\"}}"));
            let mut seen = record.lock().unwrap();
            let times = seen.entry(id).or_default();
            *times += 1;
            if *times < 3 {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::ACCEPTED
            }
        }
    });
    let address = serve(Router::new().route("/bikes/b-7/unlock", unlock)).await;
    let told = Told::default();
    let mut unlock = request(Method::Post, &format!("http://{address}/bikes/b-7/unlock"));
    unlock.headers = vec![("Idempotency-Key".to_owned(), template("<intent>"))];
    unlock.json = Some(rushhour::plan::template::JsonTemplate::Map(vec![(
        "request".to_owned(),
        rushhour::plan::template::JsonTemplate::Text(template("<intent>")),
    )]));
    let mut plan = plan(vec![step("unlock", unlock)], 100.0, Duration::from_secs(1));
    plan.riders[0].retry = Retry {
        backoff: Backoff::Fixed {
            every: Duration::from_millis(50),
        },
        attempts: Some(4),
        ..Retry::NEVER
    };
    plan.drain = Duration::from_secs(5);
    run(plan, &told).await;

    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 100, "one id for each intended action");
    assert!(seen.values().all(|times| *times == 3));
    assert_eq!(told.attempted(FIRST_STEP), 300);
    assert_eq!(told.answered(FIRST_STEP, Outcome::Refused(503)), 200);
    assert_eq!(told.finished(JOURNEY, Outcome::Ok), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_close_after_some_answers_hide_no_request() {
    let (requests, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, opened) = (Arc::clone(&requests), Arc::clone(&connections));
    let address = serve_connections(move |mut stream| {
        let counted = Arc::clone(&counted);
        opened.fetch_add(1, Ordering::SeqCst);
        async move {
            // Three answers, then the end, without a word about it: the client finds out by itself.
            for _ in 0..3 {
                if !read_request(&mut stream).await {
                    return;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await;
            }
        }
    })
    .await;
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let mut plan = plan(steps, 300.0, Duration::from_secs(2));
    plan.riders[0].max_in_flight = 1_000;
    plan.drain = Duration::from_secs(10);
    run(plan, &told).await;

    let seen = requests.load(Ordering::SeqCst);
    let (ok, reset) = (
        told.answered(FIRST_STEP, Outcome::Ok),
        told.answered(FIRST_STEP, Outcome::Reset),
    );
    assert_eq!(told.started(JOURNEY), 600);
    assert_eq!(told.attempted(FIRST_STEP), 600);
    assert_eq!(ok + reset, 600, "{:?}", told.outcomes());
    // A request that was written into a closing connection was never seen and is told as reset, not sent a second time.
    assert_eq!(ok, seen);
    assert!(connections.load(Ordering::SeqCst) * 3 >= seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_are_unreachable_and_retried_by_the_policy_alone() {
    // Bound and closed again: nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let mut plan = plan(steps, 50.0, Duration::from_secs(1));
    plan.riders[0].retry = Retry {
        backoff: Backoff::Immediate,
        attempts: Some(3),
        ..Retry::NEVER
    };
    plan.drain = Duration::from_secs(2);
    run(plan, &told).await;
    assert_eq!(told.answered(FIRST_STEP, Outcome::Unreachable), 150);
    assert_eq!(told.finished(JOURNEY, Outcome::Unreachable), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_http_is_a_breach_of_protocol() {
    let address = serve_connections(|mut stream| async move {
        if read_request(&mut stream).await {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await;
        }
    })
    .await;
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let mut plan = plan(steps, 20.0, Duration::from_millis(500));
    plan.drain = Duration::from_secs(2);
    run(plan, &told).await;
    assert_eq!(told.finished(JOURNEY, Outcome::Protocol), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_max_in_flight_nothing_is_queued_and_nothing_is_sent() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let address = serve_connections(move |mut stream| {
        let counted = Arc::clone(&counted);
        async move {
            while read_request(&mut stream).await {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let mut plan = plan(steps, 100.0, Duration::from_secs(1));
    plan.riders[0].max_in_flight = 7;
    plan.riders[0].retry = NO_RETRY;
    plan.drain = Duration::from_millis(200);
    run(plan, &told).await;
    assert_eq!(told.started(JOURNEY), 100);
    assert_eq!(told.finished(JOURNEY, Outcome::NotSent), 93);
    assert_eq!(told.ages(JOURNEY).len(), 7);
    assert_eq!(
        seen.load(Ordering::SeqCst),
        7,
        "the server saw the seven in flight and no other"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_during_a_hang_returns_by_its_deadline_and_arrivals_end_with_it() {
    let address = serve_connections(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let told = Told::default();
    let steps = vec![step(
        "near",
        request(Method::Get, &format!("http://{address}/")),
    )];
    let plan = Arc::new(plan(steps, 50.0, Duration::from_secs(600)));
    let (fleet, clock, zero) = begin(&plan, &told).await;
    let limit = tokio::time::timeout(Duration::from_secs(10), async {
        while fleet.in_flight() < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    limit.await.expect("twenty are in flight after 0.4 s");
    let stopped = clock.now();
    fleet.stop(stopped.after(Duration::from_millis(200))).await;
    let took = clock.now().since(stopped);
    assert!(
        took < Duration::from_millis(3_200),
        "the stop took {took:?}"
    );
    // Everybody who was due before the stop, and nobody after it.
    let started = told.started(JOURNEY);
    let due = (stopped.since(zero).as_secs_f64() * 50.0) as usize;
    assert!((due..=due + 1).contains(&started), "{started} of {due}");
    assert_eq!(told.ages(JOURNEY).len(), started);
}

#[tokio::test(flavor = "multi_thread")]
async fn arrivals_go_on_at_their_last_rate_only_when_told() {
    let address = serve(Router::new().route("/", axum::routing::get(|| async { "here" }))).await;
    for (told_to, expected) in [(false, 50..=50), (true, 85..=100)] {
        let told = Told::default();
        let steps = vec![step(
            "near",
            request(Method::Get, &format!("http://{address}/")),
        )];
        let plan = Arc::new(plan(steps, 100.0, Duration::from_millis(500)));
        let (fleet, clock, zero) = begin(&plan, &told).await;
        if told_to {
            fleet.go_on();
        }
        tokio::time::sleep_until(clock.instant(zero.after(Duration::from_millis(900)))).await;
        fleet.stop(clock.now().after(Duration::from_secs(1))).await;
        let started = told.started(JOURNEY);
        assert!(
            expected.contains(&started),
            "{started} of {expected:?}, told to go on: {told_to}"
        );
        assert_eq!(told.finished(JOURNEY, Outcome::Ok), started);
    }
}

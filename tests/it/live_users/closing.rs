//! What is asked however a journey ends is asked, even where there was no room for anything else.

use crate::support::program::Home;
use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(90);

/// Trips that began, and by trip how often it was ended.
type Trips = (Arc<AtomicU64>, Arc<Mutex<BTreeMap<u64, u32>>>);

/// A target on a port of its own that begins trips, takes its time to go, and ends them.
async fn target() -> (SocketAddr, Trips) {
    let begun: Arc<AtomicU64> = Arc::default();
    let ended: Arc<Mutex<BTreeMap<u64, u32>>> = Arc::default();
    let (begins, ends) = (Arc::clone(&begun), Arc::clone(&ended));
    let router = Router::new()
        .route(
            "/begin",
            post(move || async move {
                let trip = begins.fetch_add(1, Ordering::SeqCst);
                format!(r#"{{"trip":"{trip}"}}"#)
            }),
        )
        .route(
            "/go",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(900)).await;
                StatusCode::OK
            }),
        )
        .route(
            "/end/{trip}",
            post(move |Path(trip): Path<u64>| async move {
                *ends.lock().unwrap().entry(trip).or_default() += 1;
                StatusCode::OK
            }),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, (begun, ended))
}

/// Three riders may be in flight, three begin a second, and the second step takes 900 ms: by Erlang's formula every third finds no
/// room for it, so that of eighteen at least one does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_trip_that_began_is_ended_once_though_there_was_no_room() {
    let (address, (begun, ended)) = target().await;
    let home = Home::new();
    home.write(
        "target.yaml",
        &format!(
            r#"environment: test
journeys:
  ride:
    base: "http://{address}"
    steps:
      begin: {{ post: /begin, keep: {{ trip: $.trip }} }}
      pause: {{ think: 100ms to 300ms }}
      go: {{ get: /go }}
    always: {{ give-back: {{ post: /end/<trip> }} }}
"#
        ),
    );
    let profile = "target: target.yaml
duration: 6s
drain: 10s
riders: { people: { journey: ride, arrivals: { poisson: [ 3/s for 6s ] }, timeout: 1s, max_in_flight: 3 } }
expect: [ go success >= 1% ]
";
    let profile = home.write("profile.yaml", profile).display().to_string();
    let run = move || (home.finish(&["run", &profile], LIMIT), home);
    let (finished, _home) = tokio::task::spawn_blocking(run).await.unwrap();
    let result = finished.result();
    let operations = result["operations"].as_array().unwrap();
    let row = |name: &str| operations.iter().find(|row| row["name"] == name).unwrap();
    let begun = begun.load(Ordering::SeqCst);
    let ended = ended.lock().unwrap();
    assert!(begun >= 5, "{begun} began");
    assert!(
        row("go")["outcomes"].to_string().contains("not sent"),
        "some found no room: {}",
        row("go")
    );
    assert_eq!(ended.len() as u64, begun, "{}", row("give-back"));
    assert!(ended.values().all(|times| *times == 1), "{ended:?}");
    assert_eq!(row("give-back")["ok"], begun, "{}", row("give-back"));
}

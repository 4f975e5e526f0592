//! Riders as processes drive them: against a lab that outlives the run, so that what stays behind can be seen.

use super::LIMIT;
use crate::support::lab::Lab;
use crate::support::program::Home;
use nix::sys::signal::Signal;
use std::time::Duration;

/// A target file and a profile for a lab that was started by itself; `think` is how long a ride takes.
fn files(home: &Home, lab: &Lab, think: &str) -> String {
    let target = format!(
        "about: A lab of its own.
environment: test
places: {{ stations: {{ count: 40, name: \"station-<n>\" }} }}
journeys:
  ride-along:
    place: stations
    base: {}/v1
    steps:
      near: {{ get: /stations/<station>, keep: {{ bikes: \"$.bikes[*].id\" }}, or_end: no-bike }}
      unlock:
        for_each: bikes as bike
        up_to: 3
        post: /bikes/<bike>/unlock
        headers: {{ Idempotency-Key: <intent>, Rider: \"r-<rider>\" }}
        ok: 202
        declined: {{ 409: taken }}
        keep: {{ trip: $.trip_id }}
      started: {{ get: /trips/<trip>, every: 200ms, until: {{ $.state: started }}, give_up: 20s }}
      ride: {{ think: {think} }}
      return: {{ post: /trips/<trip>/end }}
    always: {{ give-back: {{ post: /trips/<trip>/end, ok: [ 200, 404 ], unless: return }} }}
    spans: {{ start: unlock to started }}
",
        lab.says("api")
    );
    home.write("target.yaml", &target);
    let profile = "about: A short test.
target: target.yaml
seed: 7
duration: 4s
drain: 10s
riders:
  people: { journey: ride-along, arrivals: { even: [ 10/s for 4s ] }, places: { zipf: 0.5 }, timeout: 5s }
expect:
  - start success >= 99%
  - start latency p95 < 20s
  - attempts per unlock <= 1.1
  - attempts per started <= 1.1
";
    home.write("profile.yaml", profile).display().to_string()
}

/// The row of an operation in the result.
fn row<'a>(result: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let rows = result["operations"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_in_the_middle_of_rides_leaves_no_trip_open() {
    let lab = Lab::start(&[]);
    let home = Home::new();
    let running = home.start(&["run", &files(&home, &lab, "10m")], &[]);
    let all_ride = tokio::time::timeout(Duration::from_secs(60), async {
        while lab.stats().await["trips_open"].as_u64().unwrap() < 20 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    all_ride.await.expect("twenty ride");
    running.signal(Signal::SIGINT);
    let finished = running.wait(LIMIT);
    finished.expect_code(130);
    let stats = lab.stats().await;
    assert_eq!(stats["trips_open"], 0, "{}", finished.stdout);
    assert_eq!(stats["counts"]["trips_duplicated"], 0);
    let result = finished.result();
    let given_back = row(&result, "give-back");
    assert_eq!(given_back["kind"], "always");
    assert_eq!(given_back["ok"], stats["counts"]["trips_started"]);
    assert_eq!(
        row(&result, "ride-along")["unfinished"],
        row(&result, "ride-along")["started"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_polls_and_what_is_given_back_are_judged_and_reported() {
    let lab = Lab::start(&["--set", "unlock_ms=1000"]);
    let home = Home::new();
    // Rides are longer than load and drain together: everybody is asked to give back, none of them late.
    let finished = home.finish(&["run", &files(&home, &lab, "10m")], LIMIT);
    finished.expect_code(0);
    let result = finished.result();
    let stats = lab.stats().await;
    let started = row(&result, "started");
    assert_eq!(started["continued_as"], "polls");
    // A lock takes a second to open, a poll comes every 200 ms: at least two were in vain for each of the 40.
    assert!(started["continued"].as_u64().unwrap() >= 80, "{started}");
    assert_eq!(started["attempts"], stats["pool"]["acquires"]["trip"]);
    assert_eq!(started["amplification"], 1.0);
    assert_eq!(
        row(&result, "unlock")["attempts"],
        stats["pool"]["acquires"]["unlock"]
    );
    let span = row(&result, "start");
    assert_eq!(
        (&span["kind"], &span["ok"]),
        (&"span".into(), &started["ok"])
    );
    assert!(
        span["latency"]["p50_us"].as_u64().unwrap() >= 900_000,
        "{span}"
    );
    assert_eq!(row(&result, "give-back")["ok"], 40);
    assert_eq!(stats["trips_open"], 0);
    assert!(finished.stdout.contains("polls"), "{}", finished.stdout);
}

//! Whole runs with docks against the lab: nothing is lost while they are offline, and what goes wrong is seen.

use crate::support::lab::Lab;
use crate::support::program::Home;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);

/// Riders at 20/s to 500 docks, all of them offline for six seconds: the shipped profile, scaled in time.
fn run(on: &[&str], expect: &str) -> (i32, Value, String) {
    let home = Home::new();
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("profiles/targets/lab.yaml");
    let text = format!(
        "target: {}
seed: 7
duration: 26s
baseline: 10s
sustain: 4s
settle: 20s
drain: 30s
riders:
  commuters: {{ journey: commute, places: {{ zipf: 0.8 }}, arrivals: {{ even: [ 20/s for 26s ] }}, timeout: 3s }}
docks:
  stations: {{ device: dock, count: 500, status: {{ every: 10s }}, flush: {{ first: 2s }}, retry: {{ full_jitter: {{ base: 200ms, cap: 2s }} }} }}
timeline:
  cable-cut: {{ at: 12s, offline: {{ docks: stations }}, for: 6s }}
expect:
{expect}",
        target.display()
    );
    let profile = home.write("profile.yaml", &text).display().to_string();
    let mut arguments = vec!["run", &profile];
    on.iter()
        .for_each(|defect| arguments.extend(["--on", defect]));
    let finished = home.finish(&arguments, LIMIT);
    let result = finished.result();
    (finished.code, result, finished.stdout)
}

#[test]
fn five_hundred_docks_offline_under_load_lose_nothing_and_book_nothing_twice() {
    let expect = "  - returns lost == 0
  - returns duplicated == 0
  - returns in doubt == 0
  - returns active == 0
  - returns stored == 0 at end
  - returns delay p95 < 30s
";
    let (code, result, stdout) = run(&[], expect);
    assert_eq!(code, 0, "{stdout}");
    let row = &result["returns"][0];
    let created = row["created"].as_u64().unwrap();
    // 20/s for 26 s; who is still riding at the end of the drain is none, for a ride takes 8 s at most.
    assert!((510..=521).contains(&created), "{row}");
    let delivered = json!({ "state": "delivered once", "count": created });
    assert!(
        row["states"].as_array().unwrap().contains(&delivered),
        "{row}"
    );
    assert_eq!(row["adds_up"], true);
    assert_eq!(row["asked"], created, "each one was asked for: {row}");
    // Six seconds at 20/s, less what came before rides had ended.
    assert!(row["stored_peak"].as_u64().unwrap() >= 60, "{row}");
    assert!(row["drained_at_s"].as_i64().unwrap() >= 18, "{row}");
    assert!(row["left_out_offline"].as_u64().unwrap() > 0, "{row}");
    assert!(stdout.contains("RETURNS"), "{stdout}");
}

#[test]
fn a_target_that_forgets_what_it_accepted_is_seen_and_named() {
    let (code, result, stdout) = run(&["accepts-and-forgets"], "  - returns lost == 0\n");
    assert_eq!(code, 3, "{stdout}");
    let row = &result["returns"][0];
    let lost = json!({ "state": "lost", "count": row["created"] });
    assert!(row["states"].as_array().unwrap().contains(&lost), "{row}");
    assert_eq!(row["active"], row["created"], "no trip has ended: {row}");
    assert_eq!(row["adds_up"], true);
}

#[tokio::test]
async fn a_return_that_is_sent_twice_is_booked_once_unless_the_target_is_at_fault() {
    let lab = Lab::start(&["--set", "return_delay_ms=0"]);
    let (_, near) = lab.get("/v1/bikes/near?rider=1").await;
    let bike = near["bikes"][0]["id"].as_str().unwrap().to_owned();
    let (status, trip) = lab
        .post_once(&format!("/v1/bikes/{bike}/unlock"), "intent")
        .await;
    assert_eq!(status, 202);
    let body = |id: &str| json!({ "id": id, "trip": trip["trip_id"] });
    let returns = "/v1/stations/st-1/returns";
    assert_eq!(lab.post(returns, body("one")).await.0, 202);
    assert_eq!(lab.post(returns, body("one")).await.0, 409);
    assert_eq!(booked(&lab, "one", 1).await["state"], "ended");
    let (status, _) = lab
        .post(
            "/admin/defects/returns-without-idempotency",
            json!({ "on": true }),
        )
        .await;
    assert_eq!(status, 200);
    assert_eq!(lab.post(returns, body("two")).await.0, 202);
    assert_eq!(lab.post(returns, body("two")).await.0, 202);
    booked(&lab, "two", 2).await;
    assert_eq!(booked(&lab, "one", 1).await["applied"], 1);
    assert_eq!(lab.get("/v1/returns/three").await.0, 404);
}

/// The return, once it has been booked so often.
async fn booked(lab: &Lab, id: &str, times: u64) -> Value {
    let path = format!("/v1/returns/{id}");
    for _ in 0..1_000 {
        let (_, found) = lab.get(&path).await;
        if found["applied"] == times {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} was not booked {times} times")
}

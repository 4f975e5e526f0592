//! Retries of three layers over the wire: riders, the gateway in front of the station service, the service in front of its database.

use crate::support::lab::Lab;
use crate::support::program::Home;
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// Riders at 10/s for three seconds against a station service that fails every request.
async fn run(lab: &Lab, retry: &str) -> Value {
    let (status, _) = lab
        .post("/admin/defects/station-queries-fail", json!({ "on": true }))
        .await;
    assert_eq!(status, 200);
    let home = Home::new();
    let target = format!(
        "environment: test
journeys:
  ask: {{ base: \"{}/v1\", steps: {{ near: {{ get: /bikes/near?rider=<rider>, ok: 200 }} }} }}
",
        lab.says("api")
    );
    home.write("target.yaml", &target);
    let profile = format!(
        "target: target.yaml
duration: 3s
drain: 5s
riders:
  people: {{ journey: ask, arrivals: {{ even: [ 10/s for 3s ] }}, timeout: 5s, retry: {retry} }}
expect: [ near success >= 99% ]
"
    );
    let profile = home.write("profile.yaml", &profile).display().to_string();
    tokio::task::spawn_blocking(move || {
        let finished = home.finish(&["run", &profile], LIMIT);
        finished.expect_code(3);
        finished.result()
    })
    .await
    .unwrap()
}

fn near(result: &Value) -> &Value {
    let operations = result["operations"].as_array().unwrap();
    let near = operations.iter().find(|row| row["name"] == "near");
    near.unwrap_or_else(|| panic!("{operations:?}"))
}

fn lab() -> Lab {
    Lab::start(&["--set", "gateway_attempts=3", "--set", "service_attempts=2"])
}

#[tokio::test]
async fn without_a_budget_the_retries_of_three_layers_multiply() {
    let lab = lab();
    let result = run(&lab, "{ fixed: { every: 100ms, attempts: 4 } }").await;
    let near = near(&result);
    let riders = near["started"].as_u64().unwrap();
    assert!(riders >= 30, "{near}");
    assert_eq!(near["attempts"], riders * 4, "each rider tried four times");
    let layers = lab.stats().await["layers"].clone();
    assert_eq!(
        layers,
        json!({ "gateway": riders * 4, "service": riders * 4 * 3, "database": riders * 4 * 3 * 2 }),
        "what one layer tries again, the next one multiplies"
    );
}

#[tokio::test]
async fn a_budget_of_ten_percent_holds_the_riders_to_a_tenth_more() {
    let lab = lab();
    let result = run(
        &lab,
        "{ fixed: { every: 100ms, attempts: 4 }, budget: 10% }",
    )
    .await;
    let near = near(&result);
    let attempts = near["attempts"].as_u64().unwrap();
    let amplification = near["amplification"].as_f64().unwrap();
    assert!(amplification <= 1.1, "{near}");
    assert!(
        attempts > near["started"].as_u64().unwrap(),
        "the budget is spent, not locked: {near}"
    );
    let layers = lab.stats().await["layers"].clone();
    assert_eq!(
        layers,
        json!({ "gateway": attempts, "service": attempts * 3, "database": attempts * 3 * 2 })
    );
}

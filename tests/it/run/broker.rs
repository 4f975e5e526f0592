//! Against a broker that nobody here wrote: what it counts is what the report says.

use super::{LIMIT, broker_target, profile};
use crate::support::program::Home;
use crate::support::service::mosquitto;
use serde_json::Value;

fn sum(rows: &Value, of: &str) -> u64 {
    let rows = rows.as_array().expect("a list of rows");
    rows.iter()
        .map(|row| row[of].as_u64().expect("a count"))
        .sum()
}

#[test]
fn a_broker_counts_what_the_report_says() {
    let Some(broker) = mosquitto() else { return };
    let home = Home::new();
    let address = format!("mqtt://127.0.0.1:{}", broker.port);
    let target = broker_target(&home, &address, "", "");
    let rest = "timeline: { drop: { at: 10s, disconnect: { hubs: homes, share: 50%, within: 0s, by: reset } } }
expect:
  - hubs connected >= 99% within 3s after drop
  - commands in time >= 99% outside triggers
  - commands duplicated == 0
";
    let finished = home.finish(&["run", &profile(&home, &target, 14, rest)], LIMIT);
    finished.expect_code(0);
    let result = finished.result();
    // Ten of twenty came back; one more connection is the publisher's.
    assert_eq!(sum(&result["hubs"], "accepted"), 30);
    assert_eq!(sum(&result["publishers"], "accepted"), 1);
    assert!(result["ledger"][0]["adds_up"].as_bool().unwrap());
    let log = broker.log();
    let opened = sum(&result["hubs"], "opened") + sum(&result["publishers"], "opened");
    let accepted = sum(&result["hubs"], "accepted") + sum(&result["publishers"], "accepted");
    assert_eq!(log.matches("New client connected").count() as u64, accepted);
    // The test looked once whether the broker listens.
    let connections = log.matches("New connection from").count() as u64;
    assert!(
        connections == opened || connections == opened + 1,
        "{connections} for {opened}"
    );
}

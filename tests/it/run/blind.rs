//! A target that stops telling how it is: what was not seen is not judged.

use super::{LIMIT, lab_target, profile};
use crate::probe::metrics_server::MetricsServer;
use crate::support::program::{Home, eventually};
use std::time::Duration;

const PAGE: &str = "db_client_connection_wait_time_seconds_sum 0\ndb_client_connection_wait_time_seconds_count 10\n\
                    db_client_connection_pending_requests 0\ndb_client_connection_max 5\n\
                    db_client_connection_count{db_client_connection_state=\"used\"} 1\n";

/// Every expectation holds by what was read before: it must not pass all the same.
#[test]
fn a_target_whose_metrics_stop_answering_under_load_is_inconclusive() {
    let home = Home::new();
    let server = MetricsServer::start(PAGE);
    let shipped = std::fs::read_to_string(lab_target()).unwrap();
    let (before, _) = shipped.split_once("\nprobes:").unwrap();
    let probes = format!(
        "\nprobes:\n  every: 500ms\n  timeout: 400ms\n  max_blind: 20%\n  sources:\n    \
         orders: {{ preset: otel-db, scrape: \"{}\" }}\n",
        server.url()
    );
    let target = home.write("target.yaml", &format!("{before}{probes}"));
    let expect = "expect: [ pool waiting <= 5, pool saturation < 90%, hubs connected >= 10% ]\n";
    let profile = profile(&home, &target.display().to_string(), 6, expect);
    let running = home.start(&["run", &profile], &[]);
    // Connecting takes half a second, and two readings a second come: this is in the middle of the load.
    eventually("eight readings", Duration::from_secs(60), || {
        (server.asked() >= 8).then_some(())
    });
    // It takes connections and answers nothing, as an overloaded server does.
    server.answer_after(Duration::from_secs(3600));
    let finished = running.wait(LIMIT);
    finished.expect_code(4);
    assert!(
        finished.stdout.contains("the probe orders was blind for"),
        "{}",
        finished.stdout
    );
    let result = finished.result();
    let pool = &result["pools"][0];
    assert!(pool["blind"].as_f64().unwrap() > 0.2, "{pool}");
    assert!(pool["gaps"]["timed out"].as_u64().unwrap() >= 2, "{pool}");
}

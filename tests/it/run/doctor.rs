//! `doctor` and `metrics`: what a user asks before there is a run.

use super::{LIMIT, lab_target};
use crate::probe::metrics_server::MetricsServer;
use crate::support::program::Home;
use crate::support::service::free_port;

#[test]
fn a_target_that_is_well_is_told_in_every_part() {
    let home = Home::new();
    let finished = home.finish(&["doctor", "--target", &lab_target()], LIMIT);
    let said = &finished.expect_code(0).stdout;
    for part in [
        "THIS MACHINE",
        "open files",
        "HOSTS",
        "(devices.hub.shards.shard-1) connected in",
        "CLOCKS",
        "agrees within a second",
        "\u{2713} gateway-pool (pool)",
        "wait         db_client_connection_wait_time_seconds, in s, histogram up to",
        "in_use       db_client_connection_count",
        "bytes",
        "\u{2713} returns-queue (queue)",
        "note: no `age`",
        "Everything is reached and read.",
    ] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
}

#[test]
fn what_is_missing_is_named_with_what_it_means() {
    let home = Home::new();
    let server = MetricsServer::start("go_sql_in_use_connections{db_name=\"orders\"} 3\nbroken{\n");
    let (broker, api) = (free_port(), free_port());
    let text = format!(
        "about: Half of it is there.
environment: test
devices:
  hub: {{ shards: {{ only: \"mqtt://127.0.0.1:{broker}\" }}, find: balancer, client_id: <serial> }}
probes:
  sources:
    orders: {{ preset: go-sql, scrape: \"{}\" }}
    gone: {{ preset: hikaricp, scrape: \"http://127.0.0.1:{api}/metrics\" }}
    other: {{ preset: hikaricp, scrape: \"{}\" }}
",
        server.url(),
        server.url()
    );
    let target = home.write("target.yaml", &text).display().to_string();
    let finished = home.finish(&["doctor", "--target", &target], LIMIT);
    let said = &finished.expect_code(4).stdout;
    for part in [
        &format!("\u{2717} 127.0.0.1:{broker}  (devices.hub.shards.only)"),
        "\u{2713} orders (pool)",
        "in_use       go_sql_in_use_connections = 3",
        "{db_name=\"orders\"}",
        "note: no `waiting`",
        "\u{2717} gone (pool)",
        "unreachable",
        "\u{2717} other (pool)",
        "looked for hikaricp_connections_acquire_seconds_bucket",
        "4 problems.",
    ] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
}

#[test]
fn a_bad_target_file_is_told_as_by_check() {
    let home = Home::new();
    let target = home.write("target.yaml", "about: x\nenvironment: tset\n");
    let finished = home.finish(
        &["doctor", "--target", &target.display().to_string()],
        LIMIT,
    );
    finished.expect_code(2);
    assert!(finished.stderr.contains("target.yaml:2:"), "{finished:?}");
}

#[test]
fn the_catalogue_is_printed() {
    let home = Home::new();
    let said = home
        .finish(&["metrics"], LIMIT)
        .expect_code(0)
        .stdout
        .clone();
    for part in [
        "  wait STAT  (time)",
        "while it runs: rushhour_probe_wait_seconds",
        "  rushhour_hub_reconnects_total  (counter)",
    ] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
}

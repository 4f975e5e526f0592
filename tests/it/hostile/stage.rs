//! Plans from the files that a user would write, and the program run on them beside the servers of the test.

use super::peer::Peer;
use crate::support::program::{Finished, Home};
use rushhour::plan::Plan;
use rushhour::spec::{Sources, read};
use serde_json::Value;
use std::time::Duration;

/// Longer than any wait of these tests on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The plan of a profile that names `target.yaml`, and of that file.
pub fn plan(profile: &str, target: &str) -> Plan {
    let home = Home::new();
    home.write("target.yaml", target);
    let sources = Sources {
        profile: home.write("profile.yaml", profile),
        ..Sources::default()
    };
    read(&sources).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Runs the program on the two files in this home, while the servers of the test go on.
pub async fn run(home: &Home, profile: &str, target: &str) -> Finished {
    home.write("target.yaml", target);
    let profile = home.write("profile.yaml", profile).display().to_string();
    let running = home.start(&["run", &profile], &[]);
    tokio::task::spawn_blocking(move || running.wait(LIMIT))
        .await
        .unwrap()
}

/// The row of an operation in `result.json`.
pub fn operation<'a>(result: &'a Value, name: &str) -> &'a Value {
    let rows = result["operations"].as_array().unwrap();
    rows.iter()
        .find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("no operation {name}"))
}

/// A count of a row.
#[track_caller]
pub fn count(row: &Value, field: &str) -> usize {
    let count = row[field].as_u64();
    usize::try_from(count.unwrap_or_else(|| panic!("no count {field} in {row}"))).unwrap()
}

/// All clients that ended a connection did so after `timeout`, which begins a little before the server hears of it. 1.5 s is what
/// a busy machine may take.
#[track_caller]
pub fn ended_after(peer: &Peer, timeout: Duration, wanted: usize, what: &str) {
    let waits = peer.patience();
    assert_eq!(
        waits.len(),
        wanted,
        "{what}: connections that the client ended"
    );
    for wait in waits {
        assert!(
            wait >= timeout * 3 / 4 && wait < timeout + Duration::from_millis(1_500),
            "{what}: the client waited {wait:?}"
        );
    }
}

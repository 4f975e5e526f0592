//! The lab's processes: how it starts, what it says, and that nothing of it stays.

use super::hub::{Hub, LIMIT, until};
use crate::support::lab::{Lab, is_alive, is_open};
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};
use std::process::{Command, Output};

const COMPONENTS: [&str; 4] = ["database", "gateway", "shard-1", "shard-2"];
const NAMES: [&str; 6] = [
    "api", "metrics", "shard-1", "shard-2", "database", "db-link",
];

fn refused(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_rushhour"))
        .arg("lab")
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.stdout.is_empty(),
        "a lab that can't start says nothing on standard output"
    );
    output
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn the_ready_line_names_everything_that_stands() {
    let lab = Lab::start(&[]);
    for name in NAMES.into_iter().filter(|name| *name != "db-link") {
        assert!(is_open(lab.address(name)), "{name} listens");
    }
    assert!(
        !is_open(lab.address("db-link")),
        "the link's port is left to somebody else"
    );
    assert!(lab.says("api").starts_with("http://127.0.0.1:"));
    let file = std::fs::read_to_string(format!("{}/lab.json", lab.says("dir"))).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&file).unwrap(),
        *lab.ready(),
        "lab.json says the same"
    );
    for component in COMPONENTS {
        assert!(
            is_alive(lab.pid_of(component).unwrap()),
            "{component}.pid names a process"
        );
    }
    assert_eq!(lab.get("/ready").await.0, 200);
}

#[tokio::test]
async fn a_killed_supervisor_leaves_no_process_and_no_port() {
    let mut lab = Lab::start(&[]);
    let children = COMPONENTS.map(|component| lab.pid_of(component).unwrap());
    kill(lab.id(), Signal::SIGKILL).unwrap();
    lab.wait(LIMIT);
    for child in children {
        until(async || is_alive(child), |alive| !alive).await;
    }
    for name in NAMES {
        until(async || is_open(lab.address(name)), |open| !open).await;
    }
}

#[tokio::test]
async fn it_ends_with_its_parent_and_on_sigterm_but_leaves_ctrl_c_to_the_parent() {
    let mut lab = Lab::start(&[]);
    kill(lab.id(), Signal::SIGINT).unwrap();
    for component in COMPONENTS {
        kill(lab.pid_of(component).unwrap(), Signal::SIGINT).unwrap();
    }
    // The API still answers after the signals: a round trip that needs every process behind it.
    assert_eq!(lab.get("/v1/bikes/near?rider=1").await.0, 200);
    let children = COMPONENTS.map(|component| lab.pid_of(component).unwrap());
    lab.close_stdin();
    assert_eq!(
        lab.wait(LIMIT),
        Some(0),
        "the end of the parent is no error"
    );
    assert!(children.into_iter().all(|child| !is_alive(child)));

    let mut lab = Lab::start(&[]);
    let dir = lab.says("dir").to_owned();
    kill(lab.id(), Signal::SIGTERM).unwrap();
    assert_eq!(lab.wait(LIMIT), Some(0));
    let left: Vec<_> = std::fs::read_dir(dir).unwrap().flatten().collect();
    assert!(left.is_empty(), "neither pid files nor lab.json: {left:?}");
}

#[tokio::test]
async fn a_killed_shard_stays_down_until_the_operation_starts_it_on_the_same_port() {
    let lab = Lab::start(&[]);
    let address = lab.address("shard-1");
    let mut here = Hub::connect(&lab, "shard-1", "here").await;
    let there = Hub::connect(&lab, "shard-2", "there").await;
    let killed = lab.kill("shard-1");
    here.closed().await;
    until(async || is_open(address), |open| !open).await;
    let stats = until(
        async || lab.stats().await,
        |stats| stats["shards"]["shard-1"]["sessions"] == 0,
    )
    .await;
    assert_eq!(stats["shards"]["shard-1"]["disconnects"]["shard-lost"], 1);
    assert_eq!(
        lab.get("/ready").await.0,
        503,
        "the lab says that a shard is missing"
    );
    until(async || lab.pid_of("shard-1"), Option::is_none).await;

    let (status, answer) = lab
        .post("/admin/operations/restart-shard-1", json!({}))
        .await;
    assert_eq!((status, &answer["shard"]), (200, &json!("shard-1")));
    assert!(is_open(address), "it listens when the operation answers");
    assert_ne!(lab.pid_of("shard-1").unwrap(), killed);
    assert_eq!(lab.get("/ready").await.0, 200);
    Hub::connect(&lab, "shard-1", "here").await;
    assert!(
        there.is_connected(),
        "hubs of the other shard noticed nothing"
    );
}

#[test]
fn wrong_arguments_are_refused_with_what_is_known() {
    let output = refused(&["--on", "auth-from-databse"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        complaint(&output),
        "rushhour lab: there is no defect `auth-from-databse`; known are `auth-from-database`, \
         `slow-auth-expires-session`, `shard-map-ignores-generation`, `immediate-dispatch-retry`, `accepts-and-forgets`, \
         `connection-per-candidate`, `shared-pool`, `returns-without-idempotency`, `station-queries-fail`, \
         `bounded-pool-queue`, `authentication-admission`, `shed-status`\n"
    );
    let output = refused(&["--set", "pool_sise=3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        complaint(&output)
            .contains("there is no setting `pool_sise`; known are\n  pool_size (20): ")
    );
    for (text, remedy) in [
        ("pool_size", "write it as NAME=VALUE"),
        (
            "pool_size=0",
            "pool_size takes a whole number from 1 to 1000",
        ),
        (
            "pool_size=1.5",
            "pool_size takes a whole number from 1 to 1000",
        ),
    ] {
        let output = refused(&["--set", text]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            complaint(&output).contains(remedy),
            "{}",
            complaint(&output)
        );
    }
    for url in ["mysql://x", "postgres:///lab"] {
        let output = refused(&["--database", url]);
        assert_eq!(output.status.code(), Some(2), "{url}");
        assert!(complaint(&output).contains("postgres://user@host:port/name"));
    }
}

#[test]
fn a_database_that_is_not_there_is_named_with_its_place_and_without_its_password() {
    let port = crate::support::service::free_port();
    let output = refused(&[
        "--database",
        &format!("postgres://lab:hidden@127.0.0.1:{port}/lab"),
    ]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint(&output);
    assert!(
        complaint.contains(&format!(
            "the database at 127.0.0.1:{port} can't be reached"
        )),
        "{complaint}"
    );
    assert!(complaint.contains("start it, or check host, port, user and name"));
    assert!(!complaint.contains("hidden"));
}

#[tokio::test]
async fn unknown_operations_and_defects_are_answered_with_the_known_ones() {
    let lab = Lab::start(&["--shards", "3"]);
    let (status, answer) = lab
        .post("/admin/operations/restart-shard-4", json!({}))
        .await;
    assert_eq!(status, 404);
    let text = answer["error"].as_str().unwrap();
    assert!(
        text.contains("`restart-shard-1` to `restart-shard-3`"),
        "{text}"
    );
    let (status, answer) = lab
        .post("/admin/defects/no-such", json!({ "on": true }))
        .await;
    assert_eq!(status, 404);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("`accepts-and-forgets`")
    );
}

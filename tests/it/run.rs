//! Whole runs of the program as a user starts them.

mod blind;
mod broker;
mod critical;
mod doctor;
mod dry_run;
mod ends;
mod experiment;
mod faults;
mod lab;
mod links;
mod readmitting;
mod recipes;
mod renewal;
mod rides;
mod safety;
mod together;
mod verdicts;
mod waves;

use crate::support::program::Home;
use std::path::PathBuf;
use std::time::Duration;

/// Longer than any run of these tests on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A profile of a few seconds against `target`, with `rest` (expectations, timeline) at its end.
fn profile(home: &Home, target: &str, seconds: u32, rest: &str) -> String {
    let text = format!(
        "about: A short test.
target: {target}
seed: 7
duration: {seconds}s
baseline: 10s
sustain: 2s
settle: 10s
drain: 2s
hubs:
  homes:
    device: hub
    count: 20
    connect: {{ over: 500ms }}
    keep_alive: 30s
    timeout: 1s
    reconnect: {{ full_jitter: {{ base: 100ms, cap: 500ms }}, first: 200ms, healthy_after: 2s }}
issuers:
  app: {{ command: switch, to: homes, arrivals: {{ even: [ 10/s for {seconds}s ] }}, in_time: 1s, ttl: 3s, timeout: 1s }}
{rest}"
    );
    home.write("profile.yaml", &text).display().to_string()
}

/// A target file of a broker at this address to which commands are published: `keys` of the file, and `device` keys of its device.
fn broker_target(home: &Home, address: &str, keys: &str, device: &str) -> String {
    let text = format!(
        "about: A broker of the test's own.
environment: test
{keys}devices:
  hub:
{device}    shards: {{ broker: \"{address}\" }}
    client_id: <serial>
    command: {{ topic: d/<serial>/cmd, qos: 1, id: {{ json: $.id }} }}
    answer: {{ topic: d/<serial>/evt, qos: 1, json: {{ id: <command>, ok: true }} }}
commands:
  switch: {{ to: hub, publish: d/<serial>/cmd, qos: 1, json: {{ id: <command> }} }}
"
    );
    home.write("target.yaml", &text).display().to_string()
}

/// The lab's target file as shipped.
fn lab_target() -> String {
    shipped("profiles/targets/lab.yaml").display().to_string()
}

fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

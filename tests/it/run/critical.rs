//! The collapse boundary, seconds long: a disconnect below the critical number ends by itself, and one above it does not.

use super::{LIMIT, shipped};
use crate::support::program::Home;
use serde_json::Value;
use std::fs;

/// μ = 6 ÷ 100 ms = 60/s, T = 1 s, a wait of 2 s: D* = 240 hubs of a fleet of 288.
fn profile(home: &Home, share: &str, expect: &str) -> String {
    let target = fs::read_to_string(shipped("profiles/targets/lab-auth-pool.yaml"))
        .expect("the target file is shipped")
        .replace("pool_size: 20", "pool_size: 6")
        // A machine that is busy with other tests answers late.
        .replace("max_blind: 10%", "max_blind: 80%");
    home.write("target.yaml", &target);
    let text = format!(
        "about: A disconnect of {share}.
target: target.yaml
seed: 3
duration: 11s
baseline: 10s
sustain: 4s
settle: 13s
drain: 1s
hubs:
  homes:
    device: hub
    count: 288
    connect: {{ over: 6s }}
    keep_alive: 60s
    timeout: 1s
    reconnect: {{ fixed: {{ every: 2s }}, first: 0s, healthy_after: 500ms }}
timeline:
  drop: {{ at: 10s, disconnect: {{ hubs: homes, share: {share}, by: reset }} }}
expect: [ {expect} ]
"
    );
    home.write("critical.yaml", &text).display().to_string()
}

/// Runs it, with the exit code that is expected, and gives what the report says of recovery and of the critical number.
fn outcome(share: &str, expect: &str, code: i32) -> (Value, Value) {
    let home = Home::new();
    let profile = profile(&home, share, expect);
    let ended = home.start(&["run", &profile], &[]).wait(LIMIT);
    assert_eq!(
        ended.code, code,
        "{share}: {}\n{}",
        ended.stdout, ended.stderr
    );
    let result = ended.result();
    (
        result["recoveries"][0].clone(),
        result["critical"][0].clone(),
    )
}

/// 0.6 and 0.8 of D* come back, 1.2 times D* does not (goodput of a pure reconnect is the share of hubs that are back). At the same
/// time, since most of each run is waiting.
#[test]
fn below_the_critical_number_it_recovers_and_above_it_does_not() {
    std::thread::scope(|scope| {
        let below = ["50%", "66.7%"]
            .map(|share| scope.spawn(move || outcome(share, "recovery <= 15s after drop", 0)));
        // A metastable failure is longer than any limit: `>` holds, and `<=` fails without a number.
        let above = scope.spawn(|| outcome("100%", "recovery > 1h after drop", 0));
        for (recovery, critical) in below.map(|run| run.join().expect("a run can be told")) {
            assert_eq!(recovery["outcome"], "recovered", "{recovery:#}");
            assert!(
                critical["number"]["middle"].as_f64() > Some(0.0),
                "{critical:#}"
            );
        }
        let (recovery, critical) = above.join().expect("a run can be told");
        assert_eq!(recovery["outcome"], "metastable", "{recovery:#}");
        assert_eq!(recovery["alerts"][0]["alert"], "hubs-away", "{recovery:#}");
        assert!(recovery["alerts"][0]["fired_us"].is_i64(), "{recovery:#}");
        assert_eq!(
            recovery["hubs_affected"], 288,
            "every hub once: {recovery:#}"
        );
        // The pool stays busy, so its speed is known: nominal 60/s, and slower on a busy machine.
        let speed = &critical["connects_per_second"]["middle"];
        assert!(
            (30.0..75.0).contains(&speed.as_f64().unwrap_or(0.0)),
            "{critical:#}"
        );
        assert_eq!(critical["side"], "above", "{critical:#}");
    });
}

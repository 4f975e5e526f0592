//! Hubs that are let back in stages, against the embedded lab.

use super::{LIMIT, lab_target, profile, shipped};
use crate::support::program::Home;
use std::fs;

/// All twenty hubs are dropped and let back two by two; each batch raises the reconnects, which is what pauses it.
#[test]
fn hubs_come_back_in_batches_and_pause_while_a_line_holds() {
    let rest = "timeline:
  outage:
    at: 11s
    disconnect:
      hubs: homes
      by: close
      readmit: { after: 1s, batches: { of: 10%, every: 300ms }, pause_while: [ homes reconnects > 3/s for 1s ] }
expect: [ hubs connected >= 100% at end, commands unexpected == 0 ]
";
    let home = Home::new();
    let finished = home.finish(&["run", &profile(&home, &lab_target(), 40, rest)], LIMIT);
    let result = finished.result();
    let mark = &result["marks"][0];
    let back = &mark["readmission"];
    assert_eq!(
        (back["hubs"].as_u64(), back["batches"].as_u64()),
        (Some(20), Some(10)),
        "{back}"
    );
    assert_eq!(
        result["hubs"][0]["accepted"], 40,
        "each twice: before, and after it was let back"
    );
    let pauses = back["pauses"].as_array().unwrap();
    assert!(!pauses.is_empty(), "{back}");
    for pause in pauses {
        assert!(
            pause["to_us"].as_i64() > pause["from_us"].as_i64(),
            "{pause}"
        );
        assert!(
            pause["why"]
                .as_str()
                .unwrap()
                .contains("homes reconnects > 3/s"),
            "{pause}"
        );
    }
    let (first, last) = (
        back["first_us"].as_i64().unwrap(),
        back["last_us"].as_i64().unwrap(),
    );
    let begin = mark["begin_us"].as_i64().unwrap();
    assert!(
        first >= begin + 1_000_000,
        "nobody before `after` has passed: {mark}"
    );
    // Nine waits of 300 ms, and each pause lasts at least until the second that began it is over.
    assert!(last - first >= 2_700_000, "{mark}");
    assert!(mark["end_us"].as_i64().unwrap() >= last, "{mark}");
    let events = fs::read_to_string(finished.run.as_ref().unwrap().join("events.jsonl")).unwrap();
    for phase in ["let back", "paused", "resumed"] {
        assert!(
            events.contains(&format!("\"phase\":\"{phase}\"")),
            "no {phase} in {events}"
        );
    }
    assert!(
        finished.stdout.contains("20 hubs in 10 batches"),
        "{}",
        finished.stdout
    );
}

/// A line that never stops to hold keeps everybody out, and the run says so rather than waiting for ever.
#[test]
fn a_pause_that_never_ends_leaves_hubs_out_and_the_run_fails() {
    let rest = "timeline:
  outage:
    at: 11s
    disconnect:
      hubs: homes
      by: reset
      readmit: { after: 3s, at_rate: 20/s, pause_while: [ hubs connected < 50% ] }
expect: [ hubs connected >= 90% at end ]
";
    let home = Home::new();
    let finished = home.finish(&["run", &profile(&home, &lab_target(), 16, rest)], LIMIT);
    finished.expect_code(3);
    let back = &finished.result()["marks"][0]["readmission"];
    assert!(back["hubs"].as_u64().unwrap() < 20, "{back}");
    assert_eq!(
        back["pauses"][0]["to_us"],
        serde_json::Value::Null,
        "{back}"
    );
}

/// `check` lays the plan against the device's throttle and says by how much it goes beyond.
#[test]
fn check_lays_connects_against_the_throttle() {
    let home = Home::new();
    let target = fs::read_to_string(shipped("profiles/targets/lab.yaml")).unwrap();
    let throttled = target.replace(
        "client_id: <serial>",
        "client_id: <serial>\n    throttle: { connects: 5/s }",
    );
    assert_ne!(
        target, throttled,
        "the lab's target has a device with a client id"
    );
    let target = home.write("lab.yaml", &throttled).display().to_string();
    let drop = "timeline: { drop: { at: 11s, disconnect: { hubs: homes, by: reset, READMIT } } }
expect: [ hubs throttled == 0 ]
";
    let check = |readmit: &str| {
        let rest = drop.replace(", READMIT", readmit);
        let finished = home.finish(&["check", &profile(&home, &target, 30, &rest)], LIMIT);
        finished.expect_code(0);
        finished.stdout
    };
    let at_once = check("");
    for wanted in [
        "come up at 20/s, and the target takes 5/s: the 20 of them need `connect: { over: 4s }`",
        "after `drop` hubs of `hub` connect at 20/s, and the target takes 5/s: 20 in 200ms, which need 4s",
    ] {
        assert!(at_once.contains(wanted), "no `{wanted}` in {at_once}");
    }
    let staged = check(", readmit: { at_rate: 4/s }");
    assert!(!staged.contains("after `drop`"), "{staged}");
    assert!(staged.contains("let back at 4/s"), "{staged}");
}

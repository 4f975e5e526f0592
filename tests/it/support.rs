//! What several areas of the tests share: peers that are started, waits on a value with a limit.

pub mod authority;
pub mod lab;
pub mod pgbouncer;
pub mod postgres;
pub mod program;
pub mod service;

use program::Home;
use std::path::PathBuf;

/// The lab's target file as shipped, with further lines at the end of its probes' sources.
pub fn lab_target_with(home: &Home, sources: &str) -> String {
    let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("profiles/targets/lab.yaml");
    let text = std::fs::read_to_string(shipped).expect("the lab's target file is there");
    let last = "    returns-queue:";
    assert!(text.contains(last), "the lab's target file has no {last}");
    let text = text.replace(last, &format!("{sources}{last}"));
    home.write("target.yaml", &text).display().to_string()
}

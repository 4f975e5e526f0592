//! What files say, and what is said about wrong ones.

mod bad;
mod odd;
mod recorded;
mod shipped;
mod waiting;

use rushhour::plan::Plan;
use rushhour::spec::{Problems, Sources, read};
use std::path::PathBuf;

/// A file of the repository.
fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A profile given as text, against the target that has one of everything.
fn profile(text: &[u8]) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("profile.yaml");
    std::fs::write(&file, text).expect("a temporary file can be written");
    let target = Some(here("tests/it/bad/good/target.yaml"));
    read(&Sources {
        profile: file,
        target,
        ..Sources::default()
    })
}

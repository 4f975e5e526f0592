//! A folder of wrong files, each beside the exact text that is said about it.
//!
//! `RUSHHOUR_REFRESH_BAD=1 cargo test --test it spec::bad` writes the texts anew; read the difference before you keep it.

use super::here;
use rushhour::spec::{Sources, read};
use std::path::Path;

fn sources(file: &Path) -> Sources {
    let good = here("tests/it/bad/good/profile.yaml");
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    match name.split('-').next() {
        Some("target") => Sources {
            profile: good,
            target: Some(file.to_owned()),
            ..Sources::default()
        },
        Some("chaos") => Sources {
            profile: good,
            chaos: vec![file.to_owned()],
            ..Sources::default()
        },
        _ => Sources {
            profile: file.to_owned(),
            ..Sources::default()
        },
    }
}

/// One test for the whole folder, so that a file can't be forgotten.
#[test]
fn every_bad_file_is_refused_with_its_text() {
    let refresh = std::env::var_os("RUSHHOUR_REFRESH_BAD").is_some();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(here("tests/it/bad")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        seen += 1;
        let said = match read(&sources(&file)) {
            Ok(_) => "nothing\n".to_owned(),
            Err(problems) => problems
                .to_string()
                .replace(&format!("{}/", here("tests/it/bad").display()), ""),
        };
        let beside = file.with_extension("txt");
        if refresh {
            std::fs::write(&beside, &said).unwrap();
        }
        let expected = std::fs::read_to_string(&beside).unwrap_or_default();
        if said != expected || said == "nothing\n" {
            wrong.push(format!(
                "{}\nsaid:\n{said}\nexpected:\n{expected}",
                file.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(seen >= 40, "only {seen} bad files were found");
}

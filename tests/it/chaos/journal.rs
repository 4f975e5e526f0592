//! The journal: on the disk, ours alone, readable after any death.

use super::stage::{stage, state};
use rushhour::chaos::journal::{Entry, Journal, JournalError, contested, open_all, unhealed};
use rushhour::chaos::operate::UndoOperation;
use rushhour::chaos::request::StoredRequest;
use rushhour::chaos::undo::Undo;
use rushhour::net::state::{StateDirectory, StateError};
use rushhour::plan::Target;
use rushhour::plan::target::{Method, SecretSource};
use rushhour::plan::template::{JsonTemplate, Template};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

fn armed(fault: &str) -> Entry {
    let request = super::stage::request(Method::Post, "http://127.0.0.1:9/undo");
    let request = StoredRequest::of(&request, &Target::default()).unwrap();
    Entry::Armed {
        fault: fault.to_owned(),
        undo: Box::new(Undo::Operate(Box::new(UndoOperation {
            operation: "o".to_owned(),
            request,
            undone: None,
            lab: None,
        }))),
        ends_at_ms: None,
    }
}

fn verified(fault: &str) -> Entry {
    Entry::Verified {
        fault: fault.to_owned(),
        how: "seen".to_owned(),
    }
}

#[test]
fn tells_what_is_not_undone_and_whether_its_run_is_alive() {
    let state = state();
    let journal = Journal::create(&state.directory, "run-1").unwrap();
    journal.append(armed("one")).unwrap();
    journal.append(armed("two")).unwrap();
    journal.append(verified("one")).unwrap();
    let left = open_all(&state.directory).unwrap();
    assert!(left[0].is_alive);
    assert_eq!(
        unhealed(&state.directory).unwrap(),
        None,
        "a live run looks after its faults"
    );
    assert!(matches!(
        Journal::take_over(&state.directory, "run-1"),
        Err(JournalError::RunIsAlive(_))
    ));
    drop(journal);
    let left = open_all(&state.directory).unwrap();
    assert!(!left[0].is_alive);
    let names: Vec<&str> = left[0].faults.iter().map(|f| f.fault.as_str()).collect();
    assert_eq!(names, ["two"]);
    let text = unhealed(&state.directory).unwrap().unwrap();
    assert!(
        text.contains("run run-1: fault `two`") && text.contains("rushhour heal --all"),
        "{text}"
    );
    let journal = Journal::take_over(&state.directory, "run-1").unwrap();
    journal.append(verified("two")).unwrap();
    assert!(open_all(&state.directory).unwrap().is_empty());
    assert!(matches!(
        Journal::create(&state.directory, "run-1"),
        Err(JournalError::RunExists(_))
    ));
}

#[test]
fn a_torn_last_line_is_tolerated_and_an_unreadable_one_is_told() {
    let state = state();
    let journal = Journal::create(&state.directory, "run-1").unwrap();
    journal.append(armed("one")).unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    file.write_all(br#"{"at_ms":1,"entry":{"verified":{"fault":"on"#)
        .unwrap();
    let left = open_all(&state.directory).unwrap();
    assert_eq!((left[0].faults.len(), left[0].unreadable.len()), (1, 0));
    // Whoever heals writes on without growing onto the torn line.
    let journal = Journal::take_over(&state.directory, "run-1").unwrap();
    journal.append(verified("one")).unwrap();
    assert!(open_all(&state.directory).unwrap().is_empty());
    file.write_all(b"what is this\n").unwrap();
    let left = open_all(&state.directory).unwrap();
    assert!(left[0].unreadable[0].starts_with("line 3: "), "{left:?}");
}

#[test]
fn is_private_and_refuses_what_others_can_write() {
    let state = state();
    let journal = Journal::create(&state.directory, "run-1").unwrap();
    journal.append(armed("one")).unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(state.directory.path()), 0o700);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(
        open_all(&state.directory),
        Err(JournalError::State(StateError::NotOurs { .. }))
    ));
    // A link to elsewhere is nothing that we wrote.
    let other = state.base.path().join("other");
    std::fs::rename(&path, &other).unwrap();
    std::os::unix::fs::symlink(&other, &path).unwrap();
    assert!(open_all(&state.directory).is_err());
}

#[test]
fn another_users_directory_is_not_executed() {
    let state = state();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give a directory away");
        return;
    }
    std::os::unix::fs::chown(state.directory.path(), Some(65_534), None).unwrap();
    let refused = StateDirectory::under(state.base.path());
    assert!(
        matches!(refused, Err(StateError::NotOurs { owner: 65_534, .. })),
        "{refused:?}"
    );
}

#[test]
fn run_ids_are_plain_names() {
    let state = state();
    for bad in ["", "..", "../up", "a/b", "proxies", "a b"] {
        assert!(
            matches!(state.directory.run(bad), Err(StateError::BadRunId(_))),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn secrets_stay_out_of_it_and_are_read_again() {
    let stage = stage().await;
    let secret_file = stage.directory.path().join("token");
    std::fs::write(&secret_file, "s3cret-value\n").unwrap();
    let mut target = stage.target.clone();
    target
        .secrets
        .insert("admin".to_owned(), SecretSource::File(secret_file.clone()));
    let mut request = target.operations[0].request.clone();
    // Both forms: still a placeholder, and text already.
    request.bearer = Some(Template::parse("<secret.admin>").unwrap());
    request.json = Some(JsonTemplate::Text(Template::literal("s3cret-value")));
    let stored = StoredRequest::of(&request, &target).unwrap();
    let text = serde_json::to_string(&stored).unwrap();
    assert!(
        !text.contains("s3cret-value") && text.contains("<secret.admin>"),
        "{text}"
    );
    let stored: StoredRequest = serde_json::from_str(&text).unwrap();
    assert_eq!(stored.send(super::stage::LIMIT).await.unwrap(), 200);
    std::fs::remove_file(&secret_file).unwrap();
    let error = stored
        .send(super::stage::LIMIT)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("secret `admin`"), "{error}");
}

#[test]
fn two_live_runs_do_not_break_the_same_thing() {
    let state = state();
    let claims = |what: &[&str]| Entry::Claims {
        what: what.iter().map(ToString::to_string).collect(),
    };
    let first = Journal::create(&state.directory, "first").unwrap();
    first
        .append(claims(&["the link from a to b", "the link from c to d"]))
        .unwrap();
    let asks = |what: &str| contested(&state.directory, "second", &[what.to_owned()]).unwrap();
    let refused = asks("the link from c to d").unwrap();
    assert!(
        refused.contains("run first") && refused.contains("the link from c to d"),
        "{refused}"
    );
    assert_eq!(
        asks("the link from e to f"),
        None,
        "beside it, other things may be broken"
    );
    assert_eq!(
        contested(
            &state.directory,
            "first",
            &["the link from a to b".to_owned()]
        )
        .unwrap(),
        None,
        "nobody stands in their own way"
    );
    drop(first);
    assert_eq!(
        asks("the link from c to d"),
        None,
        "what it claimed ended with it"
    );
}

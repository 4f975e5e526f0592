//! Healing after a death, with nothing but the journal: by `rushhour heal`, and by the watchdog.

use super::stage::{Carried, PROGRAM, Stage, State, echo, heal, round_trip, stage, state, until};
use rushhour::chaos::journal::{Entry, Journal, open_all};
use rushhour::chaos::kill::{StartBy, StartComponent};
use rushhour::chaos::link_fault::RemoveFault;
use rushhour::chaos::process::{Pinned, of_pid_file};
use rushhour::chaos::proxy::toxics::{Kind, Latency};
use rushhour::chaos::proxy::wire::SetFault;
use rushhour::chaos::request::StoredRequest;
use rushhour::chaos::undo::Undo;
use rushhour::chaos::watchdog::Watchdog;
use rushhour::plan::Target;
use rushhour::plan::fault::{Connections, Way};
use rushhour::plan::target::Method;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use tokio::net::TcpStream;

/// Kills the stage's component as a run would, with the undo in the journal; what is left when the run dies is the journal.
async fn kill_component(stage: &Stage, state: &State, run_id: &str) -> Journal {
    let journal = Journal::create(&state.directory, run_id).unwrap();
    let undo = StartComponent {
        component: "shard-1".to_owned(),
        pid_file: stage.pid_file.clone(),
        port: None,
        never: Vec::new(),
        may_serve_on: false,
        killed: of_pid_file(&stage.pid_file).unwrap(),
        start: StartBy::Request(Box::new(
            StoredRequest::of(&stage.target.operations[0].request, &stage.target).unwrap(),
        )),
        lab: None,
    };
    let fault = "kill-shard".to_owned();
    let entry = Entry::Armed {
        fault,
        undo: Box::new(Undo::StartComponent(undo)),
        ends_at_ms: Some(0),
    };
    journal.append(entry).unwrap();
    let process = Pinned::of_pid_file(&stage.pid_file).unwrap();
    process.kill().unwrap();
    process.ended(super::stage::LIMIT).await.unwrap();
    journal
}

#[tokio::test(flavor = "multi_thread")]
async fn heals_a_kill_once_and_changes_nothing_the_second_time() {
    let (state, stage) = (state(), stage().await);
    drop(kill_component(&stage, &state, "dead").await);
    let (code, said) = heal(&state).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("run dead, fault kill-shard: healed: process"),
        "{said}"
    );
    assert!(of_pid_file(&stage.pid_file).is_ok());
    assert_eq!(stage.started(), 2);
    let (code, said) = heal(&state).await;
    assert_eq!((code, said.as_str()), (Some(0), "nothing to heal\n"));
    assert_eq!(stage.started(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_the_faults_of_a_live_run_alone() {
    let (state, stage) = (state(), stage().await);
    let journal = kill_component(&stage, &state, "alive").await;
    let (_, said) = heal(&state).await;
    assert!(said.contains("run alive is still going"), "{said}");
    assert_eq!(stage.started(), 1);
    drop(journal);
}

#[tokio::test(flavor = "multi_thread")]
async fn heals_a_latency_and_ends_the_proxy_when_nobody_needs_it() {
    let carried = Carried::to(echo().await).await;
    let mut stream = TcpStream::connect(carried.address).await.unwrap();
    let journal = Journal::create(&carried.state.directory, "dead").unwrap();
    let undo = RemoveFault {
        link: "db".to_owned(),
        id: "dead-slow".to_owned(),
        proxy: carried.proxy.carrier().clone(),
        slow_us: 100_000,
    };
    let entry = Entry::Armed {
        fault: "slow".to_owned(),
        undo: Box::new(Undo::RemoveFault(undo)),
        ends_at_ms: None,
    };
    journal.append(entry).unwrap();
    drop(journal);
    let order = SetFault {
        id: "dead-slow".to_owned(),
        kind: Kind::Latency(Latency {
            latency_us: 400_000,
            jitter_us: 0,
        }),
        toxicity: 1.0,
        connections: Connections::All,
        way: Way::Answers,
        for_ms: None,
        seed: 1,
    };
    carried.proxy.set_fault("db", &order).await.unwrap();
    let (code, said) = heal(&carried.state).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("it carries 1 connections of the target"),
        "{said}"
    );
    assert!(
        round_trip(&mut stream).await.as_millis() < 400,
        "the link is fast, and the connection stands"
    );
    drop(stream);
    until("the connection has ended", || async {
        carried.proxy.links().await.unwrap()[0].open == 0
    })
    .await;
    let (code, said) = heal(&carried.state).await;
    assert_eq!(code, Some(0));
    assert!(said.contains("which carried nothing"), "{said}");
    assert!(!carried.proxy.registration().unwrap().process.runs());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_has_ended_took_its_faults_along() {
    let carried = Carried::to(echo().await).await;
    let proxy = carried.proxy.registration().unwrap().process.clone();
    let undo = Undo::RemoveFault(RemoveFault {
        link: "db".to_owned(),
        id: "gone".to_owned(),
        proxy: carried.proxy.carrier().clone(),
        slow_us: 1,
    });
    super::stage::end_by_force(&proxy);
    until("the proxy has ended", || async { !proxy.runs() }).await;
    let mut steps = Vec::new();
    let healed = undo
        .carry_out(&carried.state.directory, super::stage::LIMIT, &mut |step| {
            steps.push(step)
        })
        .await;
    assert!(
        healed
            .unwrap()
            .contains("has ended, and its faults with it")
    );
    assert_eq!(steps.len(), 1, "there was nothing to undo");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_healed_is_named_with_exit_code_5() {
    let state = state();
    let journal = Journal::create(&state.directory, "dead").unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"{\"at_ms\":1,\"entry\":{\"armed\":\n")
        .unwrap();
    let (code, said) = heal(&state).await;
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("run dead: the journal holds a line that can't be read"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_heals_after_a_run_that_was_killed_and_only_then() {
    let (state, stage) = (state(), stage().await);
    let journal = kill_component(&stage, &state, "run-1").await;
    let watchdog = Watchdog::start(super::stage::program(), &state.directory, "run-1").unwrap();
    watchdog.dismiss().unwrap();
    assert_eq!(
        stage.started(),
        1,
        "the run said that it had undone everything"
    );
    // A run's death closes the pipe and lets go of the journal, in whatever order.
    let mut orphan = Command::new(PROGRAM)
        .args(["watchdog", "--run", "run-1"])
        .env("XDG_STATE_HOME", state.base.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    drop(orphan.stdin.take());
    drop(journal);
    until("the component runs again", || async {
        stage.started() == 2
    })
    .await;
    let status = tokio::task::spawn_blocking(move || orphan.wait().unwrap())
        .await
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(open_all(&state.directory).unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_with_its_lab_needs_no_healing() {
    let (state, stage) = (state(), stage().await);
    // A lab of which nothing is left, its operations included.
    let lab = of_pid_file(&stage.pid_file).unwrap();
    super::stage::end_by_force(&lab);
    until("the lab has ended", || async { !lab.runs() }).await;
    let undo = Undo::StartComponent(StartComponent {
        component: "shard-1".to_owned(),
        pid_file: stage.directory.path().join("removed.pid"),
        port: None,
        never: Vec::new(),
        may_serve_on: false,
        killed: lab.clone(),
        start: StartBy::Request(Box::new(
            StoredRequest::of(
                &super::stage::request(Method::Post, "http://127.0.0.1:9/start"),
                &Target::default(),
            )
            .unwrap(),
        )),
        lab: Some(lab),
    });
    let healed = undo
        .carry_out(&state.directory, super::stage::LIMIT, &mut |_| {})
        .await;
    assert!(healed.unwrap().contains("has ended with its components"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_never_was_is_a_wrong_argument() {
    let state = state();
    let output = Command::new(PROGRAM)
        .args(["heal", "--run", "nobody"])
        .env("XDG_STATE_HOME", state.base.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// One journal that can't be trusted is told, and keeps nobody from healing the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_others_can_write_is_refused_and_the_rest_is_healed() {
    let (state, stage) = (state(), stage().await);
    drop(kill_component(&stage, &state, "dead").await);
    let foreign = Journal::create(&state.directory, "alien").unwrap();
    let path = foreign.path().to_owned();
    drop(foreign);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (code, said) = heal(&state).await;
    assert_eq!(code, Some(5), "{said}");
    assert!(
        said.contains("run alien: NOT HEALED") && said.contains("mode 666"),
        "{said}"
    );
    assert_eq!(stage.started(), 2, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_directory_that_cannot_be_used_ends_with_2() {
    let base = tempfile::tempdir().unwrap();
    std::fs::write(base.path().join("rushhour"), "no directory").unwrap();
    let state = base.path().to_owned();
    let output = Command::new(PROGRAM)
        .args(["heal", "--all"])
        .env("XDG_STATE_HOME", &state)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(&state.join("rushhour").display().to_string()),
        "{said}"
    );
}

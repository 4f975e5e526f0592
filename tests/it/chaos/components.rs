//! What is done to processes, by programs and by operations of the target, and that it is undone whatever happens.

use super::life::{Run, plan, run};
use super::stage::{EndsWithTest, State, heal, process, program, state, until};
use rushhour::chaos::bulletin::Bulletin;
use rushhour::chaos::faults::{Faults, Setup};
use rushhour::chaos::journal::{Journal, open_all};
use rushhour::chaos::links::Links;
use rushhour::chaos::process::{Identity, of_pid_file};
use rushhour::chaos::watchdog::Watchdog;
use rushhour::event::{MarkPhase, Offset};
use rushhour::net::clock::Clock;
use rushhour::net::state::StateDirectory;
use rushhour::plan::Target;
use rushhour::plan::component::{
    Act, Body, Component, Process, Program, Programs, SentSignal, Start,
};
use rushhour::plan::fault::{Fault, FaultKind};
use rushhour::plan::template::Template;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A target with one component.
pub fn target_of(body: Body, port: Option<&str>) -> Target {
    let component = Component {
        name: "broker".to_owned(),
        body,
        port: port.map(Template::literal),
        irreversible: false,
    };
    Target {
        components: vec![component],
        ..Target::default()
    }
}

pub fn act(act: Act) -> FaultKind {
    FaultKind::Act { component: 0, act }
}

/// A run with one fault, which acts at once until the run ends.
pub async fn break_with(target: &Target, kind: FaultKind, state: &State) -> Run {
    let fault = Fault {
        name: "broken".to_owned(),
        at: Duration::ZERO,
        after: None,
        repeats: None,
        lasts: None,
        kind,
    };
    let nothing = Target::default();
    let none = Links::start(&nothing, program(), &state.directory, "run-1");
    run(
        plan(target, vec![fault], vec![]),
        state,
        none.await.unwrap(),
    )
    .await
}

impl Run {
    /// Waits until the effect was seen; what was seen.
    pub async fn observed(&self) -> String {
        self.hears("the effect is seen", |phase| {
            assert!(
                !matches!(phase, MarkPhase::Failed(_) | MarkPhase::NotObserved(_)),
                "{phase:?}"
            );
            matches!(phase, MarkPhase::Observed(_))
        })
        .await;
        self.last_words()
    }

    /// Waits until it is told that the fault could not be injected, or not be seen; why.
    pub async fn failed(&self) -> String {
        self.hears("it fails", |phase| {
            matches!(phase, MarkPhase::Failed(_) | MarkPhase::NotObserved(_))
        })
        .await;
        self.last_words()
    }

    /// Ends the run; nothing of its fault remains.
    pub async fn heals(&mut self) {
        assert_eq!(self.faults.undo_all().await.unwrap(), []);
    }
}

/// A child that is reaped when it ends, and killed with the test.
fn sleeper(pid_file: &Path) -> EndsWithTest {
    let mut child = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    std::fs::write(pid_file, pid.to_string()).unwrap();
    let identity = Identity::of(pid).unwrap();
    std::thread::spawn(move || child.wait());
    EndsWithTest(identity)
}

/// A program of the test's own. Another process writes it: a file that this one had open for writing could not be executed while a
/// child of another test has inherited it.
pub fn script(folder: &Path, name: &str, lines: &str) -> PathBuf {
    let file = folder.join(name);
    let written = Command::new("sh")
        .args([
            "-c",
            "printf '%s' \"$1\" > \"$2\" && chmod 755 \"$2\"",
            "sh",
        ])
        .arg(format!("#!/bin/sh\n{lines}\n"))
        .arg(&file)
        .status()
        .unwrap();
    assert!(written.success());
    file
}

fn runs(file: &Path) -> Program {
    Program {
        arguments: vec![Template::literal(&file.display().to_string())],
        directory: None,
        environment: Vec::new(),
        timeout: Duration::from_secs(20),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_process_stands_still_until_the_end() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let pid_file = folder.path().join("pid");
    let process_now = sleeper(&pid_file);
    let target = target_of(process(&pid_file.display().to_string(), 0), None);
    let mut run = break_with(&target, act(Act::Pause), &state).await;
    let seen = run.observed().await;
    assert!(seen.contains("stands still"), "{seen}");
    assert_eq!(process_now.0.state(), Some('T'));
    run.heals().await;
    assert_ne!(process_now.0.state(), Some('T'));
    assert!(process_now.0.runs());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ended_in_its_pause_needs_no_undo() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let pid_file = folder.path().join("pid");
    let first = sleeper(&pid_file);
    let target = target_of(process(&pid_file.display().to_string(), 0), None);
    let mut run = break_with(&target, act(Act::Pause), &state).await;
    run.observed().await;
    super::stage::end_by_force(&first.0);
    until("it has ended", || async { !first.0.runs() }).await;
    let second = sleeper(&pid_file);
    run.heals().await;
    assert!(second.0.runs(), "another process is not touched");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "started and killed by the test below"]
async fn pauser() {
    let given = |name: &str| std::env::var(name).unwrap();
    let state = StateDirectory::under(Path::new(&given("STAGE_STATE"))).unwrap();
    let target = target_of(process(&given("STAGE_PID_FILE"), 0), None);
    let fault = Fault {
        name: "paused".to_owned(),
        at: Duration::ZERO,
        after: None,
        repeats: None,
        lasts: None,
        kind: act(Act::Pause),
    };
    let _watchdog = Watchdog::start(program(), &state, "victim").unwrap();
    let links = Links::start(&target, program(), &state, "victim").await;
    let setup = Setup {
        plan: Arc::new(plan(&target, vec![fault], vec![])),
        clock: Clock::start(),
        zero: Offset::ZERO,
        bulletin: Bulletin::new(1),
        links: Arc::new(links.unwrap()),
        lab: None,
        journal: Arc::new(Journal::create(&state, "victim").unwrap()),
        state,
        program: program().to_owned(),
        undo_budget: Duration::from_secs(30),
        sink: Arc::new(|_| {}),
    };
    let _faults = Faults::start(setup).unwrap();
    std::future::pending::<()>().await;
}

fn start_pauser(state: &State, pid_file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "chaos::components::pauser", "--ignored"])
        .env("STAGE_STATE", state.base.path())
        .env("STAGE_PID_FILE", pid_file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// 100 ms is what is promised. A busy machine may take a turn away from the watchdog, but hardly three times: the fastest of three
/// tells what the watchdog itself takes.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_runs_again_within_100_ms_of_the_tools_death() {
    let mut fastest = Duration::MAX;
    for _ in 0..3 {
        let (state, folder) = (state(), TempDir::new().unwrap());
        let pid_file = folder.path().join("pid");
        let process_now = sleeper(&pid_file);
        let mut tool = start_pauser(&state, &pid_file);
        until("the process stands still", || async {
            process_now.0.state() == Some('T')
        })
        .await;
        let killed = Instant::now();
        tool.kill().unwrap();
        while process_now.0.state() == Some('T') {
            assert!(
                killed.elapsed() < super::stage::LIMIT,
                "it never runs again"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        fastest = fastest.min(killed.elapsed());
        tool.wait().unwrap();
        until("the journal knows", || async {
            open_all(&state.directory).unwrap().is_empty()
        })
        .await;
    }
    assert!(fastest <= Duration::from_millis(100), "{fastest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_is_started_again_by_its_program() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let pid_file = folder.path().join("pid");
    let killed = sleeper(&pid_file);
    // As a daemon does: it goes on after the program has ended, and holds its output open.
    let lines = format!(
        "sleep 600 &\necho $! > {}\necho $RUSHHOUR_WORD > {}",
        pid_file.display(),
        folder.path().join("word").display()
    );
    let start = Program {
        environment: vec![("RUSHHOUR_WORD".to_owned(), Template::literal("pinned"))],
        ..runs(&script(folder.path(), "start", &lines))
    };
    let body = Body::Process(Process {
        pid_file: Template::literal(&pid_file.display().to_string()),
        executable: Some(Template::literal(
            &killed.0.executable.display().to_string(),
        )),
        start: Some(Start::Program(start)),
    });
    let mut run = break_with(&target_of(body, None), act(Act::Kill { count: 1 }), &state).await;
    run.observed().await;
    assert!(!killed.0.runs());
    run.heals().await;
    let now = EndsWithTest(of_pid_file(&pid_file).unwrap());
    assert_ne!(now.0, killed.0);
    let word = std::fs::read_to_string(folder.path().join("word")).unwrap();
    assert_eq!(word.trim(), "pinned");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_under_the_number_is_left_alone() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let pid_file = folder.path().join("pid");
    let bystander = sleeper(&pid_file);
    let body = Body::Process(Process {
        pid_file: Template::literal(&pid_file.display().to_string()),
        executable: Some(Template::literal("/usr/sbin/no-such-broker")),
        start: None,
    });
    let mut target = target_of(body, None);
    target.components[0].irreversible = true;
    let mut run = break_with(&target, act(Act::Kill { count: 1 }), &state).await;
    let why = run.failed().await;
    assert!(why.contains("it is another one"), "{why}");
    run.heals().await;
    assert!(bystander.0.runs());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_irreversible_stays_killed() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let pid_file = folder.path().join("pid");
    let killed = sleeper(&pid_file);
    let body = Body::Process(Process {
        pid_file: Template::literal(&pid_file.display().to_string()),
        executable: None,
        start: None,
    });
    let mut target = target_of(body, None);
    target.components[0].irreversible = true;
    let mut run = break_with(&target, act(Act::Kill { count: 1 }), &state).await;
    run.observed().await;
    run.heals().await;
    assert!(!killed.0.runs());
    assert_eq!(heal(&state).await.0, Some(0));
}

/// A lame duck of NATS: it takes nobody any more and ends minutes later. Its undo does not wait for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_lame_duck_is_replaced_by_one_that_serves() {
    let Some(nats) = crate::support::service::program("nats-server") else {
        return;
    };
    let (state, folder) = (state(), TempDir::new().unwrap());
    let pid_file = folder.path().join("pid");
    let port = crate::support::service::free_port();
    let address = format!("127.0.0.1:{port}");
    let words = [
        nats.display().to_string(),
        "-a".to_owned(),
        "127.0.0.1".to_owned(),
        "-p".to_owned(),
        port.to_string(),
        "-P".to_owned(),
        pid_file.display().to_string(),
    ];
    let mut first = Command::new(&nats)
        .args(&words[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::spawn(move || first.wait());
    until("NATS runs", || async { of_pid_file(&pid_file).is_ok() }).await;
    let duck = EndsWithTest(of_pid_file(&pid_file).unwrap());
    assert!(crate::support::service::listens(
        address.parse().unwrap(),
        Duration::from_secs(10)
    ));
    // Somebody to wait for: without any client it would end at once.
    let _client = std::net::TcpStream::connect(&address).unwrap();
    let body = Body::Process(Process {
        pid_file: Template::literal(&pid_file.display().to_string()),
        executable: Some(Template::literal(&nats.display().to_string())),
        start: Some(Start::Program(Program {
            arguments: words.iter().map(|word| Template::literal(word)).collect(),
            ..runs(&nats)
        })),
    });
    let target = target_of(body, Some(&address));
    let mut run = break_with(&target, act(Act::Signal(SentSignal::User2)), &state).await;
    let seen = run.observed().await;
    assert!(seen.contains("has closed"), "{seen}");
    run.heals().await;
    let now = EndsWithTest(of_pid_file(&pid_file).unwrap());
    assert_ne!(now.0, duck.0);
    assert!(std::net::TcpStream::connect(&address).is_ok());
}

/// Programs that drain and revive a broker whose state is a file; `undo` is what the latter does.
fn drain(folder: &Path, undo: &str) -> Target {
    let drained = folder.join("drained").display().to_string();
    let file = |name: &str, lines: &str| {
        let lines = lines.replace("DRAINED", &drained);
        runs(&script(folder, name, &lines))
    };
    target_of(
        Body::Programs(Box::new(Programs {
            run: file("drain", "echo yes > DRAINED"),
            undo: Some(file("revive", undo)),
            observe: Some(file("look", "test -e DRAINED")),
            undone: Some(file("undone", "test ! -e DRAINED")),
        })),
        None,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_acts_and_another_one_undoes_it() {
    let (state, folder) = (state(), TempDir::new().unwrap());
    let target = drain(folder.path(), "rm DRAINED");
    let mut run = break_with(&target, act(Act::Run), &state).await;
    run.observed().await;
    assert!(folder.path().join("drained").exists());
    run.heals().await;
    assert!(!folder.path().join("drained").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_fails_or_hangs_is_named_and_healed_later() {
    for undo in [
        "echo no such node >&2; exit 3",
        "sleep 600 & echo $! > DRAINED.child; wait",
    ] {
        let (state, folder) = (state(), TempDir::new().unwrap());
        let mut target = drain(folder.path(), undo);
        if let Body::Programs(programs) = &mut target.components[0].body {
            let undo = programs.undo.as_mut().unwrap();
            undo.timeout = Duration::from_millis(500);
        }
        let mut run = break_with(&target, act(Act::Run), &state).await;
        run.observed().await;
        let remaining = run.faults.undo_all().await.unwrap();
        let why = &remaining[0].why;
        assert!(
            why.contains("no such node") || why.contains("was killed"),
            "{why}"
        );
        if let Ok(child) = std::fs::read_to_string(folder.path().join("drained.child")) {
            // What the program had started went with it.
            let child: i32 = child.trim().parse().unwrap();
            until("its group is gone", || async {
                Identity::of(child).is_err()
            })
            .await;
        }
        drop(run);
        let (code, said) = heal_soon(&state, folder.path()).await;
        assert_eq!(code, Some(0), "{said}");
        assert!(!folder.path().join("drained").exists());
    }
}

/// `heal` after the program has been mended.
async fn heal_soon(state: &State, folder: &Path) -> (Option<i32>, String) {
    let drained = folder.join("drained").display().to_string();
    script(folder, "revive", &format!("rm -f {drained}"));
    heal(state).await
}

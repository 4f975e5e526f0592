//! The life of faults within a run: what is told, what the journal holds, and that every way out undoes them.

use super::stage::{Carried, LIMIT, State, echo, program, stage, state, until};
use rushhour::chaos::bulletin::Bulletin;
use rushhour::chaos::faults::{Faults, Setup};
use rushhour::chaos::journal::{Entry, Journal, Line, open_all};
use rushhour::chaos::links::Links;
use rushhour::chaos::process::Pinned;
use rushhour::event::{Event, Mark, MarkPhase, Offset, Sink};
use rushhour::net::clock::Clock;
use rushhour::plan::fault::{
    Connections, Fault, FaultKind, LinkEffect, LinkFault, Trigger, TriggerKind, Way,
};
use rushhour::plan::target::Method;
use rushhour::plan::template::Template;
use rushhour::plan::{Plan, Target};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub fn plan(target: &Target, faults: Vec<Fault>, triggers: Vec<Trigger>) -> Plan {
    let none = Duration::ZERO;
    Plan {
        profile: "test.yaml".into(),
        about: String::new(),
        series: None,
        seed: 42,
        duration: Duration::from_secs(60),
        baseline: none,
        sustain: none,
        settle: none,
        drain: none,
        target: target.clone(),
        hubs: Vec::new(),
        riders: Vec::new(),
        issuers: Vec::new(),
        docks: Vec::new(),
        triggers,
        faults,
        steady: Vec::new(),
        stop_if: Vec::new(),
        against: None,
        pause_while: Vec::new(),
        expect: Vec::new(),
        operations: Vec::new(),
    }
}

fn fault(kind: FaultKind, lasts: Option<Duration>) -> Fault {
    Fault {
        name: "broken".to_owned(),
        at: Duration::from_millis(50),
        after: None,
        repeats: None,
        lasts,
        kind,
    }
}

/// A run of faults with what it told.
pub struct Run {
    pub faults: Faults,
    told: Arc<Mutex<Vec<MarkPhase>>>,
    pub marks: Arc<Mutex<Vec<Mark>>>,
    pub bulletin: Bulletin,
    journal: std::path::PathBuf,
}

pub async fn run(plan: Plan, state: &State, links: Links) -> Run {
    let told = Arc::new(Mutex::new(Vec::new()));
    let marks = Arc::new(Mutex::new(Vec::new()));
    let (heard, noted) = (Arc::clone(&told), Arc::clone(&marks));
    let sink: Sink = Arc::new(move |event| {
        if let Event::Mark(mark) = event {
            heard.lock().unwrap().push(mark.phase.clone());
            noted.lock().unwrap().push(mark);
        }
    });
    let bulletin = Bulletin::new(plan.triggers.len() + plan.faults.len());
    let sink = bulletin.tap(&sink);
    Run {
        faults: start(plan, state, links, (sink, bulletin.clone())),
        told,
        marks,
        bulletin,
        journal: state.directory.path().join("run-1/journal.jsonl"),
    }
}

fn start(plan: Plan, state: &State, links: Links, (sink, bulletin): (Sink, Bulletin)) -> Faults {
    let journal = Journal::create(&state.directory, "run-1").unwrap();
    let setup = Setup {
        plan: Arc::new(plan),
        clock: Clock::start(),
        zero: Offset::ZERO,
        bulletin,
        links: Arc::new(links),
        lab: None,
        journal: Arc::new(journal),
        state: state.directory.clone(),
        program: program().to_owned(),
        undo_budget: Duration::from_secs(2),
        sink,
    };
    Faults::start(setup).unwrap()
}

pub async fn no_links(state: &State) -> Links {
    Links::start(&Target::default(), program(), &state.directory, "run-1")
        .await
        .unwrap()
}

impl Run {
    pub async fn hears(&self, what: &str, is: impl Fn(&MarkPhase) -> bool) {
        until(what, || async { self.told.lock().unwrap().iter().any(&is) }).await;
    }

    /// What the last phase that has words says.
    pub fn last_words(&self) -> String {
        let told = self.told.lock().unwrap();
        let words = told.iter().rev().find_map(|phase| match phase {
            MarkPhase::Observed(words)
            | MarkPhase::NotObserved(words)
            | MarkPhase::Failed(words) => Some(words.clone()),
            _ => None,
        });
        words.unwrap_or_default()
    }

    pub fn told(&self) -> Vec<&'static str> {
        let told = self.told.lock().unwrap();
        told.iter()
            .map(|phase| match phase {
                MarkPhase::Begin => "begin",
                MarkPhase::Observed(_) => "observed",
                MarkPhase::NotObserved(_) => "not observed",
                MarkPhase::Admitted(_) => "let back",
                MarkPhase::Paused(_) => "paused",
                MarkPhase::Resumed => "resumed",
                MarkPhase::End => "end",
                MarkPhase::Failed(_) => "failed",
            })
            .collect()
    }
}

fn entries(journal: &Path) -> Vec<&'static str> {
    let text = std::fs::read_to_string(journal).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).unwrap());
    lines
        .map(|line| match line.entry {
            Entry::Claims { .. } => "claims",
            Entry::Armed { .. } => "armed",
            Entry::Injected { .. } => "injected",
            Entry::Observed { .. } => "observed",
            Entry::NotObserved { .. } => "not observed",
            Entry::Undone { .. } => "undone",
            Entry::Verified { .. } => "verified",
            Entry::UndoFailed { .. } => "undo failed",
        })
        .collect()
}

const WHOLE_LIFE: [&str; 5] = ["armed", "injected", "observed", "undone", "verified"];

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_component_is_started_again_at_the_faults_end() {
    let (state, stage) = (state(), stage().await);
    let before = stage.pid();
    let kill = fault(super::stage::kill(), Some(Duration::from_millis(300)));
    let mut run = run(
        plan(&stage.target, vec![kill], vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the end", |phase| *phase == MarkPhase::End).await;
    assert_ne!(stage.pid(), before);
    assert_eq!(stage.started(), 2);
    assert_eq!(run.told(), ["begin", "observed", "end"]);
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
    assert_eq!(entries(&run.journal), WHOLE_LIFE);
    assert_eq!(
        run.faults.undo_all().await.unwrap(),
        [],
        "again, without harm"
    );
    assert_eq!(stage.started(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_again_by_itself_is_not_started_twice() {
    let (state, stage) = (state(), stage().await);
    let kill = fault(super::stage::kill(), None);
    let mut run = run(
        plan(&stage.target, vec![kill], vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the kill", |phase| matches!(phase, MarkPhase::Observed(_)))
        .await;
    stage.start_by_itself();
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
    assert_eq!(stage.started(), 2, "nobody asked for another start");
    assert_eq!(
        entries(&run.journal),
        ["armed", "injected", "observed", "verified"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_latency_is_seen_and_ends_with_the_run() {
    let mut carried = Carried::to(echo().await).await;
    let add = Duration::from_millis(80);
    let kind = FaultKind::Link(LinkFault {
        link: 0,
        connections: Connections::All,
        share: 1.0,
        way: Way::Answers,
        effect: LinkEffect::Latency {
            add,
            jitter: Duration::ZERO,
        },
    });
    let mut later = fault(kind.clone(), None);
    later.name = "never".to_owned();
    later.at = Duration::from_secs(3600);
    let plan = plan(&carried.target, vec![fault(kind, None), later], vec![]);
    let links = carried.links.take().unwrap();
    let mut run = run(plan, &carried.state, links).await;
    run.hears("the delay", |phase| matches!(phase, MarkPhase::Observed(_)))
        .await;
    assert!(carried.proxy.canary("db", LIMIT).await.unwrap() >= add);
    let deadline = carried.proxy.links().await.unwrap()[0].faults[0].left_ms;
    assert!(
        deadline.is_some(),
        "it ends by itself should the run be killed"
    );
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
    assert_eq!(
        run.told(),
        ["begin", "observed", "end"],
        "the later fault never begins"
    );
    assert!(carried.proxy.links().await.unwrap()[0].faults.is_empty());
    assert_eq!(entries(&run.journal), WHOLE_LIFE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_undoes_too() {
    let (state, stage) = (state(), stage().await);
    let kill = fault(super::stage::kill(), None);
    let run = run(
        plan(&stage.target, vec![kill], vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the kill", |phase| matches!(phase, MarkPhase::Observed(_)))
        .await;
    let unwound = tokio::spawn(async move {
        let _under_way = run.faults;
        panic!("as a bug would");
    });
    assert!(unwound.await.is_err());
    assert_eq!(stage.started(), 2);
    assert_eq!(open_all(&state.directory).unwrap(), []);
}

/// The undo is on the disk although the injection fails, so it was there before it; and it is carried out, because nobody knows how
/// far a failed injection got.
#[tokio::test(flavor = "multi_thread")]
async fn is_armed_before_it_is_injected() {
    let (state, mut stage) = (state(), stage().await);
    stage.add_operation("refused", "/nothing-here", Some("/start"));
    let operate = fault(
        FaultKind::Operate { operation: 1 },
        Some(Duration::from_secs(1)),
    );
    let mut run = run(
        plan(&stage.target, vec![operate], vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the failure", |phase| matches!(phase, MarkPhase::Failed(_)))
        .await;
    assert_eq!(entries(&run.journal), ["armed", "undone", "verified"]);
    assert_eq!(run.told(), ["failed"]);
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_fails_is_told_and_stays_in_the_journal() {
    let (state, mut stage) = (state(), stage().await);
    stage.add_operation("no-way-back", "/start", Some("/nothing-here"));
    let operate = fault(FaultKind::Operate { operation: 1 }, None);
    let mut run = run(
        plan(&stage.target, vec![operate], vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the answer", |phase| {
        matches!(phase, MarkPhase::Observed(_))
    })
    .await;
    let remaining = run.faults.undo_all().await.unwrap();
    assert_eq!(remaining[0].fault, "broken");
    assert!(remaining[0].why.contains("404"), "{remaining:?}");
    assert_eq!(run.told(), ["begin", "observed", "failed"]);
    drop(run);
    let left = open_all(&state.directory).unwrap();
    assert_eq!((left[0].faults.len(), left[0].is_alive), (1, false));
}

/// Nobody waits longer for an undo than its budget, however long its answer takes.
#[tokio::test(flavor = "multi_thread")]
async fn an_undo_that_hangs_is_given_up_and_named() {
    let (state, mut stage) = (state(), stage().await);
    // Accepts and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/undo", silent.local_addr().unwrap());
    stage.add_operation("hangs", "/start", None);
    stage.target.operations[1].undo = Some(super::stage::request(Method::Post, &url));
    let operate = fault(FaultKind::Operate { operation: 1 }, None);
    let mut run = run(
        plan(&stage.target, vec![operate], vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the answer", |phase| {
        matches!(phase, MarkPhase::Observed(_))
    })
    .await;
    let begun = std::time::Instant::now();
    let remaining = run.faults.undo_all().await.unwrap();
    // Once by the fault's own life and once more at the end, 2 s each; a hanging request alone would take 15 s.
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(
        remaining[0].why.contains("no answer within 2 s"),
        "{remaining:?}"
    );
    assert!(remaining[0].why.contains(&url), "{remaining:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_whose_task_panics_is_undone_with_the_others() {
    let (state, stage) = (state(), stage().await);
    let kill = fault(super::stage::kill(), None);
    let panics: Sink = Arc::new(|event| {
        if let Event::Mark(mark) = event {
            assert_ne!(mark.phase, MarkPhase::Begin, "as a bug would");
        }
    });
    let mut faults = start(
        plan(&stage.target, vec![kill], vec![]),
        &state,
        no_links(&state).await,
        (panics, Bulletin::new(1)),
    );
    until("the kill", || async {
        Pinned::of_pid_file(&stage.pid_file).is_err()
    })
    .await;
    assert_eq!(faults.undo_all().await.unwrap(), []);
    assert_eq!(stage.started(), 2);
    assert_eq!(open_all(&state.directory).unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_not_seen_is_told() {
    let (state, mut stage) = (state(), stage().await);
    // Something else holds the port open.
    let open = echo().await;
    stage.target.components[0].port = Some(Template::literal(&open.to_string()));
    let kill = fault(super::stage::kill(), Some(Duration::from_millis(10)));
    let mut run = run(
        plan(&stage.target, vec![kill], vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the end", |phase| *phase == MarkPhase::End).await;
    assert_eq!(run.told(), ["begin", "not observed", "end"]);
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_triggers_too() {
    let (state, stage) = (state(), stage().await);
    let trigger = Trigger {
        name: "renew".to_owned(),
        at: Duration::from_millis(50),
        lasts: Duration::ZERO,
        kind: TriggerKind::Operate { operation: 0 },
    };
    let mut run = run(
        plan(&stage.target, vec![], vec![trigger]),
        &state,
        no_links(&state).await,
    )
    .await;
    run.hears("the end", |phase| *phase == MarkPhase::End).await;
    assert_eq!(run.told(), ["begin", "observed", "end"]);
    assert_eq!(stage.started(), 2);
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
    assert_eq!(stage.started(), 2, "a trigger is not undone");
}

#[test]
fn some_processes_are_never_killed() {
    let directory = tempfile::tempdir().unwrap();
    let pid_file = directory.path().join("pid");
    let parent = std::os::unix::process::parent_id();
    for forbidden in [
        "1".to_owned(),
        std::process::id().to_string(),
        parent.to_string(),
    ] {
        std::fs::write(&pid_file, &forbidden).unwrap();
        let refused = Pinned::of_pid_file(&pid_file).unwrap_err().to_string();
        assert!(
            refused.contains("will not be signalled"),
            "{forbidden}: {refused}"
        );
    }
    for nonsense in ["", "0", "-1", "12 13", "99999999999"] {
        std::fs::write(&pid_file, nonsense).unwrap();
        assert!(Pinned::of_pid_file(&pid_file).is_err(), "{nonsense:?}");
    }
}

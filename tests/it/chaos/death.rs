//! A run that is killed with SIGKILL while its faults act: nothing of them may stay.

use super::life::plan;
use super::stage::{
    EndsWithTest, Stage, State, echo, heal, program, round_trip, stage, state, until,
};
use rushhour::chaos::faults::{Faults, Setup};
use rushhour::chaos::journal::{Journal, open_all};
use rushhour::chaos::links::Links;
use rushhour::chaos::proxy::client::{ProxyClient, running};
use rushhour::event::Offset;
use rushhour::net::clock::Clock;
use rushhour::net::state::StateDirectory;
use rushhour::plan::fault::{Connections, Fault, FaultKind, LinkEffect, LinkFault, Way};
use rushhour::plan::target::Method;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// The run that is killed: this test program once more, with what it acts on in the environment.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started and killed by the test below"]
async fn victim() {
    let given = |name: &str| std::env::var(name).unwrap();
    let state = StateDirectory::under(Path::new(&given("STAGE_STATE"))).unwrap();
    let mut target = super::stage::target_with_link(given("STAGE_ECHO").parse().unwrap());
    let start = super::stage::request(Method::Post, &given("STAGE_START"));
    super::stage::add_component(&mut target, &given("STAGE_PID_FILE"), start);
    let fault = |name: &str, kind| Fault {
        name: name.to_owned(),
        at: Duration::ZERO,
        lasts: None,
        kind,
    };
    let slow = FaultKind::Link(LinkFault {
        link: 0,
        connections: Connections::All,
        share: 1.0,
        way: Way::Answers,
        effect: LinkEffect::Latency {
            add: Duration::from_millis(300),
            jitter: Duration::ZERO,
        },
    });
    let faults = vec![
        fault("kill", FaultKind::Kill { component: 0 }),
        fault("slow", slow),
    ];
    let links = Links::start(&target, program(), &state, "victim")
        .await
        .unwrap();
    let setup = Setup {
        plan: Arc::new(plan(&target, faults, vec![])),
        clock: Clock::start(),
        zero: Offset::ZERO,
        links: Arc::new(links),
        lab: None,
        journal: Arc::new(Journal::create(&state, "victim").unwrap()),
        state,
        undo_budget: Duration::from_secs(30),
        sink: Arc::new(|_| {}),
    };
    let _faults = Faults::start(setup, program()).unwrap();
    std::future::pending::<()>().await;
}

fn start_victim(stage: &Stage, state: &State, echo: SocketAddr) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "chaos::death::victim", "--ignored"])
        .env("STAGE_STATE", state.base.path())
        .env("STAGE_ECHO", echo.to_string())
        .env(
            "STAGE_START",
            stage.target.operations[0].request.url.to_string(),
        )
        .env("STAGE_PID_FILE", &stage.pid_file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn observed(state: &State) -> usize {
    let journal = state.directory.path().join("victim/journal.jsonl");
    let text = std::fs::read_to_string(journal).unwrap_or_default();
    text.matches("\"observed\"").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_leaves_the_component_running_and_the_link_fast() {
    let (state, stage, echo) = (state(), stage().await, echo().await);
    let mut victim = start_victim(&stage, &state, echo);
    until("both faults act", || async { observed(&state) == 2 }).await;
    let proxy = ProxyClient::new(running(&state.directory).unwrap().remove(0)).unwrap();
    let _ends = EndsWithTest(proxy.registration().process.clone());
    let address: SocketAddr = proxy.registration().links[0].listen.parse().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    assert!(round_trip(&mut stream).await >= Duration::from_millis(300));
    victim.kill().unwrap();
    victim.wait().unwrap();
    until("the watchdog has healed everything", || async {
        stage.started() == 2 && open_all(&state.directory).unwrap().is_empty()
    })
    .await;
    // The target's connection through the proxy has outlived the run.
    assert!(round_trip(&mut stream).await < Duration::from_millis(300));
    let (code, said) = heal(&state).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("nothing to heal"), "{said}");
    assert_eq!(stage.started(), 2);
    drop(stream);
    until(
        "nothing needs the proxy any more, so heal ends it",
        || async {
            heal(&state).await;
            !proxy.registration().process.runs()
        },
    )
    .await;
}

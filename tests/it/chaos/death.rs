//! A run that is killed with SIGKILL, at every step of every fault: nothing of them may stay.
//!
//! The steps are the lines of the journal: each is on the disk before the next step is taken. The killer watches the journal and kills
//! as soon as the line is there, or some milliseconds later, so that the time between two lines is hit as well.

use super::life::plan;
use super::stage::{
    EndsWithTest, LIMIT, Stage, State, echo, heal, program, round_trip, stage, state, until,
};
use axum::routing::post;
use rushhour::chaos::bulletin::Bulletin;
use rushhour::chaos::faults::{Faults, Setup};
use rushhour::chaos::journal::{Journal, open_all};
use rushhour::chaos::links::Links;
use rushhour::chaos::process::Identity;
use rushhour::chaos::proxy::client::{ProxyClient, running};
use rushhour::chaos::watchdog::Watchdog;
use rushhour::event::Offset;
use rushhour::net::clock::Clock;
use rushhour::net::state::StateDirectory;
use rushhour::plan::component::Act;
use rushhour::plan::fault::{
    Connections, Fault, FaultKind, LinkEffect, LinkFault, OperationSpec, Way,
};
use rushhour::plan::target::Method;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What each line of the journal says, in the order of a fault's life.
const STEPS: [&str; 5] = ["armed", "injected", "observed", "undone", "verified"];
const KINDS: [&str; 4] = ["kill", "pause", "slow", "operate"];
/// Victims at the same time.
const TOGETHER: usize = 4;

/// The run that is killed: this test program once more, with what it acts on in the environment.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started and killed by the tests below"]
async fn victim() {
    let given = |name: &str| std::env::var(name).unwrap();
    let state = StateDirectory::under(Path::new(&given("STAGE_STATE"))).unwrap();
    let mut target = super::stage::target_with_link(given("STAGE_ECHO").parse().unwrap());
    let post = |url: &str| super::stage::request(Method::Post, url);
    super::stage::add_component(
        &mut target,
        &given("STAGE_PID_FILE"),
        post(&given("STAGE_START")),
    );
    target.operations.push(OperationSpec {
        name: "break".to_owned(),
        request: post(&format!("{}/break", given("STAGE_SWITCH"))),
        undo: Some(post(&format!("{}/mend", given("STAGE_SWITCH")))),
        observe: None,
        undone: None,
    });
    let lasts = given("STAGE_LASTS_MS")
        .parse()
        .ok()
        .map(Duration::from_millis);
    let faults = given("STAGE_FAULTS");
    let faults = faults.split(' ').map(|name| Fault {
        name: name.to_owned(),
        at: Duration::ZERO,
        after: None,
        repeats: None,
        lasts,
        kind: kind(name),
    });
    let _watchdog = (given("STAGE_ALONE") == "no")
        .then(|| Watchdog::start(program(), &state, "victim").unwrap());
    let journal = Arc::new(Journal::create(&state, "victim").unwrap());
    let links = Links::start(&target, program(), &state, "victim")
        .await
        .unwrap();
    let setup = Setup {
        plan: Arc::new(plan(&target, faults.collect(), vec![])),
        clock: Clock::start(),
        zero: Offset::ZERO,
        bulletin: Bulletin::new(9),
        links: Arc::new(links),
        lab: None,
        journal,
        state,
        program: program().to_owned(),
        undo_budget: Duration::from_secs(30),
        sink: Arc::new(|_| {}),
    };
    let _faults = Faults::start(setup).unwrap();
    std::future::pending::<()>().await;
}

fn kind(name: &str) -> FaultKind {
    match name {
        "kill" => super::stage::kill(),
        "pause" => FaultKind::Act {
            component: 0,
            act: Act::Pause,
        },
        "operate" => FaultKind::Operate { operation: 1 },
        _ => FaultKind::Link(LinkFault {
            link: 0,
            connections: Connections::All,
            share: 1.0,
            way: Way::Answers,
            effect: LinkEffect::Latency {
                add: Duration::from_millis(100),
                jitter: Duration::ZERO,
            },
        }),
    }
}

/// Everything that a victim may break.
struct Scene {
    state: State,
    stage: Stage,
    echo: SocketAddr,
    /// Whether the operation's effect stands.
    broken: Arc<AtomicBool>,
    switch: SocketAddr,
}

impl Scene {
    async fn new() -> Scene {
        let broken = Arc::new(AtomicBool::new(false));
        let set = |to: bool| {
            let broken = Arc::clone(&broken);
            post(move || async move { broken.store(to, Ordering::SeqCst) })
        };
        let routes = axum::Router::new()
            .route("/break", set(true))
            .route("/mend", set(false));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let switch = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Scene {
            state: state(),
            stage: stage().await,
            echo: echo().await,
            broken,
            switch,
        }
    }

    fn victim(&self, faults: &str, lasts: Option<Duration>, alone: bool) -> Child {
        let lasts = lasts.map_or_else(|| "end".to_owned(), |lasts| lasts.as_millis().to_string());
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "chaos::death::victim", "--ignored"])
            .env("STAGE_STATE", self.state.base.path())
            .env("STAGE_ECHO", self.echo.to_string())
            .env(
                "STAGE_START",
                self.stage.target.operations[0].request.url.to_string(),
            )
            .env("STAGE_PID_FILE", &self.stage.pid_file)
            .env("STAGE_SWITCH", format!("http://{}", self.switch))
            .env("STAGE_FAULTS", faults)
            .env("STAGE_LASTS_MS", lasts)
            .env("STAGE_ALONE", if alone { "yes" } else { "no" })
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// How many lines of the journal say this.
    fn lines(&self, step: &str) -> usize {
        let journal = self.state.directory.path().join("victim/journal.jsonl");
        let text = std::fs::read_to_string(journal).unwrap_or_default();
        text.matches(&format!("\"{step}\":")).count()
    }

    /// Kills the victim as soon as the step has been written down so often, or `later`.
    async fn kill_at(&self, mut victim: Child, step: &str, count: usize, later: Duration) {
        let end = Instant::now() + LIMIT;
        while self.lines(step) < count {
            assert!(Instant::now() < end, "the victim never came to {step}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(later).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
    }

    fn proxies(&self) -> Vec<ProxyClient> {
        let all = running(&self.state.directory).unwrap();
        all.into_iter()
            .map(|one| ProxyClient::new(one).unwrap())
            .collect()
    }

    /// Looks at the world, not at what anybody says of it.
    async fn is_whole(&self) -> bool {
        let pid = self.stage.pid();
        let runs = Identity::of(pid).is_ok_and(|process| process.state() != Some('T'));
        let mut free = true;
        for proxy in self.proxies() {
            free &= proxy
                .links()
                .await
                .is_ok_and(|links| links[0].faults.is_empty());
        }
        runs && free && !self.broken.load(Ordering::SeqCst)
    }
}

/// One death: at this step of this fault, with a watchdog or without.
async fn dies(kind: &'static str, step: &'static str, alone: bool, later: Duration) {
    let what = format!("{kind} killed {later:?} after {step}, alone: {alone}");
    let scene = Scene::new().await;
    let lasts = Some(Duration::from_millis(150));
    let victim = scene.victim(kind, lasts, alone);
    scene.kill_at(victim, step, 1, later).await;
    let _end: Vec<EndsWithTest> = scene
        .proxies()
        .iter()
        .map(|proxy| EndsWithTest(proxy.registration().unwrap().process.clone()))
        .collect();
    if alone {
        let (code, said) = heal(&scene.state).await;
        assert_eq!(code, Some(0), "{what}: {said}");
    } else {
        until(&what, || async {
            open_all(&scene.state.directory).unwrap().is_empty()
        })
        .await;
    }
    until(&what, || async { scene.is_whole().await }).await;
    until(&what, || async {
        if alone {
            heal(&scene.state).await;
        }
        scene.proxies().is_empty()
    })
    .await;
    let started = scene.stage.started();
    assert!(started <= 2, "{what}: started {started} times");
    let (code, said) = heal(&scene.state).await;
    assert_eq!((code, said.trim()), (Some(0), "nothing to heal"), "{what}");
    assert!(scene.is_whole().await, "{what}");
    assert_eq!(
        scene.stage.started(),
        started,
        "{what}: healing again changes nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_may_die_at_every_step_of_every_fault() {
    let mut deaths = JoinSet::new();
    let all = KINDS
        .iter()
        .flat_map(|kind| STEPS.iter().map(move |step| (*kind, *step)));
    for (number, (kind, step)) in all.enumerate() {
        // Half of them without a watchdog, as if that had been killed, too; some at the line, others in between.
        let later = Duration::from_millis((number as u64 * 7) % 23);
        deaths.spawn(dies(kind, step, number % 2 == 0, later));
        if deaths.len() >= TOGETHER {
            deaths.join_next().await.unwrap().unwrap();
        }
    }
    while let Some(death) = deaths.join_next().await {
        death.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_leaves_the_component_running_and_the_link_fast() {
    let scene = Scene::new().await;
    let victim = scene.victim("kill slow", None, false);
    until("both faults act", || async { scene.lines("observed") == 2 }).await;
    let proxy = scene.proxies().remove(0);
    let _ends = EndsWithTest(proxy.registration().unwrap().process.clone());
    let address: SocketAddr = proxy.registration().unwrap().links[0]
        .listen
        .parse()
        .unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    assert!(round_trip(&mut stream).await >= Duration::from_millis(100));
    scene.kill_at(victim, "observed", 2, Duration::ZERO).await;
    until("the watchdog has healed everything", || async {
        scene.stage.started() == 2 && open_all(&scene.state.directory).unwrap().is_empty()
    })
    .await;
    // The target's connection through the proxy has outlived the run.
    round_trip(&mut stream).await;
    assert!(proxy.links().await.unwrap()[0].faults.is_empty());
    let (code, said) = heal(&scene.state).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("nothing to heal"), "{said}");
    assert_eq!(scene.stage.started(), 2);
    drop(stream);
    until(
        "nothing needs the proxy any more, so the watchdog ends it",
        || async { !proxy.registration().unwrap().process.runs() },
    )
    .await;
}

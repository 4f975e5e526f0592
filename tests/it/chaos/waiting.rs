//! Faults that wait for others: for their begin, their end, the recovery from them; and what becomes of those that wait in vain.

use super::life::{Run, no_links, plan, run};
use super::stage::{Carried, Stage, echo, stage, state, until};
use rushhour::event::{Mark, MarkId, MarkPhase, Offset};
use rushhour::plan::fault::{
    After, Connections, Edge, Fault, FaultKind, LinkEffect, LinkFault, Way,
};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(50);

/// The operation `switch` of the stage, which takes a moment.
fn operate(name: &str, after: Option<After>) -> Fault {
    Fault {
        name: name.to_owned(),
        at: SOON,
        after,
        repeats: None,
        lasts: Some(Duration::from_millis(100)),
        kind: FaultKind::Operate { operation: 1 },
    }
}

fn after(mark: u16, edge: Edge, wait: Duration) -> Option<After> {
    Some(After {
        mark: MarkId(mark),
        edge,
        wait,
    })
}

async fn with_operation() -> Stage {
    let mut stage = stage().await;
    stage.add_operation("switch", "/start", Some("/start"));
    stage
}

fn of(run: &Run, mark: u16) -> Vec<Mark> {
    let all = run.marks.lock().unwrap();
    all.iter()
        .filter(|one| one.id == MarkId(mark))
        .cloned()
        .collect()
}

fn at(run: &Run, mark: u16, phase: &MarkPhase) -> Offset {
    let found = of(run, mark).into_iter().find(|one| one.phase == *phase);
    found.unwrap_or_else(|| panic!("no {phase:?} of {mark}")).at
}

async fn ended(run: &Run, mark: u16) {
    until("the fault's end", || async {
        of(run, mark).iter().any(|one| one.phase == MarkPhase::End)
    })
    .await;
}

async fn failed(run: &Run, mark: u16) -> String {
    let why = || {
        of(run, mark).into_iter().find_map(|one| match one.phase {
            MarkPhase::Failed(why) => Some(why),
            _ => None,
        })
    };
    until("the fault is given up", || async { why().is_some() }).await;
    why().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_follow_the_begin_the_end_and_the_recovery_of_others() {
    let (state, stage) = (state(), with_operation().await);
    let wait = Duration::from_millis(60);
    let faults = vec![
        operate("first", None),
        operate("into", after(0, Edge::Begin, wait)),
        operate("behind", after(0, Edge::End, wait)),
        operate("recovered", after(0, Edge::Recovery, wait)),
    ];
    let mut run = run(
        plan(&stage.target, faults, vec![]),
        &state,
        no_links(&state).await,
    )
    .await;
    ended(&run, 1).await;
    ended(&run, 2).await;
    let begin = |mark| at(&run, mark, &MarkPhase::Begin);
    // Not before; how long after is the machine's.
    assert!(begin(1) >= begin(0).after(wait));
    assert!(begin(2) >= at(&run, 0, &MarkPhase::End).after(wait));
    assert_eq!(
        of(&run, 3),
        [],
        "nobody has said that the target has recovered"
    );
    let recovered = begin(2);
    run.bulletin.tell_recovery(MarkId(0), Ok(recovered));
    run.bulletin
        .tell_recovery(MarkId(0), Err("said too late".to_owned()));
    ended(&run, 3).await;
    assert!(at(&run, 3, &MarkPhase::Begin) >= recovered.after(wait));
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_vain_is_told_with_the_reason_and_changes_nothing() {
    let (state, mut stage) = (state(), with_operation().await);
    stage.add_operation("refused", "/nothing-here", Some("/start"));
    let mut broken = operate("broken", None);
    broken.kind = FaultKind::Operate { operation: 2 };
    let faults = vec![
        operate("first", None),
        operate("never", after(0, Edge::Recovery, SOON)),
        operate("late", after(0, Edge::End, Duration::from_secs(30))),
        broken,
        operate("behind-broken", after(3, Edge::End, SOON)),
        operate("unclear", after(2, Edge::Recovery, SOON)),
    ];
    let mut plan = plan(&stage.target, faults, vec![]);
    plan.duration = Duration::from_millis(1500);
    let mut run = run(plan, &state, no_links(&state).await).await;
    run.bulletin
        .tell_recovery(MarkId(2), Err("the pool could not be read".to_owned()));
    let reasons = [
        (
            1,
            "not injected: first did not recover before the load ended",
        ),
        (2, "not injected: 30s after first is 3"),
        (4, "not injected: broken failed: could not be injected"),
        (
            5,
            "not injected: late is not known to have recovered: the pool could not be read",
        ),
    ];
    for (mark, reason) in reasons {
        let why = failed(&run, mark).await;
        assert!(why.starts_with(reason), "{why}");
    }
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
}

/// Two delays on one way of one link: both are met, and each goes when its own time is over.
#[tokio::test(flavor = "multi_thread")]
async fn delays_on_one_link_add_up_and_heal_one_by_one() {
    let mut carried = Carried::to(echo().await).await;
    let slow = |name: &str, add_ms, lasts_ms, after| Fault {
        name: name.to_owned(),
        at: SOON,
        after,
        repeats: None,
        lasts: Some(Duration::from_millis(lasts_ms)),
        kind: FaultKind::Link(LinkFault {
            link: 0,
            connections: Connections::All,
            share: 1.0,
            way: Way::Answers,
            effect: LinkEffect::Latency {
                add: Duration::from_millis(add_ms),
                jitter: Duration::ZERO,
            },
        }),
    };
    let faults = vec![
        slow("long", 150, 60_000, None),
        slow("short", 250, 3_000, after(0, Edge::Begin, SOON)),
    ];
    let links = carried.links.take().unwrap();
    let mut run = run(plan(&carried.target, faults, vec![]), &carried.state, links).await;
    let takes = || async {
        carried
            .proxy
            .canary("db", super::stage::LIMIT)
            .await
            .unwrap()
    };
    until("both delays act", || async {
        takes().await >= Duration::from_millis(400)
    })
    .await;
    ended(&run, 1).await;
    let left = takes().await;
    // The machine may add to it, but never the 250 ms of a delay that is gone.
    assert!(
        (Duration::from_millis(150)..Duration::from_millis(390)).contains(&left),
        "{left:?}"
    );
    let standing = carried.proxy.links().await.unwrap()[0].faults.len();
    assert_eq!(standing, 1, "the other one stands");
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
    assert!(carried.proxy.links().await.unwrap()[0].faults.is_empty());
}

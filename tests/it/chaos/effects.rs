//! Every fault that a link can have: within a run, observed on the link, and gone afterwards.

use super::life::{plan, run};
use super::stage::{Carried, LIMIT, echo, round_trip, until};
use rushhour::event::MarkPhase;
use rushhour::plan::fault::{
    Connections, Cut, CutBy, Fault, FaultKind, LinkEffect, LinkFault, Packets, Way,
};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const MILLIS: fn(u64) -> Duration = Duration::from_millis;

fn fault(kind: FaultKind) -> Fault {
    Fault {
        name: "broken".to_owned(),
        at: MILLIS(10),
        after: None,
        repeats: None,
        lasts: None,
        kind,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_effect_is_seen_and_leaves_nothing() {
    let effects = [
        LinkEffect::Latency {
            add: MILLIS(120),
            jitter: MILLIS(20),
        },
        LinkEffect::Bandwidth {
            bytes_per_second: 50_000,
        },
        LinkEffect::SlowClose { by: MILLIS(200) },
        LinkEffect::BlackHole,
        LinkEffect::Timeout { after: MILLIS(300) },
        LinkEffect::Reset { after: MILLIS(10) },
        LinkEffect::Slice {
            bytes: 64,
            vary: 32,
            pause: MILLIS(40),
        },
        LinkEffect::Limit { bytes: 1_000 },
        LinkEffect::Refuse,
        LinkEffect::Withhold(Packets::Connack),
        LinkEffect::Withhold(Packets::Pingresp),
        LinkEffect::Withhold(Packets::Puback),
        LinkEffect::Disconnect {
            reason: 0x8b,
            after: MILLIS(20),
        },
        LinkEffect::Abort {
            status: 503,
            share: 0.1,
        },
        LinkEffect::Delay {
            add: MILLIS(200),
            share: 0.1,
        },
    ];
    let mut lives = tokio::task::JoinSet::new();
    for effect in effects {
        lives.spawn(async move { one(effect, 1.0).await });
    }
    // A share of the connections: the canary is always among those that are hit.
    lives.spawn(async { one(LinkEffect::BlackHole, 0.01).await });
    lives.spawn(async { one(LinkEffect::Refuse, 0.5).await });
    lives.join_all().await;
}

async fn one(effect: LinkEffect, share: f64) {
    let mut carried = Carried::to(echo().await).await;
    let kind = FaultKind::Link(LinkFault {
        link: 0,
        connections: Connections::All,
        share,
        way: Way::Both,
        effect,
    });
    let links = carried.links.take().unwrap();
    let plan = plan(&carried.target, vec![fault(kind)], vec![]);
    let mut run = run(plan, &carried.state, links).await;
    run.hears("its effect, or that there is none", |phase| {
        matches!(phase, MarkPhase::Observed(_) | MarkPhase::NotObserved(_))
    })
    .await;
    assert_eq!(run.faults.undo_all().await.unwrap(), [], "{effect:?}");
    assert_eq!(run.told(), ["begin", "observed", "end"], "{effect:?}");
    assert!(carried.proxy.links().await.unwrap()[0].faults.is_empty());
    let mut stream = TcpStream::connect(carried.address).await.unwrap();
    round_trip(&mut stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_ends_the_connections_that_stand_and_needs_one() {
    for stands in [true, false] {
        let mut carried = Carried::to(echo().await).await;
        let mut stream = TcpStream::connect(carried.address).await.unwrap();
        round_trip(&mut stream).await;
        if !stands {
            drop(stream);
            until("nobody is connected", || async {
                carried.proxy.links().await.unwrap()[0].open == 0
            })
            .await;
            stream = TcpStream::connect(echo().await).await.unwrap();
        }
        let cut = Cut {
            link: 0,
            share: 1.0,
            within: MILLIS(50),
            by: CutBy::Reset,
        };
        let links = carried.links.take().unwrap();
        let plan = plan(&carried.target, vec![fault(FaultKind::Cut(cut))], vec![]);
        let mut run = run(plan, &carried.state, links).await;
        run.hears("what came of it", |phase| {
            matches!(phase, MarkPhase::Observed(_) | MarkPhase::Failed(_))
        })
        .await;
        assert_eq!(run.faults.undo_all().await.unwrap(), []);
        if stands {
            let seen = tokio::time::timeout(LIMIT, stream.read(&mut [0])).await;
            assert!(seen.unwrap().is_err(), "RST");
            assert_eq!(run.told(), ["begin", "observed", "end"]);
        } else {
            assert_eq!(run.told(), ["failed"], "there was nothing to cut");
        }
    }
}

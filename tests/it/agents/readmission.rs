//! Letting hubs back: how many by each order, and what a hub does with it.

use super::plans::{plan, seconds, with_drop};
use super::target::Target;
use super::world::World;
use proptest::prelude::*;
use rushhour::event::{Event, HubChange};
use rushhour::plan::readmission::{Pace, Readmission};
use std::time::Duration;

fn any_pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        (0.01_f64..5_000.0).prop_map(Pace::Rate),
        (0.001_f64..=1.0, 1_u64..60).prop_map(|(share, every)| Pace::Batches {
            share,
            every: seconds(every)
        }),
    ]
}

proptest! {
    /// Everybody is let back once, and no faster than the pace allows.
    #[test]
    fn everybody_comes_back_once(pace in any_pace(), hubs in 0_u32..3_000) {
        let readmission = Readmission { after: seconds(3), pace };
        let steps = readmission.steps(hubs);
        prop_assert_eq!(steps.iter().map(|step| step.hubs).sum::<u32>(), hubs);
        prop_assert!(steps.iter().all(|step| step.hubs > 0));
        let mut passed = Duration::ZERO;
        let mut back = 0;
        for step in &steps {
            back += step.hubs;
            passed += step.every;
            if let Pace::Rate(per_second) = pace {
                prop_assert!(f64::from(back) <= per_second * passed.as_secs_f64() + 1.0 + 1e-6);
            }
        }
        if let Pace::Batches { share, .. } = pace {
            prop_assert!(steps.iter().all(|step| f64::from(step.hubs) <= (f64::from(hubs) * share).ceil()));
        }
        prop_assert!(readmission.lasts(hubs) >= seconds(3));
    }
}

/// Sent away until further notice, a hub does not come back by itself, however long that takes.
#[test]
fn who_waits_to_be_let_back_does_not_come_by_itself() {
    let plan = with_drop(plan(10), seconds(5), 0.5, Duration::MAX);
    let mut world = World::run(plan, Target::healthy(3));
    let connected = world.changes(HubChange::Connected);
    let times: Vec<usize> = connected.values().map(Vec::len).collect();
    assert_eq!(times, [1; 10], "nobody connected a second time");
    let left = world
        .changes(HubChange::Left)
        .values()
        .filter(|left| left.len() == 1)
        .count();
    assert_eq!(left, 10, "five when they were dropped, five at the end");
    world.stop();
    let events = world.told.iter();
    assert_eq!(
        events
            .filter(|(_, event)| matches!(event, Event::Unfinished { .. }))
            .count(),
        0
    );
}

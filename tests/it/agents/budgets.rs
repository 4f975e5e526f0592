//! Retry budgets: what a bucket grants, and what a group can make of it.

use super::plans::{even, fixed, full_jitter, plan, seconds};
use super::target::{Answer, Connect, Target};
use super::world::{World, ZERO};
use proptest::prelude::*;
use rushhour::agents::ReplyResult;
use rushhour::event::{AgentKind, Event, Offset, Outcome, RetryChange};
use rushhour::retry::{Budget, Retry, RetryBudget};
use std::time::Duration;

fn share(share: f64) -> Option<RetryBudget> {
    Some(RetryBudget {
        share,
        reserve_per_second: 0.0,
    })
}

proptest! {
    /// The bound that a budget promises, at every moment and not only in the end: it starts empty and saves up no more than it was paid.
    #[test]
    fn attempts_never_exceed_one_plus_the_share(
        percent in 0_u32..=100,
        peak in 0.0_f64..10_000.0,
        asks in prop::collection::vec(any::<bool>(), 1..2_000),
    ) {
        let share = f64::from(percent) / 100.0;
        let budget = Budget::new(self::share(share), peak);
        let (mut actions, mut retries) = (0_u32, 0_u32);
        for is_action in asks {
            if is_action {
                budget.deposit();
                actions += 1;
            } else if budget.withdraw(Offset::ZERO) {
                retries += 1;
            }
            prop_assert!(f64::from(retries) <= share * f64::from(actions) + 1e-6);
        }
    }

    /// Whoever asks greedily gets all that was earned, except for less than one retry.
    #[test]
    fn what_was_earned_is_granted(percent in 1_u32..=100, actions in 1_u32..5_000) {
        let share = f64::from(percent) / 100.0;
        let budget = Budget::new(self::share(share), 0.0);
        let mut retries = 0_u32;
        for _ in 0..actions {
            budget.deposit();
            retries += u32::from(budget.withdraw(Offset::ZERO));
        }
        prop_assert!(f64::from(retries) >= share * f64::from(actions) - 1.0 - 1e-6);
    }

    /// The reserve alone: its rate times the time, and the second that it saves up.
    #[test]
    fn the_reserve_grants_its_rate(per_second in 0.1_f64..200.0, waits_ms in prop::collection::vec(0_u64..500, 1..500)) {
        let budget = Budget::new(Some(RetryBudget { share: 0.0, reserve_per_second: per_second }), 100.0);
        let start = Offset(10_000_000);
        let (mut now, mut granted) = (start, 0.0);
        for wait_ms in waits_ms {
            now = now.after(Duration::from_millis(wait_ms));
            while budget.withdraw(now) {
                granted += 1.0;
            }
            let passed_s = now.since(start).as_secs_f64();
            prop_assert!(granted <= per_second * (passed_s + 1.0) + 1.0);
            prop_assert!(granted >= (per_second * passed_s * 0.999).floor() - 1.0);
        }
    }
}

/// Quiet time saves up what ten seconds at the peak earn, not an hour's worth.
#[test]
fn a_bucket_holds_ten_seconds_of_the_peak() {
    let budget = Budget::new(share(0.1), 500.0);
    (0..100_000).for_each(|_| budget.deposit());
    let granted = (0..1_000).filter(|_| budget.withdraw(Offset::ZERO)).count();
    assert_eq!(granted, 50);
}

/// Eight threads pay in and ask at the same time, and no token is granted twice or lost.
#[test]
fn workers_share_a_bucket_without_losing_count() {
    const EACH: u32 = 20_000;
    let budget = Budget::new(share(0.25), 1e9);
    let work = || (0..EACH).for_each(|_| budget.deposit());
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
    let granted: u32 = std::thread::scope(|scope| {
        let ask = || {
            (0..EACH)
                .map(|_| u32::from(budget.withdraw(Offset::ZERO)))
                .sum()
        };
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        asking
            .into_iter()
            .map(|thread| thread.join().unwrap_or(0_u32))
            .sum()
    });
    assert_eq!(granted, 8 * EACH / 4);
}

fn refusing_all() -> Target {
    Target {
        request: Box::new(|_, _| Answer::Reply(ReplyResult::Status(503))),
        connect: Box::new(|_, _| Connect::Fails(Outcome::Unreachable)),
        ..Target::healthy(7)
    }
}

fn denied(world: &World, of: AgentKind) -> usize {
    let is_denied = |event: &Event| {
        matches!(
            event,
            Event::Retry {
                change: RetryChange::Denied,
                ..
            }
        )
    };
    world
        .told
        .iter()
        .filter(|(id, event)| id.kind == of && is_denied(event))
        .count()
}

/// Four attempts are allowed and a budget of 10 %: against a target that refuses everything at most 1.1 are made.
#[test]
fn riders_of_a_failing_target_stay_within_the_budget() {
    let mut plan = plan(1);
    plan.riders[0].arrivals = even(20.0, seconds(60));
    plan.riders[0].retry = Retry {
        budget: share(0.1),
        ..fixed(seconds(1), 4)
    };
    let world = World::run(plan, refusing_all());
    let of_riders = world
        .requests
        .iter()
        .filter(|(_, id, _)| id.kind == AgentKind::Rider);
    let attempts = of_riders.count();
    // 1,200 arrivals earn 120 retries, all but the fraction that the last ones begin to earn.
    assert!((1_319..=1_320).contains(&attempts), "{attempts} attempts");
    // All but the few that were granted every one of their four attempts.
    let denied = denied(&world, AgentKind::Rider);
    assert!((1_150..=1_200).contains(&denied), "{denied} denied");
}

/// Hubs that can't get in: each tries once, 10 % earn one more, and the reserve keeps some trying until the end.
#[test]
fn hubs_keep_to_the_budget_and_never_give_up() {
    const HUBS: u32 = 200;
    let mut plan = plan(HUBS);
    let budget = RetryBudget {
        share: 0.1,
        reserve_per_second: 2.0,
    };
    plan.hubs[0].reconnect.retry = Retry {
        budget: Some(budget),
        ..full_jitter(seconds(1), seconds(5))
    };
    let world = World::run(plan, refusing_all());
    let tries: Vec<Offset> = world
        .told
        .iter()
        .filter_map(|(id, event)| match event {
            Event::Attempted { at, .. } if id.kind == AgentKind::Hub => Some(*at),
            _ => None,
        })
        .collect();
    // 60 s of connecting and 70 s of load and drain at 2/s, with the second that is saved up.
    let most = 220 + 2 * (60 + 70 + 1);
    assert!((300..=most).contains(&tries.len()), "{} tries", tries.len());
    assert!(
        tries.iter().any(|at| *at > ZERO.after(seconds(55))),
        "all had given up"
    );
    assert!(denied(&world, AgentKind::Hub) > 1_000);
}

/// The target asks for 3 s, the policy would wait for 1 s: who respects it comes after 3 s, and no longer than its limit.
#[test]
fn retry_after_is_waited_for_up_to_the_limit() {
    for (limit, waits) in [(None, 1), (Some(seconds(60)), 3), (Some(seconds(2)), 2)] {
        let retry = Retry {
            retry_after: limit,
            ..fixed(seconds(1), 2)
        };
        assert_eq!(
            retry.with_retry_after(seconds(1), Some(seconds(3))),
            seconds(waits)
        );
        assert_eq!(retry.with_retry_after(seconds(1), None), seconds(1));
        assert_eq!(
            retry.with_retry_after(seconds(5), Some(seconds(3))),
            seconds(5)
        );
    }
}

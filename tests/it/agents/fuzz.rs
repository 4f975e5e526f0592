//! Agents that are told anything in any order keep their promises all the same.

use super::account::Account;
use super::plans::{TAG, millis, plan};
use super::whole::whole_plan;
use proptest::prelude::*;
use rushhour::agents::{
    Accepted, Action, Agent, Context, Hub, HubConfig, Input, Issuer, IssuerConfig, Order, Reply,
    ReplyResult, Rider, RiderConfig, Timer,
};
use rushhour::dice::Dice;
use rushhour::event::{Cause, CommandId, Offset, Outcome};
use rushhour::plan::fault::How;
use rushhour::retry::Budget;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Whether it makes sense in the agent's state is not asked.
fn any_input() -> impl Strategy<Value = Input<'static>> {
    let outcome = prop_oneof![
        Just(Outcome::TimedOut),
        Just(Outcome::Unreachable),
        Just(Outcome::Reset),
        Just(Outcome::Protocol),
        Just(Outcome::NotSent),
        any::<u16>().prop_map(Outcome::Refused),
    ];
    let result = prop_oneof![
        prop_oneof![
            Just(200),
            Just(202),
            Just(409),
            Just(410),
            Just(503),
            any::<u16>()
        ]
        .prop_map(ReplyResult::Status),
        Just(ReplyResult::Accepted),
        outcome.clone().prop_map(ReplyResult::Failed),
    ];
    let body = prop_oneof![
        Just(&b""[..]),
        Just(&br#"{"bikes":[{"id":"b"},{"id":"c"}],"trip_id":1,"state":"starting"}"#[..]),
        Just(&br#"{"bikes":[{"id":"b"}],"trip_id":1,"state":"started"}"#[..])
    ];
    let timer = prop_oneof![
        Just(Timer::Connect),
        Just(Timer::Deadline),
        Just(Timer::KeepAlive),
        Just(Timer::Telemetry),
        Just(Timer::Actuated),
        Just(Timer::Wait),
    ];
    let cause = prop_oneof![
        Just(Cause::Closed),
        Just(Cause::KeepAlive),
        any::<u8>().prop_map(Cause::Disconnected),
    ];
    let how = prop_oneof![Just(How::Disconnect), Just(How::Close), Just(How::Reset)];
    prop_oneof![
        1 => Just(Input::Due { due: Offset::ZERO }),
        8 => timer.prop_map(Input::Timer),
        2 => Just(Input::Opened),
        4 => (any::<bool>(), prop::option::of(0_u16..60), prop::option::of(0_u16..3)).prop_map(
            |(session_present, keep_alive_s, receive_maximum)| Input::Accepted(Accepted {
                session_present, keep_alive_s, receive_maximum
            })
        ),
        4 => Just(Input::Subscribed),
        2 => (outcome.clone(), cause).prop_map(|(outcome, cause)| Input::Lost { outcome, cause }),
        2 => Just(Input::Pong),
        4 => (0_u64..12, prop_oneof![Just(Outcome::Ok), Just(Outcome::Refused(0x97)), Just(Outcome::NotSent)])
            .prop_map(|(token, outcome)| Input::Published { token, outcome }),
        4 => (prop::option::of((0_u16..2, 1_u64..20)), any::<bool>()).prop_map(|(id, retained)| Input::Command {
            id: id.map(|(issuer, number)| CommandId { issuer, number }.into()), retained
        }),
        1 => Just(Input::Told(Order::Reauthenticate)),
        1 => Just(Input::Reauthenticated),
        6 => (result, body).prop_map(|(result, body)| Input::Reply(Reply { result, body, retry_after: None })),
        1 => (how, 0_u64..5000).prop_map(|(how, away)| Input::Told(Order::Drop { how, away: millis(away) })),
    ]
}

/// Gives all inputs and then the order to stop, and holds the agent to the account of its events.
fn hold_to_account(agent: &mut impl Agent, inputs: Vec<(u64, Input<'static>)>) {
    let mut account = Account::default();
    let mut dice = Dice::named(1, 2, 3);
    let mut now = Offset::ZERO;
    let mut timers: HashMap<Timer, Offset> = HashMap::new();
    let mut done = false;
    let stop = [
        (0, Input::Told(Order::Stop)),
        (0, Input::Opened),
        (9, Input::Told(Order::Stop)),
    ];
    for (after_ms, input) in inputs.into_iter().chain(stop) {
        now = now.after(Duration::from_millis(after_ms));
        if let Input::Timer(timer) = input {
            // Only a timer that runs can run out, and not before its time.
            let Some(at) = timers.remove(&timer) else {
                continue;
            };
            now = now.max(at);
        }
        let mut out = Vec::new();
        agent.on(
            now,
            input,
            &mut Context {
                dice: &mut dice,
                budget: &Budget::unlimited(),
            },
            &mut out,
        );
        for action in out {
            assert!(!done, "it was done and wants {action:?}");
            match action {
                Action::Tell(event) => account.take(&event),
                Action::WakeAt(timer, at) => {
                    timers.insert(timer, at);
                }
                Action::Cancel(timer) => drop(timers.remove(&timer)),
                Action::Done => done = true,
                _ => {}
            }
        }
    }
    assert!(done);
    assert_eq!(account.under_way(), 0);
}

fn any_inputs() -> impl Strategy<Value = Vec<(u64, Input<'static>)>> {
    let later = prop::collection::vec((0_u64..8000, any_input()), 0..80);
    later.prop_map(|mut inputs| {
        inputs.insert(0, (0, Input::Due { due: Offset::ZERO }));
        inputs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hubs_keep_their_promises(inputs in any_inputs(), attempts in prop::option::of(1_u32..9)) {
        let mut plan = plan(2);
        plan.hubs[0].reconnect.retry.attempts = attempts;
        hold_to_account(&mut Hub::new(&Arc::new(HubConfig::of(&plan, 0)), 0), inputs);
    }

    #[test]
    fn riders_keep_their_promises(inputs in any_inputs()) {
        hold_to_account(&mut Rider::new(&Arc::new(RiderConfig::of(&plan(1), 0, TAG)), 1), inputs);
    }

    #[test]
    fn riders_that_poll_and_try_candidates_keep_them_too(inputs in any_inputs(), leaves in prop::option::of(0_usize..80)) {
        let mut inputs = inputs;
        if let Some(at) = leaves {
            inputs.insert(at.clamp(1, inputs.len()), (0, Input::Told(Order::Leave)));
        }
        hold_to_account(&mut Rider::new(&Arc::new(RiderConfig::of(&whole_plan(), 0, TAG)), 1), inputs);
    }

    #[test]
    fn issuers_keep_their_promises(inputs in any_inputs()) {
        hold_to_account(&mut Issuer::new(&Arc::new(IssuerConfig::of(&plan(1), 0, TAG)), 1), inputs);
    }
}

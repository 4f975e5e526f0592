//! The account of commands: every state, any order, and it adds up.

use super::stage::{COMMAND, Stage, plan};
use proptest::prelude::*;
use rushhour::event::{CommandId, CommandStep, Offset, Outcome};
use rushhour::measure::{Account, Ledger, State};

use CommandStep::{
    Accepted, Acknowledged, Delivered, Due, Expired, GaveUp, InDoubt, NotSent, Refused, Sent,
};

const STEPS: [CommandStep; 10] = [
    Due,
    Sent,
    Accepted,
    Refused,
    InDoubt,
    Expired,
    NotSent,
    GaveUp,
    Delivered,
    Acknowledged,
];

fn apply(ledger: &mut Ledger, number: u64, steps: &[(CommandStep, f64)]) {
    for (step, at_s) in steps {
        let at = Offset((at_s * 1e6) as u64);
        ledger.apply(CommandId { issuer: 0, number }, *step, at, &mut Vec::new());
    }
}

fn settled(steps: &[(CommandStep, f64)]) -> Account {
    let mut ledger = Ledger::new(&plan());
    apply(&mut ledger, 1, steps);
    ledger.settle(Offset(1_000_000_000), &mut Vec::new());
    assert_eq!(
        ledger.held(),
        0,
        "nothing is kept after its time to live and the grace"
    );
    let account = ledger.total(0);
    assert!(account.adds_up());
    account
}

fn state(steps: &[(CommandStep, f64)]) -> State {
    let account = settled(steps);
    State::ALL
        .into_iter()
        .find(|state| account.of(*state) == 1)
        .expect("one command, one state")
}

/// `in_time` is 2 s, the time to live 10 s, the grace 5 s.
#[test]
fn every_state_is_reached() {
    let sent = [(Due, 1.0), (Sent, 1.0)];
    let with = |more: &[(CommandStep, f64)]| state(&[&sent[..], more].concat());
    assert_eq!(
        with(&[(Accepted, 1.1), (Delivered, 1.2), (Acknowledged, 3.0)]),
        State::InTime
    );
    assert_eq!(
        with(&[(Accepted, 1.1), (Delivered, 1.2), (Acknowledged, 3.1)]),
        State::Late
    );
    assert_eq!(
        with(&[(Accepted, 1.1), (Delivered, 11.1), (Acknowledged, 11.2)]),
        State::AfterTtl
    );
    assert_eq!(
        with(&[(Accepted, 1.1), (Delivered, 1.2)]),
        State::Unanswered
    );
    assert_eq!(with(&[(Accepted, 1.1)]), State::Lost);
    assert_eq!(with(&[(Expired, 1.5)]), State::Expired);
    assert_eq!(with(&[(Refused, 1.1), (GaveUp, 1.1)]), State::Refused);
    assert_eq!(with(&[(InDoubt, 6.0), (GaveUp, 6.0)]), State::InDoubt);
    assert_eq!(
        with(&[]),
        State::InDoubt,
        "it left, and nobody said what came of it"
    );
    assert_eq!(with(&[(NotSent, 1.0), (GaveUp, 1.0)]), State::NotSent);
}

#[test]
fn a_timed_out_send_is_never_refused_and_one_that_was_accepted_after_all_is_lost() {
    let timed_out = [
        (Due, 1.0),
        (Sent, 1.0),
        (InDoubt, 6.0),
        (Sent, 6.0),
        (Refused, 6.1),
        (GaveUp, 6.1),
    ];
    assert_eq!(state(&timed_out), State::InDoubt);
    let accepted = [
        (Due, 1.0),
        (Sent, 1.0),
        (InDoubt, 6.0),
        (Sent, 6.0),
        (Accepted, 6.1),
    ];
    assert_eq!(state(&accepted), State::Lost);
}

#[test]
fn nothing_is_decided_before_time_to_live_and_grace_are_over() {
    let mut ledger = Ledger::new(&plan());
    apply(&mut ledger, 1, &[(Due, 1.0), (Sent, 1.0), (Accepted, 1.1)]);
    ledger.settle(Offset(15_999_999), &mut Vec::new());
    assert_eq!(ledger.total(0).of(State::Open), 1);
    ledger.settle(Offset(16_000_000), &mut Vec::new());
    assert_eq!(ledger.total(0).of(State::Lost), 1);
}

#[test]
fn a_second_delivery_is_a_duplicate_whenever_it_comes() {
    let done = [
        (Due, 1.0),
        (Sent, 1.0),
        (Accepted, 1.1),
        (Delivered, 1.2),
        (Acknowledged, 1.3),
    ];
    let mut ledger = Ledger::new(&plan());
    apply(&mut ledger, 1, &done);
    apply(&mut ledger, 1, &[(Delivered, 2.0)]);
    ledger.settle(Offset(60_000_000), &mut Vec::new());
    apply(&mut ledger, 1, &[(Delivered, 61.0)]);
    let account = ledger.total(0);
    assert_eq!(
        (
            account.of(State::InTime),
            account.duplicated,
            account.unexpected
        ),
        (1, 2, 0)
    );
}

#[test]
fn a_first_delivery_after_the_account_was_closed_is_counted_apart() {
    let mut ledger = Ledger::new(&plan());
    apply(&mut ledger, 1, &[(Due, 1.0), (Sent, 1.0), (Accepted, 1.1)]);
    ledger.settle(Offset(60_000_000), &mut Vec::new());
    apply(&mut ledger, 1, &[(Delivered, 61.0), (Delivered, 62.0)]);
    let account = ledger.total(0);
    assert_eq!(
        (
            account.of(State::Lost),
            account.after_closing,
            account.duplicated
        ),
        (1, 1, 1)
    );
    assert!(account.adds_up());
}

#[test]
fn what_nobody_sent_is_unexpected_and_no_part_of_the_account() {
    let account = settled(&[(Delivered, 1.0), (Delivered, 2.0), (Acknowledged, 2.0)]);
    assert_eq!(
        (account.due, account.unexpected, account.duplicated),
        (0, 2, 0)
    );
}

#[test]
fn a_delivery_after_the_issuer_gave_up_is_in_its_state_and_counted_apart() {
    let account = settled(&[
        (Due, 1.0),
        (Sent, 1.0),
        (InDoubt, 2.0),
        (GaveUp, 2.0),
        (Delivered, 2.5),
        (Acknowledged, 2.6),
    ]);
    assert_eq!((account.of(State::InTime), account.after_give_up), (1, 1));
}

#[test]
fn a_device_that_does_not_answer_is_done_when_it_was_delivered() {
    let mut plan = plan();
    plan.target.devices[0].answer = None;
    let mut ledger = Ledger::new(&plan);
    apply(
        &mut ledger,
        1,
        &[(Due, 1.0), (Sent, 1.0), (Accepted, 1.1), (Delivered, 1.2)],
    );
    assert_eq!(ledger.total(0).of(State::InTime), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// In whatever order steps are told: the account adds up after each of them, and ends the same.
    #[test]
    fn the_order_of_steps_changes_nothing(
        told in prop::collection::vec((0..6_u64, 0..STEPS.len(), 0..14_000_000_u64), 0..80),
        shuffle in any::<u64>(),
    ) {
        // A command is due once.
        let mut due = std::collections::HashSet::new();
        let once = told.into_iter().filter(|(number, step, _)| STEPS[*step] != Due || due.insert(*number));
        let steps: Vec<_> = once.collect();
        let run = |order: &[usize]| {
            let mut ledger = Ledger::new(&plan());
            for row in order {
                let (number, step, at) = steps[*row];
                let id = CommandId { issuer: 0, number };
                ledger.apply(id, STEPS[step], Offset(at), &mut Vec::new());
                assert!(ledger.total(0).adds_up(), "{:?}", ledger.total(0));
            }
            ledger.settle(Offset(900_000_000), &mut Vec::new());
            ledger.total(0)
        };
        let in_order: Vec<usize> = (0..steps.len()).collect();
        let mut shuffled = in_order.clone();
        shuffled.sort_by_key(|row| (*row as u64).wrapping_mul(shuffle | 1).rotate_left(17));
        let (a, b) = (run(&in_order), run(&shuffled));
        prop_assert!(b.adds_up());
        prop_assert_eq!(a, b);
    }

    /// Steps, closings and late steps in any mixture: it adds up at every moment, and memory does not grow with the run.
    #[test]
    fn it_adds_up_at_every_moment(
        steps in prop::collection::vec((0..40_u64, 0..STEPS.len(), 0..3_000_000_u64), 0..300),
    ) {
        let mut ledger = Ledger::new(&plan());
        let mut now = 0;
        for (number, step, later) in steps {
            now += later;
            let id = CommandId { issuer: 0, number };
            ledger.apply(id, STEPS[step], Offset(now), &mut Vec::new());
            ledger.settle(Offset(now), &mut Vec::new());
            prop_assert!(ledger.total(0).adds_up(), "{:?}", ledger.total(0));
        }
        ledger.settle(Offset(now + 60_000_000), &mut Vec::new());
        prop_assert_eq!(ledger.held(), 0);
    }
}

/// 20 000 commands, closed as they come: what is held is what can still be decided (15 s at 100/s), not what there was.
#[test]
fn memory_is_that_of_the_open_commands() {
    let mut ledger = Ledger::new(&plan());
    let mut most = 0;
    for number in 0..20_000_u64 {
        let now = number as f64 * 0.01;
        apply(
            &mut ledger,
            number,
            &[
                (Due, now),
                (Sent, now),
                (Accepted, now),
                (Delivered, now),
                (Acknowledged, now),
            ],
        );
        ledger.settle(Offset((now * 1e6) as u64), &mut Vec::new());
        most = most.max(ledger.held());
    }
    assert!((1_400..=1_502).contains(&most), "held {most}");
}

#[test]
fn a_command_end_to_end_is_measured_from_due_to_answer() {
    let mut stage = Stage::new(plan());
    stage.command(1, 1.0, 0.5);
    stage.command(2, 2.0, 4.0);
    stage.step(3, Due, 3.0);
    stage.action(super::stage::ISSUE, 3.0, 0.01, Outcome::Ok);
    stage.step(3, Sent, 3.0);
    stage.step(3, Accepted, 3.0);
    stage.finish_at(30.0);
    let total = &stage.collector.totals().operations[usize::from(COMMAND.0)];
    assert_eq!(
        (total.started, total.ok, total.timed_out, total.unfinished()),
        (3, 2, 1, 0)
    );
    assert_eq!(
        total.latency.percentile_us(33.0).map(|us| us / 1000),
        Some(500)
    );
    let second = &stage.seconds[(super::stage::ZERO + 1) as usize].commands[0];
    assert_eq!(
        (
            second.due,
            second.accepted,
            second.delivered,
            second.acknowledged
        ),
        (1, 1, 1, 1)
    );
}

//! What issuers decide: one id for all attempts, what is in doubt, and when to stop.

use super::plans::{TAG, millis, plan, seconds};
use super::target::{Answer, Target};
use super::world::World;
use rushhour::agents::{
    Action, Agent, Context, Input, Issuer, IssuerConfig, Reply, ReplyResult, Timer,
};
use rushhour::dice::Dice;
use rushhour::event::{AgentKind, CommandId, CommandStep, Event, Offset, Outcome};
use rushhour::plan::Plan;
use rushhour::retry::Budget;
use std::collections::BTreeMap;
use std::sync::Arc;

const DUE: Offset = Offset(1_000_000);

/// What an issuer of the plan tells about its command when it is answered like this, the timer running out whenever it is asked for.
fn told(plan: &Plan, answers: &[ReplyResult]) -> (Vec<CommandStep>, Vec<(Outcome, u32)>) {
    let config = Arc::new(IssuerConfig::of(plan, 0, TAG));
    let mut issuer = Issuer::new(&config, 3);
    let mut dice = Dice::named(1, 1, 1);
    let mut out = Vec::new();
    let mut now = DUE;
    issuer.on(
        now,
        Input::Due { due: DUE },
        &mut Context {
            dice: &mut dice,
            budget: &Budget::unlimited(),
        },
        &mut out,
    );
    for result in answers {
        now = now.after(millis(10));
        let reply = Input::Reply(Reply {
            result: *result,
            body: b"",
            retry_after: None,
        });
        issuer.on(
            now,
            reply,
            &mut Context {
                dice: &mut dice,
                budget: &Budget::unlimited(),
            },
            &mut out,
        );
        if let Some(Action::WakeAt(Timer::Wait, at)) = out.last() {
            now = *at;
            issuer.on(
                now,
                Input::Timer(Timer::Wait),
                &mut Context {
                    dice: &mut dice,
                    budget: &Budget::unlimited(),
                },
                &mut out,
            );
        }
    }
    let steps = out.iter().filter_map(|action| match action {
        Action::Tell(Event::Command { step, id, .. }) => {
            assert_eq!(
                *id,
                CommandId {
                    issuer: 0,
                    number: 3
                }
            );
            Some(*step)
        }
        _ => None,
    });
    let ends = out.iter().filter_map(|action| match action {
        Action::Tell(Event::Finished {
            outcome, attempts, ..
        }) => Some((*outcome, *attempts)),
        _ => None,
    });
    (steps.collect(), ends.collect())
}

#[test]
fn each_answer_says_one_thing_about_the_command() {
    use CommandStep::{Accepted, Due, Expired, GaveUp, InDoubt, NotSent, Refused, Sent};
    use ReplyResult::{Failed, Status};
    let one = |result| told(&plan(1), &[result]);
    assert_eq!(
        one(Status(202)),
        (vec![Due, Sent, Accepted], vec![(Outcome::Ok, 1)])
    );
    assert_eq!(
        one(ReplyResult::Accepted),
        (vec![Due, Sent, Accepted], vec![(Outcome::Ok, 1)])
    );
    assert_eq!(
        one(Status(410)),
        (vec![Due, Sent, Expired], vec![(Outcome::Refused(410), 1)])
    );
    assert_eq!(
        one(Status(409)),
        (
            vec![Due, Sent, Refused, GaveUp],
            vec![(Outcome::Declined, 1)]
        )
    );
    assert_eq!(
        one(Status(404)),
        (
            vec![Due, Sent, Refused, GaveUp],
            vec![(Outcome::Refused(404), 1)]
        )
    );
    let no_room = one(Failed(Outcome::NotSent));
    assert_eq!(
        no_room,
        (
            vec![Due, Sent, NotSent, GaveUp],
            vec![(Outcome::NotSent, 1)]
        )
    );
    // Tried again: the second attempt is under way.
    for (result, step) in [
        (Failed(Outcome::TimedOut), InDoubt),
        (Failed(Outcome::Reset), InDoubt),
        (Status(504), InDoubt),
        (Status(500), InDoubt),
        (Failed(Outcome::Unreachable), Refused),
        (Status(503), Refused),
        (Status(429), Refused),
    ] {
        assert_eq!(
            one(result),
            (vec![Due, Sent, step, Sent], vec![]),
            "{result:?}"
        );
    }
}

#[test]
fn an_issuer_stops_when_its_attempts_are_used_up() {
    use CommandStep::{Due, GaveUp, InDoubt, Sent};
    let (steps, ends) = told(&plan(1), &[ReplyResult::Failed(Outcome::TimedOut); 4]);
    assert_eq!(
        steps,
        [
            Due, Sent, InDoubt, Sent, InDoubt, Sent, InDoubt, Sent, InDoubt, GaveUp
        ]
    );
    assert_eq!(ends, [(Outcome::TimedOut, 4)]);
}

/// Attempts 2 s apart and a time to live of 5 s: those at 0, 2 and 4 s leave, one at 6 s would be for nobody.
#[test]
fn an_issuer_stops_when_the_time_to_live_has_passed() {
    let mut plan = plan(1);
    plan.issuers[0].ttl = seconds(5);
    plan.issuers[0].retry.attempts = None;
    let (steps, ends) = told(&plan, &[ReplyResult::Status(503); 3]);
    assert_eq!(steps.last(), Some(&CommandStep::GaveUp));
    assert_eq!(ends, [(Outcome::Refused(503), 3)]);
}

#[test]
fn hubs_are_chosen_evenly_and_for_good() {
    let config = Arc::new(IssuerConfig::of(&plan(10), 0, TAG));
    let mut chosen = [0_i32; 10];
    for n in 1..=10_000 {
        let issuer = Issuer::new(&config, n);
        assert_eq!(issuer.hub(), Issuer::new(&config, n).hub());
        chosen[usize::try_from(issuer.hub()).unwrap()] += 1;
    }
    // Five standard deviations of a binomial with 10 000 draws and a share of a tenth are 150.
    assert!(
        chosen.iter().all(|count| (count - 1000).abs() < 150),
        "{chosen:?}"
    );
}

#[test]
fn a_command_knows_its_serial_and_its_id() {
    let issuer = Issuer::new(&Arc::new(IssuerConfig::of(&plan(1), 0, TAG)), 12);
    let value = |name| {
        let mut text = String::new();
        issuer.value(name, &mut text).then_some(text)
    };
    assert_eq!(value("serial").as_deref(), Some("homes-000000"));
    assert_eq!(value("command").as_deref(), Some("t1-0-12"));
    assert_eq!(CommandId::from_wire("t1-0-12", TAG), Some(issuer.command()));
    assert_eq!(value("intent"), None);
}

/// In a run in which half of all requests fail in some way, every attempt carries the id of the first one, and no two
/// intended actions share an id.
#[test]
fn every_attempt_keeps_the_id_of_its_action() {
    let mut target = Target::unreliable(5);
    target.request = Box::new(|_, dice| match dice.below(4) {
        0 => Answer::Silence,
        1 => Answer::Reply(ReplyResult::Status(503)),
        _ => Answer::Right,
    });
    let world = World::run(plan(20), target);
    let mut senders: BTreeMap<&str, Vec<(AgentKind, u64)>> = BTreeMap::new();
    for (_, id, key) in &world.requests {
        senders.entry(key).or_default().push((id.kind, id.index));
    }
    assert!(
        senders
            .values()
            .all(|agents| agents.iter().all(|agent| *agent == agents[0]))
    );
    let tried_again = senders.values().filter(|agents| agents.len() > 1).count();
    assert!(tried_again > 100, "{tried_again}");
    let starts = world
        .told
        .iter()
        .filter(|(id, event)| id.kind != AgentKind::Hub && matches!(event, Event::Started { .. }));
    let journeys = 300;
    assert_eq!(
        senders.len(),
        starts.count() - journeys,
        "a step or a command is one id"
    );
}

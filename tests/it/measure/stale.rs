//! Commands that ghosts saw on a shard that their hub had left, and what it means that a ghost did not watch; losses around a mark.

use super::judging::{close, drop, is, with};
use super::stage::{Stage, at, line};
use rushhour::event::{Cause, CommandId, Event, HubChange};
use rushhour::measure::Judgement;
use rushhour::plan::expect::{CommandState, Comparison, HubState, Scope, Subject, Unit};

fn stale(unit: Unit, scopes: Vec<Scope>) -> Stage {
    let subject = Subject::Commands {
        issuers: vec![0],
        of: CommandState::Stale,
    };
    let expect = line(subject, Comparison::Equal, 0.0, unit, scopes);
    let stage = Stage::new(with(&[("drop", 20)], expect));
    watches(&stage, true, -1.0);
    for number in 1..=10 {
        stage.command(number, 18.0 + number as f64, 0.1);
    }
    stage.mark(0, 20.0, 20.5);
    stage
}

fn watches(stage: &Stage, watches: bool, at_s: f64) {
    stage.tell(Event::Ghost {
        device: 0,
        shard: 0,
        watches,
        at: at(at_s),
    });
}

fn seen(stage: &Stage, number: u64, at_s: f64) {
    stage.tell(Event::Stale {
        group: 0,
        command: CommandId { issuer: 0, number },
        shard: 0,
        after_us: 1_500_000,
        at: at(at_s),
    });
}

fn judged(mut stage: Stage) -> Judgement {
    stage.finish_at(80.0);
    let watched = stage.collector.places().watched(0, at(60.0));
    let (gaps, blind_us) = watched.map_or((0, 0), |watched| (watched.gaps, watched.blind_us));
    // Two seconds in the middle, and the last one of the load, or nothing at all.
    assert!([(0, 0), (2, 3_000_000)].contains(&(gaps, blind_us)));
    stage.judged()
}

#[test]
fn sightings_of_ghosts_count_in_the_second_in_which_they_were_made() {
    for (unit, scopes, value) in [
        (Unit::Count, vec![], 2.0),
        // Ten commands were due.
        (Unit::Share, vec![], 0.2),
        (Unit::Count, vec![Scope::During(drop())], 0.0),
        (Unit::Count, vec![Scope::After(drop())], 2.0),
    ] {
        let stage = stale(unit, scopes.clone());
        seen(&stage, 4, 22.5);
        seen(&stage, 5, 23.5);
        let judgement = judged(stage);
        close(&judgement, value);
        is(&judgement, if value > 0.0 { "fail" } else { "pass" });
    }
}

#[test]
fn what_a_ghost_did_not_watch_nobody_knows() {
    for (number, expected) in [(0, "inconclusive"), (1, "fail")] {
        let stage = stale(Unit::Count, vec![]);
        for number in 0..number {
            seen(&stage, number, 22.5);
        }
        watches(&stage, false, 30.0);
        watches(&stage, true, 32.0);
        // At the end of the load it still does not watch.
        watches(&stage, false, 59.0);
        let judgement = judged(stage);
        is(&judgement, expected);
    }
    // Ended with the run, it has watched all the time.
    let stage = stale(Unit::Count, vec![]);
    watches(&stage, false, 61.0);
    is(&judged(stage), "pass");
}

/// `during` and `after` meet without a gap: a session that is lost at any moment from the begin on is in exactly one of them.
#[test]
fn a_loss_is_either_during_a_mark_or_after_it() {
    for lost_at in [20.0, 20.4, 20.6, 20.99, 21.0, 30.0, 59.9] {
        let count = |scope| {
            let subject = Subject::Hubs {
                groups: vec![0],
                of: HubState::Lost,
            };
            let expect = line(subject, Comparison::Equal, 0.0, Unit::Count, vec![scope]);
            let mut stage = Stage::new(with(&[("drop", 20)], expect));
            stage.mark(0, 20.0, 20.5);
            stage.hubs(HubChange::Connected, 1, 1.0);
            stage.hubs(HubChange::Lost(Cause::Closed), 1, lost_at);
            stage.finish_at(80.0);
            stage.judged().value.unwrap()
        };
        let (during, after) = (count(Scope::During(drop())), count(Scope::After(drop())));
        assert_eq!(during + after, 1.0, "{lost_at}: {during} and {after}");
        assert_eq!(during, f64::from(u8::from(lost_at < 21.0)), "{lost_at}");
    }
}

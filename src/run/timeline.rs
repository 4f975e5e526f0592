//! The triggers that hubs do, at their times: disconnects, renewals of certificates, re-authentication.
//!
//! Operations of the target are asked for by `chaos`, which knows how to ask and to undo.

use crate::dice::Dice;
use crate::event::{Event, Mark, MarkId, MarkPhase, Offset, Sink};
use crate::live::hubs::HubFleet;
use crate::net::clock::Clock;
use crate::plan::Plan;
use crate::plan::fault::TriggerKind;
use std::time::Duration;

/// Keeps the choice of hubs apart from other draws of the seed.
const CHOICES: u64 = 0x64726f70;

/// One moment of the timeline.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment<'a> {
    at: Duration,
    mark: MarkId,
    /// `None`: the trigger's end.
    begins: Option<&'a TriggerKind>,
}

/// Brings everything that hubs do by plan about at its time; returns after the last one has ended.
pub(super) async fn run(plan: &Plan, hubs: &HubFleet, clock: Clock, zero: Offset, sink: &Sink) {
    for moment in moments(plan) {
        tokio::time::sleep_until(clock.instant(zero.after(moment.at))).await;
        let phase = match moment.begins {
            Some(trigger) => {
                // Two triggers on one group choose apart.
                let seed = Dice::named(plan.seed, CHOICES, u64::from(moment.mark.0)).bits();
                hubs.order(trigger, seed);
                MarkPhase::Begin
            }
            None => MarkPhase::End,
        };
        let at = clock.now();
        sink(Event::Mark(Mark {
            id: moment.mark,
            phase,
            at,
        }));
    }
}

/// Begins and ends in the order of their times.
fn moments(plan: &Plan) -> Vec<Moment<'_>> {
    let mut moments = Vec::new();
    for (row, trigger) in (0_u16..).zip(&plan.triggers) {
        if trigger.kind.group().is_some() {
            let mark = MarkId(row);
            moments.push(Moment {
                at: trigger.at,
                mark,
                begins: Some(&trigger.kind),
            });
            moments.push(Moment {
                at: trigger.at + trigger.lasts,
                mark,
                begins: None,
            });
        }
    }
    // Stable: a trigger that is a moment keeps its begin before its end.
    moments.sort_by_key(|moment| moment.at);
    moments
}

//! The triggers that the agents do: mass disconnects, at their times.
//!
//! Operations of the target are asked for by `chaos`, which knows how to ask and to undo.

use crate::event::{Event, Mark, MarkId, MarkPhase, Offset, Sink};
use crate::live::hubs::HubFleet;
use crate::net::clock::Clock;
use crate::plan::Plan;
use crate::plan::fault::{Disconnect, TriggerKind};
use std::time::Duration;

/// One moment of the timeline.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment {
    at: Duration,
    mark: MarkId,
    /// `None`: the trigger's end.
    begins: Option<Disconnect>,
}

/// Brings every disconnect of the plan about at its time; returns after the last one has ended.
pub(super) async fn run(plan: &Plan, hubs: &HubFleet, clock: Clock, zero: Offset, sink: &Sink) {
    for moment in moments(plan) {
        tokio::time::sleep_until(clock.instant(zero.after(moment.at))).await;
        let phase = match moment.begins {
            Some(disconnect) => {
                hubs.order_disconnect(&disconnect, plan.seed);
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
fn moments(plan: &Plan) -> Vec<Moment> {
    let mut moments = Vec::new();
    for (row, trigger) in (0_u16..).zip(&plan.triggers) {
        if let TriggerKind::Disconnect(disconnect) = trigger.kind {
            let mark = MarkId(row);
            moments.push(Moment {
                at: trigger.at,
                mark,
                begins: Some(disconnect),
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

//! The triggers that agents do, at their times: disconnects, renewals of certificates, re-authentication, docks without a network, shed
//! refreshes.
//!
//! Operations of the target are asked for by `chaos`, which knows how to ask and to undo.

use super::readmit::{Pauses, Readmitting};
use crate::agents::Order;
use crate::dice::Dice;
use crate::event::{Event, Mark, MarkId, MarkPhase, Offset, Sink};
use crate::live::docks::DockFleet;
use crate::live::hubs::HubFleet;
use crate::net::clock::Clock;
use crate::plan::Plan;
use crate::plan::fault::TriggerKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Keeps the choice of agents apart from other draws of the seed.
const CHOICES: u64 = 0x64726f70;

/// One moment of the timeline.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment<'a> {
    at: Duration,
    mark: MarkId,
    kind: &'a TriggerKind,
    /// False: the trigger's end.
    begins: bool,
}

/// Brings everything that agents do by plan about at its time; returns after the last one has ended. Hubs that are let back in
/// stages come back in tasks of their own, which may take longer: they are left in `readmitting`.
pub(super) async fn run(
    plan: &Plan,
    (hubs, docks): (&HubFleet, &DockFleet),
    clock: Clock,
    zero: Offset,
    sink: &Sink,
    (pauses, readmitting): (&Pauses, &mut JoinSet<()>),
) {
    for moment in moments(plan) {
        tokio::time::sleep_until(clock.instant(zero.after(moment.at))).await;
        // Before anybody acts: what a trigger does must not come before it.
        let at = clock.now();
        // Two triggers on one group choose apart; the end of one is for those whom its begin chose.
        let seed = Dice::named(plan.seed, CHOICES, u64::from(moment.mark.0)).bits();
        match (moment.kind, moment.begins) {
            (TriggerKind::Offline(some), true) => docks.order(some, Order::Offline, seed),
            (TriggerKind::Offline(some), false) => docks.order(some, Order::Online, seed),
            (TriggerKind::Shed(some), begins) => docks.order(some, Order::Shed(begins), seed),
            (of_hubs, true) => {
                hubs.order(of_hubs, seed);
                if let TriggerKind::Disconnect(disconnect) = of_hubs
                    && let Some(readmission) = disconnect.readmit
                    && let Some(door) = hubs.door(disconnect, seed)
                {
                    let back = Readmitting {
                        mark: moment.mark,
                        readmission,
                        door,
                        from: at.after(disconnect.within),
                        pauses: pauses.clone(),
                        clock,
                        sink: Arc::clone(sink),
                    };
                    readmitting.spawn(back.run());
                }
            }
            (_, false) => {}
        }
        let phase = if moment.begins {
            MarkPhase::Begin
        } else {
            MarkPhase::End
        };
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
        if !matches!(trigger.kind, TriggerKind::Operate { .. }) {
            let moment = |at, begins| Moment {
                at,
                mark: MarkId(row),
                kind: &trigger.kind,
                begins,
            };
            moments.push(moment(trigger.at, true));
            let is_let_back = matches!(&trigger.kind, TriggerKind::Disconnect(disconnect) if disconnect.readmit.is_some());
            // It ends when the last hub was let back.
            if !is_let_back {
                moments.push(moment(trigger.at + trigger.lasts, false));
            }
        }
    }
    // Stable: a trigger that is a moment keeps its begin before its end.
    moments.sort_by_key(|moment| moment.at);
    moments
}

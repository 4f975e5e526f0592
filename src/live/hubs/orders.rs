//! Orders of the timeline and of the end of the run, on one board per group.
//!
//! A hub holds nothing but how far it has read: a queue each would cost more than the hub.

use super::timers::NEVER;
use crate::agents::Order;
use crate::event::Offset;
use std::sync::Arc;
use std::time::Duration;

/// What has been ordered so far. Waves are read in order; a stop comes before what is due later.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    waves: Vec<Arc<Ordered>>,
    stop: Option<Stop>,
}

/// What a share of the hubs is to do.
#[derive(Debug)]
struct Ordered {
    order: Order,
    /// By hub; [`NEVER`] for one that is not chosen.
    at: Vec<Offset>,
}

/// All hubs stop, one after the other: hub i at `from` + i × `step`.
#[derive(Debug, Clone, Copy)]
struct Stop {
    from: Offset,
    step: Duration,
}

impl Board {
    /// Orders those hubs of `count` that have a turn to do this, each so long after `now`.
    pub(super) fn order(
        &mut self,
        order: Order,
        turns: Vec<(u32, Duration)>,
        count: u32,
        now: Offset,
    ) {
        let mut at = vec![NEVER; count as usize];
        for (index, after) in turns {
            at[index as usize] = now.after(after);
        }
        self.waves.push(Arc::new(Ordered { order, at }));
    }

    /// Orders all hubs to stop, spread evenly over `within` from `now` on. The first such order counts.
    pub(super) fn stop(&mut self, within: Duration, count: u32, now: Offset) {
        let step = within.checked_div(count).unwrap_or_default();
        self.stop.get_or_insert(Stop { from: now, step });
    }

    /// Whether the end has been ordered.
    pub(super) fn stops(&self) -> bool {
        self.stop.is_some()
    }

    /// The next order for hub `index` and when it is due. `read` is how many waves it has read; those that pass it by are
    /// counted as read.
    pub(super) fn next(&self, index: u32, read: &mut u32) -> Option<(Offset, Order)> {
        let stop = self
            .stop
            .map(|stop| (stop.from.after(stop.step * index), Order::Stop));
        while let Some(wave) = self.waves.get(*read as usize) {
            let at = wave.at[index as usize];
            if at != NEVER {
                return match stop {
                    Some((stop_at, order)) if stop_at <= at => Some((stop_at, order)),
                    _ => Some((at, wave.order)),
                };
            }
            *read += 1;
        }
        stop
    }
}

//! Orders of the timeline and of the end of the run, on one board per group.
//!
//! A hub holds nothing but how far it has read: a queue each would cost more than the hub.

use super::timers::NEVER;
use crate::agents::Order;
use crate::event::Offset;
use crate::plan::fault::Disconnect;
use std::sync::Arc;
use std::time::Duration;

/// What has been ordered so far. Drops are read in order; a stop comes before drops that are due later.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    drops: Vec<Arc<Drops>>,
    stop: Option<Stop>,
}

/// One mass disconnect.
#[derive(Debug)]
struct Drops {
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
    /// Orders the hubs that `disconnect` chooses among `count` to be dropped from `now` on.
    pub(super) fn drop_share(
        &mut self,
        disconnect: &Disconnect,
        seed: u64,
        count: u32,
        now: Offset,
    ) {
        let mut at = vec![NEVER; count as usize];
        for (index, after) in disconnect.drops(seed, count) {
            at[index as usize] = now.after(after);
        }
        let order = Order::Drop {
            how: disconnect.by,
            away: disconnect.away,
        };
        self.drops.push(Arc::new(Drops { order, at }));
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

    /// The next order for hub `index` and when it is due. `read` is how many drops it has read; those that pass it by are
    /// counted as read.
    pub(super) fn next(&self, index: u32, read: &mut u32) -> Option<(Offset, Order)> {
        let stop = self
            .stop
            .map(|stop| (stop.from.after(stop.step * index), Order::Stop));
        while let Some(drops) = self.drops.get(*read as usize) {
            let at = drops.at[index as usize];
            if at != NEVER {
                return match stop {
                    Some((stop_at, order)) if stop_at <= at => Some((stop_at, order)),
                    _ => Some((at, drops.order)),
                };
            }
            *read += 1;
        }
        stop
    }
}

//! Orders of the timeline and of the end of the run, on one board per group.
//!
//! A hub holds nothing but how far it has read: a queue each would cost more than the hub.

use super::timers::NEVER;
use crate::agents::Order;
use crate::event::Offset;
use std::ops::Range;
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
    turns: Turns,
}

/// When each hub has its turn.
#[derive(Debug)]
enum Turns {
    /// By hub; [`NEVER`] for one that is not chosen.
    Each(Vec<Offset>),
    /// Hubs stand in a row that many orders share; this one is for a part of it, one after the other.
    InRow {
        /// By hub: its place in the row.
        places: Arc<[u32]>,
        part: Range<u32>,
        from: Offset,
        step: Duration,
    },
}

impl Turns {
    /// When it is the turn of hub `index`; [`NEVER`] if it has none.
    fn of(&self, index: u32) -> Offset {
        match self {
            Turns::Each(at) => at.get(index as usize).copied().unwrap_or(NEVER),
            Turns::InRow {
                places,
                part,
                from,
                step,
            } => {
                let place = places
                    .get(index as usize)
                    .filter(|place| part.contains(place));
                place.map_or(NEVER, |place| from.after(*step * (place - part.start)))
            }
        }
    }
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
        let turns = Turns::Each(at);
        self.waves.push(Arc::new(Ordered { order, turns }));
    }

    /// Orders the hubs at these places of a row to do this, one after the other: the first at `from`, each a `step` later.
    pub(super) fn order_in_row(
        &mut self,
        order: Order,
        places: Arc<[u32]>,
        part: Range<u32>,
        (from, step): (Offset, Duration),
    ) {
        let turns = Turns::InRow {
            places,
            part,
            from,
            step,
        };
        self.waves.push(Arc::new(Ordered { order, turns }));
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
            let at = wave.turns.of(index);
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

//! Orders to the docks of one group, on one board; a dock holds nothing but how far it has read.

use crate::agents::Order;
use crate::event::Offset;
use crate::live::hubs::timers::NEVER;
use std::sync::Arc;

/// What has been ordered so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    /// Where `0:00` is.
    pub zero: Option<Offset>,
    /// The end of the run.
    pub stops: bool,
    orders: Vec<Arc<Ordered>>,
}

#[derive(Debug)]
struct Ordered {
    order: Order,
    /// By dock; [`NEVER`] for one that is not meant.
    at: Vec<Offset>,
}

impl Board {
    pub(super) fn add(&mut self, order: Order, at: Vec<Offset>) {
        self.orders.push(Arc::new(Ordered { order, at }));
    }

    /// The next order for dock `index` and when it is due; those that pass it by are counted as read.
    pub(super) fn next(&self, index: u32, read: &mut usize) -> Option<(Offset, Order)> {
        while let Some(ordered) = self.orders.get(*read) {
            match ordered.at.get(index as usize) {
                Some(at) if *at != NEVER => return Some((*at, ordered.order)),
                _ => *read += 1,
            }
        }
        None
    }
}

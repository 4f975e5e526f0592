//! The door through which hubs come back that were dropped until further notice.

use super::orders::Board;
use crate::agents::Order;
use crate::event::Offset;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Lets the hubs of one mass disconnect back, in the order in which they were dropped.
pub struct Door {
    board: watch::Sender<Board>,
    /// By hub: its place in the order; `u32::MAX` for one that was not dropped.
    places: Arc<[u32]>,
    dropped: u32,
    admitted: u32,
}

impl Door {
    pub(super) fn new(
        board: watch::Sender<Board>,
        dropped: &[(u32, Duration)],
        count: u32,
    ) -> Door {
        let mut places = vec![u32::MAX; count as usize];
        for (place, (index, _)) in (0..).zip(dropped) {
            places[*index as usize] = place;
        }
        Door {
            board,
            places: places.into(),
            dropped: u32::try_from(dropped.len()).unwrap_or(u32::MAX),
            admitted: 0,
        }
    }

    /// Hubs that were not let back yet.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.dropped - self.admitted
    }

    /// Lets the next `hubs` back, evenly spread over `over` from `at` on.
    pub fn admit(&mut self, hubs: u32, over: Duration, at: Offset) {
        let hubs = hubs.min(self.waiting());
        let row = self.admitted..self.admitted + hubs;
        let step = over.checked_div(hubs).unwrap_or_default();
        self.admitted = row.end;
        let places = Arc::clone(&self.places);
        self.board
            .send_modify(|board| board.order_in_row(Order::Admit, places, row, (at, step)));
    }
}

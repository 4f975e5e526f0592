//! How a rider hands over at its place.

use super::Rider;
use crate::agents::{Action, Context};
use crate::event::ReturnId;

impl Rider {
    /// The dock acknowledges at once, so the journey goes on.
    pub(super) fn hand_over(&self, row: usize, context: &mut Context<'_>, out: &mut Vec<Action>) {
        let Some(hand_over) = &self.config.hand_overs[row] else {
            return;
        };
        let places = self.config.places.as_ref();
        let place = places.and_then(|places| places.names.get(self.place));
        let id = ReturnId {
            riders: u16::try_from(self.config.group).unwrap_or(u16::MAX),
            number: self.number,
            step: u16::try_from(row).unwrap_or(u16::MAX),
        };
        out.push(Action::HandOver {
            docks: hand_over.docks,
            dock: hand_over.dock(place.map(String::as_str), context.dice),
            handed: hand_over.handed(id, |name, out| self.value(name, out)),
        });
    }
}

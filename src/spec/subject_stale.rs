//! What expectations say of stale commands, and whether anybody could see one.

use super::expectation::Word;
use super::grammar::BadLine;
use super::resolve::bad;
use super::subject::{Found, Subjects};
use crate::plan::expect::{CommandState, Subject};

impl Subjects<'_> {
    /// Only ghosts see a stale command.
    pub(super) fn stale(&self, name: &Word) -> Result<Found, BadLine> {
        let found = self.commands(name, CommandState::Stale)?;
        let Subject::Commands { issuers, .. } = &found.0 else {
            return Ok(found);
        };
        let devices = issuers.iter().map(|row| {
            let hubs = &self.plan.hubs[self.plan.issuers[*row].to];
            &self.plan.target.devices[hubs.device]
        });
        match devices.into_iter().find(|device| !device.ghost) {
            None => Ok(found),
            Some(device) => Err(bad(
                name.at,
                format!(
                    "nobody would see a stale command: the device `{}` has no ghost",
                    device.name
                ),
                "add `ghost: true` to the device if its shards are brokers of their own, or name the issuers whose hubs have one",
            )),
        }
    }
}

//! Triggers and faults of a plan as `check` prints them: when, what, the undo, and the room around them.

use super::super::{Outlook, undo_of};
use crate::plan::fault::Fault;
use crate::plan::quantity::{duration, moment};
use std::fmt::{self, Formatter};

impl Outlook<'_> {
    pub(super) fn marks(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.rooms.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nTriggers and faults")?;
        for room in &self.rooms {
            let fault = self
                .plan
                .faults
                .iter()
                .find(|fault| room.is_fault && fault.name == room.name);
            let repeats = fault.and_then(|fault| fault.repeats.as_ref());
            if repeats.is_some_and(|name| *room.name != format!("{name}-1")) {
                continue;
            }
            writeln!(
                out,
                "  {:>7} {:<14} {}",
                moment(room.at),
                room.name,
                self.what(room)
            )?;
            if let Some(fault) = fault {
                self.when(fault, out)?;
                writeln!(
                    out,
                    "  {:>7} {:<14} undo: {}",
                    "",
                    "",
                    undo_of(self.plan, &fault.kind)
                )?;
            }
            let before = match &room.within {
                Some(other) => format!("that of {other}"),
                None => format!(
                    "{} (needs {})",
                    duration(room.quiet_before),
                    duration(room.needs_before)
                ),
            };
            writeln!(
                out,
                "  {:>7} {:<14} quiet before: {before}, after: {} (needs {})",
                "",
                "",
                duration(room.quiet_after),
                duration(room.needs_after)
            )?;
        }
        Ok(())
    }

    /// What a fault waits for, and how often it comes.
    fn when(&self, fault: &Fault, out: &mut Formatter<'_>) -> fmt::Result {
        if let Some(after) = fault.after {
            writeln!(
                out,
                "  {:>7} {:<14} {}, from {} on; given up when the load ends",
                "",
                "",
                after.text(self.plan.mark_name(after.mark)),
                moment(fault.at)
            )?;
        }
        let Some(name) = &fault.repeats else {
            return Ok(());
        };
        let all = || {
            let faults = self.plan.faults.iter();
            faults.filter(|other| other.repeats.as_ref() == Some(name))
        };
        let (Some(second), Some(last)) = (all().nth(1), all().next_back()) else {
            return Ok(());
        };
        writeln!(
            out,
            "  {:>7} {:<14} {} times, every {}: to {} at {}",
            "",
            "",
            all().count(),
            duration(second.at - fault.at),
            last.name,
            moment(last.at)
        )
    }
}

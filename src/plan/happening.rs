//! What a trigger or a fault does, in a few words.

use super::Plan;
use super::dock::SomeDocks;
use super::fault::{FaultKind, How, TriggerKind};
use super::quantity;
use super::readmission::{Pace, Readmission};
use super::wave::{Jitter, OldSessions, Wave};
use crate::event::MarkId;
use std::time::Duration;

impl Plan {
    /// What the trigger or fault of this mark does, as reports and the dry run say it.
    #[must_use]
    pub fn mark_text(&self, id: MarkId) -> String {
        let row = usize::from(id.0);
        if let Some(trigger) = self.triggers.get(row) {
            return self.trigger_text(&trigger.kind);
        }
        let Some(fault) = self.faults.get(row - self.triggers.len()) else {
            return String::new();
        };
        let text = self.fault_text(&fault.kind);
        match fault.after {
            Some(after) => format!("{text}, {}", after.text(self.mark_name(after.mark))),
            None => text,
        }
    }

    fn trigger_text(&self, kind: &TriggerKind) -> String {
        match kind {
            TriggerKind::Disconnect(disconnect) => {
                let who = self.share_text(disconnect.group, disconnect.share);
                let mut text = format!("disconnect {who} by {}", how(disconnect.by));
                if !disconnect.within.is_zero() {
                    text.push_str(&format!(" within {}", seconds(disconnect.within)));
                }
                if !disconnect.away.is_zero() {
                    text.push_str(&format!(", away for {}", seconds(disconnect.away)));
                }
                if let Some(readmit) = &disconnect.readmit {
                    text.push_str(&readmit_text(readmit));
                }
                text
            }
            TriggerKind::Renew(renew) => {
                let text = format!("renew certificates of {}", self.wave_text(&renew.wave));
                match renew.sessions {
                    OldSessions::End(by) => format!("{text}, reconnect after {}", how(by)),
                    OldSessions::Keep => format!("{text}, keep old sessions"),
                }
            }
            TriggerKind::Reauthenticate(wave) => {
                format!("reauthenticate {}", self.wave_text(wave))
            }
            TriggerKind::Operate { operation } => self.operation_text(*operation),
            TriggerKind::Offline(some) => format!("{} offline", self.docks_text(some)),
            TriggerKind::Shed(some) => {
                format!("shed the status refreshes of {}", self.docks_text(some))
            }
        }
    }

    fn share_text(&self, group: usize, share: f64) -> String {
        let group = self.hubs.get(group).map_or("?", |group| &group.name);
        format!("{}% of {group}", (share * 1000.0).round() / 10.0)
    }

    fn wave_text(&self, wave: &Wave) -> String {
        let who = self.share_text(wave.group, wave.share);
        match (wave.within.is_zero(), wave.jitter) {
            (true, _) => format!("{who} at once"),
            (false, Jitter::None) => format!("{who} evenly within {}", seconds(wave.within)),
            (false, Jitter::Full) => format!("{who} at random within {}", seconds(wave.within)),
        }
    }

    fn docks_text(&self, some: &SomeDocks) -> String {
        let group = self.docks.get(some.docks).map_or("?", |group| &group.name);
        let percent = (some.share * 1000.0).round() / 10.0;
        let within = match some.within.is_zero() {
            true => String::new(),
            false => format!(" within {}", seconds(some.within)),
        };
        format!("{percent}% of {group}{within}")
    }

    fn fault_text(&self, kind: &FaultKind) -> String {
        match kind {
            FaultKind::Act { component, act } => {
                let component = self.target.components.get(*component);
                act.text(component.map_or("?", |row| &row.name))
            }
            FaultKind::Link(fault) => fault.text(self.link_name(fault.link)),
            FaultKind::Cut(cut) => cut.text(self.link_name(cut.link)),
            FaultKind::Operate { operation } => self.operation_text(*operation),
        }
    }

    fn link_name(&self, row: usize) -> &str {
        self.target.links.get(row).map_or("?", |link| &link.name)
    }

    fn operation_text(&self, row: usize) -> String {
        let operation = self.target.operations.get(row).map_or("?", |row| &row.name);
        format!("operate {operation}")
    }
}

fn how(how: How) -> &'static str {
    match how {
        How::Disconnect => "disconnect",
        How::Close => "close",
        How::Reset => "reset",
    }
}

/// How hubs are let back, behind what drops them.
pub(super) fn readmit_text(readmit: &Readmission) -> String {
    let after = match readmit.after.is_zero() {
        true => String::new(),
        false => format!(" after {}", seconds(readmit.after)),
    };
    let pace = match readmit.pace {
        Pace::Rate(per_second) => format!("at {}", quantity::rate(per_second)),
        Pace::Batches { share, every } => {
            let percent = (share * 1000.0).round() / 10.0;
            format!("in batches of {percent}% every {}", seconds(every))
        }
    };
    format!(", let back{after} {pace}")
}

fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 120.0 {
        format!("{seconds}s")
    } else {
        format!("{}m", seconds / 60.0)
    }
}

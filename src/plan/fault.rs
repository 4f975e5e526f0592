//! What happens during the run: triggers that the agents or the target do, faults that the tool breaks.

use super::dock::SomeDocks;
pub use super::link_fault::{Connections, Cut, CutBy, Link, LinkEffect, LinkFault, Packets, Way};
pub use super::moment::{After, Edge};
use super::readmission::Readmission;
use super::target::Request;
use super::template::{JsonTemplate, Template};
use super::wave::{self, Renew, Wave};
use std::time::Duration;

/// Something the agents do, or the target is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    pub name: String,
    /// From 0:00.
    pub at: Duration,
    /// How long it acts by plan; zero for a moment.
    pub lasts: Duration,
    pub kind: TriggerKind,
}

/// The kinds of trigger.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerKind {
    Disconnect(Disconnect),
    Renew(Renew),
    /// Hubs authenticate anew on their live sessions (MQTT 5).
    Reauthenticate(Wave),
    /// Row in `Target::operations`.
    Operate {
        operation: usize,
    },
    /// Docks lose their network: nothing that they send leaves them, and returns are stored.
    Offline(SomeDocks),
    /// Docks leave out the refreshes of their status.
    Shed(SomeDocks),
}

impl TriggerKind {
    /// Which of `count` hubs have a turn, with the time of each from the trigger's own; none in what hubs have no part in.
    #[must_use]
    pub fn turns(&self, seed: u64, count: u32) -> Vec<(u32, Duration)> {
        match self {
            TriggerKind::Disconnect(disconnect) => disconnect.drops(seed, count),
            TriggerKind::Renew(Renew { wave, .. }) | TriggerKind::Reauthenticate(wave) => {
                wave.turns(seed, count)
            }
            TriggerKind::Operate { .. } | TriggerKind::Offline(_) | TriggerKind::Shed(_) => {
                Vec::new()
            }
        }
    }

    /// The row in `Plan::hubs` of the group that does it, if it is hubs who do it.
    #[must_use]
    pub fn group(&self) -> Option<usize> {
        match self {
            TriggerKind::Disconnect(disconnect) => Some(disconnect.group),
            TriggerKind::Renew(Renew { wave, .. }) | TriggerKind::Reauthenticate(wave) => {
                Some(wave.group)
            }
            TriggerKind::Operate { .. } | TriggerKind::Offline(_) | TriggerKind::Shed(_) => None,
        }
    }
}

/// A share of a group of hubs loses its sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disconnect {
    /// Row in `Plan::hubs`.
    pub group: usize,
    /// 0 to 1; which hubs is drawn from the seed.
    pub share: f64,
    /// Spread evenly over this time; zero means at once.
    pub within: Duration,
    pub by: How,
    /// How long a dropped hub stays away before its reconnect policy starts.
    pub away: Duration,
    /// Dropped hubs stay away until they are let back.
    pub readmit: Option<Readmission>,
}

impl Disconnect {
    /// How long a dropped hub stays away by itself: for ever if it has to be let back.
    #[must_use]
    pub fn stays_away(&self) -> Duration {
        self.readmit.map_or(self.away, |_| Duration::MAX)
    }

    /// From the first drop to the last one, and to the last hub that is let back, in a group of `count`.
    #[must_use]
    pub fn lasts(&self, count: u32) -> Duration {
        let dropped = (f64::from(count) * self.share.clamp(0.0, 1.0)).round() as u32;
        let back = self.readmit.map(|readmit| readmit.lasts(dropped));
        self.within + back.unwrap_or_default()
    }

    /// Which of `count` hubs are dropped, in order, with the time of each from the trigger's own.
    ///
    /// Exactly the share, rounded to whole hubs; a random choice without replacement under `seed`, spread evenly over `within`.
    #[must_use]
    pub fn drops(&self, seed: u64, count: u32) -> Vec<(u32, Duration)> {
        let chosen = wave::chosen(seed, count, self.share);
        let dropped = u32::try_from(chosen.len()).unwrap_or(u32::MAX);
        let step = self.within.checked_div(dropped).unwrap_or_default();
        chosen
            .into_iter()
            .zip(0..)
            .map(|(index, place)| (index, step * place))
            .collect()
    }
}

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// MQTT DISCONNECT, then FIN.
    Disconnect,
    /// FIN without DISCONNECT.
    Close,
    /// RST.
    Reset,
}

/// Something the tool breaks, with its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub name: String,
    /// From 0:00; of a fault that waits for something, the earliest time by plan.
    pub at: Duration,
    /// What it waits for.
    pub after: Option<After>,
    /// The name in the experiment, if it is one of several repetitions.
    pub repeats: Option<String>,
    /// `None`: to the end of the run.
    pub lasts: Option<Duration>,
    pub kind: FaultKind,
}

/// The kinds of fault.
#[derive(Debug, Clone, PartialEq)]
pub enum FaultKind {
    /// SIGKILL to the process of a component; row in `Target::components`.
    Kill { component: usize },
    /// Something on a link.
    Link(LinkFault),
    /// The end of connections of a link, at once.
    Cut(Cut),
    /// An operation of the target used as a fault; row in `Target::operations`; it must have an undo.
    Operate { operation: usize },
}

/// A named thing that the target lets us ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationSpec {
    pub name: String,
    pub request: Request,
    pub undo: Option<Request>,
}

/// A named process of the target that faults may act on.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    pub name: String,
    /// The file that holds its process id.
    pub pid_file: Template,
    /// Row in `Target::operations`: starts it again.
    pub undo: usize,
    /// Where it listens, `host:port`, if the file says so: the port's state proves a kill.
    pub port: Option<Template>,
}

impl OperationSpec {
    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.request.each_template(each);
        self.undo
            .iter_mut()
            .for_each(|undo| undo.each_template(each));
    }

    pub(super) fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        self.request.json.iter_mut().for_each(&mut *each);
        self.undo
            .iter_mut()
            .filter_map(|undo| undo.json.as_mut())
            .for_each(each);
    }
}

impl Component {
    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        each(&mut self.pid_file);
        self.port.iter_mut().for_each(each);
    }
}

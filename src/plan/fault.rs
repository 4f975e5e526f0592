//! What happens during the run: triggers that the agents or the target do, faults that the tool breaks.

pub use super::component::{Act, Body, Component};
use super::dock::SomeDocks;
use super::json_path::JsonPath;
pub use super::link_fault::{
    Connections, Cut, CutBy, Link, LinkAddresses, LinkEffect, LinkFault, LinkPath, Packets,
    RemoteProxy, Way,
};
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
    /// Something done to a component; row in `Target::components`.
    Act { component: usize, act: Act },
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
    /// Holds once the effect shows; without it the answer is all that can be observed.
    pub observe: Option<Question>,
    /// Holds once nothing of it is left; without it the undo's answer has to be believed.
    pub undone: Option<Question>,
}

/// A request whose answer says whether something holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub request: Request,
    /// All of these must hold: the value at the path is one of the texts. Without any, a status that is a success is enough.
    pub is: Vec<(JsonPath, Vec<String>)>,
}

impl Question {
    /// Whether an answer's body says that it holds; what is no JSON says nothing.
    #[must_use]
    pub fn holds(&self, body: &[u8]) -> bool {
        if self.is.is_empty() {
            return true;
        }
        let document: Option<serde_json::Value> = serde_json::from_slice(body).ok();
        document.is_some_and(|document| {
            self.is.iter().all(|(path, texts)| {
                path.text(&document)
                    .is_some_and(|value| texts.contains(&value))
            })
        })
    }
}

impl OperationSpec {
    /// Every request of it, with the key under which it stands.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, &Request)> {
        let questions = [("observe", &self.observe), ("undone", &self.undone)];
        let questions = questions
            .into_iter()
            .filter_map(|(key, question)| Some((key, &question.as_ref()?.request)));
        let undo = self.undo.iter().map(|undo| ("undo", undo));
        std::iter::once(("do", &self.request))
            .chain(undo)
            .chain(questions)
    }

    fn requests_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        let questions = [&mut self.observe, &mut self.undone];
        let questions = questions.into_iter().flatten();
        std::iter::once(&mut self.request)
            .chain(&mut self.undo)
            .chain(questions.map(|question| &mut question.request))
    }

    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.requests_mut()
            .for_each(|request| request.each_template(each));
    }

    pub(super) fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        self.requests_mut()
            .filter_map(|request| request.json.as_mut())
            .for_each(each);
    }
}

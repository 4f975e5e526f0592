//! Docks: what a kind of dock sends, how many there are, and how the account of their returns is settled with the target.
//!
//! A dock refreshes its status, which is secondary traffic, and takes returns from riders: it acknowledges them at once, stores
//! them and sends them when it can.

use super::journey::{Journey, Repeat, StepAction};
use super::json_path::JsonPath;
use super::target::Request;
use super::template::{JsonTemplate, Template};
use super::wave::{Jitter, Wave};
use crate::event::ReturnState;
use crate::retry::Retry;
use std::time::Duration;

/// A kind of dock, as the target file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct DockDevice {
    pub name: String,
    /// The station's name, of which `<n>` is the dock's number from 1.
    pub serial: Template,
    pub status: Option<Request>,
    /// What riders may hand over. At least one.
    pub sends: Vec<Sent>,
}

/// One kind of return: how it is sent, and how the target is asked for it afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub name: String,
    pub request: Request,
    pub reconcile: Option<Reconcile>,
}

/// How the target is asked, at the end of the run, what became of a return.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconcile {
    pub request: Request,
    /// How often the target booked the return.
    pub applied: Option<JsonPath>,
    /// What holds when the trip is over; each value as JSON shows it.
    pub is: Vec<(JsonPath, String)>,
    /// How long the target may take to work through what it has accepted.
    pub within: Duration,
}

/// What the target says of a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Booked {
    /// How often it was booked, if the target tells.
    pub times: Option<u64>,
    /// Its trip is still under way.
    pub is_active: bool,
}

/// A group of like docks.
#[derive(Debug, Clone, PartialEq)]
pub struct DockGroup {
    pub name: String,
    /// Row in `Target::docks`.
    pub device: usize,
    pub count: u32,
    /// Between two refreshes of one dock's status; `None`: it never refreshes.
    pub status_every: Option<Duration>,
    /// Of one attempt.
    pub timeout: Duration,
    /// Of returns; a refresh is never tried again, since the next one is newer.
    pub retry: Retry,
    pub flush: Flush,
}

/// How a dock sends what it has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flush {
    /// The first return after the dock is back waits uniformly in [0, `first`).
    pub first: Duration,
    /// From one answer to the next return, while there are stored ones; zero: at once.
    pub every: Duration,
}

/// Some docks of a group, for a trigger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SomeDocks {
    /// Row in `Plan::docks`.
    pub docks: usize,
    /// 0 to 1; which docks is drawn from the seed.
    pub share: f64,
    /// Spread evenly over this time; zero means at once.
    pub within: Duration,
}

impl SomeDocks {
    /// Which of `count` docks are meant, with the time of each from the trigger's own.
    #[must_use]
    pub fn chosen(&self, seed: u64, count: u32) -> Vec<(u32, Duration)> {
        let wave = Wave {
            group: self.docks,
            share: self.share,
            within: self.within,
            jitter: Jitter::None,
        };
        wave.turns(seed, count)
    }
}

impl DockGroup {
    /// The name of the station of dock `index` (from 0): the same in every run.
    #[must_use]
    pub fn station(&self, device: &DockDevice, index: u32) -> String {
        let mut text = String::new();
        let rendered = device.serial.render_into(&mut text, |name, out| {
            out.push_str(&(u64::from(index) + 1).to_string());
            name == "n"
        });
        debug_assert!(
            rendered.is_ok(),
            "other names are refused when the target file is read"
        );
        text
    }

    /// Refreshes that one dock may have under way when the target stands still.
    #[must_use]
    pub fn refreshes_at_once(&self) -> u64 {
        self.status_every.map_or(0, |every| {
            u64::try_from(self.timeout.as_micros().div_ceil(every.as_micros().max(1)))
                .unwrap_or(u64::MAX)
        })
    }
}

impl Reconcile {
    /// What an answer says; `None` if it can't be read, or says nothing of the return.
    #[must_use]
    pub fn read(&self, status: u16, body: &[u8]) -> Option<Booked> {
        if status == NOT_FOUND {
            return Some(Booked {
                times: Some(0),
                is_active: true,
            });
        }
        if !self.request.answer.is_ok(status) {
            return None;
        }
        let document: serde_json::Value = serde_json::from_slice(body).ok()?;
        let times = match &self.applied {
            Some(path) => Some(path.text(&document)?.parse().ok()?),
            None => None,
        };
        let holds =
            |(path, value): &(JsonPath, String)| path.text(&document).as_ref() == Some(value);
        Some(Booked {
            times,
            is_active: !self.is.iter().all(holds),
        })
    }
}

/// The status by which a target says that it does not know a return.
const NOT_FOUND: u16 = 404;

impl Booked {
    /// Where a return stands that stood at `was` when the target was asked. What the dock still holds is stored whatever the target says.
    #[must_use]
    pub fn state(self, was: ReturnState) -> ReturnState {
        match (was, self.times) {
            (ReturnState::Stored, _) => ReturnState::Stored,
            (_, Some(0)) => ReturnState::Lost,
            (_, Some(1)) => ReturnState::Delivered,
            (_, Some(_)) => ReturnState::Duplicated,
            (ReturnState::InDoubt | ReturnState::Lost, None) if !self.is_active => {
                ReturnState::Delivered
            }
            (was, None) => was,
        }
    }
}

impl Sent {
    /// Every name that a rider must bring along, repeated where it repeats.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut add = |name: &str| {
            // What is known before anybody rides has a dot in its name.
            if !matches!(name, "station" | "return") && !name.contains('.') {
                names.push(name.to_owned());
            }
        };
        self.request.names(&mut add);
        if let Some(reconcile) = &self.reconcile {
            reconcile.request.names(&mut add);
        }
        names
    }
}

impl Journey {
    /// Whether a step before `step` keeps something of this name.
    #[must_use]
    pub fn keeps_before(&self, step: usize, name: &str) -> bool {
        self.steps[..step].iter().any(|step| {
            let keeps = match &step.action {
                StepAction::Request(request) => {
                    request.answer.keep.iter().any(|(kept, _)| kept == name)
                }
                StepAction::Think { .. } | StepAction::HandOver { .. } => false,
            };
            keeps || matches!(&step.repeat, Repeat::ForEach(candidates) if candidates.each == name)
        })
    }
}

impl DockDevice {
    /// The row of `sends` with this name.
    #[must_use]
    pub fn row_of(&self, name: &str) -> Option<usize> {
        self.sends.iter().position(|sent| sent.name == name)
    }

    /// Every request with its place in the file.
    pub fn requests(&self) -> impl Iterator<Item = (String, &Request)> {
        let status = self
            .status
            .iter()
            .map(move |request| (format!("devices.{}.status", self.name), request));
        let sends = self.sends.iter().flat_map(move |sent| {
            let own = (
                format!("devices.{}.sends.{}", self.name, sent.name),
                &sent.request,
            );
            let asked = sent.reconcile.iter().map(move |reconcile| {
                (
                    format!("devices.{}.sends.{}.reconcile", self.name, sent.name),
                    &reconcile.request,
                )
            });
            std::iter::once(own).chain(asked)
        });
        status.chain(sends)
    }

    fn requests_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        let sends = self.sends.iter_mut().flat_map(|sent| {
            let asked = sent
                .reconcile
                .iter_mut()
                .map(|reconcile| &mut reconcile.request);
            std::iter::once(&mut sent.request).chain(asked)
        });
        self.status.iter_mut().chain(sends)
    }

    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        each(&mut self.serial);
        self.requests_mut()
            .for_each(|request| request.each_template(each));
    }

    pub(super) fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        self.requests_mut()
            .filter_map(|request| request.json.as_mut())
            .for_each(each);
    }
}

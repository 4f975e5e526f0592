//! The ways through a target that riders take, step by step.

use super::json_path::JsonPath;
use super::target::Request;
use super::tls::HttpTls;
use std::time::Duration;

/// A way through the target that a rider takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Journey {
    pub name: String,
    /// Row in `Target::identities` of the accounts that its riders use.
    pub identity: Option<usize>,
    /// Row in `Target::places`: each rider takes one of them.
    pub place: Option<usize>,
    /// How its requests speak TLS, if not like all others.
    pub tls: Option<HttpTls>,
    pub steps: Vec<Step>,
    /// What is asked when the journey is over, however it ended.
    pub always: Vec<Closing>,
    pub spans: Vec<Span>,
}

/// One step of a journey.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub name: String,
    pub action: StepAction,
    pub repeat: Repeat,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum StepAction {
    Request(Request),
    /// Wait uniformly between the two.
    Think {
        low: Duration,
        high: Duration,
    },
    /// Hand something to the dock at the rider's place: names of a group of docks of the profile, and of what it sends.
    HandOver {
        docks: String,
        sends: String,
    },
}

/// Whether the request of a step is meant to be sent more than once. That is no retry: retries come on top.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Repeat {
    #[default]
    Once,
    Until(Poll),
    ForEach(Candidates),
}

/// Ask again and again until the answer says what is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Poll {
    /// From one poll to the next; at once where the answer took longer.
    pub every: Duration,
    /// All of these must hold: the value at the path is one of the texts.
    pub until: Vec<(JsonPath, Vec<String>)>,
    /// From the begin of the step: who waited so long in vain has timed out.
    pub give_up: Duration,
}

/// Try the values of a kept list in turn while the target declines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// The name under which the list is kept.
    pub list: String,
    /// What stands for the one that is tried.
    pub each: String,
    /// How many are tried at most, from 1.
    pub up_to: u32,
}

/// A request after the end of a journey. It is left out where a value that it needs was never kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Closing {
    pub name: String,
    pub request: Request,
    /// Row in [`Journey::steps`]: left out where that step went well.
    pub unless: Option<usize>,
}

/// A stretch of a journey that is measured as a whole: from the due time of its first step to the end of its last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub name: String,
    /// Rows in [`Journey::steps`], the second not before the first.
    pub from: usize,
    pub to: usize,
}

impl Journey {
    /// Every request, with its name and where it stands: the steps, then what is always asked.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &Request)> {
        let steps = self.steps.iter().filter_map(|step| match &step.action {
            StepAction::Request(request) => Some((step.name.as_str(), request)),
            StepAction::Think { .. } | StepAction::HandOver { .. } => None,
        });
        steps.chain(
            self.always
                .iter()
                .map(|closing| (closing.name.as_str(), &closing.request)),
        )
    }

    /// How many of them a rider sends who gets through, each once.
    #[must_use]
    pub fn requests_when_well(&self) -> usize {
        let spared = self
            .always
            .iter()
            .filter(|closing| closing.unless.is_some());
        self.requests().count() - spared.count()
    }

    /// The same for changing them.
    pub fn requests_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        let steps = self
            .steps
            .iter_mut()
            .filter_map(|step| match &mut step.action {
                StepAction::Request(request) => Some(request),
                StepAction::Think { .. } | StepAction::HandOver { .. } => None,
            });
        steps.chain(self.always.iter_mut().map(|closing| &mut closing.request))
    }

    /// The longest `give_up` of its polls.
    #[must_use]
    pub fn longest_give_up(&self) -> Option<Duration> {
        let polls = self.steps.iter().filter_map(|step| match &step.repeat {
            Repeat::Until(poll) => Some(poll.give_up),
            Repeat::Once | Repeat::ForEach(_) => None,
        });
        polls.max()
    }
}

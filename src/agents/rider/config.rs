//! What all riders of a group share.

use super::Stage;
use super::accounts::Accounts;
use crate::agents::hand_over::HandOver;
use crate::event::OperationId;
use crate::plan::places::Chooser;
use crate::plan::target::{Journey, Method, Repeat, Request, StepAction};
use crate::plan::{OperationKind, Plan};
use crate::retry::Retry;
use std::sync::Arc;
use std::time::Duration;

/// The name of the header by which targets usually know a retry.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What all riders of a group share.
#[derive(Debug)]
pub struct RiderConfig {
    pub(super) group: usize,
    pub(super) run_tag: String,
    pub(super) journey: Journey,
    pub(super) journey_operation: OperationId,
    /// By step; `None` for thinking and handing over.
    pub(super) steps: Vec<Option<Asked>>,
    /// By step; `None` where nothing is handed over.
    pub(super) hand_overs: Vec<Option<HandOver>>,
    /// By row of `Journey::spans`.
    pub(super) spans: Vec<OperationId>,
    /// By row of `Journey::always`.
    pub(super) closings: Vec<Asked>,
    pub(super) timeout: Duration,
    pub(super) retry: Retry,
    pub(super) idempotency: bool,
    pub(super) places: Option<GroupPlaces>,
    /// Shared with the groups that use the same ones.
    pub(super) accounts: Option<Arc<Accounts>>,
}

/// What is known of one request of the journey.
#[derive(Debug)]
pub(super) struct Asked {
    pub operation: OperationId,
    /// Whether the target can't do it twice: by its method, or because every attempt carries the same `<intent>`.
    pub is_repeatable: bool,
    /// Names in it that only an answer can have made known.
    pub needs: Vec<String>,
}

/// The places of a group's journey.
#[derive(Debug)]
pub(super) struct GroupPlaces {
    /// What stands for the rider's own.
    pub placeholder: String,
    pub names: Vec<String>,
    pub chooser: Chooser,
}

impl RiderConfig {
    /// Every group of riders of the plan; groups whose riders have the same accounts share them.
    #[must_use]
    pub fn all(plan: &Plan, run_tag: &str) -> Vec<Arc<RiderConfig>> {
        let mut all: Vec<Arc<RiderConfig>> = Vec::new();
        for group in 0..plan.riders.len() {
            let mut config = RiderConfig::of(plan, group, run_tag);
            let own = &plan.riders[group].identity;
            let same = plan.riders[..group]
                .iter()
                .position(|riders| riders.identity == *own);
            if let Some(earlier) = same {
                config.accounts.clone_from(&all[earlier].accounts);
            }
            all.push(Arc::new(config));
        }
        all
    }

    /// The riders of row `group` of `plan.riders`; the tag makes the ids of two runs distinct.
    #[must_use]
    pub fn of(plan: &Plan, group: usize, run_tag: &str) -> RiderConfig {
        let riders = &plan.riders[group];
        let mut journey = plan.target.journeys[riders.journey].clone();
        if !riders.idempotency {
            journey.requests_mut().for_each(forget_key);
        }
        let operation = |kind| {
            plan.operation(kind)
                .expect("the table of operations has every part of every group's journey")
        };
        let asked = |kind, request: &Request| Asked {
            operation: operation(kind),
            is_repeatable: is_repeatable(request, riders.idempotency),
            needs: needs(&journey, request),
        };
        let steps = journey.steps.iter().enumerate();
        let steps = steps.map(|(step, described)| match &described.action {
            StepAction::Request(request) => {
                let riders = group;
                Some(asked(OperationKind::Step { riders, step }, request))
            }
            StepAction::Think { .. } | StepAction::HandOver { .. } => None,
        });
        let closings = journey.always.iter().enumerate();
        let closings = closings.map(|(closing, described)| {
            let riders = group;
            asked(
                OperationKind::Closing { riders, closing },
                &described.request,
            )
        });
        RiderConfig {
            group,
            run_tag: run_tag.to_owned(),
            journey_operation: operation(OperationKind::Journey { riders: group }),
            steps: steps.collect(),
            hand_overs: HandOver::of(plan, &journey),
            spans: (0..journey.spans.len())
                .map(|span| {
                    operation(OperationKind::Span {
                        riders: group,
                        span,
                    })
                })
                .collect(),
            closings: closings.collect(),
            timeout: riders.timeout,
            retry: riders.retry,
            idempotency: riders.idempotency,
            places: journey.place.map(|row| {
                let places = &plan.target.places[row];
                GroupPlaces {
                    placeholder: places.placeholder().to_owned(),
                    names: places.names.clone(),
                    chooser: Chooser::new(&riders.places, places.names.len(), plan.seed, group),
                }
            }),
            accounts: riders
                .identity
                .clone()
                .map(|rows| Arc::new(Accounts::new(rows))),
            journey,
        }
    }
}

/// Takes out the headers by which the target would know an attempt as a repeated one.
fn forget_key(request: &mut Request) {
    request.headers.retain(|(name, value)| {
        !name.eq_ignore_ascii_case(IDEMPOTENCY_KEY) && value.names().all(|name| name != "intent")
    });
}

fn is_repeatable(request: &Request, idempotency: bool) -> bool {
    let mut has_intent = false;
    request.names(&mut |name| has_intent |= name == "intent");
    match request.method {
        Method::Get | Method::Put | Method::Delete => true,
        Method::Post | Method::Patch => idempotency && has_intent,
    }
}

/// The names in a request that the steps of the journey keep.
fn needs(journey: &Journey, request: &Request) -> Vec<String> {
    let is_kept = |name: &str| {
        journey.steps.iter().any(|step| {
            let keeps = match &step.action {
                StepAction::Request(request) => {
                    request.answer.keep.iter().any(|(kept, _)| kept == name)
                }
                StepAction::Think { .. } | StepAction::HandOver { .. } => false,
            };
            keeps || matches!(&step.repeat, Repeat::ForEach(candidates) if candidates.each == name)
        })
    };
    let mut needs: Vec<String> = Vec::new();
    request.names(&mut |name| {
        if is_kept(name) && !needs.iter().any(|known| known == name) {
            needs.push(name.to_owned());
        }
    });
    needs
}

/// The request of a stage.
pub(super) fn current(config: &RiderConfig, stage: Stage) -> Option<&Request> {
    match stage {
        Stage::Step(row) => match &config.journey.steps.get(row)?.action {
            StepAction::Request(request) => Some(request),
            StepAction::Think { .. } | StepAction::HandOver { .. } => None,
        },
        Stage::Closing(row) => Some(&config.journey.always.get(row)?.request),
    }
}

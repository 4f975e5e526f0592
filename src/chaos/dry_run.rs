//! What every fault of a plan would touch if it were injected now, and what would undo it. Looks only: nothing is changed, and no
//! journal is written.

use super::cluster::OnCluster;
use super::container::OnContainer;
use super::hold;
use super::kill::Kill;
use super::packets;
use super::pause::PauseProcess;
use super::programs::RunPrograms;
use super::unit::OnUnit;
use crate::plan::Plan;
use crate::plan::component::{Act, Body, Component};
use crate::plan::fault::FaultKind;
use crate::plan::target::Target;

/// What one fault would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub fault: String,
    pub found: Found,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Now {
        touches: String,
        undo: String,
    },
    /// It is part of the lab, which is not running yet.
    InTheLab,
    /// It can't be told: as things are, the fault could not be injected.
    Nothing {
        why: String,
    },
}

/// Looks at each fault of the plan, in order.
pub async fn look(plan: &Plan) -> Vec<Look> {
    let mut looks = Vec::new();
    for fault in &plan.faults {
        looks.push(Look {
            fault: fault.name.clone(),
            found: found(plan, &fault.kind).await,
        });
    }
    looks
}

async fn found(plan: &Plan, kind: &FaultKind) -> Found {
    let target = &plan.target;
    match kind {
        FaultKind::Act { component, act } => {
            let component = &target.components[*component];
            if target.lab.is_some() && names_the_lab(component) {
                return Found::InTheLab;
            }
            match on_component(component, *act, plan).await {
                Ok((touches, undo)) => Found::Now { touches, undo },
                Err(why) => Found::Nothing { why },
            }
        }
        FaultKind::Operate { operation } => {
            let operation = &target.operations[*operation];
            let asked = |request: &crate::plan::target::Request| {
                format!("{} {}", request.method.name(), request.url)
            };
            Found::Now {
                touches: asked(&operation.request),
                undo: operation.undo.as_ref().map(asked).unwrap_or_default(),
            }
        }
        other => link_of(other, target).map_or(Found::InTheLab, |(touches, undo)| Found::Now {
            touches,
            undo,
        }),
    }
}

/// The link of a fault, with its ends.
fn link_of(kind: &FaultKind, target: &Target) -> Option<(String, String)> {
    let (row, undo) = match kind {
        FaultKind::Link(fault) => (
            fault.link,
            fault.end_text(&target.links.get(fault.link)?.name),
        ),
        FaultKind::Cut(cut) => (
            cut.link,
            "none needed: who lost a connection comes back by itself".to_owned(),
        ),
        FaultKind::Act { .. } | FaultKind::Operate { .. } => return None,
    };
    let link = target.links.get(row)?;
    let ends = format!("link {}: {}", link.name, target.link_ends(link));
    Some((ends, undo))
}

fn names_the_lab(component: &Component) -> bool {
    let mut found = false;
    component.clone().each_template(&mut |template| {
        found |= template.names().any(|name| name.starts_with("lab."));
    });
    found
}

async fn on_component(
    component: &Component,
    act: Act,
    plan: &Plan,
) -> Result<(String, String), String> {
    let target = &plan.target;
    let cli = &target.cli;
    match (&component.body, act) {
        (Body::Process(process), Act::Pause) => {
            let armed = PauseProcess::arm(component, process)?;
            Ok((armed.touches(), armed.undo().to_string()))
        }
        (Body::Process(process), _) => {
            let armed = Kill::arm(component, process, act, target, None)?;
            Ok((armed.touches(), armed.undo().to_string()))
        }
        (Body::Programs(programs), _) => {
            let armed = RunPrograms::arm(component, programs, target)?;
            Ok((armed.touches(), armed.undo().to_string()))
        }
        (Body::Unit(unit), _) => {
            let armed = OnUnit::arm(unit, act, cli).await?;
            Ok((armed.touches(), armed.undo().to_string()))
        }
        (Body::Container(container), _) => {
            let armed = OnContainer::arm(container, act, cli).await?;
            Ok((armed.touches(), armed.undo().to_string()))
        }
        (body @ (Body::Pods(_) | Body::Deployment { .. } | Body::Node(_)), _) => {
            let irreversible = component.irreversible;
            let armed = OnCluster::arm(body, act, irreversible, plan.seed, target).await?;
            Ok((armed.touches(), armed.undo().to_string()))
        }
        (Body::Address(address), _) => {
            packets::look(&address.to_string(), &target.never, cli).await
        }
        (Body::Database(database), _) => hold::look(&database.to_string(), target),
    }
}

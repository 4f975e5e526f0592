//! Faults on components: which hook does what to which kind of component.

use super::faults::Setup;
use super::kill::Kill;
use super::pause::PauseProcess;
use super::programs::RunPrograms;
use super::undo::Undo;
use crate::plan::component::{Act, Body};

/// A fault on a component that is ready.
pub(super) enum OnComponent {
    Kill(Kill),
    Pause(PauseProcess),
    Programs(Box<RunPrograms>),
}

impl OnComponent {
    /// Finds out what it would touch and takes hold of it; changes nothing.
    pub(super) async fn arm(setup: &Setup, row: usize, act: Act) -> Result<OnComponent, String> {
        let target = &setup.plan.target;
        let component = &target.components[row];
        match &component.body {
            Body::Process(process) if act == Act::Pause => {
                PauseProcess::arm(component, process).map(OnComponent::Pause)
            }
            Body::Process(process) => {
                Kill::arm(component, process, act, target, setup.lab.clone()).map(OnComponent::Kill)
            }
            Body::Programs(programs) => RunPrograms::arm(component, programs, target)
                .map(|armed| OnComponent::Programs(Box::new(armed))),
            other => Err(format!("{} can't be touched", other.kind())),
        }
    }

    pub(super) fn undo(&self) -> Undo {
        match self {
            OnComponent::Kill(kill) => Undo::StartComponent(kill.undo()),
            OnComponent::Pause(pause) => Undo::Resume(pause.undo()),
            OnComponent::Programs(programs) => Undo::RunProgram(Box::new(programs.undo())),
        }
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        match self {
            OnComponent::Kill(kill) => kill.inject(),
            OnComponent::Pause(pause) => pause.inject(),
            OnComponent::Programs(programs) => programs.inject().await,
        }
    }

    /// What is seen of it.
    pub(super) async fn observe(&self) -> Result<String, String> {
        match self {
            OnComponent::Kill(kill) => kill.observe().await,
            OnComponent::Pause(pause) => pause.observe().await,
            OnComponent::Programs(programs) => programs.observe().await,
        }
    }
}

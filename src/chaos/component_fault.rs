//! Faults on components: which hook does what to which kind of component.

use super::cluster::OnCluster;
use super::container::OnContainer;
use super::faults::Setup;
use super::hold::Hold;
use super::kill::Kill;
use super::packets::DropPackets;
use super::pause::PauseProcess;
use super::programs::RunPrograms;
use super::undo::Undo;
use super::unit::OnUnit;
use crate::plan::component::{Act, Body};

/// A fault on a component that is ready.
pub(super) enum OnComponent {
    Kill(Box<Kill>),
    Pause(PauseProcess),
    Programs(Box<RunPrograms>),
    Unit(Box<OnUnit>),
    Container(Box<OnContainer>),
    Cluster(Box<OnCluster>),
    Packets(Box<DropPackets>),
    Hold(Box<Hold>),
}

impl OnComponent {
    /// Finds out what it would touch and takes hold of it; changes nothing of the target. `id` names run and fault.
    pub(super) async fn arm(
        setup: &Setup,
        row: usize,
        act: Act,
        id: &str,
    ) -> Result<OnComponent, String> {
        let plan = &setup.plan;
        let target = &plan.target;
        let component = &target.components[row];
        match (&component.body, act) {
            (Body::Process(process), Act::Pause) => {
                PauseProcess::arm(component, process).map(OnComponent::Pause)
            }
            (Body::Process(process), _) => {
                let armed = Kill::arm(component, process, act, target, setup.lab.clone())?;
                Ok(OnComponent::Kill(Box::new(armed)))
            }
            (Body::Programs(programs), _) => {
                let armed = RunPrograms::arm(component, programs, target)?;
                Ok(OnComponent::Programs(Box::new(armed)))
            }
            (Body::Unit(unit), _) => {
                let armed = OnUnit::arm(unit, act, &target.cli).await?;
                Ok(OnComponent::Unit(Box::new(armed)))
            }
            (Body::Container(container), _) => {
                let armed = OnContainer::arm(container, act, &target.cli).await?;
                Ok(OnComponent::Container(Box::new(armed)))
            }
            (body @ (Body::Pods(_) | Body::Deployment { .. } | Body::Node(_)), _) => {
                let armed =
                    OnCluster::arm(body, act, component.irreversible, plan.seed, target).await?;
                Ok(OnComponent::Cluster(Box::new(armed)))
            }
            (Body::Address(address), Act::Drop(dropped)) => {
                let (name, address) = (&component.name, address.to_string());
                let (never, cli) = (&target.never, &target.cli);
                let armed = DropPackets::arm(name, &address, dropped, id, never, cli).await?;
                Ok(OnComponent::Packets(Box::new(armed)))
            }
            (Body::Database(database), Act::Hold { connections }) => {
                let armed = Hold::arm(&component.name, database, connections, setup).await?;
                Ok(OnComponent::Hold(Box::new(armed)))
            }
            (body, act) => Err(format!("{} does not fit {}", act.key(), body.kind())),
        }
    }

    pub(super) fn undo(&self) -> Undo {
        match self {
            OnComponent::Kill(kill) => Undo::StartComponent(kill.undo()),
            OnComponent::Pause(pause) => Undo::Resume(pause.undo()),
            OnComponent::Programs(programs) => Undo::RunProgram(Box::new(programs.undo())),
            OnComponent::Unit(unit) => Undo::RestoreUnit(Box::new(unit.undo())),
            OnComponent::Container(container) => Undo::RestoreContainer(Box::new(container.undo())),
            OnComponent::Cluster(cluster) => Undo::RestoreCluster(Box::new(cluster.undo())),
            OnComponent::Packets(packets) => Undo::DeleteTable(Box::new(packets.undo())),
            OnComponent::Hold(hold) => Undo::EndHolder(hold.undo()),
        }
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        match self {
            OnComponent::Kill(kill) => kill.inject(),
            OnComponent::Pause(pause) => pause.inject(),
            OnComponent::Programs(programs) => programs.inject().await,
            OnComponent::Unit(unit) => unit.inject().await,
            OnComponent::Container(container) => container.inject().await,
            OnComponent::Cluster(cluster) => cluster.inject().await,
            OnComponent::Packets(packets) => packets.inject().await,
            OnComponent::Hold(hold) => hold.inject().await,
        }
    }

    /// What is seen of it.
    pub(super) async fn observe(&self) -> Result<String, String> {
        match self {
            OnComponent::Kill(kill) => kill.observe().await,
            OnComponent::Pause(pause) => pause.observe().await,
            OnComponent::Programs(programs) => programs.observe().await,
            OnComponent::Unit(unit) => unit.observe().await,
            OnComponent::Container(container) => container.observe().await,
            OnComponent::Cluster(cluster) => cluster.observe().await,
            OnComponent::Packets(packets) => packets.observe().await,
            OnComponent::Hold(hold) => hold.observe().await,
        }
    }
}

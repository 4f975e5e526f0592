//! The life of one fault: arm, inject, observe, wait, undo, verify, record. And of a trigger that is an operation of the target.

use super::component_fault::OnComponent;
use super::cut::Cutting;
use super::due::Due;
use super::faults::Setup;
use super::heal::{record_failure, record_step};
use super::journal::{Entry, now_ms};
use super::link_fault::{OnLink, Wanted};
use super::operate::{Operate, UndoOperation};
use super::proxy::client::ProxyClient;
use super::undo::Undo;
use crate::event::{Event, Mark, MarkId, MarkPhase};
use crate::plan::fault::{Fault, FaultKind, Trigger, TriggerKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A fault without an end of its own ends with the run, at the latest this long after the plan says.
const RUN_GRACE: Duration = Duration::from_secs(120);

/// A fault that is ready.
enum Armed {
    OnComponent(OnComponent),
    OnLink(Box<OnLink>),
    Cut(Box<Cutting>),
    Operate {
        operate: Box<Operate>,
        undo: Box<UndoOperation>,
    },
}

impl Armed {
    async fn of(setup: &Setup, row: usize) -> Result<Armed, String> {
        let plan = &setup.plan;
        let fault = &plan.faults[row];
        match fault.kind {
            FaultKind::Act { component, act } => {
                OnComponent::arm(setup, component, act, &setup.fault_id(fault))
                    .await
                    .map(Armed::OnComponent)
            }
            FaultKind::Operate { operation } => Ok(Armed::Operate {
                operate: Box::new(Operate::arm(operation, &plan.target)?),
                undo: Box::new(Operate::undo(operation, &plan.target, setup.lab.clone())?),
            }),
            FaultKind::Link(on_link) => {
                let (name, proxy) = setup.carrier(on_link.link)?;
                let lasts = fault
                    .lasts
                    .unwrap_or(plan.duration + plan.settle + plan.drain + RUN_GRACE);
                let wanted = Wanted {
                    link: name,
                    id: setup.fault_id(fault),
                    fault: on_link,
                    lasts,
                    seed: plan.seed,
                };
                OnLink::arm(wanted, proxy)
                    .await
                    .map(|fault| Armed::OnLink(Box::new(fault)))
            }
            FaultKind::Cut(cut) => {
                let (name, proxy) = setup.carrier(cut.link)?;
                let id = setup.fault_id(fault);
                Cutting::arm(&cut, name, id, plan.seed, proxy)
                    .await
                    .map(|cut| Armed::Cut(Box::new(cut)))
            }
        }
    }

    fn undo(&self) -> Undo {
        match self {
            Armed::OnComponent(fault) => fault.undo(),
            Armed::OnLink(fault) => Undo::RemoveFault(fault.undo()),
            Armed::Cut(cut) => Undo::AfterCut(cut.undo()),
            Armed::Operate { undo, .. } => Undo::Operate(undo.clone()),
        }
    }

    /// Injects it; what is seen of it at once, if its effect shows in the answer.
    async fn inject(&self) -> Result<Option<String>, String> {
        match self {
            Armed::OnComponent(fault) => fault.inject().await.map(|()| None),
            Armed::OnLink(fault) => fault.inject().await.map(|()| None),
            Armed::Cut(cut) => cut.inject().await.map(Some),
            Armed::Operate { operate, .. } => operate.inject().await,
        }
    }

    async fn observe(&self) -> Result<String, String> {
        match self {
            Armed::OnComponent(fault) => fault.observe().await,
            Armed::OnLink(fault) => fault.observe().await,
            Armed::Operate { operate, .. } => operate.observe().await,
            Armed::Cut(_) => Err("its answer is all that can be observed".to_owned()),
        }
    }
}

pub(super) async fn fault_life(setup: Arc<Setup>, row: usize, mut stopped: watch::Receiver<bool>) {
    let fault = &setup.plan.faults[row];
    let mark = setup.plan.fault_mark(row);
    match setup.due(fault, &mut stopped).await {
        Due::Now => {}
        Due::Never(why) => {
            return setup.tell(mark, MarkPhase::Failed(format!("not injected: {why}")));
        }
        Due::Stopped => return,
    }
    let armed = match Armed::of(&setup, row).await {
        Ok(armed) => armed,
        Err(why) => return setup.tell(mark, MarkPhase::Failed(format!("not injected: {why}"))),
    };
    let undo = armed.undo();
    let ends_at_ms = fault
        .lasts
        .map(|lasts| now_ms() + u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
    let entry = Entry::Armed {
        fault: fault.name.clone(),
        undo: Box::new(undo.clone()),
        ends_at_ms,
    };
    if let Err(error) = setup.journal.append(entry) {
        return setup.tell(mark, MarkPhase::Failed(format!("not injected: {error}")));
    }
    let injected = setup.inject(fault, mark, &armed, &mut stopped).await;
    let undone = setup.undo(fault, &undo).await;
    match (injected, undone) {
        (Ok(()), Ok(())) => setup.tell(mark, MarkPhase::End),
        (Err(why), Ok(())) => setup.tell(
            mark,
            MarkPhase::Failed(format!("could not be injected: {why}")),
        ),
        (_, Err(why)) => setup.tell(
            mark,
            MarkPhase::Failed(format!("could not be undone: {why}")),
        ),
    }
}

pub(super) async fn trigger_life(
    setup: Arc<Setup>,
    row: usize,
    mut stopped: watch::Receiver<bool>,
) {
    let Trigger {
        at, lasts, kind, ..
    } = &setup.plan.triggers[row];
    let TriggerKind::Operate { operation } = *kind else {
        return;
    };
    let mark = MarkId(u16::try_from(row).unwrap_or(u16::MAX));
    if !setup.reaches(*at, &mut stopped).await {
        return;
    }
    setup.tell(mark, MarkPhase::Begin);
    let asked = match Operate::arm(operation, &setup.plan.target) {
        Ok(operate) => operate.ask().await,
        Err(why) => Err(why),
    };
    match asked {
        Ok(answer) => {
            setup.tell(mark, MarkPhase::Observed(answer));
            setup.reaches(*at + *lasts, &mut stopped).await;
            setup.tell(mark, MarkPhase::End);
        }
        Err(why) => setup.tell(mark, MarkPhase::Failed(why)),
    }
}

impl Setup {
    /// The link in this row, by its name, and the proxy that carries it.
    fn carrier(&self, link: usize) -> Result<(&str, &ProxyClient), String> {
        let name = &self.plan.target.links[link].name;
        let proxy = self.links.client(link);
        proxy
            .map(|proxy| (name.as_str(), proxy))
            .ok_or_else(|| format!("link `{name}` is not carried"))
    }

    /// How a proxy knows a fault: another run may have one of the same name on the same link.
    fn fault_id(&self, fault: &Fault) -> String {
        format!("{}-{}", self.journal.run_id(), fault.name)
    }

    /// Injects, observes, and waits for the end.
    async fn inject(
        &self,
        fault: &Fault,
        mark: MarkId,
        armed: &Armed,
        stopped: &mut watch::Receiver<bool>,
    ) -> Result<(), String> {
        let begin = self.clock.now();
        let at_once = armed.inject().await?;
        (self.sink)(Event::Mark(Mark {
            id: mark,
            phase: MarkPhase::Begin,
            at: begin,
        }));
        self.write(Entry::Injected {
            fault: fault.name.clone(),
        });
        let end = async {
            match fault.lasts {
                Some(lasts) => {
                    tokio::time::sleep_until(self.clock.instant(begin.after(lasts))).await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = async {
                let seen = match at_once {
                    Some(seen) => Ok(seen),
                    None => armed.observe().await,
                };
                self.observed(fault, mark, seen);
                end.await;
            } => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        Ok(())
    }

    fn observed(&self, fault: &Fault, mark: MarkId, seen: Result<String, String>) {
        let fault = fault.name.clone();
        match seen {
            Ok(how) => {
                self.write(Entry::Observed {
                    fault,
                    how: how.clone(),
                });
                self.tell(mark, MarkPhase::Observed(how));
            }
            Err(why) => {
                self.write(Entry::NotObserved {
                    fault,
                    why: why.clone(),
                });
                self.tell(mark, MarkPhase::NotObserved(why));
            }
        }
    }

    async fn undo(&self, fault: &Fault, undo: &Undo) -> Result<(), String> {
        let undone = undo
            .carry_out(&self.state, self.undo_budget, &mut |step| {
                record_step(&self.journal, &fault.name, step)
            })
            .await;
        match undone {
            Ok(_) => Ok(()),
            Err(why) => {
                record_failure(&self.journal, &fault.name, &why);
                Err(why)
            }
        }
    }

    /// What is not needed to undo a fault may fail to be written.
    fn write(&self, entry: Entry) {
        if let Err(error) = self.journal.append(entry) {
            eprintln!("the journal can't be written: {error}");
        }
    }

    fn tell(&self, id: MarkId, phase: MarkPhase) {
        (self.sink)(Event::Mark(Mark {
            id,
            phase,
            at: self.clock.now(),
        }));
    }
}

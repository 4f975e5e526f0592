//! Faults on a Kubernetes cluster through `kubectl`: pods deleted, a deployment scaled, a node cordoned. Every call names the one
//! context of the target file, and nothing outside its namespaces is touched. Objects are known by their uid.

use super::command::StoredCommand;
use super::kubectl::{Cluster, Pod, SeenPod, text};
use super::undo::Standing;
use crate::dice::Dice;
use crate::plan::component::{Act, Body};
use crate::plan::target::Target;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

const SHOWS_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Keeps the choice of pods apart from other draws under the same seed.
const PODS: u64 = 0x706f_6473;

/// The undo of a fault on a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestoreCluster {
    pub cluster: Cluster,
    pub what: Restored,
}

/// What is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// As many pods are ready; their controller sees to it.
    Pods {
        selector: String,
        namespaces: Vec<String>,
        ready: usize,
        /// Deleted ones.
        gone: Vec<Pod>,
    },
    Replicas {
        namespace: String,
        name: String,
        uid: String,
        before: u64,
        scaled_to: u64,
    },
    Schedulable {
        node: String,
        uid: String,
    },
}

/// A fault on a cluster that is ready.
pub(super) struct OnCluster {
    undo: RestoreCluster,
}

impl OnCluster {
    /// `seed` chooses which pods are deleted.
    pub(super) async fn arm(
        body: &Body,
        act: Act,
        irreversible: bool,
        seed: u64,
        target: &Target,
    ) -> Result<OnCluster, String> {
        let Some(allowed) = &target.kubernetes else {
            return Err("the target file does not say which cluster may be touched".to_owned());
        };
        let kubectl = StoredCommand::cli("kubectl", &target.cli, &[]).map_err(text)?;
        let cluster = Cluster {
            kubectl,
            context: allowed.context.clone(),
        };
        let what = match (body, act) {
            (Body::Pods(selector), Act::Kill { count }) => {
                let pods = cluster.pods(selector, &allowed.namespaces).await?;
                let gone = chosen(&pods, count, irreversible, seed)
                    .map_err(|why| format!("{why} ({selector} in {})", allowed.context))?;
                Restored::Pods {
                    selector: selector.clone(),
                    namespaces: allowed.namespaces.clone(),
                    ready: pods.iter().filter(|pod| pod.ready).count(),
                    gone,
                }
            }
            (Body::Deployment { namespace, name }, Act::Scale { to }) => {
                let found = cluster.deployment(namespace, name).await?;
                let found = found.ok_or_else(|| format!("there is no deployment {name}"))?;
                if found.replicas == u64::from(to) {
                    return Err(format!("{name} has {to} replicas already"));
                }
                Restored::Replicas {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    uid: found.uid,
                    before: found.replicas,
                    scaled_to: u64::from(to),
                }
            }
            (Body::Node(node), Act::Cordon) => {
                let found = cluster.node(node).await?;
                let (uid, cordoned) = found.ok_or_else(|| format!("there is no node {node}"))?;
                if cordoned {
                    return Err(format!("{node} is cordoned already, and not by us"));
                }
                Restored::Schedulable {
                    node: node.clone(),
                    uid,
                }
            }
            _ => return Err(format!("{} does not fit {}", act.key(), body.kind())),
        };
        Ok(OnCluster {
            undo: RestoreCluster { cluster, what },
        })
    }

    pub(super) fn touches(&self) -> String {
        let context = &self.undo.cluster.context;
        match &self.undo.what {
            Restored::Pods { gone, .. } => {
                let pods: Vec<String> = gone
                    .iter()
                    .map(|pod| format!("pod {}/{} ({})", pod.namespace, pod.name, pod.uid))
                    .collect();
                format!("{} in {context}", pods.join(", "))
            }
            Restored::Replicas {
                namespace,
                name,
                uid,
                before,
                ..
            } => format!("deployment {namespace}/{name} ({uid}), {before} replicas, in {context}"),
            Restored::Schedulable { node, uid } => format!("node {node} ({uid}) in {context}"),
        }
    }

    pub(super) fn undo(&self) -> RestoreCluster {
        self.undo.clone()
    }

    pub(super) async fn inject(&self) -> Result<(), String> {
        let cluster = &self.undo.cluster;
        match &self.undo.what {
            Restored::Pods { gone, .. } => {
                for pod in gone {
                    cluster.delete(pod).await?;
                }
                Ok(())
            }
            Restored::Replicas {
                namespace,
                name,
                before,
                scaled_to,
                ..
            } => cluster.scale(namespace, name, *before, *scaled_to).await,
            Restored::Schedulable { node, .. } => cluster.run(&["cordon", node]).await.map(|_| ()),
        }
    }

    pub(super) async fn observe(&self) -> Result<String, String> {
        let end = Instant::now() + SHOWS_WITHIN;
        loop {
            let (bites, seen) = self.undo.bites().await?;
            if bites {
                return Ok(seen);
            }
            if Instant::now() >= end {
                return Err(seen);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Some of the pods that are ready, by `seed`.
fn chosen(pods: &[SeenPod], count: u32, irreversible: bool, seed: u64) -> Result<Vec<Pod>, String> {
    let mut ready: Vec<&SeenPod> = pods.iter().filter(|pod| pod.ready).collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if ready.len() < count {
        return Err(format!(
            "{count} pods are wanted, {} are ready",
            ready.len()
        ));
    }
    ready.sort_by(|left, right| left.pod.uid.cmp(&right.pod.uid));
    let mut dice = Dice::named(seed, PODS, 0);
    let mut gone = Vec::new();
    for _ in 0..count {
        let at = dice.below(ready.len() as u64);
        let pod = ready.swap_remove(usize::try_from(at).unwrap_or_default());
        if !pod.controlled && !irreversible {
            return Err(format!(
                "no controller makes the pod {} anew, and the component is not `irreversible`",
                pod.pod.name
            ));
        }
        gone.push(pod.pod.clone());
    }
    Ok(gone)
}

impl RestoreCluster {
    /// Whether the effect shows, and what is seen.
    async fn bites(&self) -> Result<(bool, String), String> {
        let cluster = &self.cluster;
        match &self.what {
            Restored::Pods {
                selector,
                namespaces,
                gone,
                ..
            } => {
                let pods = cluster.pods(selector, namespaces).await?;
                let stays = |pod: &&Pod| {
                    pods.iter()
                        .any(|seen| seen.pod.uid == pod.uid && seen.ready)
                };
                let still: Vec<&str> = gone.iter().filter(stays).map(|pod| &*pod.name).collect();
                let names: Vec<&str> = gone.iter().map(|pod| &*pod.name).collect();
                Ok(match still.is_empty() {
                    true => (true, format!("{} is gone", names.join(", "))),
                    false => (false, format!("{} is still ready", still.join(", "))),
                })
            }
            Restored::Replicas {
                namespace,
                name,
                scaled_to,
                ..
            } => {
                let found = cluster.deployment(namespace, name).await?;
                let ready = found.map_or(0, |found| found.ready);
                Ok((ready == *scaled_to, format!("{ready} of {name} are ready")))
            }
            Restored::Schedulable { node, .. } => {
                let found = cluster.node(node).await?;
                let cordoned = found.is_some_and(|(_, cordoned)| cordoned);
                let seen = if cordoned { "cordoned" } else { "schedulable" };
                Ok((cordoned, format!("{node} is {seen}")))
            }
        }
    }

    pub(super) async fn standing(&self) -> Result<Standing, String> {
        let cluster = &self.cluster;
        match &self.what {
            Restored::Pods {
                selector,
                namespaces,
                ready,
                ..
            } => {
                let pods = cluster.pods(selector, namespaces).await?;
                let now = pods.iter().filter(|pod| pod.ready).count();
                let seen = format!("{now} of {ready} pods of {selector} are ready");
                Ok(match now >= *ready {
                    true => Standing::Healed(seen),
                    false => Standing::Stands(seen),
                })
            }
            Restored::Replicas {
                namespace,
                name,
                uid,
                before,
                scaled_to,
            } => {
                let found = cluster.deployment(namespace, name).await?;
                let Some(found) = found.filter(|found| found.uid == *uid) else {
                    return Ok(Standing::Healed(format!(
                        "the deployment {name} was replaced, and what we did to it with it"
                    )));
                };
                let (replicas, ready) = (found.replicas, found.ready);
                let seen = format!("{name} has {replicas} replicas, {ready} of them ready");
                Ok(if replicas == *before && ready >= *before {
                    Standing::Healed(seen)
                } else if replicas != *before && replicas != *scaled_to {
                    Standing::Healed(format!("{seen}: somebody has scaled it since"))
                } else {
                    Standing::Stands(seen)
                })
            }
            Restored::Schedulable { node, uid } => Ok(match cluster.node(node).await? {
                Some((now, true)) if now == *uid => Standing::Stands(format!("{node} is cordoned")),
                Some((now, _)) if now == *uid => Standing::Healed(format!("{node} is schedulable")),
                _ => Standing::Healed(format!("the node {node} was replaced")),
            }),
        }
    }

    pub(super) async fn perform(&self) -> Result<String, String> {
        let cluster = &self.cluster;
        match &self.what {
            Restored::Pods { .. } => {}
            Restored::Replicas {
                namespace,
                name,
                before,
                scaled_to,
                ..
            } => {
                let found = cluster.deployment(namespace, name).await?;
                // Scaled back already, and only not ready yet: there is nothing to do but to wait.
                if found.is_some_and(|found| found.replicas == *scaled_to) {
                    cluster.scale(namespace, name, *scaled_to, *before).await?;
                }
            }
            Restored::Schedulable { node, .. } => {
                cluster.run(&["uncordon", node]).await?;
            }
        }
        Ok(self.to_string())
    }
}

impl fmt::Display for RestoreCluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = &self.cluster.context;
        match &self.what {
            Restored::Pods {
                selector, ready, ..
            } => write!(
                formatter,
                "wait until {ready} pods of {selector} are ready in {context}"
            ),
            Restored::Replicas {
                namespace,
                name,
                before,
                ..
            } => write!(
                formatter,
                "scale {namespace}/{name} to {before} in {context}"
            ),
            Restored::Schedulable { node, .. } => {
                write!(formatter, "uncordon {node} in {context}")
            }
        }
    }
}

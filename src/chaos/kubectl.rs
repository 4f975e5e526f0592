//! What `kubectl` tells and does, always in the one context that the target file allows.

use super::command::{CommandError, StoredCommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const REQUEST_TIMEOUT: &str = "--request-timeout=10s";

/// A cluster as the target file allows it to be touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// `kubectl`; its arguments are added.
    pub kubectl: StoredCommand,
    pub context: String,
}

/// A pod that is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// What the cluster says of a pod.
pub(super) struct SeenPod {
    pub(super) pod: Pod,
    pub(super) ready: bool,
    /// Somebody makes it anew.
    pub(super) controlled: bool,
}

/// What the cluster says of a deployment.
pub(super) struct SeenDeployment {
    pub(super) uid: String,
    pub(super) replicas: u64,
    pub(super) ready: u64,
}

impl Cluster {
    /// `kubectl` in this context, whatever the user's own is.
    fn call(&self, arguments: &[&str]) -> StoredCommand {
        let context = ["--context", self.context.as_str(), REQUEST_TIMEOUT];
        self.kubectl.with(&[&context, arguments].concat())
    }

    pub(super) async fn run(&self, arguments: &[&str]) -> Result<String, String> {
        self.call(arguments).succeed().await.map_err(text)
    }

    async fn json(&self, arguments: &[&str]) -> Result<Option<Value>, String> {
        let command = self.call(&[arguments, &["--output=json"]].concat());
        let ran = command.run().await.map_err(text)?;
        if ran.code != Some(0) {
            if ran.errors.contains("(NotFound)") {
                return Ok(None);
            }
            return Err(text(command.failed(&ran)));
        }
        let read = serde_json::from_str(&ran.output);
        read.map(Some)
            .map_err(|error| format!("{command} printed something else than JSON: {error}"))
    }

    pub(super) async fn pods(
        &self,
        selector: &str,
        namespaces: &[String],
    ) -> Result<Vec<SeenPod>, String> {
        let mut pods = Vec::new();
        for namespace in namespaces {
            let arguments = [
                "--namespace",
                namespace,
                "get",
                "pods",
                "--selector",
                selector,
            ];
            let list = self.json(&arguments).await?.unwrap_or_default();
            let items = list["items"].as_array().into_iter().flatten();
            pods.extend(items.map(|item| seen_pod(namespace, item)));
        }
        Ok(pods)
    }

    /// Deletes the pod of this uid and no later one of its name: the API server refuses that.
    pub(super) async fn delete(&self, pod: &Pod) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
        let options = json!({
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": { "uid": pod.uid },
        });
        let command = self.call(&["delete", "--raw", &path, "--filename", "-"]);
        let deleted = command.reading(options.to_string()).succeed().await;
        deleted.map(|_| ()).map_err(text)
    }

    pub(super) async fn deployment(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<SeenDeployment>, String> {
        let arguments = ["--namespace", namespace, "get", "deployment", name];
        let found = self.json(&arguments).await?;
        Ok(found.map(|found| SeenDeployment {
            uid: uid(&found),
            replicas: found["spec"]["replicas"].as_u64().unwrap_or_default(),
            ready: found["status"]["readyReplicas"]
                .as_u64()
                .unwrap_or_default(),
        }))
    }

    /// Scales if it has so many now.
    pub(super) async fn scale(
        &self,
        namespace: &str,
        name: &str,
        from: u64,
        to: u64,
    ) -> Result<(), String> {
        let arguments = [
            "--namespace",
            namespace,
            "scale",
            "deployment",
            name,
            &format!("--current-replicas={from}"),
            &format!("--replicas={to}"),
        ];
        self.run(&arguments).await.map(|_| ())
    }

    /// Its uid, and whether it is cordoned.
    pub(super) async fn node(&self, node: &str) -> Result<Option<(String, bool)>, String> {
        let found = self.json(&["get", "node", node]).await?;
        Ok(found.map(|found| {
            let cordoned = found["spec"]["unschedulable"].as_bool();
            (uid(&found), cordoned.unwrap_or_default())
        }))
    }
}

fn seen_pod(namespace: &str, item: &Value) -> SeenPod {
    let conditions = item["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let ready = conditions
        .filter(|one| one["type"] == "Ready")
        .any(|one| one["status"] == "True");
    let owners = item["metadata"]["ownerReferences"].as_array();
    SeenPod {
        pod: Pod {
            namespace: namespace.to_owned(),
            name: item["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            uid: uid(item),
        },
        ready: ready && item["metadata"]["deletionTimestamp"].is_null(),
        controlled: owners.is_some_and(|owners| {
            owners
                .iter()
                .any(|owner| owner["controller"].as_bool() == Some(true))
        }),
    }
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

pub(super) fn text(error: CommandError) -> String {
    error.to_string()
}

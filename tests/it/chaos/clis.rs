//! Faults through `docker`, `kubectl` and `systemctl`: no daemon runs here, so each is a script that keeps its state in files, says what
//! the real one says, and writes down how it was called.

use super::components::{act, break_with, script, target_of};
use super::stage::{State, heal, state};
use rushhour::plan::Target;
use rushhour::plan::component::{Act, Body, Container, Engine, Kubernetes};
use std::path::Path;
use tempfile::TempDir;

/// A folder with a program, its state, and its calls.
struct Fake {
    folder: TempDir,
    program: &'static str,
}

impl Fake {
    fn new(program: &'static str, lines: &str, files: &[(&str, &str)]) -> Fake {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let begin = format!(
            "cd {}\necho \"$*\" >> calls\n\
             if [ -e broken ]; then echo 'daemon is not running' >&2; exit 1; fi\n",
            folder.path().display()
        );
        script(folder.path(), program, &format!("{begin}{lines}"));
        Fake { folder, program }
    }

    fn target(&self, body: Body) -> Target {
        let mut target = target_of(body, None);
        let file = self.folder.path().join(self.program);
        target.cli.insert(self.program.to_owned(), file);
        target
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path().join(name)).unwrap_or_default();
        text.trim().to_owned()
    }

    /// How often it was called with these words somewhere.
    fn calls(&self, words: &str) -> usize {
        let calls = self.read("calls");
        calls.lines().filter(|line| line.contains(words)).count()
    }

    /// How often it was called like this.
    fn called(&self, words: &str) -> usize {
        let calls = self.read("calls");
        calls.lines().filter(|line| *line == words).count()
    }
}

const DOCKER: &str = r#"
id=$(cat id) state=$(cat state)
no_such() { echo "Error response from daemon: No such container: $1" >&2; exit 1; }
for last; do :; done
[ "$last" = "$id" ] || [ "$last" = broker-1 ] || no_such "$last"
[ "$state" = removed ] && no_such "$last"
case "$*" in
  "container inspect "*)
    running=true; paused=false
    [ "$state" = exited ] && running=false
    [ "$state" = paused ] && paused=true
    echo "[{\"Id\":\"$id\",\"State\":{\"Running\":$running,\"Paused\":$paused},\"Config\":{\"Labels\":{\"chaos\":\"allowed\"}},\"NetworkSettings\":{\"Networks\":$(cat networks)}}]" ;;
  kill*|stop*) echo exited > state ;;
  start*|unpause*) echo running > state ;;
  pause*) echo paused > state ;;
  "network disconnect"*) echo '{}' > networks ;;
  "network connect"*) echo '{"backend":{}}' > networks ;;
  *) echo "unknown command: $*" >&2; exit 1 ;;
esac"#;
const ID: &str = "4f1c0b2a9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a";

fn docker() -> Fake {
    let networks = r#"{"backend":{"Aliases":["broker","4f1c0b2a9d8e"],"IPAMConfig":{"IPv4Address":"10.9.0.7"}}}"#;
    Fake::new(
        "docker",
        DOCKER,
        &[("id", ID), ("state", "running"), ("networks", networks)],
    )
}

fn container(label: &str) -> Body {
    Body::Container(Container {
        name: "broker-1".to_owned(),
        engine: Engine::Docker,
        label: ("chaos".to_owned(), label.to_owned()),
        network: Some("backend".to_owned()),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_as_it_was_after_each_fault() {
    let kill = Act::Kill { count: 1 };
    let full = |verb: &str| format!("{verb} {ID}");
    for (fault, begin, end) in [
        (kill, full("kill"), full("start")),
        (Act::Stop, full("stop"), full("start")),
        (Act::Pause, full("pause"), full("unpause")),
        (
            Act::Isolate,
            full("network disconnect backend"),
            full("network connect --alias broker --ip 10.9.0.7 backend"),
        ),
    ] {
        let (state, docker) = (state(), docker());
        let target = docker.target(container("allowed"));
        let mut run = break_with(&target, act(fault), &state).await;
        run.observed().await;
        run.heals().await;
        assert_eq!(docker.called(&begin), 1, "{}", docker.read("calls"));
        assert_eq!(docker.called(&end), 1, "{}", docker.read("calls"));
        assert_eq!(docker.read("state"), "running");
        assert!(docker.read("networks").contains("backend"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_without_the_label_is_left_alone() {
    let (state, docker) = (state(), docker());
    let target = docker.target(container("welcome"));
    let mut run = break_with(&target, act(Act::Kill { count: 1 }), &state).await;
    let why = run.failed().await;
    assert!(
        why.contains("does not carry the label chaos=welcome"),
        "{why}"
    );
    run.heals().await;
    assert_eq!(docker.calls("kill"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_replaced_in_mid_fault_is_not_the_one_that_is_started() {
    let (state, docker) = (state(), docker());
    let target = docker.target(container("allowed"));
    let mut run = break_with(&target, act(Act::Kill { count: 1 }), &state).await;
    run.observed().await;
    docker.write("id", &ID.replace('4', "5"));
    docker.write("state", "running");
    run.heals().await;
    assert_eq!(docker.calls("start"), 0, "{}", docker.read("calls"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_fails_or_hangs_is_named_and_healed_later() {
    for trouble in ["broken", "hang"] {
        let (state, docker) = (state(), docker());
        let target = docker.target(container("allowed"));
        let mut run = break_with(&target, act(Act::Pause), &state).await;
        run.observed().await;
        if trouble == "hang" {
            // Killed with the test's budget of 2 s in place of the 20 s that an engine has.
            script(docker.path(), "docker", "exec sleep 2.5");
        } else {
            docker.write(trouble, "");
        }
        let remaining = run.faults.undo_all().await.unwrap();
        assert_eq!(remaining.len(), 1, "{trouble}");
        drop(run);
        let begin = format!("cd {}\necho \"$*\" >> calls\n", docker.path().display());
        script(docker.path(), "docker", &format!("{begin}{DOCKER}"));
        let (code, said) = heal(&state).await;
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(docker.read("state"), "running");
        assert_eq!(heal(&state).await.1, "nothing to heal\n");
    }
}

const KUBECTL: &str = r#"
[ "$1 $2" = "--context staging" ] || { echo "wrong context: $*" >&2; exit 1; }
shift 3
namespace=none
[ "$1" = --namespace ] && { namespace=$2; shift 2; }
not_found() { echo "Error from server (NotFound): $1 not found" >&2; exit 1; }
case "$*" in
  "get pods"*)
    comma=""
    echo '{"items":['
    for pod in $namespace.pods/*; do
      [ -e "$pod" ] || continue
      echo "$comma{\"metadata\":{\"name\":\"$(basename $pod)\",\"uid\":\"$(cat $pod)\",\"ownerReferences\":[{\"controller\":true}]},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
      comma=","
    done
    echo ']}' ;;
  "delete --raw"*)
    pod=ride.pods/$(basename $3)
    body=$(cat)
    case "$body" in *"$(cat $pod)"*) ;; *) echo 'Precondition failed: UID' >&2; exit 1 ;; esac
    rm $pod
    [ -e slow-controller ] || echo "uid-new-$$" > ride.pods/gateway-new-$$ ;;
  "get deployment"*)
    [ -e replicas ] || not_found deployment
    echo "{\"metadata\":{\"uid\":\"$(cat uid)\"},\"spec\":{\"replicas\":$(cat replicas)},\"status\":{\"readyReplicas\":$(cat replicas)}}" ;;
  "scale deployment workers --current-replicas="*)
    [ "$4" = "--current-replicas=$(cat replicas)" ] || { echo 'Expected replicas do not match' >&2; exit 1; }
    echo "${5#--replicas=}" > replicas ;;
  "get node"*) echo "{\"metadata\":{\"uid\":\"node-uid\"},\"spec\":{\"unschedulable\":$(cat cordoned)}}" ;;
  "cordon worker-3") echo true > cordoned ;;
  "uncordon worker-3") echo false > cordoned ;;
  *) echo "unknown command: $*" >&2; exit 1 ;;
esac"#;

fn kubectl() -> Fake {
    let files = [
        ("replicas", "4"),
        ("uid", "deployment-uid"),
        ("cordoned", "false"),
    ];
    let fake = Fake::new("kubectl", KUBECTL, &files);
    std::fs::create_dir(fake.path().join("ride.pods")).unwrap();
    for pod in ["a", "b", "c"] {
        fake.write(&format!("ride.pods/gateway-{pod}"), &format!("uid-{pod}"));
    }
    // Those of another namespace are none of ours.
    std::fs::create_dir(fake.path().join("other.pods")).unwrap();
    fake.write("other.pods/gateway-z", "uid-z");
    fake
}

fn in_cluster(fake: &Fake, body: Body) -> Target {
    let mut target = fake.target(body);
    target.kubernetes = Some(Kubernetes {
        context: "staging".to_owned(),
        namespaces: vec!["ride".to_owned()],
    });
    target
}

fn pods(fake: &Fake) -> Vec<String> {
    let mut names = Vec::new();
    for namespace in ["ride.pods", "other.pods"] {
        let entries = std::fs::read_dir(fake.path().join(namespace)).unwrap();
        names.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    }
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_deleted_by_its_uid_and_made_anew_by_its_controller() {
    let mut chosen = Vec::new();
    for _ in 0..2 {
        let (state, kubectl) = (state(), kubectl());
        let target = in_cluster(&kubectl, Body::Pods("app=gateway".to_owned()));
        let before = pods(&kubectl);
        let mut run = break_with(&target, act(Act::Kill { count: 1 }), &state).await;
        run.observed().await;
        run.heals().await;
        let now = pods(&kubectl);
        assert_eq!(now.len(), 4, "{now:?}");
        assert_eq!(kubectl.calls("delete --raw"), 1);
        assert_eq!(kubectl.calls("--namespace other"), 0);
        chosen.push(before.into_iter().find(|pod| !now.contains(pod)));
    }
    assert_eq!(chosen[0], chosen[1], "the same seed deletes the same one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_nobody_makes_anew_is_an_undo_that_failed() {
    let (state, kubectl) = (state(), kubectl());
    kubectl.write("slow-controller", "");
    let target = in_cluster(&kubectl, Body::Pods("app=gateway".to_owned()));
    let mut run = break_with(&target, act(Act::Kill { count: 2 }), &state).await;
    run.observed().await;
    let remaining = run.faults.undo_all().await.unwrap();
    assert!(remaining[0].why.contains("1 of 3 pods"), "{remaining:?}");
    drop(run);
    for pod in ["d", "e"] {
        kubectl.write(&format!("ride.pods/gateway-{pod}"), pod);
    }
    assert_eq!(heal(&state).await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_has_its_replicas_again_unless_somebody_else_scaled_it() {
    for (meanwhile, end) in [(None, "4"), (Some("7"), "7")] {
        let (state, kubectl) = (state(), kubectl());
        let body = Body::Deployment {
            namespace: "ride".to_owned(),
            name: "workers".to_owned(),
        };
        let target = in_cluster(&kubectl, body);
        let mut run = break_with(&target, act(Act::Scale { to: 0 }), &state).await;
        run.observed().await;
        assert_eq!(kubectl.read("replicas"), "0");
        if let Some(replicas) = meanwhile {
            kubectl.write("replicas", replicas);
        }
        run.heals().await;
        assert_eq!(kubectl.read("replicas"), end);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_schedulable_again_and_one_that_was_cordoned_is_left() {
    let (state, kubectl) = (state(), kubectl());
    let target = in_cluster(&kubectl, Body::Node("worker-3".to_owned()));
    let mut run = break_with(&target, act(Act::Cordon), &state).await;
    run.observed().await;
    assert_eq!(kubectl.read("cordoned"), "true");
    run.heals().await;
    assert_eq!(kubectl.read("cordoned"), "false");
    drop(run);

    let second = super::stage::state();
    kubectl.write("cordoned", "true");
    let mut run = break_with(&target, act(Act::Cordon), &second).await;
    let why = run.failed().await;
    assert!(why.contains("cordoned already"), "{why}");
    run.heals().await;
    assert_eq!(kubectl.read("cordoned"), "true");
}

const SYSTEMCTL: &str = r#"
case "$*" in
  "show --property="*)
    echo "LoadState=loaded"
    echo "ActiveState=$(cat active)"
    echo "FreezerState=$(cat freezer)"
    echo "InvocationID=$(cat invocation)"
    echo "MainPID=$(cat pid)" ;;
  "kill --signal=SIGKILL broker.service") echo failed > active; echo 0 > pid ;;
  "stop broker.service") echo inactive > active; echo 0 > pid ;;
  "freeze broker.service") echo frozen > freezer ;;
  "thaw broker.service") echo running > freezer ;;
  "start broker.service") echo active > active; echo 78 > pid; echo second > invocation ;;
  *) echo "Unknown command verb: $*" >&2; exit 1 ;;
esac"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_is_active_again_after_each_fault() {
    let files = [
        ("active", "active"),
        ("freezer", "running"),
        ("invocation", "first"),
        ("pid", "77"),
    ];
    for (fault, end) in [
        (Act::Kill { count: 1 }, "start"),
        (Act::Stop, "start"),
        (Act::Pause, "thaw"),
    ] {
        let (state, systemctl) = (state(), Fake::new("systemctl", SYSTEMCTL, &files));
        let target = systemctl.target(Body::Unit("broker.service".to_owned()));
        let mut run = break_with(&target, act(fault), &state).await;
        run.observed().await;
        run.heals().await;
        let (active, freezer) = (systemctl.read("active"), systemctl.read("freezer"));
        assert_eq!((&*active, &*freezer), ("active", "running"));
        assert_eq!(systemctl.calls(end), 1, "{}", systemctl.read("calls"));
    }
}

/// As `Restart=` does: then nothing is left to be started.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_systemd_restarts_itself_is_not_started_again() {
    let files = [
        ("active", "active"),
        ("freezer", "running"),
        ("invocation", "first"),
        ("pid", "77"),
    ];
    let lines = SYSTEMCTL.replace("echo failed > active; echo 0 > pid", "echo 99 > pid");
    let (state, systemctl) = (state(), Fake::new("systemctl", &lines, &files));
    let target = systemctl.target(Body::Unit("broker.service".to_owned()));
    let mut run = break_with(&target, act(Act::Kill { count: 1 }), &state).await;
    run.observed().await;
    run.heals().await;
    assert_eq!(systemctl.calls("start"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_installed_is_named() {
    let state: State = state();
    let target = target_of(Body::Unit("broker.service".to_owned()), None);
    let mut run = break_with(
        &Target {
            cli: [("systemctl".to_owned(), "/no/such/systemctl".into())].into(),
            ..target
        },
        act(Act::Stop),
        &state,
    )
    .await;
    let why = run.failed().await;
    assert!(why.contains("/no/such/systemctl"), "{why}");
    run.heals().await;
}

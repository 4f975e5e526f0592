//! Components of a target file, where a cluster may be touched, and the faults of an experiment that act on components.

use super::address;
use super::fields::Fields;
use super::identities;
use super::journey::row_of;
use super::reader::At;
use super::target::Names;
use super::timeline::Stage;
use super::words::{self, Placeholders};
use crate::plan::component::{
    Act, Body, Component, Container, Dropped, Engine, Kubernetes, Process, Program, Programs,
    SentSignal, Start,
};
use crate::plan::fault::FaultKind;
use crate::plan::template::Template;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// What a component may be, besides a process.
const BODIES: [&str; 9] = [
    "pid_file",
    "run",
    "unit",
    "container",
    "pods",
    "deployment",
    "node",
    "address",
    "database",
];
/// The keys of the faults that act on components.
pub(super) const ACTS: [&str; 10] = [
    "kill", "stop", "pause", "signal", "isolate", "run", "scale", "cordon", "drop", "hold",
];
const ENGINES: [(&str, Engine); 2] = [("docker", Engine::Docker), ("podman", Engine::Podman)];
const PACKETS: [(&str, Dropped); 3] = [
    ("to", Dropped::To),
    ("from", Dropped::From),
    ("both", Dropped::Both),
];
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(60);
/// More than any pool or pooler keeps.
const MOST_CONNECTIONS: u32 = 10_000;
/// Programs that may be named under `cli:`.
const CLIS: [&str; 5] = ["docker", "podman", "kubectl", "nft", "systemctl"];

/// One entry of `components:`.
pub(super) fn component(name: &str, at: &At<'_>, names: &Names) -> Option<Component> {
    let mut fields = at.fields()?;
    let body = if fields.has("pid_file") {
        process(&mut fields, names).map(Body::Process)
    } else {
        match fields.one_of(&BODIES) {
            Some((form, at)) => body(form, &at, &mut fields, names),
            None => None,
        }
    };
    let port = fields.get("port").and_then(|at| host_port(&at, names));
    let irreversible = fields.get("irreversible").and_then(|at| at.truth());
    fields.finish(&[]);
    Some(Component {
        name: name.to_owned(),
        body: body?,
        port,
        irreversible: irreversible.unwrap_or_default(),
    })
}

fn body(form: &str, at: &At<'_>, fields: &mut Fields<'_>, names: &Names) -> Option<Body> {
    match form {
        "run" => programs(at, fields, names).map(|programs| Body::Programs(Box::new(programs))),
        "unit" => plain(at, "unit", "mosquitto.service").map(Body::Unit),
        "container" => container(at, fields).map(Body::Container),
        "pods" => pods(at),
        "deployment" => deployment(at),
        "node" => plain(at, "node", "worker-3").map(Body::Node),
        "address" => host_port(at, names).map(Body::Address),
        _ => database(at, names).map(Body::Database),
    }
}

fn process(fields: &mut Fields<'_>, names: &Names) -> Option<Process> {
    let known = names.placeholders(&[]);
    let pid_file = fields.need("pid_file").and_then(|at| at.template(&known));
    let exe = fields
        .get("exe")
        .map(|at| identities::path(&at, names, &[]));
    let undo_at = fields.get("undo");
    let undo = undo_at
        .as_ref()
        .map(|at| row_of(at, &names.operations, "operation", "operations"));
    let run_at = fields.get("run");
    if let (Some(at), Some(_)) = (&run_at, &undo_at) {
        at.wrong_key(
            "`run` can't stand beside `undo`",
            "keep one: a program or an operation that starts it again",
        );
    }
    let start = match (run_at, undo) {
        (Some(at), _) => Some(programs_of(fields, names, &at).map(Start::Program)),
        (None, Some(undo)) => Some(undo.map(Start::Operation)),
        (None, None) => None,
    };
    Some(Process {
        pid_file: pid_file?,
        executable: given(exe)?,
        start: given(start)?,
    })
}

/// What was given and could not be read makes the whole unreadable; what was not given does not.
fn given<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(value) => value.map(Some),
        None => Some(None),
    }
}

/// Where and how the programs of a component run.
struct Around {
    directory: Option<Template>,
    environment: Vec<(String, Template)>,
    timeout: Duration,
}

fn around(fields: &mut Fields<'_>, names: &Names) -> Around {
    let known = names.placeholders(&[]);
    let directory = fields
        .get("cwd")
        .and_then(|at| identities::path(&at, names, &[]));
    let mut environment = Vec::new();
    for (name, at) in fields
        .get("env")
        .and_then(|at| at.entries())
        .unwrap_or_default()
    {
        if name.contains(['=', '\0']) {
            at.wrong_key("no name of a variable", "write a name such as `HOME`");
        }
        environment.extend(at.template(&known).map(|value| (name.to_owned(), value)));
    }
    let timeout = fields.get("timeout").and_then(|at| at.time());
    Around {
        directory,
        environment,
        timeout: timeout.unwrap_or(PROGRAM_TIMEOUT),
    }
}

impl Around {
    fn program(&self, at: &At<'_>, names: &Names) -> Option<Program> {
        let known = Placeholders {
            secrets: &[],
            note: Some("everybody on the machine can read arguments; a secret goes into `env:`"),
            ..names.placeholders(&[])
        };
        let items = at.items()?;
        let arguments: Vec<Option<Template>> =
            items.iter().map(|item| item.template(&known)).collect();
        let arguments: Option<Vec<Template>> = arguments.into_iter().collect();
        Some(Program {
            arguments: arguments?,
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            timeout: self.timeout,
        })
    }
}

fn programs_of(fields: &mut Fields<'_>, names: &Names, run: &At<'_>) -> Option<Program> {
    around(fields, names).program(run, names)
}

fn programs(run: &At<'_>, fields: &mut Fields<'_>, names: &Names) -> Option<Programs> {
    let around = around(fields, names);
    let run = around.program(run, names);
    let mut other = |key| fields.get(key).map(|at| around.program(&at, names));
    let (undo, observe, undone) = (other("undo"), other("observe"), other("undone"));
    Some(Programs {
        run: run?,
        undo: given(undo)?,
        observe: given(observe)?,
        undone: given(undone)?,
    })
}

fn container(at: &At<'_>, fields: &mut Fields<'_>) -> Option<Container> {
    let name = plain(at, "container", "mosquitto-1");
    let engine = fields.get("by").map(|at| at.word(&ENGINES));
    let label = fields.need("label").and_then(|at| {
        let text = at.text()?;
        let label = text.split_once('=').filter(|(key, _)| !key.is_empty());
        if label.is_none() {
            at.wrong(
                format!("`{text}` is no label"),
                "write `key=value`: only a container that carries it is touched",
            );
        }
        label.map(|(key, value)| (key.to_owned(), value.to_owned()))
    });
    let network = fields
        .get("network")
        .map(|at| plain(&at, "network", "backend"));
    Some(Container {
        name: name?,
        engine: given(engine)?.unwrap_or(Engine::Docker),
        label: label?,
        network: given(network)?,
    })
}

fn pods(at: &At<'_>) -> Option<Body> {
    let text = at.text()?;
    let is_pair = |pair: &str| {
        pair.split_once('=')
            .is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "=,.-_/".contains(c);
    if !text.split(',').all(is_pair) || !text.chars().all(plain) {
        at.wrong(
            format!("`{text}` does not choose pods by their labels"),
            "write `app=gateway`, or several with commas between them",
        );
        return None;
    }
    Some(Body::Pods(text.to_owned()))
}

fn deployment(at: &At<'_>) -> Option<Body> {
    let text = at.text()?;
    let parts = text
        .split_once('/')
        .filter(|(namespace, name)| is_plain(namespace) && is_plain(name));
    if parts.is_none() {
        at.wrong(
            format!("`{text}` is no deployment with its namespace"),
            "write `namespace/name`, such as `ride/worker`",
        );
    }
    parts.map(|(namespace, name)| Body::Deployment {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

fn database(at: &At<'_>, names: &Names) -> Option<Template> {
    let address = at.template(&names.placeholders(&[]))?;
    let text = address.resolve(&|name| {
        let imagined = if name.starts_with("lab.") {
            "127.0.0.1:1"
        } else {
            "postgres://x"
        };
        Some(imagined.to_owned())
    });
    let url = Url::parse(&text.to_string()).ok();
    let is_postgres = |url: &Url| matches!(url.scheme(), "postgres" | "postgresql");
    if !url.is_some_and(|url| is_postgres(&url) && url.host_str().is_some()) {
        at.wrong(
            "not the address of a PostgreSQL database",
            "write `postgres://user@host:port/name`, or the name of a secret that holds one",
        );
        return None;
    }
    Some(address)
}

/// A word that goes to a program as one argument and must not look like an option.
fn plain(at: &At<'_>, what: &str, example: &str) -> Option<String> {
    let text = at.text()?;
    if !is_plain(text) {
        at.wrong(
            format!("`{text}` is no name of a {what}"),
            format!("write a name such as `{example}`"),
        );
        return None;
    }
    Some(text.to_owned())
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-_@:".contains(c))
}

pub(super) fn host_port(at: &At<'_>, names: &Names) -> Option<Template> {
    let template = at.template(&names.host_placeholders())?;
    address::check_host_port(at, &template);
    Some(template)
}

/// `kubernetes:`
pub(super) fn kubernetes(at: &At<'_>) -> Option<Kubernetes> {
    let mut fields = at.fields()?;
    let context = fields.need("context").and_then(|at| at.text());
    let namespaces: Vec<Option<String>> = fields
        .need("namespaces")
        .and_then(|at| at.items())
        .unwrap_or_default()
        .iter()
        .map(|at| plain(at, "namespace", "ride"))
        .collect();
    fields.finish(&[]);
    Some(Kubernetes {
        context: context?.to_owned(),
        namespaces: namespaces.into_iter().collect::<Option<_>>()?,
    })
}

/// `cli:`
pub(super) fn programs_by_name(at: &At<'_>, file: &Path) -> BTreeMap<String, PathBuf> {
    let mut programs = BTreeMap::new();
    for (name, at) in at.entries().unwrap_or_default() {
        if !CLIS.contains(&name) {
            let all = words::listed(CLIS.into_iter());
            let help = words::nearest(name, CLIS.into_iter())
                .map_or("leave it out".to_owned(), |near| {
                    format!("did you mean `{near}`?")
                });
            at.wrong_key(
                format!("unknown program `{name}`, expected one of {all}"),
                help,
            );
            continue;
        }
        if let Some(text) = at.text() {
            programs.insert(name.to_owned(), super::target::beside(file, text));
        }
    }
    programs
}

/// What components of a cluster need.
pub(super) fn check_cluster(components: Option<&At<'_>>, allowed: Option<&Kubernetes>) {
    let Some(components) = components else { return };
    for name in components.keys() {
        let one = components.find(&[&name]);
        for key in ["pods", "deployment", "node"] {
            let at = one.find(&[key]);
            if !at.has_key(key) {
                continue;
            }
            let Some(allowed) = allowed else {
                at.wrong_key(
                    "the target file does not say which cluster may be touched",
                    "add `kubernetes: { context: …, namespaces: [ … ] }`: one context, and nothing outside these namespaces",
                );
                continue;
            };
            let namespace = at.lone_word().and_then(|text| text.split_once('/'));
            if let Some((namespace, _)) = namespace
                && key == "deployment"
                && !allowed.namespaces.iter().any(|known| known == namespace)
            {
                let all = words::listed(allowed.namespaces.iter().map(String::as_str));
                at.wrong(
                    format!("`{namespace}` is not among `kubernetes.namespaces`"),
                    format!("allowed: {all}"),
                );
            }
        }
    }
}

/// The fault under one of [`ACTS`].
pub(super) fn fault(key: &str, at: &At<'_>, stage: &Stage<'_>) -> Option<FaultKind> {
    let mut fields = at.fields()?;
    let component_at = fields.need("component");
    let component = component_at
        .as_ref()
        .and_then(|at| row_of(at, &stage.names.components, "component", "components"));
    let act = act(key, &mut fields);
    fields.finish(if key == "kill" { &["share"] } else { &[] });
    let (component, act) = (component?, act?);
    let name = &stage.names.components[component];
    // A component that could not be read has been told about.
    if let Some(described) = stage
        .target
        .components
        .iter()
        .find(|known| known.name == *name)
    {
        check_fits(at, &component_at?, key, described, act)?;
    }
    Some(FaultKind::Act { component, act })
}

fn act(key: &str, fields: &mut Fields<'_>) -> Option<Act> {
    match key {
        "kill" => {
            let count = fields.get("count").map(|at| at.count32(1..=1_000));
            let count = given(count)?.unwrap_or(1);
            Some(Act::Kill { count })
        }
        "stop" => Some(Act::Stop),
        "pause" => Some(Act::Pause),
        "signal" => {
            let signals = SentSignal::ALL.map(|signal| (signal.name(), signal));
            let signal = fields.need("send").and_then(|at| at.word(&signals));
            signal.map(Act::Signal)
        }
        "isolate" => Some(Act::Isolate),
        "run" => Some(Act::Run),
        "scale" => {
            let to = fields.need("to").and_then(|at| at.count32(0..=10_000));
            to.map(|to| Act::Scale { to })
        }
        "cordon" => Some(Act::Cordon),
        "drop" => {
            let packets = fields.get("packets").map(|at| at.word(&PACKETS));
            Some(Act::Drop(given(packets)?.unwrap_or(Dropped::Both)))
        }
        _ => {
            let connections = fields.need("connections");
            let connections = connections.and_then(|at| at.count32(1..=MOST_CONNECTIONS));
            connections.map(|connections| Act::Hold { connections })
        }
    }
}

/// Whether this can be done to this component, and be undone.
fn check_fits(
    at: &At<'_>,
    component_at: &At<'_>,
    key: &str,
    component: &Component,
    act: Act,
) -> Option<()> {
    let name = &component.name;
    let refuse = |message: String, help: String| -> Option<()> {
        component_at.wrong(message, help);
        None
    };
    if !component.body.acts().contains(&key) {
        let fits = words::listed(component.body.acts().iter().copied());
        return refuse(
            format!(
                "`{name}` is {}, and `{key}` does not fit it",
                component.body.kind()
            ),
            format!("what fits: {fits}"),
        );
    }
    let has_no_way_back = match &component.body {
        Body::Process(process) => process.start.is_none() && act != Act::Pause,
        Body::Programs(programs) => programs.undo.is_none(),
        _ => false,
    };
    if has_no_way_back && !component.irreversible {
        return refuse(
            format!("`{name}` has nothing that undoes this, and a fault must have an undo"),
            "add `run: [ … ]` or `undo: …` to the component in the target file, or `irreversible: true`"
                .to_owned(),
        );
    }
    match (&component.body, act) {
        (Body::Container(container), Act::Isolate) if container.network.is_none() => refuse(
            format!("`{name}` has no network that it could leave"),
            "add `network: …` to the component in the target file".to_owned(),
        ),
        (Body::Process(_), Act::Signal(_)) if component.port.is_none() => refuse(
            format!("nothing says whether `{name}` serves after a signal"),
            "add `port: host:port` to the component in the target file".to_owned(),
        ),
        (body, Act::Kill { count }) if count > 1 && !matches!(body, Body::Pods(_)) => {
            at.find(&["count"]).wrong(
                format!("`{name}` is {}, so there is one of it", body.kind()),
                "write `count: 1`, or leave it out",
            );
            None
        }
        _ => Some(()),
    }
}

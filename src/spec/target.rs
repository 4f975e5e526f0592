//! The target file: who is tested, where, and what may be asked of it.

use super::command;
use super::component;
use super::device;
use super::dock;
use super::fields::Fields;
use super::identities;
use super::journey::RequestContext;
use super::operation;
use super::places;
use super::probes;
use super::reader::At;
use super::steps;
use super::tls;
use super::token;
use super::words::Placeholders;
use crate::plan::Template;
use crate::plan::component::Kubernetes;
use crate::plan::dock::DockDevice;
use crate::plan::identity::IdentitySet;
use crate::plan::target::{Ceilings, Device, Environment, LabSpec, LabTls, SecretSource, Target};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keys of FORMATS that this version does not know yet.
const LATER: [&str; 3] = ["proof", "version", "notify"];
const ENVIRONMENTS: [(&str, Environment); 5] = [
    ("lab", Environment::Lab),
    ("test", Environment::Test),
    ("staging", Environment::Staging),
    ("pre-production", Environment::PreProduction),
    ("production", Environment::Production),
];
/// Shards that the lab runs unless the file says otherwise, and the most that it may run.
const LAB_SHARDS: u16 = 2;
const MOST_LAB_SHARDS: u32 = 16;
const LAB_TLS: [(&str, LabTls); 3] = [
    ("off", LabTls::Off),
    ("server", LabTls::Server),
    ("mutual", LabTls::Mutual),
];

/// Names by which files speak of the parts of a target, in the order of the file; also of parts that could not be read, so
/// that no second problem comes of the first.
#[derive(Default)]
pub(super) struct Names {
    pub secrets: Vec<String>,
    pub tokens: Vec<String>,
    /// Names after `lab.`
    pub lab: Vec<String>,
    pub identities: Vec<String>,
    /// Those of each set of identities.
    pub columns: Vec<Vec<String>>,
    pub devices: Vec<String>,
    /// The columns of the identities of each of these devices, parallel to them.
    pub device_columns: Vec<Vec<String>>,
    /// The devices that are docks; they are not among the others.
    pub docks: Vec<String>,
    pub commands: Vec<String>,
    pub places: Vec<String>,
    pub journeys: Vec<String>,
    /// Whatever a step of a journey keeps.
    pub kept: Vec<String>,
    pub operations: Vec<String>,
    pub components: Vec<String>,
    pub links: Vec<String>,
}

impl Names {
    /// Docks are devices with a list of their own.
    fn tell_docks_apart(&mut self, devices: Option<&At<'_>>) {
        (self.docks, self.devices) = std::mem::take(&mut self.devices)
            .into_iter()
            .partition(|name| is_dock(devices, name));
        let columns = self.devices.iter().map(|name| {
            let identity = devices.map(|at| at.find(&[name, "identity"]));
            let set = identity.and_then(|at| at.lone_word());
            let row = set.and_then(|set| self.identities.iter().position(|known| known == set));
            let columns = row.and_then(|row| self.columns.get(row));
            columns.cloned().unwrap_or_default()
        });
        self.device_columns = columns.collect();
    }

    /// What stands for something everywhere in the file, and `agent` besides.
    pub fn placeholders(&self, agent: &[&str]) -> Placeholders<'_> {
        Placeholders {
            agent: agent.iter().map(|name| (*name).to_owned()).collect(),
            secrets: &self.secrets,
            lab: &self.lab,
            note: None,
        }
    }

    /// What stands for something in a request of riders or issuers, tokens too.
    pub fn carried(&self, agent: &[&str]) -> Placeholders<'_> {
        let mut placeholders = self.placeholders(agent);
        let tokens = self.tokens.iter().map(|name| format!("token.{name}"));
        placeholders.agent.extend(tokens);
        placeholders
    }

    /// What an agent of this set of identities is known by, besides its `serial`.
    pub fn columns_of(&self, identity: Option<usize>) -> Vec<&str> {
        let columns = identity.and_then(|row| self.columns.get(row));
        columns.into_iter().flatten().map(String::as_str).collect()
    }

    /// The same for a host, where no agent's name may stand.
    pub fn host_placeholders(&self) -> Placeholders<'_> {
        Placeholders {
            note: Some(
                "a host is the same for every agent; only <lab.…> and <secret.…> may stand in it",
            ),
            ..self.placeholders(&[])
        }
    }
}

/// What requests would show must have somebody to see it.
fn check_tls(tls: Option<&At<'_>>, target: &Target) {
    let mut addresses = target.addresses().into_iter();
    if let Some(at) = tls
        && !addresses.any(|(_, text)| text.starts_with("https://"))
    {
        tls::nobody_speaks_it(at);
    }
}

/// Reads a target file. `database` and `on` are the overrides of the command line.
pub(super) fn read(
    root: &At<'_>,
    file: &Path,
    database: Option<&str>,
    on: &[String],
) -> Option<(Target, Names)> {
    let mut fields = root.fields()?;
    let (head, environment) = head(&mut fields, file);
    let lab = fields.get("lab").map(|at| lab_spec(&at));
    let lab = with_overrides(root, lab, database, on);
    let mut names = Names {
        secrets: head.secrets.keys().cloned().collect(),
        ..Names::default()
    };
    names.lab = lab.as_ref().map(lab_names).unwrap_or_default();
    check_environment(root, &fields, environment, lab.is_some());

    let (trust, identities) = who(&mut fields, &mut names);
    let tls = fields.get("tls");
    let tokens = section(&mut fields, "tokens", &mut names.tokens);
    let devices = section(&mut fields, "devices", &mut names.devices);
    names.tell_docks_apart(devices.as_ref());
    let commands = section(&mut fields, "commands", &mut names.commands);
    let places = section(&mut fields, "places", &mut names.places);
    let journeys = section(&mut fields, "journeys", &mut names.journeys);
    names.kept = journeys.as_ref().map(kept).unwrap_or_default();
    let probes = fields.get("probes");
    let operations = section(&mut fields, "operations", &mut names.operations);
    let components = section(&mut fields, "components", &mut names.components);
    let links = section(&mut fields, "links", &mut names.links);
    let periodic = fields.get("periodic").map(|at| periodic(&at));
    let (kubernetes, cli) = tools(&mut fields, components.as_ref(), file);
    let requests = RequestContext {
        names: &names,
        base: None,
    };
    let (devices, docks) = devices_of(devices, &names, &identities);
    let own = tls
        .as_ref()
        .and_then(|at| tls::of_requests(at, &names, &[]));
    let target = Target {
        tokens: each(tokens, |name, at| token::token(name, at, &requests)),
        commands: each(commands, |name, at| {
            command::command(name, at, &requests, &devices)
        }),
        devices,
        docks,
        places: each(places, places::places),
        journeys: each(journeys, |name, at| {
            steps::journey(name, at, &names, &identities)
        }),
        periodic: periodic.unwrap_or_default(),
        lab,
        probes: probes
            .and_then(|at| probes::probes(&at, &names))
            .unwrap_or_default(),
        operations: each(operations, |name, at| {
            operation::operation(name, at, &requests)
        }),
        components: each(components, |name, at| {
            component::component(name, at, &names)
        }),
        kubernetes,
        cli,
        links: each(links, |name, at| probes::link(name, at, &names)),
        trust,
        tls: own.unwrap_or_default(),
        identities,
        ..head
    };
    check_tls(tls.as_ref(), &target);
    // Their lines speak of the plan, and are read with those of the profile.
    fields.get("alerts");
    token::check(root, &target);
    fields.finish(&LATER);
    Some((target, names))
}

/// What a target file says of the target as a whole, and how near to real customers it is, if it says so.
fn head(fields: &mut Fields<'_>, file: &Path) -> (Target, Option<Environment>) {
    let about = fields
        .get("about")
        .and_then(|at| at.text())
        .unwrap_or_default()
        .to_owned();
    let environment = fields
        .get("environment")
        .and_then(|at| at.word(&ENVIRONMENTS));
    let never = fields.get("never").map(|at| texts(&at)).unwrap_or_default();
    let max = fields
        .get("max")
        .and_then(|at| ceilings(&at))
        .unwrap_or_default();
    let secrets = fields
        .get("secrets")
        .map(|at| secrets(&at, file))
        .unwrap_or_default();
    let head = Target {
        file: file.to_owned(),
        about,
        environment: environment.unwrap_or_default(),
        never,
        max,
        secrets,
        ..Target::default()
    };
    (head, environment)
}

/// Where a cluster may be touched, and with which programs.
fn tools(
    fields: &mut Fields<'_>,
    components: Option<&At<'_>>,
    file: &Path,
) -> (Option<Kubernetes>, BTreeMap<String, PathBuf>) {
    let kubernetes = fields
        .get("kubernetes")
        .and_then(|at| component::kubernetes(&at));
    component::check_cluster(components, kubernetes.as_ref());
    let cli = fields.get("cli");
    let cli = cli.map(|at| component::programs_by_name(&at, file));
    (kubernetes, cli.unwrap_or_default())
}

/// Hubs and docks, each in the order of the file.
fn devices_of(
    at: Option<At<'_>>,
    names: &Names,
    identities: &[IdentitySet],
) -> (Vec<Device>, Vec<DockDevice>) {
    let (mut devices, mut docks) = (Vec::new(), Vec::new());
    for (name, at) in at.and_then(|at| at.named()).unwrap_or_default() {
        if names.docks.iter().any(|dock| dock == name) {
            docks.extend(dock::device(name, &at, names));
        } else {
            devices.extend(device::device(name, &at, names, identities));
        }
    }
    (devices, docks)
}

/// A device is a dock if it sends what riders hand over; hubs speak MQTT.
fn is_dock(devices: Option<&At<'_>>, name: &str) -> bool {
    devices.is_some_and(|at| at.find(&[name, "sends"]).has_key("sends"))
}

/// The names of all that steps keep, whether or not the steps can be read.
fn kept(journeys: &At<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for journey in journeys.keys() {
        let steps = journeys.find(&[&journey, "steps"]);
        for step in steps.keys() {
            let keep = steps.find(&[&step, "keep"]);
            if keep.has_key("keep") {
                names.extend(keep.keys());
            }
            let each = steps.find(&[&step, "for_each"]);
            let each = each.lone_word().and_then(|text| text.split_once(" as "));
            names.extend(each.map(|(_, each)| each.trim().to_owned()));
        }
    }
    names
}

/// `trust:` and `identities:`.
fn who(fields: &mut Fields<'_>, names: &mut Names) -> (Option<Template>, Vec<IdentitySet>) {
    let trust = fields
        .get("trust")
        .and_then(|at| identities::path(&at, names, &[]));
    let at = section(fields, "identities", &mut names.identities);
    let entries = at.and_then(|at| at.named()).unwrap_or_default();
    // A set that can't be read keeps its place: what stands behind the names must not shift.
    let sets = names.identities.iter().map(|name| {
        let entry = entries.iter().find(|(entry, _)| entry == name);
        let set = entry.and_then(|(_, at)| identities::set(name, at, names));
        set.unwrap_or_else(|| identities::unread(name))
    });
    let sets: Vec<IdentitySet> = sets.collect();
    names.columns = identities::columns(&sets);
    (trust, sets)
}

/// The entries of a map of names, one value for each that could be read.
fn each<T>(at: Option<At<'_>>, read: impl Fn(&str, &At<'_>) -> Option<T>) -> Vec<T> {
    let entries = at.and_then(|at| at.named()).unwrap_or_default();
    entries
        .iter()
        .filter_map(|(name, at)| read(name, at))
        .collect()
}

/// A map of names, which become known whatever stands behind them.
fn section<'a>(
    fields: &mut Fields<'a>,
    key: &'static str,
    names: &mut Vec<String>,
) -> Option<At<'a>> {
    let at = fields.get(key)?;
    *names = at.keys();
    Some(at)
}

fn texts(at: &At<'_>) -> Vec<String> {
    let items = at.items().unwrap_or_default();
    items
        .iter()
        .filter_map(|item| item.text().map(str::to_owned))
        .collect()
}

fn ceilings(at: &At<'_>) -> Option<Ceilings> {
    let mut fields = at.fields()?;
    let ceilings = Ceilings {
        hubs: fields.get("hubs").and_then(|at| at.count(0..=100_000_000)),
        connects_per_second: fields.get("connects").and_then(|at| at.rate()),
        requests_per_second: fields.get("requests").and_then(|at| at.rate()),
    };
    fields.finish(&[]);
    Some(ceilings)
}

fn secrets(at: &At<'_>, file: &Path) -> BTreeMap<String, SecretSource> {
    let mut secrets = BTreeMap::new();
    for (name, at) in at.named().unwrap_or_default() {
        let Some(mut fields) = at.fields() else {
            continue;
        };
        let source = fields.one_of(&["env", "file"]).and_then(|(kind, at)| {
            let text = at.text()?;
            Some(match kind {
                "env" => SecretSource::Env(text.to_owned()),
                _ => SecretSource::File(beside(file, text)),
            })
        });
        fields.finish(&[]);
        // The name is known even if its source is wrong, so that its uses are not wrong as well.
        secrets.insert(
            name.to_owned(),
            source.unwrap_or_else(|| SecretSource::Env(String::new())),
        );
    }
    secrets
}

/// A path as a file gives it: relative to that file.
pub(super) fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(path)
}

fn periodic(at: &At<'_>) -> BTreeMap<String, std::time::Duration> {
    let entries = at.named().unwrap_or_default();
    entries
        .iter()
        .filter_map(|(name, at)| Some(((*name).to_owned(), at.time()?)))
        .collect()
}

fn lab_spec(at: &At<'_>) -> LabSpec {
    let mut lab = LabSpec {
        shards: LAB_SHARDS,
        ..LabSpec::default()
    };
    let Some(mut fields) = at.fields() else {
        return lab;
    };
    if let Some(shards) = fields
        .get("shards")
        .and_then(|at| at.count32(1..=MOST_LAB_SHARDS))
    {
        lab.shards = u16::try_from(shards).unwrap_or(LAB_SHARDS);
    }
    if let Some(at) = fields.get("database") {
        lab.database = at.text().map(str::to_owned);
        if lab
            .database
            .as_ref()
            .is_some_and(|url| !url.starts_with("postgres://") && !url.starts_with("postgresql://"))
        {
            at.wrong(
                "not the address of a PostgreSQL database",
                "write `postgres://user@host:port/name`",
            );
        }
    }
    lab.tls = fields
        .get("tls")
        .and_then(|at| at.word(&LAB_TLS))
        .unwrap_or_default();
    lab.on = fields.get("on").map(|at| texts(&at)).unwrap_or_default();
    for (name, at) in fields
        .get("settings")
        .and_then(|at| at.entries())
        .unwrap_or_default()
    {
        if let Some(value) = at.setting() {
            lab.settings.insert(name.to_owned(), value.to_owned());
        }
    }
    fields.finish(&[]);
    lab
}

fn with_overrides(
    root: &At<'_>,
    lab: Option<LabSpec>,
    database: Option<&str>,
    on: &[String],
) -> Option<LabSpec> {
    let Some(mut lab) = lab else {
        for given in [
            database.map(|_| "--database"),
            (!on.is_empty()).then_some("--on"),
        ]
        .into_iter()
        .flatten()
        {
            let message = format!("{given} was given, and this target starts no lab");
            root.wrong(
                message,
                format!("leave {given} out, or take a target with `lab: {{}}`"),
            );
        }
        return None;
    };
    if let Some(database) = database {
        lab.database = Some(database.to_owned());
    }
    for defect in on {
        if !lab.on.contains(defect) {
            lab.on.push(defect.clone());
        }
    }
    Some(lab)
}

/// What the lab tells of itself when it is ready.
fn lab_names(lab: &LabSpec) -> Vec<String> {
    let mut names: Vec<String> = ["dir", "api", "metrics", "database", "db-link"]
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    names.extend((1..=lab.shards).map(|shard| format!("shard-{shard}")));
    names
}

fn check_environment(
    root: &At<'_>,
    fields: &Fields<'_>,
    environment: Option<Environment>,
    has_lab: bool,
) {
    match environment {
        Some(environment) if has_lab && environment != Environment::Lab => {
            root.find(&["environment"]).wrong(
                "this target starts the lab itself, so its environment is `lab`",
                "write `environment: lab`, or take `lab:` out",
            );
        }
        None if !has_lab && !fields.has("environment") => {
            root.wrong_key(
                "`environment` is missing",
                "say how near to real customers this is: lab, test, staging, pre-production or production",
            );
        }
        _ => {}
    }
}

//! The system under test, as its target file describes it.

pub use super::command::{CommandSend, CommandSpec, IdOwner, IdPlace, Publishing};
use super::component::{Component, Kubernetes};
use super::dock::DockDevice;
pub use super::environment::Environment;
use super::fault::{Link, OperationSpec};
use super::identity::IdentitySet;
use super::json_path::JsonPath;
pub use super::lab::{LabSpec, LabTls};
use super::places::Places;
use super::session::{Authentication, MqttVersion, Session, Will};
use super::template::{JsonTemplate, Template};
use super::tls::{DeviceTls, HttpTls, is_secured};
use super::token::TokenSpec;
use super::witness::LiveSessions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub use super::probe::{Origin, Plays, ProbeSource, Probes, Reading, SeriesSelector, Signals};

pub use super::journey::{Candidates, Closing, Journey, Poll, Repeat, Span, Step, StepAction};

/// The target file, checked.
#[derive(Debug, Clone, Default)]
pub struct Target {
    pub file: PathBuf,
    pub about: String,
    pub environment: Environment,
    /// Patterns of names and networks that must never be contacted, as written (`*.example.com`, `10.20.0.0/16`).
    pub never: Vec<String>,
    pub max: Ceilings,
    pub secrets: BTreeMap<String, SecretSource>,
    /// PEM file of the authorities that vouch for the target's servers; without it the system's.
    pub trust: Option<Template>,
    /// How requests speak TLS.
    pub tls: HttpTls,
    pub identities: Vec<IdentitySet>,
    /// What requests may carry as `<token.NAME>`.
    pub tokens: Vec<TokenSpec>,
    pub devices: Vec<Device>,
    /// The devices that are docks.
    pub docks: Vec<DockDevice>,
    pub commands: Vec<CommandSpec>,
    /// Lists of places that riders go to.
    pub places: Vec<Places>,
    pub journeys: Vec<Journey>,
    /// What happens by itself, and how often; a profile that never covers one is warned about.
    pub periodic: BTreeMap<String, Duration>,
    /// Present if the run starts the embedded lab itself.
    pub lab: Option<LabSpec>,
    pub probes: Probes,
    pub operations: Vec<OperationSpec>,
    pub components: Vec<Component>,
    /// Where faults may act on a cluster, if they may at all.
    pub kubernetes: Option<Kubernetes>,
    /// The file of a program that faults use, by its usual name (`kubectl`), in place of the one found in `PATH`.
    pub cli: BTreeMap<String, PathBuf>,
    pub links: Vec<Link>,
    /// Its own alert rules, rehearsed on what is measured.
    pub alerts: Vec<super::expect::Alert>,
}

/// Ceilings of the load that the target's owner allows; a plan above one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ceilings {
    pub hubs: Option<u64>,
    pub connects_per_second: Option<f64>,
    pub requests_per_second: Option<f64>,
}

/// Where a secret comes from. Its value is never part of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    Env(String),
    File(PathBuf),
}

/// A kind of hub: where it connects and what it says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Device {
    pub name: String,
    pub version: MqttVersion,
    /// `mqtt://`, `mqtts://`, `ws://` or `wss://host:port` by the name of the shard, in the order of the file. At least one.
    pub shards: Vec<(String, Template)>,
    pub find: Find,
    pub client_id: Template,
    pub username: Option<Template>,
    pub password: Option<Template>,
    pub session: Session,
    pub will: Option<Will>,
    /// MQTT 5: enhanced authentication, also again on a live session.
    pub authentication: Option<Authentication>,
    pub telemetry: Option<Topic>,
    pub command: Option<CommandTopic>,
    /// What a hub publishes after it has acted on a command.
    pub answer: Option<Publishing>,
    /// Connects a second that the target takes of these, a fact about it.
    pub throttle: Option<f64>,
    /// A subscriber of our own on every shard sees every command that arrives there, to find those whose hub is elsewhere.
    pub ghost: bool,
    /// Where the target lists the live sessions of these hubs, if the file says so.
    pub live_sessions: Option<LiveSessions>,
    /// Row in `Target::identities` of who its hubs are.
    pub identity: Option<usize>,
    pub tls: DeviceTls,
}

/// How a hub knows its shard.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Find {
    /// One address that spreads the connections itself.
    #[default]
    Balancer,
    /// FNV-1a (64 bits) of the text, modulo the number of shards.
    Hash(Template),
    /// The shards in turn: the next one after an attempt that failed. Begins with the one that the text names, or the first.
    List(Option<Template>),
    /// Asks the target over HTTP before each attempt to connect.
    Ask(Box<Ask>),
    /// The first shard, until a Server Reference of MQTT 5 names another.
    Redirect,
}

/// How the target is asked for a hub's shard.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub request: Request,
    /// Where the answer names the shard: by its name, its host or its host and port.
    pub keep: JsonPath,
}

/// A topic to publish to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub topic: Template,
    /// 0 or 1.
    pub qos: u8,
}

/// The topic on which a hub takes commands, and where the command's id stands in the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTopic {
    pub topic: Template,
    pub qos: u8,
    pub id: IdPlace,
}

/// One HTTP request and how its answer is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: Method,
    /// The whole address; `base` of the journey is already part of it. Its host holds no placeholder of an agent.
    pub url: Template,
    pub headers: Vec<(String, Template)>,
    pub bearer: Option<Template>,
    pub json: Option<JsonTemplate>,
    pub answer: Answer,
}

/// HTTP methods that files may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As it stands in a request.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// How an answer is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// Statuses that mean success; empty means 200 to 299.
    pub ok: Vec<u16>,
    /// Statuses that are a plain "no", with the name of the reason.
    pub declined: BTreeMap<u16, String>,
    /// Statuses by which the target reports a command's time to live as passed.
    pub expired: Vec<u16>,
    /// Values kept from the body of a success under a name.
    pub keep: Vec<(String, JsonPath)>,
    /// If something to keep is missing, the journey ends here as declined with this reason.
    pub or_end: Option<String>,
}

impl Device {
    fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.tls.each_template(each);
        self.shards
            .iter_mut()
            .for_each(|(_, address)| each(address));
        each(&mut self.client_id);
        self.username.iter_mut().for_each(&mut *each);
        self.password.iter_mut().for_each(&mut *each);
        if let Some(sessions) = &mut self.live_sessions {
            sessions.request.each_template(each);
        }
        match &mut self.find {
            Find::Hash(text) | Find::List(Some(text)) => each(text),
            Find::Ask(ask) => ask.request.each_template(each),
            Find::Balancer | Find::List(None) | Find::Redirect => {}
        }
        self.will
            .iter_mut()
            .for_each(|will| will.each_template(each));
        self.authentication
            .iter_mut()
            .for_each(|authentication| authentication.each_template(each));
        self.telemetry
            .iter_mut()
            .for_each(|topic| each(&mut topic.topic));
        self.command
            .iter_mut()
            .for_each(|topic| each(&mut topic.topic));
        self.answer
            .iter_mut()
            .for_each(|answer| answer.each_template(each));
    }
}

impl Target {
    /// The target with every name that `value` knows (`lab.…`, `secret.…`) made part of its texts.
    #[must_use]
    pub fn resolve(&self, value: &dyn Fn(&str) -> Option<String>) -> Target {
        let mut target = self.clone();
        target.each_template(&mut |template| *template = template.resolve(value));
        target.each_json(&mut |json| *json = json.resolve(value));
        target
    }

    /// Calls `each` with every template of the target outside JSON bodies.
    pub fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.trust.iter_mut().for_each(&mut *each);
        let commands = self.commands.iter_mut().map(|command| &mut command.tls);
        let journeys = self.journeys.iter_mut().map(|journey| &mut journey.tls);
        std::iter::once(&mut self.tls)
            .chain(commands.chain(journeys).flatten())
            .for_each(|tls| tls.each_template(each));
        self.identities
            .iter_mut()
            .for_each(|identities| identities.each_template(each));
        for device in &mut self.devices {
            device.each_template(each);
        }
        for command in &mut self.commands {
            match &mut command.send {
                CommandSend::Http(request) => request.each_template(each),
                CommandSend::Publish(publishing) => publishing.each_template(each),
            }
        }
        for request in self.journeys.iter_mut().flat_map(Journey::requests_mut) {
            request.each_template(each);
        }
        self.docks
            .iter_mut()
            .for_each(|dock| dock.each_template(each));
        self.probes
            .sources
            .iter_mut()
            .for_each(|source| source.origin.each_template(each));
        self.tokens
            .iter_mut()
            .for_each(|token| token.each_template(each));
        self.operations
            .iter_mut()
            .for_each(|operation| operation.each_template(each));
        self.components
            .iter_mut()
            .for_each(|component| component.each_template(each));
        self.links
            .iter_mut()
            .for_each(|link| link.each_template(each));
    }

    fn each_json(&mut self, each: &mut dyn FnMut(&mut JsonTemplate)) {
        for device in &mut self.devices {
            device
                .answer
                .iter_mut()
                .for_each(|answer| answer.each_json(each));
            if let Some(sessions) = &mut device.live_sessions {
                sessions.request.json.iter_mut().for_each(&mut *each);
            }
            if let Find::Ask(ask) = &mut device.find {
                ask.request.json.iter_mut().for_each(&mut *each);
            }
            device.will.iter_mut().for_each(|will| will.each_json(each));
        }
        for command in &mut self.commands {
            match &mut command.send {
                CommandSend::Http(request) => request.json.iter_mut().for_each(&mut *each),
                CommandSend::Publish(publishing) => publishing.each_json(each),
            }
        }
        for request in self.journeys.iter_mut().flat_map(Journey::requests_mut) {
            request.json.iter_mut().for_each(&mut *each);
        }
        self.docks.iter_mut().for_each(|dock| dock.each_json(each));
        self.tokens
            .iter_mut()
            .for_each(|token| token.each_json(each));
        self.operations
            .iter_mut()
            .for_each(|operation| operation.each_json(each));
    }
}

impl Device {
    /// Whether any of its shards speaks TLS.
    #[must_use]
    pub fn is_secured(&self) -> bool {
        self.shards
            .iter()
            .any(|(_, address)| is_secured(&address.to_string()))
    }
}

impl Request {
    /// Every name that the request needs, repeated where it repeats.
    pub fn names(&self, each: &mut dyn FnMut(&str)) {
        self.url.names().for_each(&mut *each);
        self.headers
            .iter()
            .flat_map(|(_, value)| value.names())
            .for_each(&mut *each);
        self.bearer
            .iter()
            .flat_map(Template::names)
            .for_each(&mut *each);
        self.json.iter().for_each(|json| json.names(each));
    }

    pub(super) fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        each(&mut self.url);
        self.headers.iter_mut().for_each(|(_, value)| each(value));
        self.bearer.iter_mut().for_each(&mut *each);
    }
}

impl Answer {
    /// Whether `status` means success.
    #[must_use]
    pub fn is_ok(&self, status: u16) -> bool {
        if self.ok.is_empty() {
            (200..300).contains(&status)
        } else {
            self.ok.contains(&status)
        }
    }
}

//! The parts of the target that faults may act on, and what may be done to each kind.
//!
//! Decides which acts fit which kind of component, and in which words they are told. How they are done and undone is not known here.

use super::target::Target;
use super::template::Template;
use std::fmt;
use std::time::Duration;

/// A named part of the target that faults may act on.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    pub name: String,
    pub body: Body,
    /// Where it listens, `host:port`, if the file says so: the port's state proves a kill and a start.
    pub port: Option<Template>,
    /// The target's owner accepts that what is done to it can't be undone.
    pub irreversible: bool,
}

/// What a component is.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A process of this machine.
    Process(Process),
    /// Programs that do and undo something.
    Programs(Box<Programs>),
    /// A unit of systemd.
    Unit(String),
    /// A container of this machine.
    Container(Container),
    /// Pods that a controller makes anew, by their labels (`app=gateway`).
    Pods(String),
    /// `namespace/name`
    Deployment { namespace: String, name: String },
    /// A node of the cluster.
    Node(String),
    /// `host:port`: packets to and from it may be dropped.
    Address(Template),
    /// `postgres://user@host:port/name` of a database or a pooler.
    Database(Template),
}

/// A process that a pid file names.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    pub pid_file: Template,
    /// The program that it must be; another one under its number is left alone.
    pub executable: Option<Template>,
    /// What starts it again.
    pub start: Option<Start>,
}

/// What starts a process again.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// Row in `Target::operations`.
    Operation(usize),
    Program(Program),
}

/// A program with its arguments; no shell reads them.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// At least one: the program.
    pub arguments: Vec<Template>,
    /// Where it runs.
    pub directory: Option<Template>,
    /// All that it finds in its environment, besides `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, Template)>,
    /// It is killed with everything that it started if it takes longer.
    pub timeout: Duration,
}

/// Programs that do and undo something.
#[derive(Debug, Clone, PartialEq)]
pub struct Programs {
    pub run: Program,
    /// Twice must do no harm.
    pub undo: Option<Program>,
    /// Exits with 0 once the effect shows.
    pub observe: Option<Program>,
    /// Exits with 0 once nothing of it is left.
    pub undone: Option<Program>,
}

/// A container, by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    pub name: String,
    pub engine: Engine,
    /// `key=value`, which it must carry: what does not is left alone.
    pub label: (String, String),
    /// The network that it may be made to leave.
    pub network: Option<String>,
}

/// Who runs containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Docker,
    Podman,
}

impl Engine {
    /// The name of its program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Engine::Docker => "docker",
            Engine::Podman => "podman",
        }
    }
}

/// The only place of a cluster where faults may act.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kubernetes {
    pub context: String,
    pub namespaces: Vec<String>,
}

/// Something done to a component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Act {
    /// SIGKILL to a process, unit or container; of pods, so many are deleted without grace.
    Kill { count: u32 },
    /// The unit or container is stopped in its own way.
    Stop,
    /// It stands still: SIGSTOP, freezer or pause.
    Pause,
    /// A signal to a process.
    Signal(SentSignal),
    /// The container leaves its network.
    Isolate,
    /// The component's program runs.
    Run,
    /// Another number of replicas.
    Scale { to: u32 },
    /// No new pods on the node.
    Cordon,
    /// Dropped are dropped.
    Drop(Dropped),
    /// So many sessions are taken and kept.
    Hold { connections: u32 },
}

/// Signals that faults may send, besides SIGKILL (`kill`) and SIGSTOP (`pause`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentSignal {
    Terminate,
    Interrupt,
    Quit,
    Hangup,
    User1,
    User2,
}

/// Which packets are dropped, seen from the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    To,
    From,
    Both,
}

impl SentSignal {
    pub const ALL: [SentSignal; 6] = [
        SentSignal::Terminate,
        SentSignal::Interrupt,
        SentSignal::Quit,
        SentSignal::Hangup,
        SentSignal::User1,
        SentSignal::User2,
    ];

    /// As POSIX calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SentSignal::Terminate => "SIGTERM",
            SentSignal::Interrupt => "SIGINT",
            SentSignal::Quit => "SIGQUIT",
            SentSignal::Hangup => "SIGHUP",
            SentSignal::User1 => "SIGUSR1",
            SentSignal::User2 => "SIGUSR2",
        }
    }
}

impl Body {
    /// What it is called in messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Body::Process(_) => "a process",
            Body::Programs(_) => "a pair of programs",
            Body::Unit(_) => "a unit of systemd",
            Body::Container(_) => "a container",
            Body::Pods(_) => "a set of pods",
            Body::Deployment { .. } => "a deployment",
            Body::Node(_) => "a node",
            Body::Address(_) => "an address",
            Body::Database(_) => "a database",
        }
    }

    /// The keys of the faults that fit it.
    #[must_use]
    pub fn acts(&self) -> &'static [&'static str] {
        match self {
            Body::Process(_) => &["kill", "signal", "pause"],
            Body::Programs(_) => &["run"],
            Body::Unit(_) => &["kill", "stop", "pause"],
            Body::Container(_) => &["kill", "stop", "pause", "isolate"],
            Body::Pods(_) => &["kill"],
            Body::Deployment { .. } => &["scale"],
            Body::Node(_) => &["cordon"],
            Body::Address(_) => &["drop"],
            Body::Database(_) => &["hold"],
        }
    }

    fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        match self {
            Body::Process(process) => {
                each(&mut process.pid_file);
                process.executable.iter_mut().for_each(&mut *each);
                if let Some(Start::Program(program)) = &mut process.start {
                    program.each_template(each);
                }
            }
            Body::Programs(programs) => programs
                .all_mut()
                .for_each(|program| program.each_template(each)),
            Body::Address(address) | Body::Database(address) => each(address),
            Body::Unit(_)
            | Body::Container(_)
            | Body::Pods(_)
            | Body::Deployment { .. }
            | Body::Node(_) => {}
        }
    }
}

impl Programs {
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Program> {
        let others = [&mut self.undo, &mut self.observe, &mut self.undone];
        std::iter::once(&mut self.run).chain(others.into_iter().flatten())
    }
}

impl Program {
    fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.arguments.iter_mut().for_each(&mut *each);
        self.directory.iter_mut().for_each(&mut *each);
        self.environment
            .iter_mut()
            .for_each(|(_, value)| each(value));
    }
}

impl fmt::Display for Program {
    /// As one would type it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, argument) in self.arguments.iter().enumerate() {
            let blank = if row > 0 { " " } else { "" };
            write!(formatter, "{blank}{argument}")?;
        }
        Ok(())
    }
}

impl Component {
    /// What it is, in words that are the same for every target file that means it.
    #[must_use]
    pub fn what(&self) -> String {
        match &self.body {
            Body::Process(process) => format!("the process of {}", process.pid_file),
            Body::Programs(programs) => format!("what `{}` acts on", programs.run),
            Body::Unit(unit) => format!("the unit {unit}"),
            Body::Container(container) => {
                format!(
                    "the {} container {}",
                    container.engine.program(),
                    container.name
                )
            }
            Body::Pods(selector) => format!("the pods of {selector}"),
            Body::Deployment { namespace, name } => format!("the deployment {namespace}/{name}"),
            Body::Node(node) => format!("the node {node}"),
            Body::Address(address) => format!("the packets of {address}"),
            Body::Database(database) => format!("the sessions of {database}"),
        }
    }

    /// Calls `each` with every text of it that may hold placeholders.
    pub fn each_template(&mut self, each: &mut dyn FnMut(&mut Template)) {
        self.body.each_template(each);
        self.port.iter_mut().for_each(each);
    }

    /// The addresses that it names, each with the key under which it stands.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&'static str, &Template)> {
        let body = match &self.body {
            Body::Address(address) => Some(("address", address)),
            // As long as all of it is a secret, nobody knows the host.
            Body::Database(address) if address.to_string().contains("://") => {
                Some(("database", address))
            }
            _ => None,
        };
        self.port.iter().map(|port| ("port", port)).chain(body)
    }
}

impl Act {
    /// The key of the fault.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Act::Kill { .. } => "kill",
            Act::Stop => "stop",
            Act::Pause => "pause",
            Act::Signal(_) => "signal",
            Act::Isolate => "isolate",
            Act::Run => "run",
            Act::Scale { .. } => "scale",
            Act::Cordon => "cordon",
            Act::Drop(_) => "drop",
            Act::Hold { .. } => "hold",
        }
    }

    /// What it does to the component of this name, for people.
    #[must_use]
    pub fn text(self, component: &str) -> String {
        match self {
            Act::Kill { count: 1 } => format!("kill {component}"),
            Act::Kill { count } => format!("kill {count} of {component}"),
            Act::Stop => format!("stop {component}"),
            Act::Pause => format!("pause {component}"),
            Act::Signal(signal) => format!("{} to {component}", signal.name()),
            Act::Isolate => format!("take {component} out of its network"),
            Act::Run => format!("run {component}"),
            Act::Scale { to } => format!("scale {component} to {to}"),
            Act::Cordon => format!("cordon {component}"),
            Act::Drop(Dropped::To) => format!("drop packets to {component}"),
            Act::Drop(Dropped::From) => format!("drop packets from {component}"),
            Act::Drop(Dropped::Both) => format!("drop packets to and from {component}"),
            Act::Hold { connections: 1 } => format!("hold a connection of {component}"),
            Act::Hold { connections } => format!("hold {connections} connections of {component}"),
        }
    }

    /// What undoes it, for people.
    #[must_use]
    pub fn undo_text(self, component: &Component, target: &Target) -> String {
        match (&component.body, self) {
            (Body::Process(_), Act::Pause) => "SIGCONT".to_owned(),
            (Body::Process(process), _) => match &process.start {
                Some(Start::Operation(row)) => {
                    let operation = &target.operations[*row];
                    let (method, url) = (operation.request.method.name(), &operation.request.url);
                    format!("{}: {method} {url}", operation.name)
                }
                Some(Start::Program(program)) => format!("run {program}"),
                None => irreversible(),
            },
            (Body::Programs(programs), _) => match &programs.undo {
                Some(undo) => format!("run {undo}"),
                None => irreversible(),
            },
            (Body::Unit(unit), Act::Pause) => format!("systemctl thaw {unit}"),
            (Body::Unit(unit), _) => format!("systemctl start {unit}"),
            (Body::Container(container), act) => {
                let (engine, name) = (container.engine.program(), &container.name);
                match act {
                    Act::Pause => format!("{engine} unpause {name}"),
                    Act::Isolate => format!("{engine} network connect … {name}"),
                    _ => format!("{engine} start {name}"),
                }
            }
            (Body::Pods(_), _) => "none needed: their controller makes them anew".to_owned(),
            (Body::Deployment { name, .. }, _) => {
                format!("kubectl scale {name} to the replicas that it had")
            }
            (Body::Node(node), _) => format!("kubectl uncordon {node}"),
            (Body::Address(_), _) => "the table of nftables that holds the rule is deleted".into(),
            (Body::Database(_), _) => "the process that holds the sessions is ended".to_owned(),
        }
    }
}

fn irreversible() -> String {
    "none: the target file says irreversible".to_owned()
}

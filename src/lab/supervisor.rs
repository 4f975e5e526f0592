//! The supervisor: starts the lab's processes, starts a shard anew when asked, and ends them all when it ends.
//!
//! It restarts nothing by itself: a component that was killed stays down until an operation asks for it.

use super::children::{self, News, Running, StartError};
use super::defect::{Defect, UnknownDefect};
use super::listen::{self, ListenError};
use super::messages::{ChildSays, ParentSays};
use super::pki::{self, Pki, PkiError};
use super::settings::{SettingError, Settings};
use super::{LabArguments, Part, Tls, database, gateway, shard};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// How long the whole lab may take to stand.
const START_LIMIT: Duration = Duration::from_secs(30);

/// What the arguments ask for, checked.
pub struct Plan {
    dir: Option<PathBuf>,
    shards: u16,
    database: Option<gateway::DatabaseAddress>,
    tls: Tls,
    on: Vec<Defect>,
    settings: Settings,
    through_link: bool,
    stop_with_parent: bool,
}

/// Arguments that can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    Defect(#[from] UnknownDefect),
    #[error("{0}")]
    Setting(#[from] SettingError),
    #[error("{0}")]
    Database(#[from] gateway::AddressError),
}

/// Why the lab could not start or run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("{0}")]
    Start(#[from] StartError),
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error("{name} could not start: {why}")]
    Failed { name: String, why: String },
    #[error("{name} ended before the lab was ready ({status})")]
    Ended { name: String, status: String },
    #[error("the lab was not ready within {} s; nothing of it is left running", START_LIMIT.as_secs())]
    Slow,
    #[error("{0}")]
    Pki(#[from] PkiError),
    #[error("can't use the folder {}: {source}", dir.display())]
    Dir { dir: PathBuf, source: io::Error },
    #[error("the runtime can't start: {0}")]
    Runtime(#[from] io::Error),
}

impl Plan {
    /// Checks the arguments.
    ///
    /// # Errors
    /// For an unknown defect or setting, a value out of range, or a database address that can't be used.
    pub fn of(arguments: LabArguments) -> Result<Plan, PlanError> {
        Ok(Plan {
            dir: arguments.dir,
            shards: arguments.shards,
            database: arguments
                .database
                .map(|url| gateway::DatabaseAddress::parse(&url))
                .transpose()?,
            tls: arguments.tls,
            on: arguments
                .on
                .iter()
                .map(|name| name.parse())
                .collect::<Result<_, _>>()?,
            settings: Settings::with(&arguments.set)?,
            through_link: arguments.through_link,
            stop_with_parent: arguments.stop_with_parent,
        })
    }
}

/// Runs the lab until it is told to end.
///
/// # Errors
/// If it can't start. Nothing of it is left running then.
pub fn run(plan: Plan) -> Result<(), LabError> {
    let (dir, temporary) = match &plan.dir {
        Some(dir) => (dir.clone(), false),
        None => (
            std::env::temp_dir().join(format!("rushhour-lab-{}", std::process::id())),
            true,
        ),
    };
    fs::create_dir_all(&dir).map_err(|source| LabError::Dir {
        dir: dir.clone(),
        source,
    })?;
    let dir = dir.canonicalize().map_err(|source| LabError::Dir {
        dir: dir.clone(),
        source,
    })?;
    // One thread, this one: the kernel kills the children when the thread that started them ends.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(supervise(plan, &dir));
    // Dropping the runtime kills and reaps what still runs.
    drop(runtime);
    let _ = fs::remove_file(children::pid_file(&dir, "lab"));
    let _ = fs::remove_file(dir.join("lab.json"));
    // The authority ends with the lab: its key must not stay behind.
    let _ = fs::remove_dir_all(pki::folder(&dir));
    if temporary {
        let _ = fs::remove_dir_all(&dir);
    }
    outcome
}

/// What the supervisor knows of its processes.
struct Family<'a> {
    dir: &'a Path,
    ports: Ports,
    tls: Option<shard::TlsFiles>,
    settings: Settings,
    running: BTreeMap<String, Running>,
    news: mpsc::Sender<News>,
    /// Shards that are being started anew: down first, then up.
    restarting: BTreeMap<String, u16>,
}

/// Where everything listens on 127.0.0.1.
struct Ports {
    api: u16,
    metrics: u16,
    /// Where shards find the gateway.
    gateway: u16,
    database: u16,
    link: u16,
    shards: Vec<u16>,
}

impl Ports {
    fn choose(shards: u16) -> Result<Ports, ListenError> {
        let free = listen::free_ports(5 + usize::from(shards))?;
        Ok(Ports {
            api: free[0],
            metrics: free[1],
            gateway: free[2],
            database: free[3],
            link: free[4],
            shards: free[5..].to_vec(),
        })
    }
}

async fn supervise(plan: Plan, dir: &Path) -> Result<(), LabError> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut parent_gone = watch_parent(plan.stop_with_parent);
    let (news, mut heard) = mpsc::channel(256);
    let ports = Ports::choose(plan.shards)?;
    let mut family = Family {
        dir,
        ports,
        tls: None,
        settings: plan.settings.clone(),
        running: BTreeMap::new(),
        news,
        restarting: BTreeMap::new(),
    };
    let mut outcome = tokio::select! {
        started = tokio::time::timeout(START_LIMIT, family.start(&plan, &mut heard)) => {
            started.unwrap_or(Err(LabError::Slow)).map(|()| true)
        }
        _ = terminated.recv() => Ok(false),
        _ = interrupted.recv(), if !plan.stop_with_parent => Ok(false),
        _ = parent_gone.recv() => Ok(false),
    };
    if let Ok(true) = outcome {
        outcome = family.announce(&plan).map(|()| true);
    }
    if let Ok(true) = outcome {
        loop {
            tokio::select! {
                news = heard.recv() => if let Some(news) = news { family.hear(news); },
                _ = terminated.recv() => break,
                // Ctrl-C reaches the whole process group; with a parent it is the parent who says when.
                _ = interrupted.recv() => if !plan.stop_with_parent { break },
                _ = parent_gone.recv() => break,
            }
        }
    }
    family.end(&mut heard).await;
    outcome.map(|_| ())
}

/// Tells when standard input has ended; never, unless asked for.
fn watch_parent(wanted: bool) -> mpsc::Receiver<()> {
    let (tell, told) = mpsc::channel(1);
    std::thread::spawn(move || {
        if wanted {
            let mut ignored = [0; 256];
            while matches!(io::stdin().read(&mut ignored), Ok(length) if length > 0) {}
            let _ = tell.blocking_send(());
        }
        // Kept open for ever: a closed channel would look like a message.
        loop {
            std::thread::park();
        }
    });
    told
}

impl Family<'_> {
    async fn start(
        &mut self,
        plan: &Plan,
        heard: &mut mpsc::Receiver<News>,
    ) -> Result<(), LabError> {
        let file = children::pid_file(self.dir, "lab");
        children::write_pid(&file, Some(std::process::id())).map_err(|source| LabError::Dir {
            dir: self.dir.to_owned(),
            source,
        })?;
        if plan.tls != Tls::Off {
            let pki = Pki::create(self.dir)?;
            self.tls = Some(shard::TlsFiles {
                certificate: pki.server,
                key: pki.server_key,
                clients_of: (plan.tls == Tls::Mutual).then_some(pki.authority),
            });
        }
        if plan.database.is_none() {
            let configuration = database::Configuration {
                port: self.ports.database,
                settings: plan.settings.clone(),
            };
            self.launch(Part::Database, "database", &configuration)?;
            expect(heard, "database", &ChildSays::Listening).await?;
        }
        let address = plan
            .database
            .clone()
            .unwrap_or_else(|| gateway::DatabaseAddress::embedded(self.ports.database));
        let configuration = gateway::Configuration {
            api: self.ports.api,
            metrics: self.ports.metrics,
            shard_link: self.ports.gateway,
            shards: plan.shards,
            shard_ports: self.ports.shards.clone(),
            sleeps_itself: plan.database.is_none(),
            database: if plan.through_link {
                address.through(self.ports.link)
            } else {
                address
            },
            wait_for_database: plan.through_link,
            on: plan
                .on
                .iter()
                .map(|defect| defect.name().to_owned())
                .collect(),
            settings: plan.settings.clone(),
        };
        self.launch(Part::Gateway, "gateway", &configuration)?;
        expect(heard, "gateway", &ChildSays::Listening).await?;
        for number in 1..=plan.shards {
            self.launch_shard(number)?;
        }
        expect(heard, "gateway", &ChildSays::Ready).await
    }

    fn launch(
        &mut self,
        part: Part,
        name: &str,
        configuration: &impl serde::Serialize,
    ) -> Result<(), StartError> {
        let child = children::start(part, name, configuration, self.dir, &self.news)?;
        self.running.insert(name.to_owned(), child);
        Ok(())
    }

    fn launch_shard(&mut self, number: u16) -> Result<(), StartError> {
        let configuration = shard::Configuration {
            number,
            port: self.ports.shards[usize::from(number) - 1],
            gateway: self.ports.gateway,
            tls: self.tls.clone(),
            settings: self.settings.clone(),
        };
        self.launch(Part::Shard, &shard_name(number), &configuration)
    }

    /// Says on standard output and in `lab.json` where everything stands.
    fn announce(&self, plan: &Plan) -> Result<(), LabError> {
        let mut line = Map::new();
        let mut put = |name: &str, value: String| line.insert(name.to_owned(), json!(value));
        put("dir", self.dir.display().to_string());
        put("api", format!("http://127.0.0.1:{}", self.ports.api));
        put(
            "metrics",
            format!("http://127.0.0.1:{}", self.ports.metrics),
        );
        for (index, port) in self.ports.shards.iter().enumerate() {
            put(&format!("shard-{}", index + 1), format!("127.0.0.1:{port}"));
        }
        let embedded = || format!("127.0.0.1:{}", self.ports.database);
        put(
            "database",
            plan.database
                .as_ref()
                .map_or_else(embedded, |address| address.host_and_port()),
        );
        put("db-link", format!("127.0.0.1:{}", self.ports.link));
        let line = Value::Object(line).to_string();
        fs::write(self.dir.join("lab.json"), format!("{line}\n")).map_err(|source| {
            LabError::Dir {
                dir: self.dir.to_owned(),
                source,
            }
        })?;
        let mut out = io::stdout().lock();
        // Nobody has to listen: lab.json says the same.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        Ok(())
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Said { name, what } => match what {
                ChildSays::Restart { shard } => self.restart(shard),
                ChildSays::Listening => self.restarted(&name, None),
                ChildSays::Failed { why } => self.restarted(&name, Some(why)),
                ChildSays::Ready => {}
            },
            News::Ended { name, status } => {
                self.running.remove(&name);
                match self.restarting.get(&name) {
                    Some(&number) => {
                        if let Err(problem) = self.launch_shard(number) {
                            self.restarted(&name, Some(problem.to_string()));
                        }
                    }
                    None => eprintln!("rushhour lab: {name} ended ({})", describe(status)),
                }
            }
        }
    }

    fn restart(&mut self, number: u16) {
        let name = shard_name(number);
        self.restarting.insert(name.clone(), number);
        if let Some(child) = self.running.get_mut(&name) {
            child.kill();
        } else if let Err(problem) = self.launch_shard(number) {
            self.restarted(&name, Some(problem.to_string()));
        }
    }

    fn restarted(&mut self, name: &str, problem: Option<String>) {
        let Some(shard) = self.restarting.remove(name) else {
            return;
        };
        if let Some(gateway) = self.running.get("gateway") {
            gateway.say(ParentSays::Restarted { shard, problem });
        }
    }

    /// Kills every child and waits until all are gone.
    async fn end(&mut self, heard: &mut mpsc::Receiver<News>) {
        self.running.values_mut().for_each(Running::kill);
        while !self.running.is_empty() {
            if let Some(News::Ended { name, .. }) = heard.recv().await {
                self.running.remove(&name);
            }
        }
    }
}

fn shard_name(number: u16) -> String {
    format!("shard-{number}")
}

/// Waits until a child says something; any child's failure or end is the lab's.
async fn expect(
    heard: &mut mpsc::Receiver<News>,
    from: &str,
    wanted: &ChildSays,
) -> Result<(), LabError> {
    while let Some(news) = heard.recv().await {
        match news {
            News::Said {
                name,
                what: ChildSays::Failed { why },
            } => return Err(LabError::Failed { name, why }),
            News::Said { name, what } if name == from && what == *wanted => return Ok(()),
            News::Said { .. } => {}
            News::Ended { name, status } => {
                return Err(LabError::Ended {
                    name,
                    status: describe(status),
                });
            }
        }
    }
    Err(LabError::Slow)
}

fn describe(status: Option<std::process::ExitStatus>) -> String {
    status.map_or_else(|| "state unknown".to_owned(), |status| status.to_string())
}

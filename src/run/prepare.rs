//! Everything before the first packet: files read, secrets fetched, limits checked, the lab started, names resolved.
//!
//! What is refused here was refused before any load.

use super::chaos_parts::{self, ChaosParts};
use super::folder::{self, Folder};
use super::interrupt::Interrupt;
use super::lab_process::LabProcess;
use super::{RunArguments, Stopped};
use crate::net::hosts::Hosts;
use crate::net::http::Http;
use crate::net::secrets::{Redactor, Secrets};
use crate::plan::fault::Link;
use crate::plan::{Plan, Target};
use crate::spec;
use crate::watch::exporter::Exporter;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, timeout};

/// How long the lab may take until it serves.
const SERVES_LIMIT: Duration = Duration::from_secs(30);
/// How long the look-up of all names may take.
const RESOLVE_LIMIT: Duration = Duration::from_secs(20);
/// How long the lab may take to end.
const LAB_GOODBYE: Duration = Duration::from_secs(5);

/// A run that may begin.
pub struct Prepared {
    /// The plan with every `<lab.…>` and `<secret.…>` made text.
    pub plan: Arc<Plan>,
    pub hosts: Arc<Hosts>,
    pub redactor: Redactor,
    pub folder: Folder,
    pub lab: Option<LabProcess>,
    /// Keeps the commands of two runs against one target apart.
    pub run_tag: String,
    pub chaos: Option<ChaosParts>,
    pub started: SystemTime,
    /// The command line that runs it again.
    pub replay: String,
    /// Where the running test is shown, if it is.
    pub exporter: Option<Arc<Exporter>>,
}

impl Prepared {
    /// Ends what was started: links, then the lab.
    ///
    /// # Errors
    /// With everything that does not end as it should.
    pub async fn close(self) -> Result<(), Stopped> {
        let mut problems = Vec::new();
        if let Some(chaos) = self.chaos {
            problems.extend(chaos.close(&self.folder).await.err());
        }
        if let Some(lab) = self.lab {
            problems.extend(
                lab.stop(LAB_GOODBYE)
                    .await
                    .err()
                    .map(|error| error.to_string()),
            );
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Stopped::Internal(format!(
            "error: after the run: {}",
            problems.join("; ")
        )))
    }
}

/// Prepares a run.
///
/// # Errors
/// With everything that stands against it.
pub async fn prepare(arguments: &RunArguments, interrupt: &Interrupt) -> Result<Prepared, Stopped> {
    let mut links = None;
    let prepared = tokio::select! {
        prepared = uninterrupted(arguments, &mut links) => prepared,
        ending = interrupt.wait() => Err(Stopped::Interrupted(ending)),
    };
    match (prepared, links) {
        (Ok(begun), chaos) => Ok(Prepared { chaos, ..begun }),
        (Err(stopped), Some(chaos)) => {
            // Links outlive the process that started them: what can't begin takes them with it.
            if let Err(problem) = chaos.end_links().await {
                eprintln!("error: {problem}");
            }
            Err(stopped)
        }
        (Err(stopped), None) => Err(stopped),
    }
}

/// Everything but the links, which are left in `links` so that they can be ended whatever happens.
async fn uninterrupted(
    arguments: &RunArguments,
    links: &mut Option<ChaosParts>,
) -> Result<Prepared, Stopped> {
    let mut plan = super::plan(arguments)?;
    chaos_parts::refuse_unhealed()?;
    let secrets = Secrets::read(&plan.target.secrets).map_err(|errors| {
        let lines: Vec<String> = errors
            .iter()
            .map(|error| format!("error: {error}"))
            .collect();
        Stopped::Refused(lines.join("\n"))
    })?;
    let redactor = secrets.redactor();
    let exporter = arguments.metrics.map(Exporter::start).transpose();
    let exporter = exporter.map_err(|error| Stopped::Refused(format!("error: {error}")))?;
    if let Some(exporter) = &exporter {
        eprintln!("metrics: http://{}/metrics", exporter.address());
    }
    super::limits::refuse_shortage(&plan)?;
    let folder = Folder::create(&arguments.out).map_err(Stopped::refused)?;
    folder
        .keep_inputs(&spec::files(&arguments.sources()), &redactor)
        .map_err(Stopped::refused)?;
    let lab = start_lab(&plan.target, &folder).await?;
    plan.target = plan.target.resolve(&|name| {
        lab.as_ref()?
            .places
            .get(name.strip_prefix("lab.")?)
            .cloned()
    });
    let with_placeholders = plan.clone();
    plan.target = plan.target.resolve(&|name| {
        secrets
            .value(name.strip_prefix("secret.")?)
            .map(str::to_owned)
    });
    let hosts = Arc::new(Hosts::of(&plan.target).map_err(Stopped::refused)?);
    match timeout(RESOLVE_LIMIT, hosts.resolve_all()).await {
        Ok(resolved) => resolved.map_err(Stopped::refused)?,
        Err(_) => {
            let limit = RESOLVE_LIMIT.as_secs();
            return Err(Stopped::Refused(format!(
                "error: the target's names were not resolved within {limit} s"
            )));
        }
    }
    *links = ChaosParts::start(
        with_placeholders,
        &folder,
        lab.as_ref().and_then(LabProcess::id),
        &hosts,
    )
    .await?;
    if let Some(lab) = &lab {
        lab_serves(lab, &hosts).await?;
    }
    Ok(Prepared {
        plan: Arc::new(plan),
        hosts,
        redactor,
        folder,
        lab,
        run_tag: folder::random_letters(6),
        chaos: None,
        started: SystemTime::now(),
        replay: arguments.replay(),
        exporter: exporter.map(Arc::new),
    })
}

async fn start_lab(target: &Target, folder: &Folder) -> Result<Option<LabProcess>, Stopped> {
    let Some(spec) = &target.lab else {
        return Ok(None);
    };
    let through_link = target
        .links
        .iter()
        .filter_map(Link::addresses)
        .any(|link| link.listen.names().any(|name| name == "lab.db-link"));
    let lab = LabProcess::start(spec, through_link, &folder.path().join("lab")).await;
    lab.map(Some).map_err(Stopped::refused)
}

/// Waits until the lab's interface says that everything behind it works.
///
/// # Errors
/// If it does not within [`SERVES_LIMIT`].
pub(super) async fn lab_serves(lab: &LabProcess, hosts: &Arc<Hosts>) -> Result<(), Stopped> {
    let Some(api) = lab.places.get("api") else {
        return Ok(());
    };
    let address = format!("{api}/ready");
    let http =
        Http::new(Arc::clone(hosts), 1, Duration::from_secs(2)).map_err(Stopped::internal)?;
    let limit = Instant::now() + SERVES_LIMIT;
    loop {
        let answer = http.get(&address, Duration::from_secs(2)).await;
        match answer.result {
            Ok(200) => return Ok(()),
            _ if Instant::now() < limit => sleep(Duration::from_millis(50)).await,
            other => {
                let result = match other {
                    Ok(status) => format!("answers {status}"),
                    Err(outcome) => outcome.to_string(),
                };
                let said = String::from_utf8_lossy(&answer.body).into_owned();
                let limit = SERVES_LIMIT.as_secs();
                return Err(Stopped::Refused(format!(
                    "error: the lab does not serve after {limit} s ({address} {result}: {said}); if `--database` is given, look whether it can be reached"
                )));
            }
        }
    }
}
